"""What a change of a Kubernetes object does, by its kind and the fields that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gpuplan.changes.bodies import Body, items, section, without
from gpuplan.changes.model import ChangeClass, worst
from gpuplan.changes.node_rules import (
    class_of_arrival,
    class_of_departure,
    class_of_labels,
    class_of_rules,
    rules_of,
)
from gpuplan.manifests import Identity
from gpuplan.planning.grants import SYSTEM_NAMESPACE
from gpuplan.planning.plan import TENANT_LABEL, Stage

_KUEUE: Final = "kueue.x-k8s.io"
_NFD: Final = "node-feature-discovery"
_OPERANDS_THAT_WATCH: Final = ("dcgmExporter", "nodeStatusExporter")


def class_of(folder: str, identity: Identity, before: Body | None, after: Body | None) -> ChangeClass:
    """How far a change disturbs: one is None where the object comes or goes. Labels and annotations alone do not."""
    key = identity.group, identity.kind
    if (identity.kind == "ConfigMap" and identity.name.startswith(_METRICS)) or _guards(before or after or {}):
        return ChangeClass.NONE if before == after else ChangeClass.METADATA
    if before is None:
        return _ADDED.get(key, _added)(folder, after or {})
    if after is None:
        return _REMOVED.get(key, _removed)(folder, before)
    if before == after:
        return ChangeClass.NONE
    if key not in _LABELLED and _bare(before) == _bare(after):
        return ChangeClass.METADATA
    return _CHANGED.get(key, _changed)(folder, before, after)


def _guards(body: Body) -> bool:
    """Whether an object runs when something is synced, and is none of what is applied."""
    annotations = section(section(body, "metadata"), "annotations")
    return "argocd.argoproj.io/hook" in annotations or str(section(body, "metadata").get("name")).startswith(_GUARD)


_GUARD: Final = "gpuplan-guard"
_METRICS: Final = "gpuplan-dcgm-metrics-"
"""Begins the name of the DCGM exporter's list of metrics, which hands out no GPUs."""


def _bare(body: Body) -> Body:
    metadata = {key: value for key, value in section(body, "metadata").items() if key not in ("labels", "annotations")}
    return {**body, "metadata": metadata}


_LABELLED: Final = frozenset([("", "Node"), ("", "Namespace")])
"""Kinds whose labels something goes by."""


# --- Kinds that nothing else is known of -------------------------------------------------------------------------

_BY_STAGE: Final = {
    Stage.GPU_OPERATOR: ChangeClass.PLUGIN_RESTART,
    Stage.PARTITIONS: ChangeClass.REPARTITION,
    Stage.SCHEDULING: ChangeClass.ADMISSION,
    Stage.QUEUES: ChangeClass.PREEMPTION_ORDER,
    Stage.NAMESPACES: ChangeClass.ADMISSION,
    Stage.MONITORING: ChangeClass.METADATA,
    Stage.WORKLOADS: ChangeClass.RECREATE,
}


def class_of_stage(folder: str) -> ChangeClass:
    """What a change that nothing else is known of may do, by its folder; of what syncs folders, nothing."""
    stage = folder.partition("/")[0]
    return _BY_STAGE[Stage(stage)] if stage in _STAGES else ChangeClass.METADATA


_STAGES: Final = frozenset(stage.value for stage in Stage)


def _added(folder: str, _after: Body) -> ChangeClass:
    if folder.partition("/")[0] == Stage.WORKLOADS:
        return ChangeClass.QUOTA
    return min(class_of_stage(folder), ChangeClass.ADMISSION, key=lambda item: item.rank)


def _changed(folder: str, _before: Body, _after: Body) -> ChangeClass:
    return class_of_stage(folder)


def _removed(folder: str, _before: Body) -> ChangeClass:
    found = class_of_stage(folder)
    return found if found is ChangeClass.METADATA else ChangeClass.DESTRUCTIVE


# --- Nodes -------------------------------------------------------------------------------------------------------


def _rule(_folder: str, before: Body, after: Body) -> ChangeClass:
    return class_of_rules(rules_of(before), rules_of(after))


def _rule_added(_folder: str, after: Body) -> ChangeClass:
    return class_of_rules((), rules_of(after))


def _node(_folder: str, before: Body, after: Body) -> ChangeClass:
    old, new = (section(section(body, "metadata"), "labels") for body in (before, after))
    return worst((ChangeClass.METADATA, class_of_labels(old, new)))


def _node_added(_folder: str, after: Body) -> ChangeClass:
    return class_of_arrival(section(section(after, "metadata"), "labels"))


def _node_removed(_folder: str, before: Body) -> ChangeClass:
    return class_of_departure(section(section(before, "metadata"), "labels"))


# --- The GPU Operator --------------------------------------------------------------------------------------------


def _cluster_policy(_folder: str, before: Body, after: Body) -> ChangeClass:
    return class_of_settings(section(before, "spec"), section(after, "spec"))


def _nfd(_folder: str, before: Body, after: Body) -> ChangeClass:
    """Which labels and taints its master sets is no matter of its workers on nodes."""
    old, new = (without(section(body, "spec"), "extraLabelNs", "enableTaints") for body in (before, after))
    return ChangeClass.METADATA if old == new else ChangeClass.PLUGIN_RESTART


def class_of_settings(before: Body, after: Body) -> ChangeClass:
    """Of the ClusterPolicy's spec or the chart's values: the driver is loaded anew, other operands restart.

    How a driver is upgraded one day restarts nothing.
    """
    old, new = (without(section(settings, "driver"), "upgradePolicy") for settings in (before, after))
    if old != new:
        return ChangeClass.REPARTITION
    old, new = (_restarting(settings) for settings in (before, after))
    return ChangeClass.METADATA if old == new else ChangeClass.PLUGIN_RESTART


def _restarting(settings: Body) -> Body:
    """Those of operands on nodes with GPUs, where NFD's master does not run; how they are found restarts none."""
    return {
        **without(settings, "driver"),
        **{name: without(section(settings, name), "serviceMonitor") for name in _OPERANDS_THAT_WATCH},
        _NFD: without(section(settings, _NFD), "master"),
    }


# --- Quotas and queues -------------------------------------------------------------------------------------------


def _queue(_folder: str, before: Body, after: Body) -> ChangeClass:
    """Of Kueue: its numbers, whose work it takes, and what decides who goes first."""
    old, new = section(before, "spec"), section(after, "spec")
    if without(old, "resourceGroups") == without(new, "resourceGroups"):
        return ChangeClass.QUOTA
    if without(old, "namespaceSelector", "resourceGroups") == without(new, "namespaceSelector", "resourceGroups"):
        return ChangeClass.QUOTA if _selected(old) <= _selected(new) else ChangeClass.ADMISSION
    order = ("resourceGroups", "namespaceSelector", "stopPolicy")
    if without(old, *order) == without(new, *order):
        return ChangeClass.ADMISSION
    return ChangeClass.PREEMPTION_ORDER


def _selected(spec: Body) -> frozenset[str]:
    """The namespaces that a queue takes work of, by name."""
    found = items(section(spec, "namespaceSelector").get("matchExpressions"))
    return frozenset(str(name) for item in found if isinstance(item, Mapping) for name in items(item.get("values")))


def _kai_queue(_folder: str, before: Body, after: Body) -> ChangeClass:
    old, new = (_without_order(section(body, "spec")) for body in (before, after))
    return ChangeClass.QUOTA if old == new else ChangeClass.PREEMPTION_ORDER


def _without_order(spec: Body) -> Body:
    gpu = section(section(spec, "resources"), "gpu")
    return {**without(spec, "resources", "displayName"), "weight": gpu.get("overQuotaWeight")}


def _flavor(_folder: str, before: Body, _after: Body) -> ChangeClass:
    """One with a Topology cannot be changed (a rule of its CRD)."""
    return ChangeClass.RECREATE if section(before, "spec").get("topologyName") else ChangeClass.ADMISSION


def _priority_class(_folder: str, before: Body, after: Body) -> ChangeClass:
    if any(before.get(key) != after.get(key) for key in ("value", "preemptionPolicy")):
        return ChangeClass.RECREATE
    is_same = before.get("globalDefault", False) == after.get("globalDefault", False)
    return ChangeClass.METADATA if is_same else ChangeClass.PREEMPTION_ORDER


# --- Namespaces --------------------------------------------------------------------------------------------------


def _namespace(_folder: str, before: Body, after: Body) -> ChangeClass:
    old, new = (section(section(body, "metadata"), "labels") for body in (before, after))
    keys = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    judged = any(key == TENANT_LABEL or key.startswith("pod-security.kubernetes.io/") for key in keys)
    return ChangeClass.ADMISSION if judged else ChangeClass.METADATA


def _namespace_removed(_folder: str, before: Body) -> ChangeClass:
    """In our own there is nothing but what tenants are granted, for admission to read."""
    is_own = section(before, "metadata").get("name") == SYSTEM_NAMESPACE
    return ChangeClass.ADMISSION if is_own else ChangeClass.DESTRUCTIVE


def _config_map(folder: str, before: Body, after: Body) -> ChangeClass:
    """Parameters of admission are lists: where one only grows, nobody may do less than before."""
    if runs_mps(before) or runs_mps(after):
        return ChangeClass.REPARTITION
    if folder.partition("/")[0] != Stage.NAMESPACES:
        return class_of_stage(folder)
    old, new = ({key: _lines(text) for key, text in section(body, "data").items()} for body in (before, after))
    if old == new:
        return ChangeClass.METADATA
    grows = old.keys() == new.keys() and all(old[key] <= new[key] for key in old)
    return ChangeClass.QUOTA if grows else ChangeClass.ADMISSION


def runs_mps(config_map: Body) -> bool:
    """Whether it holds the device plugin's files, and one of them shares GPUs by MPS: its daemons start with it."""
    name = str(section(config_map, "metadata").get("name"))
    files = section(config_map, "data").values()
    return name.startswith(_PLUGIN) and any("\n  mps:" in str(text) for text in files)


_PLUGIN: Final = "gpuplan-device-plugin-"


def _lines(text: object) -> frozenset[str]:
    return frozenset(str(text).splitlines())


# --- What runs ---------------------------------------------------------------------------------------------------


def _pods(_folder: str, before: Body, after: Body) -> ChangeClass:
    """Pods are made anew where their template changes; how many there are is a number."""
    old, new = (without(section(body, "spec"), "replicas", "strategy", "updateStrategy") for body in (before, after))
    return ChangeClass.QUOTA if old == new else ChangeClass.RECREATE


def _claim(_folder: str, before: Body, after: Body) -> ChangeClass:
    """Of a claim only the size can be changed, and only upwards."""
    old, new = (without(section(body, "spec"), "resources") for body in (before, after))
    return ChangeClass.QUOTA if old == new else ChangeClass.RECREATE


# --- What syncs --------------------------------------------------------------------------------------------------


def _application(_folder: str, before: Body, after: Body) -> ChangeClass:
    old, new = (section(body, "spec") for body in (before, after))
    if old.get("destination") != new.get("destination"):
        return ChangeClass.DESTRUCTIVE
    return ChangeClass.PLUGIN_RESTART if _charts(old) != _charts(new) else ChangeClass.METADATA


def _charts(spec: Body) -> list[object]:
    sources = [source for source in items(spec.get("sources")) if isinstance(source, Mapping) and "chart" in source]
    return [(source.get("chart"), source.get("targetRevision")) for source in sources]


def _syncer_removed(_folder: str, before: Body) -> ChangeClass:
    """With a finalizer it takes along what it wrote, as one of Flux does that prunes."""
    has_finalizers = bool(section(before, "metadata").get("finalizers"))
    prunes = bool(section(before, "spec").get("prune"))
    return ChangeClass.DESTRUCTIVE if has_finalizers or prunes else ChangeClass.METADATA


# --- All kinds ---------------------------------------------------------------------------------------------------


def _always(found: ChangeClass) -> Callable[..., ChangeClass]:
    def answer(*_: object) -> ChangeClass:
        return found

    return answer


def _but_metadata_of_stage(found: ChangeClass) -> Callable[..., ChangeClass]:
    """What lies in a stage that only watches does what that stage does."""

    def answer(folder: str, *_: object) -> ChangeClass:
        return ChangeClass.METADATA if class_of_stage(folder) is ChangeClass.METADATA else found

    return answer


_QUOTA = _always(ChangeClass.QUOTA)
_METADATA = _always(ChangeClass.METADATA)
_ADMISSION = _always(ChangeClass.ADMISSION)
_ORDER = _always(ChangeClass.PREEMPTION_ORDER)
_RECREATE = _always(ChangeClass.RECREATE)
_TWO_STEP = _always(ChangeClass.TWO_STEP)
_RESTART = _always(ChangeClass.PLUGIN_RESTART)
_DESTRUCTIVE = _always(ChangeClass.DESTRUCTIVE)

_Kind = tuple[str, str]

_CHANGED: Final[Mapping[_Kind, Callable[[str, Body, Body], ChangeClass]]] = {
    ("", "ConfigMap"): _config_map,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "ResourceQuota"): _QUOTA,
    ("", "Service"): _ADMISSION,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _ADMISSION,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _ADMISSION,
    ("apps", "Deployment"): _pods,
    ("apps", "StatefulSet"): _pods,
    ("argoproj.io", "Application"): _application,
    ("autoscaling", "HorizontalPodAutoscaler"): _QUOTA,
    (_KUEUE, "ClusterQueue"): _queue,
    (_KUEUE, "Cohort"): _queue,
    (_KUEUE, "LocalQueue"): _RECREATE,
    (_KUEUE, "ResourceFlavor"): _flavor,
    (_KUEUE, "Topology"): _RECREATE,
    (_KUEUE, "WorkloadPriorityClass"): _ORDER,
    ("kai.scheduler", "SchedulingShard"): _ADMISSION,
    ("kai.scheduler", "Topology"): _RECREATE,
    ("nfd.k8s-sigs.io", "NodeFeatureRule"): _rule,
    ("nfd.openshift.io", "NodeFeatureRule"): _rule,
    ("nfd.openshift.io", "NodeFeatureDiscovery"): _nfd,
    ("nvidia.com", "ClusterPolicy"): _cluster_policy,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ADMISSION,
    ("resource.k8s.io", "ResourceClaimTemplate"): _RECREATE,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("scheduling.run.ai", "Queue"): _kai_queue,
}

_ADDED: Final[Mapping[_Kind, Callable[[str, Body], ChangeClass]]] = {
    ("", "ConfigMap"): _added,
    ("", "Namespace"): _QUOTA,
    ("", "Node"): _node_added,
    ("", "ResourceQuota"): _QUOTA,
    ("apps", "Deployment"): _QUOTA,
    ("batch", "Job"): _QUOTA,
    (_KUEUE, "ClusterQueue"): _QUOTA,
    (_KUEUE, "Cohort"): _QUOTA,
    (_KUEUE, "LocalQueue"): _QUOTA,
    (_KUEUE, "ResourceFlavor"): _QUOTA,
    (_KUEUE, "Topology"): _QUOTA,
    ("kai.scheduler", "SchedulingShard"): _QUOTA,
    ("kai.scheduler", "Topology"): _QUOTA,
    ("resource.k8s.io", "DeviceClass"): _QUOTA,
    ("resource.k8s.io", "ResourceClaimTemplate"): _QUOTA,
    ("scheduling.run.ai", "Queue"): _QUOTA,
    ("nfd.k8s-sigs.io", "NodeFeatureRule"): _rule_added,
    ("nfd.openshift.io", "NodeFeatureRule"): _rule_added,
    ("scheduling.k8s.io", "PriorityClass"): _ORDER,
}

_REMOVED: Final[Mapping[_Kind, Callable[[str, Body], ChangeClass]]] = {
    ("", "ConfigMap"): _but_metadata_of_stage(ChangeClass.ADMISSION),
    ("", "Namespace"): _namespace_removed,
    ("", "Node"): _node_removed,
    ("", "ResourceQuota"): _ADMISSION,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _ADMISSION,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _ADMISSION,
    ("argoproj.io", "Application"): _syncer_removed,
    ("argoproj.io", "ApplicationSet"): _METADATA,
    ("autoscaling", "HorizontalPodAutoscaler"): _QUOTA,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): _syncer_removed,
    (_KUEUE, "ClusterQueue"): _TWO_STEP,
    (_KUEUE, "Cohort"): _ORDER,
    (_KUEUE, "LocalQueue"): _TWO_STEP,
    (_KUEUE, "ResourceFlavor"): _TWO_STEP,
    (_KUEUE, "Topology"): _TWO_STEP,
    (_KUEUE, "WorkloadPriorityClass"): _ADMISSION,
    ("kai.scheduler", "SchedulingShard"): _ADMISSION,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ADMISSION,
    ("resource.k8s.io", "DeviceClass"): _ADMISSION,
    ("resource.k8s.io", "ResourceClaimTemplate"): _ADMISSION,
    ("scheduling.k8s.io", "PriorityClass"): _ADMISSION,
    ("scheduling.run.ai", "Queue"): _TWO_STEP,
}
