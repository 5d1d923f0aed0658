"""What the DCGM exporter collects and how Prometheus gets it, where the cluster is watched.

The operator mounts the ConfigMap and points the exporter to it (`TransformDCGMExporter` in its
`controllers/object_controls.go`), which reads it when it starts: hence the hash in the name. The exporter then collects
these fields and no others, so its own defaults are among them.

`KUBERNETES_VIRTUAL_GPUS` is left alone: it tells the pods on a shared GPU apart, but drops the series of devices that
no pod has (`PodMapper.Process` in `internal/pkg/transformation/kubernetes.go` of NVIDIA/dcgm-exporter).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuplan.planning.plan import Monitoring

FILE_NAME = "dcgm-metrics.csv"
"""The key of the ConfigMap: `MetricsConfigFileName` in the operator's `controllers/object_controls.go`."""


def data() -> dict[str, str]:
    return {FILE_NAME: Path(__file__).with_name(FILE_NAME).read_text(encoding="utf-8")}


def exporter(monitoring: Monitoring, config_name: str) -> dict[str, Any]:
    """Fields of `dcgmExporter`, of Helm values and of a ClusterPolicy alike.

    The label by which the exporter names its node is about to change its spelling, so Prometheus writes one: `node`.
    """
    labels = {"additionalLabels": dict(sorted(monitoring.spec.labels.items()))} if monitoring.spec.labels else {}
    return {
        "config": {"name": config_name},
        "serviceMonitor": {
            "enabled": True,
            "honorLabels": monitoring.spec.honor_labels,
            **labels,
            "relabelings": [NODE_RELABELING],
        },
    }


NODE_RELABELING = {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
