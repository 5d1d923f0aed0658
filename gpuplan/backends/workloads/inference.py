"""Services that run all the time: a Deployment, its Service, and a HorizontalPodAutoscaler."""

from __future__ import annotations

from typing import Any, Final

from gpuplan.backends.workloads.naming import metadata
from gpuplan.backends.workloads.pods import pod_template
from gpuplan.backends.workloads.schedulers import terms
from gpuplan.manifests import quantity
from gpuplan.planning.plan import WORKLOAD_LABEL, Plan, Workload
from gpuplan.policy.models import Autoscaling, Inference

_PORT: Final = "http"

_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""A new pod gets the units of an old one. One more than the policy counts would wait for units that may never come."""


def deployment(plan: Plan, workload: Workload, inference: Inference) -> dict[str, Any]:
    """The pods. Their number is not stated where it follows the load: whoever restores what is in Git would undo it."""
    asked = terms(plan, workload)
    annotations = dict(asked.annotations)
    container = {
        "ports": [{"name": _PORT, "containerPort": inference.port}],
        # Until then it may still be loading the model.
        "readinessProbe": {"tcpSocket": {"port": _PORT}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            **metadata(workload, workload.name, asked.labels),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            **({} if inference.autoscaling else {"replicas": inference.replicas}),
            "selector": {"matchLabels": _selector(workload)},
            "strategy": _STRATEGY,
            "template": pod_template(workload, asked, {}, container),
        },
    }


def service(workload: Workload, inference: Inference) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(workload, workload.name),
        "spec": {
            "selector": _selector(workload),
            "ports": [{"name": _PORT, "port": inference.port, "targetPort": _PORT}],
        },
    }


def _selector(workload: Workload) -> dict[str, str]:
    """It can never be changed, so it is what never changes; no other pods of the namespace have the label."""
    return {WORKLOAD_LABEL: workload.name}


def autoscaler(workload: Workload, scaling: Autoscaling) -> dict[str, Any]:
    """So many pods that each has at most its number of requests; the metric comes from an adapter."""
    target = {"type": "AverageValue", "averageValue": quantity(scaling.requests_per_second)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(workload, workload.name),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name},
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": scaling.metric}, "target": target}}],
        },
    }
