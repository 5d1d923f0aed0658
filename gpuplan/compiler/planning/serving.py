"""What a service listens on and how it is asked whether it is well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, assert_never

from gpuplan.compiler.policy.models import (
    Api,
    AutoscalerKind,
    Autoscaling,
    Batch,
    Canary,
    ClusterSpec,
    Gateway,
    Inference,
    Ingress,
    Probe,
    RouteKind,
    Workspace,
)

MAIN_PORT: Final = "http"
"""What the port is called that a service has anyway."""


def ports_of(work: Inference) -> Mapping[str, int]:
    """All ports by their names; none where nothing listens."""
    return {} if work.port == "none" else {MAIN_PORT: work.port, **work.ports}


def is_called(work: Inference | Batch | Workspace) -> bool:
    """Whether a Service with the workload's own name leads to its pods."""
    return isinstance(work, Workspace) or (isinstance(work, Inference) and bool(ports_of(work)))


def probe_of(work: Inference) -> Probe | Literal["tcp", "grpc", "none"]:
    """What is asked of the container, also where the policy does not say it."""
    if work.probe is not None:
        return work.probe
    return "none" if work.port == "none" else "tcp"


def service_port(work: Inference, name: str) -> int:
    """The port of the Service that leads to the port of this name."""
    own = work.service.port if name == MAIN_PORT else None
    return own or ports_of(work)[name]


def way_to(cluster: ClusterSpec, work: Inference) -> Gateway | Ingress | None:
    """What leads to a service from outside; None where nothing does, or what is asked for is not there."""
    if work.route is None or routed_port(work) not in ports_of(work):
        return None
    match route_kind(cluster, work):
        case RouteKind.HTTP_ROUTE:
            return cluster.gateway if Api.HTTP_ROUTE in cluster.apis else None
        case RouteKind.INGRESS:
            return cluster.ingress
        case unknown:
            assert_never(unknown)


def route_kind(cluster: ClusterSpec, work: Inference) -> RouteKind:
    """The kind that is asked for, and Kubernetes' own where either would do."""
    if work.route is not None and work.route.kind is not None:
        return work.route.kind
    return RouteKind.INGRESS if cluster.ingress and not work.canary else RouteKind.HTTP_ROUTE


def canary_name(workload: str) -> str:
    """What the Deployment and the Service of a workload's canary are called, and their pods have as their label."""
    return f"{workload}-canary"


def canary_of(cluster: ClusterSpec, work: Inference) -> Canary | None:
    """The canary of a service, where the cluster can weigh its requests: else its pods would have nothing to do."""
    return work.canary if work.pods_per_replica == 1 and isinstance(way_to(cluster, work), Gateway) else None


def routed_port(work: Inference) -> str:
    """The name of the port that requests from outside come to."""
    return (work.route.port if work.route else None) or MAIN_PORT


PROBE_PERIOD: Final = 10
"""Seconds from one probe to the next, as Kubernetes has them by itself; three without an answer are one too many."""

GPU_METRIC: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The part of the time that a GPU or a MIG device computes, from 0 to 1: NVIDIA's exporter has no other for both."""


def autoscaler_kind(scaling: Autoscaling) -> AutoscalerKind:
    """The kind that is asked for, and Kubernetes' own where that can do what is asked."""
    if scaling.kind is not None:
        return scaling.kind
    if scaling.query is not None or scaling.min_replicas == 0:
        return AutoscalerKind.SCALED_OBJECT
    return AutoscalerKind.HORIZONTAL_POD_AUTOSCALER


def asks_prometheus(scaling: Autoscaling) -> bool:
    """Whether its ScaledObject needs to know where Prometheus is."""
    return scaling.cpu_percent is None


def metric_of(scaling: Autoscaling) -> str:
    """The metric of pods that an autoscaler asks for; empty where it needs none but the cluster's own.

    The counter in Prometheus is that of prometheus-fastapi-instrumentator, which vLLM's server has
    (`docs/design/metrics.md` of vllm-project/vllm).
    """
    if scaling.requests_per_second is not None:
        is_counted = autoscaler_kind(scaling) is AutoscalerKind.SCALED_OBJECT
        return scaling.metric or ("http_requests_total" if is_counted else "http_requests_per_second")
    if scaling.waiting_requests is not None:
        # `vllm:num_requests_waiting` in `vllm/v1/metrics/loggers.py` of vllm-project/vllm.
        return scaling.metric or "vllm:num_requests_waiting"
    return GPU_METRIC if scaling.gpu_percent is not None else ""
