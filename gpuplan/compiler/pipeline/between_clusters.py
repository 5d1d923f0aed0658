"""What is wrong with clusters together, where each is right by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.delivery.indexes import group, root_folder, syncing_others
from gpuplan.compiler.pipeline.rules import SEVERAL_ARGO_CDS, SHARED_NAMES
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.sync_names import root_name, sync_name


class _Object(NamedTuple):
    """An object of Argo CD or of Flux in the cluster where those run."""

    kind: str
    namespace: str
    name: str


def check_together(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """What is wrong with the objects of Argo CD or of Flux, which may lie beside those of other clusters."""
    yield from _shared_names(plans)
    yield from _several_argo_cds(plans)


def _shared_names(plans: Sequence[Plan]) -> Iterator[Diagnostic]:
    """Those that two clusters call the same in the same namespace.

    Names are joined by `-`, which names may hold: pool `b-c` of cluster `a` is like pool `c` of cluster `a-b`.
    """
    written: defaultdict[_Object, list[tuple[Plan, Origin]]] = defaultdict(list)
    for plan in plans:
        for item, at in dict(_objects(plan)).items():
            written[item].append((plan, at))
    for item, places in written.items():
        for (first, other), (second, at) in combinations(places, 2):
            if item.kind != "Kustomization" or _is_remote(first) or _is_remote(second):
                names = first.cluster.name, second.cluster.name
                yield Diagnostic(SHARED_NAMES, _finding(item, at, other, *names), clusters=names)


def _objects(plan: Plan) -> Iterator[tuple[_Object, Origin]]:
    """What may be called as another cluster's is, and where the policy says so."""
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
    """Argo CDs that each sync clusters which they do not run in: no folder of the output is for both."""
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
    """A cluster has a Flux of its own, unless it is reached with a kubeconfig."""
    return plan.cluster.flux is not None and bool(plan.cluster.flux.spec.kube_config_secret)


def _finding(item: _Object, at: Origin, other: Origin, first: str, second: str) -> Finding:
    message = f"two clusters write the {item.kind} `{item.name}`"
    if item.kind == "AppProject":
        help_ = "give each cluster a project of its own: without `project` it is called `gpuplan-<cluster>`"
        return Finding(at, message, label="one of them", related=(Label(other, "the other"),), help=help_)
    related = (Label(other, f"in cluster `{first}`"),)
    return Finding(at, message, label=f"in cluster `{second}`", related=related, help="rename one of the two")
