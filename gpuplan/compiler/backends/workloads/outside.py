"""The ways from outside of the cluster to a service: an HTTPRoute of the cluster's Gateway, or an Ingress."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, assert_never

from gpuplan.compiler.backends.workloads.bodies import AFTER, Written, workload_object
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied, summed
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.serving import MAIN_PORT, canary_name, canary_of, routed_port, service_port, way_to
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.policy.models import Gateway, Inference, Ingress, Route


def objects(plan: Plan, workload: Workload, work: Inference) -> Iterator[Written]:
    """Yield one object, of the kind that the cluster has."""
    of, route = Traces(plan, workload), work.route
    if route is None:
        return
    match way_to(plan.cluster.spec, work):
        case Gateway() as gateway:
            port, canary = service_port(work, routed_port(work)), canary_of(plan.cluster.spec, work)
            backends = [_backend(workload.name, port, 100 - canary.weight if canary else 1)]
            if canary:
                backends.append(_backend(canary_name(workload.name), port, canary.weight))
            yield AFTER, _http_route(workload, route, gateway, backends), partial(_http_route_routes, of, route)
        case Ingress() as ingress:
            yield AFTER, _ingress(workload, work, route, ingress), partial(_ingress_routes, of, route)
        case None:
            return
        case unknown:
            assert_never(unknown)


_GROUP: Final = "gateway.networking.k8s.io"


def _http_route(workload: Workload, route: Route, gateway: Gateway, backends: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the route with all that the API server would add to items of lists: Argo CD would see a difference."""
    parent = given(
        group=_GROUP, kind="Gateway", namespace=gateway.namespace, name=gateway.name, sectionName=gateway.listener
    )
    spec = {
        "parentRefs": [parent],
        "hostnames": list(route.hosts),
        "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": route.path}}], "backendRefs": backends}],
    }
    return workload_object(f"{_GROUP}/v1", "HTTPRoute", workload.name, workload, spec=spec)


def _backend(service: str, port: int, weight: int) -> dict[str, Any]:
    return {"group": "", "kind": "Service", "name": service, "port": port, "weight": weight}


def _ingress(workload: Workload, work: Inference, route: Route, ingress: Ingress) -> dict[str, Any]:
    backend = {"service": {"name": workload.name, "port": {"name": routed_port(work)}}}
    http = {"paths": [{"path": route.path, "pathType": "Prefix", "backend": backend}]}
    spec = given(
        ingressClassName=ingress.class_name,
        tls=[{"hosts": list(route.hosts), "secretName": route.tls_secret}] if route.tls_secret else None,
        rules=[{"host": host, "http": http} for host in route.hosts],
    )
    return workload_object("networking.k8s.io/v1", "Ingress", workload.name, workload, spec=spec)


# --- Where it comes from -------------------------------------------------------------------------------------------


def _http_route_routes(of: Traces, route: Route) -> Routes:
    at, gateway = of.workload.work_at / "route", of.plan.cluster.at / "gateway"
    yield from of.metadata(named(of.workload))
    yield (), chosen(at, at / "kind", of.plan.cluster.at / "ingress")
    parent = ("spec", "parentRefs", 0)
    for field, source in (("name", "name"), ("namespace", "namespace"), ("sectionName", "listener")):
        yield (*parent, field), copied(gateway / source)
    for index in range(len(route.hosts)):
        yield ("spec", "hostnames", index), copied(at / "hosts" / index)
    rule = ("spec", "rules", 0)
    yield (*rule, "matches", 0, "path", "value"), copied(at / "path")
    weight, work = of.workload.work_at / "canary" / "weight", of.workload.work
    is_own = isinstance(work, Inference) and work.service.port is not None
    port = copied(of.workload.work_at / "service" / "port" if is_own else of.workload.work_at / "port")
    if route.port not in (None, MAIN_PORT):
        port = (*copied(of.workload.work_at / "ports" / route.port), *chosen(at / "port"))
    for index, link in enumerate((summed, copied)):
        backend = (*rule, "backendRefs", index)
        yield (*backend, "name"), named(of.workload)
        yield (*backend, "port"), port
        yield (*backend, "weight"), link(weight)
    yield (*rule, "backendRefs", 1), chosen(of.workload.work_at / "canary")


def _ingress_routes(of: Traces, route: Route) -> Routes:
    at = of.workload.work_at / "route"
    yield from of.metadata(named(of.workload))
    yield (), chosen(at, at / "kind")
    yield ("spec", "ingressClassName"), copied(of.plan.cluster.at / "ingress" / "className")
    yield ("spec", "tls", 0, "secretName"), copied(at / "tlsSecret")
    for index in range(len(route.hosts)):
        yield ("spec", "tls", 0, "hosts", index), copied(at / "hosts" / index)
        rule = ("spec", "rules", index)
        yield (*rule, "host"), copied(at / "hosts" / index)
        path = (*rule, "http", "paths", 0)
        yield (*path, "path"), copied(at / "path")
        yield (*path, "backend", "service", "name"), named(of.workload)
        yield (*path, "backend", "service", "port", "name"), copied(at / "port")
