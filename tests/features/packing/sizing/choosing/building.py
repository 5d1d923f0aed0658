"""Needs and node types in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Answer, Cut, NodeType, Today, Way
from gpuplan.features.packing.sizing.needs import Need, Service, Throughput

A100 = load().get("A100-80GB")
L4 = load().get("L4-24GB")
H100 = load().get("H100-80GB")
SHARED = (Way.WHOLE, Way.MIG, Way.TIME_SLICING, Way.MPS)


def a_need(
    pods: int = 1,
    name: str = "need",
    *,
    memory: int = 0,
    compute: str = "0",
    gpus: int = 0,
    isolation: Isolation = Isolation.HARDWARE,
    models: tuple[str, ...] = (),
    engines: Mapping[str, int] | None = None,
) -> Need:
    part = Fraction(compute)
    return Need(None, "team", name, pods, memory * 1024, part, gpus, isolation, models, engines or {})


def a_service(
    requests: float, measured: Mapping[int, float], latency: float | None = None, name: str = "service"
) -> Need:
    points = tuple(Throughput(size, 1, 1, reached, 5) for size, reached in measured.items())
    return Need(None, "team", name, 0, service=Service(requests, latency, points))


def nodes(
    gpu: Gpu = A100,
    gpus: int = 1,
    count: int | None = None,
    *,
    name: str = "",
    price: str | None = None,
    ways: tuple[Way, ...] = (Way.WHOLE, Way.MIG),
    pools: tuple[Today, ...] = (),
    is_equal: bool = False,
) -> NodeType:
    profiles = tuple(profile.name for profile in gpu.profiles)
    cost = None if price is None else Decimal(price)
    return NodeType(name or gpu.id, gpu, gpus, count, cost, profiles, ways, pools, is_equal)


def a_pool(name: str, count: int, *per_gpu: Mapping[str, int], is_kept: bool = False) -> Today:
    return Today(name, count, Cut(Way.MIG if any(per_gpu) else Way.WHOLE, per_gpu), is_kept)


def units(answer: Answer) -> dict[tuple[str, str], int]:
    """How many of each unit each need has."""
    found: dict[tuple[str, str], int] = {}
    for grant in answer.grants:
        key = grant.need.name, grant.unit
        found[key] = found.get(key, 0) + grant.units
    return found


def unmet(answer: Answer) -> dict[str, int]:
    return {need.name: pods for need, pods in answer.unmet}
