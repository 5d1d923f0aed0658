"""Which requests one route takes from another: hosts and paths that are part of the other's."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.serving import route_kind
from gpuplan.compiler.policy.models import Inference, Route, RouteKind


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
    """The services that are to be reached from outside."""
    for workload in plan.workloads:
        if isinstance(workload.work, Inference) and workload.work.route is not None and workload.work.port != "none":
            yield workload, workload.work, workload.work.route


def takings(plan: Plan) -> Iterator[Taking]:
    """All of them, but for routes with the same host and path.

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
    """The wildcards that match it: of an Ingress a `*` is one part of a name, of an HTTPRoute it is any number."""
    parts = host.removeprefix("*.").split(".")
    if kind is RouteKind.INGRESS:
        yield from () if host.startswith("*.") else (".".join(("*", *parts[1:])),)
        return
    yield from (".".join(("*", *parts[start:])) for start in range(1, len(parts)))


def _longer(one: str, other: str) -> str | None:
    """The path of requests that both get; None where there are none."""
    if one == other or _is_below(one, other):
        return one
    return other if _is_below(other, one) else None


def _is_below(path: str, other: str) -> bool:
    """Whether it is a part of the other, by whole parts."""
    return path != other and path.startswith("/" if other == "/" else f"{other}/")
