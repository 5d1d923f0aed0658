"""A ServiceMonitor for the operator's node status exporter.

The operator makes one, and lets nobody choose its labels (`ServiceMonitor` in its `controllers/object_controls.go`
reads those of the DCGM exporter alone): a Prometheus that selects monitors by label does not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.planning.plan import Monitoring, Plan
from gpuplan.policy.models import Platform

_APP = "nvidia-node-status-exporter"


def objects(plan: Plan, monitoring: Monitoring) -> Iterator[dict[str, Any]]:
    """Nothing where the operator's own is found: by an OpenShift namespace's label, or by a Prometheus that takes all.

    Where both are, its series come twice, which the alert on them takes into account.
    """
    if monitoring.spec.labels and plan.cluster.spec.platform is not Platform.OPENSHIFT:
        yield _service_monitor(plan.cluster.gpu_operator.namespace, monitoring)


def _service_monitor(namespace: str, monitoring: Monitoring) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": "gpuplan-node-status-exporter",
            "namespace": namespace,
            "labels": dict(sorted(monitoring.spec.labels.items())),
        },
        "spec": {
            "endpoints": [{"port": "node-status", "path": "/metrics"}],
            "namespaceSelector": {"matchNames": [namespace]},
            "selector": {"matchLabels": {"app": _APP}},
        },
    }
