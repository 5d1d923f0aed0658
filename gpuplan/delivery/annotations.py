"""What Argo CD and Flux read on objects: the order in which to apply them, and what it takes to remove them.

One table by kind, so that what protects a kind holds wherever it is written. Where the policy chooses no tool, both
tools' annotations are written: they protect whoever syncs the folders in some other way, and other tools ignore them.
With `argocd` only its own are. With `flux` those of Argo CD that keep it from deleting stay: an Argo CD that synced the
cluster until now may read the new objects first, and only then delete its Applications with what they applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from gpuplan.manifests import Hook, Manifest
from gpuplan.planning.plan import Cluster, Stage
from gpuplan.planning.sync_names import COMPARE_OPTIONS, FLUX_PRUNE, FLUX_SSA, FLUX_SUBSTITUTE, SYNC_OPTIONS

HOOK: Final = "argocd.argoproj.io/hook"
HOOK_DELETE_POLICY: Final = "argocd.argoproj.io/hook-delete-policy"
SYNC_WAVE: Final = "argocd.argoproj.io/sync-wave"


class Care(NamedTuple):
    """How a kind is to be treated.

    ``wave`` is Argo CD's sync wave: waves are applied from the lowest on, each when the one before is healthy, and
    pruned in reverse. ``prune`` is what happens to an object that leaves Git and ``delete`` to one whose Application is
    deleted: nothing special, ``confirm`` (a person must agree) or ``false``.
    """

    wave: int = 0
    prune: str = ""
    delete: str = ""
    is_pruned_last: bool = False
    is_custom: bool = False
    """Its definition may be installed by the same sync, so a dry run of the whole would fail."""
    is_applied_by_server: bool = False
    is_left_over: bool = False
    """It may stay when it leaves Git, and nothing counts as out of sync for it."""


_CARE: Final = {
    # Losing a Namespace loses everything in it.
    ("", "Namespace"): Care(-20, "confirm", "confirm"),
    ("operators.coreos.com", "OperatorGroup"): Care(-18, "confirm", "confirm", is_custom=True),
    ("operators.coreos.com", "Subscription"): Care(-18, "confirm", "confirm", is_custom=True),
    # Without its class no new pod of that class starts.
    ("scheduling.k8s.io", "PriorityClass"): Care(-15, "confirm", "confirm"),
    ("resource.k8s.io", "DeviceClass"): Care(-15, "confirm", "confirm"),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): Care(-15, "confirm", "confirm", is_custom=True),
    # There before what refers to it, and pruned when nothing does any more: pods that have not been replaced yet still
    # mount the old one.
    ("", "ConfigMap"): Care(-10, is_pruned_last=True),
    # A queue is inactive until all that it names is there. Kueue holds on to flavors, and to queues until their
    # workloads have ended (its finalizer `resource-in-use`), so that a person takes them out of use first.
    ("kueue.x-k8s.io", "Topology"): Care(-9, "confirm", "confirm", is_custom=True),
    ("kueue.x-k8s.io", "ResourceFlavor"): Care(-8, "confirm", "confirm", is_custom=True),
    ("kueue.x-k8s.io", "Cohort"): Care(-7, is_custom=True),
    ("kueue.x-k8s.io", "ClusterQueue"): Care(-5, "confirm", "confirm", is_custom=True),
    # Without the labels of Node Feature Discovery the operator takes its operands off the nodes.
    ("nfd.openshift.io", "NodeFeatureDiscovery"): Care(-5, "confirm", "confirm", is_custom=True),
    # Without a ClusterPolicy the operator removes the driver from every node.
    ("nvidia.com", "ClusterPolicy"): Care(0, "false", "confirm", is_custom=True, is_applied_by_server=True),
    # Without the label `nvidia.com/mig.config` the operator writes `all-disabled`, and the partitions are gone. So a
    # rule that takes another's place, as after an upgrade of OpenShift, is there before the other goes.
    ("nfd.k8s-sigs.io", "NodeFeatureRule"): Care(10, "confirm", "confirm", is_pruned_last=True, is_custom=True),
    ("nfd.openshift.io", "NodeFeatureRule"): Care(10, "confirm", "confirm", is_pruned_last=True, is_custom=True),
    # Argo CD would delete the Node itself, with its labels or with the Application (argoproj/argo-cd#7124).
    ("", "Node"): Care(10, "false", "false", is_applied_by_server=True),
    # Without its shard nothing is placed on a pool's nodes, and without its queue no new work of a tenant starts. A
    # queue with others below it cannot be deleted.
    ("kai.scheduler", "Topology"): Care(-9, "confirm", "confirm", is_custom=True),
    ("kai.scheduler", "SchedulingShard"): Care(-8, "confirm", "confirm", is_custom=True),
    ("scheduling.run.ai", "Queue"): Care(-7, "confirm", "confirm", is_custom=True),
    ("", "ResourceQuota"): Care(20),
    # Without a policy every tenant can use every GPU. A binding comes after its policy and its parameters: while those
    # are missing it refuses every pod.
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): Care(20, "confirm", "confirm"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): Care(21, "confirm", "confirm"),
    # With the claim goes the model.
    ("", "PersistentVolumeClaim"): Care(0, "confirm", "confirm"),
    # Last, so that workloads wait for nothing but their turn.
    ("kueue.x-k8s.io", "LocalQueue"): Care(25, is_custom=True),
    ("monitoring.coreos.com", "PrometheusRule"): Care(30, is_custom=True),
    ("monitoring.coreos.com", "ServiceMonitor"): Care(30, is_custom=True),
}

_NO_CARE: Final = Care()
_CONFIG_MAPS: Final = {
    # Argo CD prunes nothing of the operator by itself: its chart's objects cannot be told from those that hold others.
    # Old configurations wait for the next person who does.
    Stage.GPU_OPERATOR.value: Care(-10, is_pruned_last=True, is_left_over=True),
    # Nothing mounts dashboards.
    Stage.MONITORING.value: Care(30),
    # Whatever is pruned last waits until all else is healthy, and a training Job is that when it has ended.
    Stage.WORKLOADS.value: Care(-10, "false", is_left_over=True),
}
"""ConfigMaps of some stages."""


def annotate(manifest: Manifest, cluster: Cluster) -> Manifest:
    """The object with the annotations for the tool that syncs the cluster, or for both."""
    if manifest.hook is not None:
        return _with_annotations(manifest, _HOOKS[manifest.hook])
    body, is_partial = manifest.body, manifest.is_partial
    stage = _stage(manifest) if body["kind"] == "ConfigMap" else ""
    has_argocd, has_flux = cluster.flux is None, cluster.argocd is None
    order = manifest.order
    annotations = _annotations(body["apiVersion"], body["kind"], stage, order, is_partial, has_argocd, has_flux)
    if cluster.flux is not None and _holds_variables(body):
        annotations = {**annotations, FLUX_SUBSTITUTE: "disabled"}
    return _with_annotations(manifest, annotations) if annotations else manifest


def _with_annotations(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    metadata = manifest.body["metadata"]
    merged = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
    body = {**manifest.body, "metadata": merged}
    return Manifest(manifest.folder, body, manifest.is_partial, manifest.order, manifest.hook)


def _holds_variables(value: object) -> bool:
    """Whether some text has what Flux would take for a variable of its own, as dashboards of Grafana do.

    gpuplan's Kustomizations substitute nothing, but a fleet's root may patch `postBuild` into all that it applies:
    `SubstituteVariables` in https://github.com/fluxcd/pkg/blob/main/kustomize/kustomize_varsub.go.
    """
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, Mapping):
        return any(map(_holds_variables, value.values()))
    return isinstance(value, Sequence) and any(map(_holds_variables, value))


_HOOKS: Final[Mapping[Hook, Mapping[str, str]]] = {
    Hook.SUPPORT: {
        HOOK: "PreSync",
        HOOK_DELETE_POLICY: "BeforeHookCreation,HookSucceeded,HookFailed",
        SYNC_WAVE: "-1",
    },
    Hook.BEFORE: {HOOK: "PreSync", HOOK_DELETE_POLICY: "BeforeHookCreation"},
    Hook.AFTER: {HOOK: "PostSync", HOOK_DELETE_POLICY: "BeforeHookCreation"},
}
"""Argo CD prunes no hooks, so what they need is deleted at the end of the sync, whatever its outcome: `Sync` deletes
hooks in no other place (`gitops-engine/pkg/sync/sync_context.go` there). The Jobs stay until the next, for their logs.
"""


def _stage(manifest: Manifest) -> str:
    """The stage, where its ConfigMaps are treated in their own way."""
    stage = manifest.folder.partition("/")[0]
    return stage if stage in _CONFIG_MAPS else ""


@cache
def _annotations(
    api_version: str,
    kind: str,
    stage: str,
    order: int,
    is_partial: bool,  # noqa: FBT001 - positions make the cheaper key, and there is a key for each object
    has_argocd: bool,  # noqa: FBT001
    has_flux: bool,  # noqa: FBT001
) -> Mapping[str, str]:
    care = _find_care(api_version, kind, stage, is_partial=is_partial)
    care = care._replace(wave=care.wave + order)
    argocd = _argocd(care, is_partial=is_partial) if has_argocd else _after_argocd(care)
    return argocd | (_flux(care, is_partial=is_partial) if has_flux else {})


def _find_care(api_version: str, kind: str, stage: str, *, is_partial: bool) -> Care:
    """How an object is to be treated; a part of an object is not the applier's to remove."""
    if stage in _CONFIG_MAPS:
        return _CONFIG_MAPS[stage]
    care = _CARE.get((api_version.rpartition("/")[0], kind), _NO_CARE)
    return care._replace(prune="false", delete="false", is_applied_by_server=True) if is_partial else care


def _argocd(care: Care, *, is_partial: bool) -> dict[str, str]:
    """Sync options and wave: https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/."""
    options = [
        "ServerSideApply=true" if care.is_applied_by_server else "",
        # A part of an object lacks fields that its definition requires.
        "Validate=false" if is_partial and care.is_custom else "",
        "SkipDryRunOnMissingResource=true" if care.is_custom else "",
        *_protections(care),
        "PruneLast=true" if care.is_pruned_last else "",
    ]
    annotations = {
        COMPARE_OPTIONS: "IgnoreExtraneous" if care.is_left_over else "",
        SYNC_OPTIONS: ",".join(filter(None, options)),
        SYNC_WAVE: str(care.wave) if care.wave else "",
    }
    return {key: value for key, value in annotations.items() if value}


def _after_argocd(care: Care) -> dict[str, str]:
    protections = _protections(care)
    return {SYNC_OPTIONS: ",".join(protections)} if protections else {}


def _protections(care: Care) -> list[str]:
    """What keeps Argo CD from deleting an object, by itself or at all."""
    return [f"{option}={value}" for option, value in (("Prune", care.prune), ("Delete", care.delete)) if value]


def _flux(care: Care, *, is_partial: bool) -> dict[str, str]:
    """Flux cannot ask, so what Argo CD asks about stays: https://fluxcd.io/flux/components/kustomize/kustomizations/."""
    stays = care.prune or care.delete or care.is_pruned_last
    return ({FLUX_PRUNE: "disabled"} if stays else {}) | ({FLUX_SSA: "merge"} if is_partial else {})
