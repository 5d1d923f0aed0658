"""Judge plans: each by itself, and the clusters together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from posixpath import normpath

from gpuplan.compiler import checks
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin
from gpuplan.compiler.base.repository import find_repository
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import closest
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.delivery.indexes import group, root_folder, runs_in, syncing_others
from gpuplan.compiler.manifests import has_schemas, kubernetes_versions
from gpuplan.compiler.outtree.rules import ELSEWHERE
from gpuplan.compiler.pipeline.judges import plan_judges
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.pipeline.rules import SEVERAL_ARGO_CDS, SHARED_NAMES, UNKNOWN_KUBERNETES
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.sync_names import root_name, sync_name


def judge_plan(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return all that reading one cluster's plan can find, and the files that are written by hand for it."""
    version = plan.cluster.spec.kubernetes
    diagnostics: list[Diagnostic] = []
    if not has_schemas(version):
        oldest, newest = kubernetes_versions()
        finding = Finding(
            plan.cluster.at / "kubernetes",
            f"there are no schemas for Kubernetes {version}",
            label=f"{oldest} to {newest} are known",
            help=f'write one from "{oldest}" to "{newest}"',
        )
        diagnostics.append(Diagnostic(UNKNOWN_KUBERNETES, finding, (plan.cluster.name,)))
    by_features = (diagnostic for judge in plan_judges() for diagnostic in judge(plan))
    return (*diagnostics, *checks.run(plan), *by_features)


class _Object(NamedTuple):
    """An object of Argo CD or of Flux in the cluster where those run."""

    kind: str
    namespace: str
    name: str


def check_together(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """Yield findings on the objects of Argo CD or of Flux, which may lie beside those of other clusters.

    Two clusters may call an object the same in the same namespace, since names are joined by `-`, which names may hold:
    pool `b-c` of cluster `a` is like pool `c` of cluster `a-b`. Of two folders with one cluster's name, which is an
    error by itself, the first counts.
    """
    plans = tuple({plan.cluster.name: plan for plan in reversed(plans)}.values())[::-1]
    written: defaultdict[_Object, list[tuple[Plan, Origin]]] = defaultdict(list)
    for plan in plans:
        for synced, at in dict(_objects(plan)).items():
            written[synced].append((plan, at))
    for synced, places in written.items():
        for (first, other), (second, at) in combinations(places, 2):
            if synced.kind != "Kustomization" or _is_remote(first) or _is_remote(second):
                names = first.cluster.name, second.cluster.name
                yield Diagnostic(SHARED_NAMES, _shared_name(synced, at, other, *names), clusters=names)
    yield from _several_argo_cds(plans)
    yield from _one_destination(plans)


def judge_place(plans: Sequence[Plan], root: Path) -> Iterator[Diagnostic]:
    """Yield a finding on each `path` that is not where `out/` is: left to its default, or written nearly like it."""
    repository = find_repository(root)
    if repository is None:
        return
    path = f"{repository.prefix}{OUT}"
    for plan in plans:
        for tool, said in (("Argo CD", plan.cluster.argocd), ("Flux", plan.cluster.flux)):
            written = normpath(said.spec.path) if said else path
            if said is None or written == path:
                continue
            at, place, help_ = said.at / "path", f"in `{written}/` of the repository", f"did you mean `{path}`?"
            if "path" not in said.spec.model_fields_set:
                at, place = said.at, f"for `{OUT}/` at the top of the repository"
                help_ = f"write `path: {path}` there, or `path: {OUT}` if `{OUT}/` is copied to another repository"
            elif written == OUT or not closest(written, (path,), likeness=0.8) or (repository.top / written).exists():
                continue
            finding = Finding(at, f"{tool} would look {place}, and `{path}/` is what is written", help=help_)
            yield Diagnostic(ELSEWHERE, finding, (plan.cluster.name,))


def _one_destination(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """Yield a finding for each cluster that an Argo CD would sync to where it syncs another one."""
    synced: dict[tuple[str, str], Plan] = {}
    for plan in plans:
        if plan.cluster.argocd is None or runs_in(plan):
            continue
        argocd = plan.cluster.argocd
        to = argocd.spec.destination.server or argocd.spec.destination.name or ""
        first = synced.setdefault((argocd.namespace, to), plan)
        if first is not plan and first.cluster.argocd is not None:
            names = first.cluster.name, plan.cluster.name
            finding = Finding(
                argocd.at / "destination",
                f"clusters `{names[0]}` and `{names[1]}` are synced to one cluster, `{to}`",
                label=f"in cluster `{names[1]}`",
                related=(Label(first.cluster.argocd.at / "destination", f"in cluster `{names[0]}`"),),
                help=f"write the address or the name of `{names[1]}`, as `argocd cluster list` shows it",
            )
            yield Diagnostic(SHARED_NAMES, finding, clusters=names)


def _objects(plan: Plan) -> Iterator[tuple[_Object, Origin]]:
    """Yield each object that another cluster may have by the same name, with the place where the policy names it."""
    argocd, flux, cluster = plan.cluster.argocd, plan.cluster.flux, plan.cluster.name
    kinds = {"Kustomization": flux.spec.namespace} if flux else {}
    if argocd is not None:
        kinds["Application"] = argocd.namespace
        yield _Object("AppProject", argocd.namespace, argocd.project), argocd.at / "project"
        if argocd.spec.root:
            yield _Object("AppProject", argocd.namespace, root_name(cluster)), argocd.at / "root"
    for kind, namespace in kinds.items():
        for pool in plan.pools:
            yield _Object(kind, namespace, sync_name(cluster, f"{Stage.PARTITIONS}/{pool.name}")), name_of(pool.at)
        for tenant in plan.tenants:
            for index, name in enumerate(tenant.spec.namespaces):
                at = tenant.at / "namespaces" / index
                yield _Object(kind, namespace, sync_name(cluster, f"{Stage.NAMESPACES}/{name}")), at


def _several_argo_cds(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """Yield a finding for each further Argo CD that syncs other clusters: no folder of the output is for both."""
    first, *others = syncing_others(group(plans)) or [()]
    for clusters in others:
        one, other = clusters[0].cluster, first[0].cluster
        if one.argocd and other.argocd:
            folders = root_folder(clusters), root_folder(first)
            finding = Finding(
                one.argocd.at / "namespace",
                f"the Argo CD of cluster `{one.name}` is another one than that of `{other.name}`: "
                "`argocd/` is for neither",
                label=f"in the namespace `{one.argocd.namespace}`",
                related=(Label(other.argocd.at / "namespace", f"in the namespace `{other.argocd.namespace}`"),),
                help=f"have this one apply `argocd/{folders[0]}`, and the other `argocd/{folders[1]}`",
            )
            yield Diagnostic(SEVERAL_ARGO_CDS, finding, clusters=(one.name, other.name))


def _is_remote(plan: Plan) -> bool:
    """Whether the cluster is reached with a kubeconfig; any other has a Flux of its own."""
    return plan.cluster.flux is not None and bool(plan.cluster.flux.spec.kube_config_secret)


def _shared_name(synced: _Object, at: Origin, other: Origin, first: str, second: str) -> Finding:
    message = f"two clusters write the {synced.kind} `{synced.name}`"
    if synced.kind == "AppProject":
        help_ = "give each cluster a project of its own: without `project` it is called `gpuplan-<cluster>`"
        return Finding(at, message, label="one of them", related=(Label(other, "the other"),), help=help_)
    related = (Label(other, f"in cluster `{first}`"),)
    return Finding(at, message, label=f"in cluster `{second}`", related=related, help="rename one of the two")
