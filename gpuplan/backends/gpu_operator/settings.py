"""What the operator is told, in Helm values and ClusterPolicies alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gpuplan.catalog.operators import is_tolerated
from gpuplan.manifests.bodies import given
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import Monitoring, Plan
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.values import NamedTuple

Values = Mapping[str, Any]

METRICS_FILE: Final = "dcgm-metrics.csv"
"""The key of the ConfigMap: `MetricsConfigFileName` in the operator's `controllers/object_controls.go`."""


class ConfigMapNames(NamedTuple):
    """The ConfigMaps that the operator mounts, empty where there is none; ``metrics`` is the DCGM exporter's."""

    mig_parted: str
    device_plugin: str = ""
    metrics: str = ""


def operands(plan: Plan, names: ConfigMapNames) -> dict[str, Any]:
    """What follows from the plan, and what the DCGM exporter collects where the cluster is watched.

    The CRD allows no default layout but `all-disabled` and none: which one a node gets is its label's business. The
    device plugin has no default, which would reach every node that has no label.
    """
    found: dict[str, Any] = {
        "migManager": {"config": {"name": names.mig_parted, "default": ALL_DISABLED}},
        "devicePlugin": {"config": {"name": names.device_plugin, "default": ""}},
    }
    if uses_claims(plan):
        found["devicePlugin"]["enabled"] = False
    if monitoring := plan.cluster.monitoring:
        found["dcgmExporter"] = dcgm_exporter(monitoring, names.metrics)
        found["nodeStatusExporter"] = {"enabled": True}
    return found


def reboot(*, is_wanted: bool) -> dict[str, str]:
    """The environment variable by which mig-manager knows whether it may reboot a node."""
    return {"name": "WITH_REBOOT", "value": "true" if is_wanted else "false"}


def merge(under: Values, over: Values) -> dict[str, Any]:
    """Maps merge, all else is replaced, as Helm does with several files of values."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


# --- DCGM exporter -----------------------------------------------------------------------------------------------


def metrics() -> dict[str, str]:
    """What the DCGM exporter collects, where the cluster is watched.

    The operator mounts the ConfigMap and points the exporter to it (`TransformDCGMExporter` in its
    `controllers/object_controls.go`), which reads it when it starts: hence the hash in the name. The exporter then
    collects these fields and no others, so its own defaults are among them.

    `KUBERNETES_VIRTUAL_GPUS` is left alone: it tells the pods on a shared GPU apart, but drops the series of devices
    that no pod has (`PodMapper.Process` in `internal/pkg/transformation/kubernetes.go` of NVIDIA/dcgm-exporter).
    """
    return {METRICS_FILE: Path(__file__).with_name(METRICS_FILE).read_text(encoding="utf-8")}


def dcgm_exporter(monitoring: Monitoring, config_name: str) -> dict[str, Any]:
    """What it collects, and how Prometheus gets it.

    The label by which the exporter names its node is about to change its spelling, so Prometheus writes one: `node`.
    """
    monitor = given(
        enabled=True,
        honorLabels=monitoring.spec.honor_labels,
        additionalLabels=dict(sorted(monitoring.spec.labels.items())),
        relabelings=[NODE_RELABELING],
    )
    return {"config": {"name": config_name}, "serviceMonitor": monitor}


NODE_RELABELING: Final = {
    "action": "replace",
    "sourceLabels": ["__meta_kubernetes_pod_node_name"],
    "targetLabel": "node",
}


# --- Labels and taints -------------------------------------------------------------------------------------------


def label_namespaces(plan: Plan, more: Iterable[object] = ()) -> list[str]:
    """Namespaces of the labels that NFD puts on nodes, and more.

    It takes any by default but kubernetes.io and its subdomains, and none that `denyLabelNs` names, unless they are
    listed (`filterFeatureLabel` in NFD's `pkg/nfd-master/nfd-master.go`). The operator's own are under nvidia.com.
    """
    keys = {key for pool in plan.parts for key in pool.labels}
    return sorted({*map(str, more), *(key.partition("/")[0] for key in keys if "/" in key), "nvidia.com"})


def missing_tolerations(plan: Plan, present: Sequence[object]) -> list[dict[str, str]]:
    """A toleration for each taint of the plan's pools that none of those present covers."""
    wanted = {
        (taint.key, taint.effect.value)
        for pool in plan.pools
        for taint in pool.spec.taints
        if not is_tolerated(present, taint.key, taint.value, taint.effect)
    }
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(wanted)]
