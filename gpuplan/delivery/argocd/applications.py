"""Applications, one for each folder, and the ApplicationSets that make those of namespaces and of what runs there.

After each wave but the last Argo CD waits until it is healthy, so whatever a person is to start is in the last one: it
would hold up all the others. What the options mean is in Argo CD's `docs/user-guide/sync-options.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import relpath
from typing import TYPE_CHECKING, Any, Final

from gpuplan.delivery.appliers import ANY_PART, SETS, Applier, get_applier
from gpuplan.delivery.argocd.go_templates import literal
from gpuplan.delivery.argocd.project import RESOURCES_FINALIZER
from gpuplan.delivery.argocd.sources import chart_repo, destination, folder_path, git_source
from gpuplan.planning.plan import Argocd, Plan, Stage
from gpuplan.planning.sync_names import COMPARE_OPTIONS, sync_name
from gpuplan.policy.models import Install, NodeLabels

if TYPE_CHECKING:
    from gpuplan.delivery import Folder

_WAVES: Final = {
    Stage.GPU_OPERATOR: 0,
    Stage.PARTITIONS: 10,
    Stage.SCHEDULING: 10,
    Stage.QUEUES: 15,
    Stage.NAMESPACES: 20,
    Stage.MONITORING: 30,
    Stage.WORKLOADS: 30,
}
_LAST_WAVE: Final = 40

_FAIL_ON_SHARED: Final = "FailOnSharedResource=true"
"""Two Applications that write one object undo each other's work for ever."""
_PRUNE_LAST: Final = "PruneLast=true"
"""What is new is healthy before what it replaces goes."""

_SYNC_OPTIONS: Final = (
    _FAIL_ON_SHARED,
    _PRUNE_LAST,
    # Definitions and dashboards are too large for the annotation that a client-side apply keeps.
    "ServerSideApply=true",
)

_RETRY: Final = {"limit": 5, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "10m"}}
"""Argo CD does not sync one commit twice unless it is told to, and on a new cluster definitions come one by one."""

_DIFF_ON_SERVER: Final = "ServerSideDiff=true"
"""Without it fields that a definition fills in are a difference for ever (NVIDIA/gpu-operator#2795)."""


def applications(
    plan: Plan, argocd: Argocd, folders: Sequence[Folder], out: str
) -> Iterator[tuple[Applier, dict[str, Any]]]:
    """Each with what it is to the folders that it syncs."""
    paths = [folder.path for folder in folders]
    for applier in (get_applier(plan, path) for path in paths if _set_of(path) is None):
        yield applier, _application(plan, argocd, applier, out)
    sets = {_set_of(path) for path in paths}
    for applier in (get_applier(plan, f"{stage}/{ANY_PART}") for stage in SETS if stage in sets):
        yield applier, _application_set(plan, argocd, applier, out)


def _set_of(path: str) -> Stage | None:
    """The stage of a folder whose Application is made by an ApplicationSet."""
    return next((stage for stage in SETS if path.startswith(f"{stage}/")), None)


# --- Applications ------------------------------------------------------------------------------------------------


def _application(plan: Plan, argocd: Argocd, applier: Applier, out: str) -> dict[str, Any]:
    folder = applier.folder
    stage = Stage(folder.partition("/")[0])
    wave = _WAVES[stage] if applier.is_automatic else _LAST_WAVE
    metadata: dict[str, Any] = {
        "name": applier.name,
        "namespace": argocd.namespace,
        **_labels(argocd),
        "annotations": {**_annotations(plan, folder, out), "argocd.argoproj.io/sync-wave": str(wave)},
    }
    if stage.is_by_pool:
        # Rules and queues are annotated `Delete=confirm`, so an Application that is removed with its pool waits for a
        # person, and Nodes `Delete=false`, so they stay. Other Applications have no finalizer: what they wrote stays.
        metadata["finalizers"] = [RESOURCES_FINALIZER]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata,
        "spec": {
            "project": argocd.project,
            **_sources(plan, argocd, folder),
            "destination": destination(argocd, plan.cluster.gpu_operator.namespace),
            "syncPolicy": _sync_policy(plan, stage, is_automatic=applier.is_automatic),
        },
    }


def _labels(argocd: Argocd) -> dict[str, dict[str, str]]:
    return {"labels": dict(sorted(argocd.spec.labels.items()))} if argocd.spec.labels else {}


def _annotations(plan: Plan, folder: str, out: str) -> dict[str, str]:
    return {
        COMPARE_OPTIONS: _DIFF_ON_SERVER,
        "argocd.argoproj.io/manifest-generate-paths": ";".join(_generate_paths(plan, folder, out)),
    }


def _generate_paths(plan: Plan, folder: str, out: str) -> list[str]:
    """The folders that an Application is made from, relative to its own: Argo CD renders again when one changes.

    Hand-written Components lie outside of the output; they are found from it as its kustomizations find them.
    """
    stage, _, part = folder.partition("/")
    included = sorted(
        component.folder
        for component in plan.components
        if component.stage == stage and (part == ANY_PART or component.part in (None, part))
    )
    return [".", *(relpath(component, f"{out}/{plan.cluster.name}/{folder}") for component in included)]


def _sources(plan: Plan, argocd: Argocd, folder: str) -> dict[str, Any]:
    """The folder; for the operator's also the chart, which takes its values from there.

    One source may both have a `path`, whose objects are applied, and be the `ref` of another one's values
    (`docs/user-guide/multiple_sources.md` of Argo CD).
    """
    path = folder_path(plan, argocd, folder)
    operator = plan.cluster.gpu_operator
    if folder != Stage.GPU_OPERATOR or operator.spec.install is not Install.HELM:
        return {"source": git_source(argocd, path)}
    chart = {
        "repoURL": chart_repo(plan),
        "chart": "gpu-operator",
        "targetRevision": operator.version,
        "helm": {"releaseName": "gpu-operator", "valueFiles": [f"$values/{path}/values.yaml"]},
    }
    return {"sources": [chart, {**git_source(argocd, path), "ref": "values"}]}


def _sync_policy(plan: Plan, stage: Stage, *, is_automatic: bool) -> dict[str, Any]:
    """`allowEmpty: false` keeps a folder that is empty by mistake from wiping out what it had.

    Nothing of the operator is pruned but by a person. The chart's objects have no annotations that would make Argo CD
    ask, and with NFD's definitions, which go with one value, would go every rule that labels nodes.

    A Node that goes from one pool to another stays in the cluster, tracked by the first pool's Application, even when
    that is gone: the second takes it over, or would fail for ever (`CompareAppState` in `controller/state.go`).

    Of workloads nothing is pruned last: a training is healthy when it has ended, and until then it would keep the sync
    from ending, which keeps the next one from starting. What leaves the policy gives its units to what comes.
    """
    prunes = stage is not Stage.GPU_OPERATOR
    automated = {"automated": {"prune": prunes, "selfHeal": True, "allowEmpty": False}} if is_automatic else {}
    left_out = {_PRUNE_LAST} if stage is Stage.WORKLOADS else set()
    if stage is Stage.PARTITIONS and plan.cluster.spec.node_labels is NodeLabels.NODE:
        left_out.add(_FAIL_ON_SHARED)
    options = [option for option in _SYNC_OPTIONS if option not in left_out]
    return {**automated, "syncOptions": options, "retry": _RETRY}


# --- Namespaces --------------------------------------------------------------------------------------------------


def _application_set(plan: Plan, argocd: Argocd, applier: Applier, out: str) -> dict[str, Any]:
    """An Application for each folder of a namespace in the stage, whichever there are.

    `create-update` and `preserveResourcesOnDeletion`: no Application goes because a folder does, and no object because
    an Application does. A removed namespace's Application stays and says that its path is gone, until a person who has
    seen to what runs there deletes both.
    """
    folder = applier.folder
    stage = Stage(folder.partition("/")[0])
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {
            "name": applier.name,
            "namespace": argocd.namespace,
            **_labels(argocd),
            "annotations": {"argocd.argoproj.io/sync-wave": str(_WAVES[stage])},
        },
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [
                {
                    "git": {
                        "repoURL": argocd.spec.repo_url,
                        "revision": argocd.spec.revision,
                        "directories": [{"path": folder_path(plan, argocd, folder)}],
                    }
                }
            ],
            "syncPolicy": {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {
                    "name": sync_name(plan.cluster.name, f"{stage}/{{{{.path.basename}}}}"),
                    **literal(_labels(argocd)),
                    "annotations": literal(_annotations(plan, folder, out)),
                },
                "spec": {
                    "project": literal(argocd.project),
                    "source": {**literal(git_source(argocd, "")), "path": "{{.path.path}}"},
                    "destination": {**literal(destination(argocd, "")), "namespace": "{{.path.basename}}"},
                    "syncPolicy": _sync_policy(plan, stage, is_automatic=applier.is_automatic),
                },
            },
        },
    }
