"""The network of services: ports, probes, autoscaling, and the routes that lead to them from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, assert_never

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan, Workload
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
    Route,
    RouteKind,
    Workspace,
)

MAIN_PORT: Final = "http"
"""The name of the port that every service has."""


def ports_of(work: Inference) -> Mapping[str, int]:
    """Return all ports by name, or none if nothing listens."""
    return {} if work.port == "none" else {MAIN_PORT: work.port, **work.ports}


def is_called(work: Inference | Batch | Workspace) -> bool:
    """Whether a Service with the workload's own name leads to its pods."""
    return isinstance(work, Workspace) or (isinstance(work, Inference) and bool(ports_of(work)))


def probe_of(work: Inference) -> Probe | Literal["tcp", "grpc", "none"]:
    """Return the probe of the container, or its default."""
    if work.probe is not None:
        return work.probe
    return "none" if work.port == "none" else "tcp"


def service_port(work: Inference, name: str) -> int:
    """Return the port of the Service that leads to the port of this name."""
    own = work.service.port if name == MAIN_PORT else None
    return own or ports_of(work)[name]


def way_to(cluster: ClusterSpec, work: Inference) -> Gateway | Ingress | None:
    """Return the gateway or ingress that leads to a service, or None if there is none."""
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
    """Return the kind of route that the policy asks for, or an Ingress if either kind would do."""
    if work.route is not None and work.route.kind is not None:
        return work.route.kind
    return RouteKind.INGRESS if cluster.ingress and not work.canary else RouteKind.HTTP_ROUTE


def canary_name(workload: str) -> str:
    """Return the name of a canary's Deployment and Service, which is also the label of its pods."""
    return f"{workload}-canary"


def canary_of(cluster: ClusterSpec, work: Inference) -> Canary | None:
    """Return the canary of a service, or None if the cluster cannot weigh requests between it and the service."""
    return work.canary if work.pods_per_replica == 1 and isinstance(way_to(cluster, work), Gateway) else None


def routed_port(work: Inference) -> str:
    """Return the name of the port that requests from outside come to."""
    return (work.route.port if work.route else None) or MAIN_PORT


PROBE_PERIOD: Final = 10
"""Seconds from one probe to the next, as Kubernetes has them by itself; three without an answer are one too many."""

GPU_METRIC: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The part of the time that a GPU or a MIG device computes, from 0 to 1: NVIDIA's exporter has no other for both."""


def autoscaler_kind(scaling: Autoscaling) -> AutoscalerKind:
    """Return the kind of autoscaler that the policy asks for, or the one of Kubernetes if it is capable enough."""
    if scaling.kind is not None:
        return scaling.kind
    if scaling.query is not None or scaling.min_replicas == 0:
        return AutoscalerKind.SCALED_OBJECT
    return AutoscalerKind.HORIZONTAL_POD_AUTOSCALER


def asks_prometheus(scaling: Autoscaling) -> bool:
    """Whether its ScaledObject needs to know where Prometheus is."""
    return scaling.cpu_percent is None


def metric_of(scaling: Autoscaling) -> str:
    """Return the metric of pods that an autoscaler reads. It is empty if the cluster's own metrics are enough.

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


class Taking(NamedTuple):
    """Requests for ``address`` that the route ``by`` gets, by one of its hosts, and ``of`` would get without it."""

    by: Workload
    host: int
    of: Workload
    other_host: int
    address: str
    whole: str
    """The address of the other route that this is part of."""


def routed(plan: Plan) -> Iterator[tuple[Workload, Inference, Route]]:
    """Yield the services with a route from outside."""
    for workload, work in plan.work_of(Inference):
        if work.route is not None and work.port != "none":
            yield workload, work, work.route


def takings(plan: Plan) -> Iterator[Taking]:
    """Yield what routes take from each other, except routes with the same host and path.

    The longer host goes before the longer path, and a host without a wildcard before one (`Hostnames` and `Matches` in
    `apis/v1/httproute_types.go` of kubernetes-sigs/gateway-api; "Hostname wildcards" and "Multiple matches" in
    https://kubernetes.io/docs/concepts/services-networking/ingress/). Routes of different kinds do not meet.
    """
    places: dict[tuple[RouteKind, str], list[tuple[Workload, int, str]]] = {}
    found = [(workload, route_kind(plan.cluster.spec, work), route) for workload, work, route in routed(plan)]
    for workload, kind, route in found:
        for index, host in enumerate(route.hosts):
            places.setdefault((kind, host), []).append((workload, index, route.path))
    for workload, kind, route in found:
        for index, host in enumerate(route.hosts):
            met = [workload]
            for wider in (host, *_above(host, kind)):
                for other, number, path in places.get((kind, wider), ()):
                    longer = _longer(route.path, path)
                    # Of several hosts of one route the narrowest is the one that requests came to.
                    if longer is None or any(other is known for known in met):
                        continue
                    met.append(other)
                    if wider != host or _is_below(route.path, path):
                        yield Taking(workload, index, other, number, f"{host}{longer}", f"{wider}{path}")


def _above(host: str, kind: RouteKind) -> Iterator[str]:
    """Yield the wildcards that match a host.

    A `*` is one part of a name for an Ingress, one or more for an HTTPRoute.
    """
    parts = host.removeprefix("*.").split(".")
    if kind is RouteKind.INGRESS:
        yield from () if host.startswith("*.") else (".".join(("*", *parts[1:])),)
        return
    yield from (".".join(("*", *parts[start:])) for start in range(1, len(parts)))


def _longer(one: str, other: str) -> str | None:
    """Return the path of requests that both get, or None."""
    if one == other or _is_below(one, other):
        return one
    return other if _is_below(other, one) else None


def _is_below(path: str, other: str) -> bool:
    """Whether a path lies below the other, by whole parts."""
    return path != other and path.startswith("/" if other == "/" else f"{other}/")
