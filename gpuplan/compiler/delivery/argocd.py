"""The objects by which Argo CD syncs a cluster's folders: an AppProject, an Application for each folder, health checks.

What a change may disturb decides where one Application ends and the next begins (docs/adr/0007): each pool's partitions
have one of their own, with that pool's approval and windows, and each namespace has one, so that no build is large.
Waves order when Applications are created, and not what they sync: that is for a root (`argocd_root`). After each wave
but the last Argo CD waits until it is healthy, so whatever a person is to start is in the last one, where it holds up
nothing. What the options mean is in Argo CD's `docs/user-guide/sync-options.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from functools import cache, partial
from pathlib import Path
from posixpath import relpath
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.catalog.operators import KindName, chart_kinds
from gpuplan.compiler.delivery import argocd_root as roots
from gpuplan.compiler.delivery.annotations import SYNC_WAVE
from gpuplan.compiler.delivery.argocd_root import (
    RESOURCES_FINALIZER,
    RETRY_NEWEST,
    automated,
    folder_path,
    git_source,
    labels,
    metadata,
)
from gpuplan.compiler.delivery.argocd_traces import Traces
from gpuplan.compiler.delivery.charts import Chart, chart_of, charts
from gpuplan.compiler.delivery.reasons import FindWhys, Reasons
from gpuplan.compiler.manifests import HEADER, File, Manifest, identity_of, to_yaml
from gpuplan.compiler.manifests.kinds import find_kind, known_kinds
from gpuplan.compiler.manifests.kustomization import Apart
from gpuplan.compiler.planning.apis import find_chart, lacks_kind
from gpuplan.compiler.planning.appliers import (
    ANY_PART,
    SETS,
    Applier,
    get_applier,
    has_chart,
    is_applied_by_client,
    is_pruned,
)
from gpuplan.compiler.planning.gpu_operator import rules_group
from gpuplan.compiler.planning.plan import Argocd, Plan, Stage
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.planning.sync_names import COMPARE_OPTIONS, sync_name
from gpuplan.compiler.policy.models import NodeLabels, Platform

if TYPE_CHECKING:
    from gpuplan.compiler.delivery import Folder


def render(
    plan: Plan, folders: Sequence[Folder], out: str = "out", find_whys: FindWhys = tuple
) -> Iterator[Manifest | File]:
    """Yield the objects for Argo CD's own cluster, and what somebody must merge into Argo CD's configuration.

    A folder that applies nothing has no Application: Argo CD would call it empty and refuse to sync it.
    """
    argocd = plan.cluster.argocd
    if argocd is None:
        return
    cluster, of = about(plan.cluster), Traces(plan, argocd, Reasons(folders, find_whys))
    top = roots.FOLDER if argocd.spec.root else ""
    whole = about(plan.cluster, *(pool for pool in plan.pools if pool.windows), *plan.tenants)
    project = _app_project(plan, argocd, folders)
    yield Manifest(top, project, about=whole, trace=partial(of.app_project, project["spec"]))
    digests = {folder.path: folder.digest for folder in folders}
    children: list[tuple[Applier, Mapping[str, Any]]] = []
    for applier in _appliers(plan, [folder.path for folder in folders]):
        is_set = applier.folder.endswith(f"/{ANY_PART}")
        body = (_application_set if is_set else _application)(plan, argocd, applier, out)
        if applier.root:
            body = roots.ordered(plan, argocd, body, digests[applier.folder])
            children.append((applier, body))
        trace = partial(of.application_set if is_set else of.application, applier)
        yield Manifest(top, body, about=about(applier.pool) if applier.pool else cluster, trace=trace)
    if argocd.spec.root:
        yield from roots.render(plan, argocd, children, of)
    of_checks = of.health_checks if argocd.spec.root or find_chart(plan.cluster) else None
    yield File(_CONFIG_MAP_FILE, _config_map_patch(plan, argocd), about=cluster, trace=of_checks)
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        yield File(_OPERATOR_FILE, _operator_patch(plan, argocd), about=cluster, trace=of.operator_patch)


def _appliers(plan: Plan, paths: Sequence[str]) -> Iterator[Applier]:
    """Yield what syncs these folders, those whose Applications are made by an ApplicationSet last."""
    in_sets = tuple(f"{stage}/" for stage in SETS)
    yield from (get_applier(plan, path) for path in paths if not path.startswith(in_sets))
    for stage in in_sets:
        if any(path.startswith(stage) for path in paths):
            yield get_applier(plan, f"{stage}{ANY_PART}")


def apart(plan: Plan, folders: Sequence[Folder]) -> Apart | None:
    """Return the folder that the root syncs, if there is one."""
    if plan.cluster.argocd is None or not plan.cluster.argocd.spec.root:
        return None
    return roots.apart(has_children=any(get_applier(plan, folder.path).root for folder in folders))


# --- The project -------------------------------------------------------------------------------------------------

_NAMESPACE: KindName = ("", "Namespace")
_NO_NAMESPACE: Final = "needs-argo-cd-3.3"
"""A name that no namespace can have, for the dot in it."""


def _app_project(plan: Plan, argocd: Argocd, folders: Sequence[Folder]) -> dict[str, Any]:
    """Return what the Applications of a cluster may read, where they may write, and when.

    Its lists are derived from what is rendered, so a new kind in a hand-written Component needs no other change.
    Nothing else is allowed, but for the kinds that gpuplan itself may write for tenants. `name` on an entry for cluster
    resources is in the definition of Argo CD v3.3 (`ClusterResourceRestrictionItem` in
    `pkg/apis/application/v1alpha1/types.go`). An API server with an older one refuses the field, or drops it if it need
    not be strict: then the whitelist would allow every Namespace, and the entry of the blacklist, which goes before it
    (`isWhiteListed && !isBlackListed` in `app_project_types.go` there), forbids every one. Orphaned resources are not
    watched: tenants' own workloads would all be some.
    """
    # All objects that are known one by one: those of folders, and those that the policy has the chart add.
    written = {identity for folder in folders for identity in folder.identities}
    extra = plan.cluster.gpu_operator.spec.values.get("extraObjects") if has_chart(plan) else None
    if isinstance(extra, list | tuple):
        written.update(identity_of(body) for body in extra if isinstance(body, Mapping))
    elsewhere = (space for chart in charts(plan) for space in (chart.namespace, *chart.elsewhere))
    namespaces = {plan.cluster.gpu_operator.namespace, *elsewhere, *(item.namespace for item in written)} - {""}
    # Kinds that outlive the policy stay allowed when the last object of theirs is gone from it, as far as the
    # cluster has them.
    kinds: dict[bool, set[KindName]] = {False: {(rules_group(plan.cluster), "NodeFeatureRule")}, True: set()}
    for identity in written:  # those that name no namespace are applied in that of their Application
        name = (identity.group, identity.kind)
        found = find_kind(*name)
        is_namespaced = found.is_namespaced if found else name in chart_kinds().namespaced
        kinds[bool(identity.namespace) or is_namespaced].add(name)
    for name, kind in known_kinds().items():
        if kind.outlives_policy and not lacks_kind(plan.cluster, *name):
            kinds[kind.is_namespaced].add(name)
    names = {item.name for item in written if (item.group, item.kind) == _NAMESPACE and not item.namespace}
    for chart in charts(plan):
        kinds[False] |= chart.kinds.cluster
        kinds[True] |= chart.kinds.namespaced
        names.update(chart.creates)
    allowed = [{"group": "", "kind": "Namespace", "name": name} for name in sorted(names)]
    spec: dict[str, Any] = {
        "description": f"GPU configuration of the cluster {plan.cluster.name}",
        "sourceRepos": [argocd.spec.repo_url, *(chart.source for chart in charts(plan))],
        "destinations": [_destination(argocd, namespace) for namespace in sorted(namespaces)],
        "clusterResourceBlacklist": [{"group": "", "kind": "Namespace", "name": _NO_NAMESPACE}],
        "clusterResourceWhitelist": [*allowed, *_entries(kinds[False] - {_NAMESPACE})],
        "namespaceResourceWhitelist": _entries(kinds[True]),
    }
    if windows := list(_sync_windows(plan, {folder.path for folder in folders})):
        spec["syncWindows"] = windows
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            **metadata(argocd, argocd.project, {SYNC_WAVE: "-10"}),
            # Without the project no Application could be removed in order any more.
            "finalizers": [RESOURCES_FINALIZER],
        },
        "spec": spec,
    }


def _entries(kinds: AbstractSet[KindName]) -> list[dict[str, str]]:
    return [{"group": group, "kind": kind} for group, kind in sorted(kinds)]


def _sync_windows(plan: Plan, paths: AbstractSet[str]) -> Iterator[dict[str, Any]]:
    """Yield each pool's windows, for its own Application alone.

    They hold for persons too: the policy says when nodes may be disturbed, not who may do it.
    """
    for pool in plan.pools:
        folder = f"{Stage.PARTITIONS}/{pool.name}"
        for window in pool.spec.disruption.windows if folder in paths else ():
            yield {
                "kind": "allow",
                "schedule": window.schedule,
                "duration": window.duration,
                "timeZone": window.time_zone,
                "applications": [get_applier(plan, folder).name],
                "manualSync": False,
            }


# --- Where it reads and writes -----------------------------------------------------------------------------------


def _destination(argocd: Argocd, namespace: str) -> dict[str, str]:
    """Return a namespace of the cluster, which is known by its server's address or by its name."""
    name, server = argocd.spec.destination.name, argocd.spec.destination.server
    return {**({"name": name} if name else {"server": server or ""}), "namespace": namespace}


# --- Applications ------------------------------------------------------------------------------------------------

_WAVES: Final = {
    Stage.GPU_OPERATOR: 0,
    Stage.SCHEDULER: 5,
    Stage.PARTITIONS: 10,
    Stage.SCHEDULING: 10,
    Stage.QUEUES: 15,
    Stage.NAMESPACES: 20,
    Stage.MONITORING: 30,
    Stage.WORKLOADS: 30,
}
_LAST_WAVE: Final = 40

_FAIL_ON_SHARED: Final = "FailOnSharedResource=true"
"""An option against two Applications that write one object: they undo each other's work for ever."""
_PRUNE_LAST: Final = "PruneLast=true"
"""An option by which what is new is healthy before what it replaces goes."""

_PRUNE_IN_BACKGROUND: Final = "PrunePropagationPolicy=background"
"""A tenant may call an object of its own a dependent of its quota or of its members' RoleBinding, and keep it from
going by a finalizer. In the foreground, Argo CD's default (`controller/sync.go`), what is pruned lives and holds until
its dependents are gone.
"""

_ON_SERVER: Final = "ServerSideApply=true"
"""Dashboards and definitions may be too large for the annotation that a client-side apply keeps.

The GPU Operator's chart has none that are. It renders null where a block has nothing set, such as `mig`, and the API
server takes no null of a server-side apply where the definition has an object; a client-side apply leaves it out.
"""

_SYNC_OPTIONS: Final = (_FAIL_ON_SHARED, _PRUNE_LAST, _ON_SERVER)

_IN_NAMESPACES: Final = (Stage.NAMESPACES, Stage.QUEUES)
"""Stages with objects in the namespaces of tenants that hold the tenants themselves."""

_DIFF_ON_SERVER: Final = "ServerSideDiff=true"
"""Without it fields that a definition fills in are a difference for ever (NVIDIA/gpu-operator#2795)."""


def _application(plan: Plan, argocd: Argocd, applier: Applier, out: str) -> dict[str, Any]:
    folder = applier.folder
    stage, chart = Stage(folder.partition("/")[0]), chart_of(plan, folder)
    waits = not applier.is_automatic or (argocd.spec.root and bool(applier.windows))
    wave = _LAST_WAVE if waits else _WAVES[stage]
    named = metadata(argocd, applier.name, {**_annotations(plan, folder, out), SYNC_WAVE: str(wave)})
    if stage.is_by_pool:
        # Rules and queues are annotated `Delete=confirm`, so an Application that is removed with its pool waits for a
        # person, and Nodes `Delete=false`, so they stay. Others get none: what they wrote stays. From 3.3 on Argo CD
        # gives one to an Application whose chart has a hook for its removal, as the GPU Operator's has from v26.7 on
        # (`controller/hook.go`): it renders the chart, creates the hook's Job, and waits until that has ended.
        named["finalizers"] = [RESOURCES_FINALIZER]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": named,
        "spec": {
            "project": argocd.project,
            **_sources(plan, argocd, folder, chart),
            "destination": _destination(argocd, chart.namespace if chart else plan.cluster.gpu_operator.namespace),
            "syncPolicy": _sync_policy(plan, stage, is_automatic=applier.is_automatic),
        },
    }


def _annotations(plan: Plan, folder: str, out: str) -> dict[str, str]:
    """Return how to compare, and the folders that an Application is made from, relative to its own.

    Argo CD renders again when one of these changes. Hand-written Components lie outside of the output; they are found
    from it as its kustomizations find them.
    """
    stage, _, part = folder.partition("/")
    included = sorted(
        component.folder
        for component in plan.components
        if component.stage == stage and (part == ANY_PART or component.part in (None, part))
    )
    paths = [".", *(relpath(component, f"{out}/{plan.cluster.name}/{folder}") for component in included)]
    return {
        **({} if is_applied_by_client(plan, folder) else {COMPARE_OPTIONS: _DIFF_ON_SERVER}),
        "argocd.argoproj.io/manifest-generate-paths": ";".join(paths),
    }


def _sources(plan: Plan, argocd: Argocd, folder: str, chart: Chart | None) -> dict[str, Any]:
    """Return the folder; if it has values of a chart, also that, which takes them from there.

    One source may both have a `path`, whose objects are applied, and be the `ref` of another one's values
    (`docs/user-guide/multiple_sources.md` of Argo CD).
    """
    path = folder_path(argocd, plan.cluster.name, folder)
    if chart is None:
        return {"source": git_source(argocd, path)}
    source = {
        "repoURL": chart.source,
        "chart": chart.name,
        "targetRevision": chart.version,
        "helm": {"releaseName": chart.name, "valueFiles": [f"$values/{path}/values.yaml"]},
    }
    return {"sources": [source, {**git_source(argocd, path), "ref": "values"}]}


def _sync_policy(plan: Plan, stage: Stage, *, is_automatic: bool) -> dict[str, Any]:
    """Return when an Application is synced, and how.

    A Node that goes from one pool to another stays in the cluster, tracked by the first pool's Application, even when
    that is gone: the second takes it over, or would fail for ever (`CompareAppState` in `controller/state.go`).

    Of workloads nothing is pruned last: a training is healthy when it has ended, and until then it would keep the sync
    from ending, which keeps the next one from starting. What leaves the policy gives its units to what comes.
    """
    left_out = {_PRUNE_LAST} if stage is Stage.WORKLOADS else set()
    if is_applied_by_client(plan, stage):
        left_out.add(_ON_SERVER)
    if stage is Stage.PARTITIONS and plan.cluster.spec.node_labels is NodeLabels.NODE:
        left_out.add(_FAIL_ON_SHARED)
    options = [option for option in _SYNC_OPTIONS if option not in left_out]
    if stage in _IN_NAMESPACES:
        options.append(_PRUNE_IN_BACKGROUND)
    started = automated(prunes=is_pruned(stage)) if is_automatic else {}
    return {**started, "syncOptions": options, "retry": RETRY_NEWEST}


# --- Namespaces --------------------------------------------------------------------------------------------------


def _application_set(plan: Plan, argocd: Argocd, applier: Applier, out: str) -> dict[str, Any]:
    """Return an Application for each folder of a namespace in the stage, whichever there are.

    `create-update` and `preserveResourcesOnDeletion`: no Application goes because a folder does, and no object because
    an Application does. A removed namespace's Application stays and syncs nothing, until a person who has seen to what
    runs there deletes both.
    """
    folder = applier.folder
    stage = Stage(folder.partition("/")[0])
    directories = {
        "repoURL": argocd.spec.repo_url,
        "revision": argocd.spec.revision,
        "directories": [{"path": folder_path(argocd, plan.cluster.name, folder)}],
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": metadata(argocd, applier.name, {SYNC_WAVE: str(_WAVES[stage])}),
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"git": directories}],
            "syncPolicy": {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {
                    "name": sync_name(plan.cluster.name, f"{stage}/{{{{.path.basename}}}}"),
                    **literal(labels(argocd)),
                    "annotations": literal(_annotations(plan, folder, out)),
                },
                "spec": {
                    "project": literal(argocd.project),
                    "source": {**literal(git_source(argocd, "")), "path": "{{.path.path}}"},
                    "destination": {**literal(_destination(argocd, "")), "namespace": "{{.path.basename}}"},
                    "syncPolicy": _sync_policy(plan, stage, is_automatic=applier.is_automatic),
                },
            },
        },
    }


def literal(value: Any) -> Any:  # noqa: ANN401 - plain data of an object
    """Return plain data that comes out of the template as it is: only two braces begin an action.

    Argo CD renders each text of the template by itself, keys too (`deeplyReplace` in its `applicationset/utils`).
    """
    if isinstance(value, str):
        return value.replace("{{", '{{"{{"}}')
    if isinstance(value, dict):
        return {literal(key): literal(part) for key, part in value.items()}
    if isinstance(value, list):
        return [literal(part) for part in value]
    return value


# --- Health checks -----------------------------------------------------------------------------------------------

_CONFIG_MAP_FILE = "argocd-cm.yaml"
_OPERATOR_FILE = "argocd-health-checks.yaml"

_ABOUT_CONFIG_MAP = """\
# Nothing applies this file. It teaches Argo CD when a ClusterPolicy and an Application are healthy, so that sync waves
# wait for them:
#   kubectl -n {namespace} patch configmap argocd-cm --type merge --patch-file {file}
"""
_ABOUT_OPERATOR = """\
# Nothing applies this file. Where OpenShift GitOps runs Argo CD, its operator writes argocd-cm from the ArgoCD
# resource: add these to the list `spec.resourceHealthChecks` there. A merge patch would replace what the list has.
"""


@cache
def checks(*, has_root: bool = False, installed: str = "") -> Mapping[str, str]:
    """Return the Lua text of each check by ``<group>_<kind>``: under a root an Application tells of its last sync.

    Kinds of an ``installed`` chart are checked where there is one: its name is that of a folder of theirs.
    """
    folder = Path(__file__).with_name("argocd_health")
    more = [*(["root"] if has_root else []), *([installed] if installed else [])]
    paths = [*sorted(folder.glob("*.lua")), *(path for name in more for path in sorted((folder / name).glob("*.lua")))]
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def _checks(plan: Plan, argocd: Argocd) -> Mapping[str, str]:
    chart = find_chart(plan.cluster)
    return checks(has_root=argocd.spec.root, installed=chart.name if chart else "")


def _config_map_patch(plan: Plan, argocd: Argocd) -> bytes:
    """Return a merge patch for Argo CD's ConfigMap: it leaves all other keys alone."""
    about = _ABOUT_CONFIG_MAP.format(namespace=argocd.namespace, file=_CONFIG_MAP_FILE)
    data = {f"resource.customizations.health.{kind}": text for kind, text in _checks(plan, argocd).items()}
    return (HEADER + about + to_yaml({"data": data})).encode()


def _operator_patch(plan: Plan, argocd: Argocd) -> bytes:
    """Return the same for the ArgoCD resource of OpenShift GitOps."""
    entries = [
        {"group": group, "kind": kind, "check": text}
        for key, text in _checks(plan, argocd).items()
        for group, kind in [key.split("_")]
    ]
    return (HEADER + _ABOUT_OPERATOR + to_yaml({"spec": {"resourceHealthChecks": entries}})).encode()
