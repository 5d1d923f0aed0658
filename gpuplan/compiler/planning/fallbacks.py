"""The pools that work may go to when its own pool is full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.planning.grants import FRACTION, grants
from gpuplan.compiler.planning.plan import Plan, Pool, Quota, Unit, Workload

T = TypeVar("T")


def chain(plan: Plan, pool: Pool) -> tuple[Pool, ...]:
    """Return the pool, the pool that it falls back to, and so on. A circle ends before it begins again."""
    return tuple(_along(pool, lambda step: plan.find_pool(step.spec.fallback or "")))


def reach(plan: Plan, workload: Workload) -> tuple[Pool, ...]:
    """Return the pools that a workload's pods may run in: first its own, then those that it falls back to.

    A pool is passed over where the pods would not get there what they ask for: it hands out no such unit, the tenant
    has no quota on it or fewer in one container, or its Topology is not the one that the pods ask Kueue for. What a
    tenant has in a pool is what its quotas say there; a fallback adds nothing to it.
    """
    own = workload.pool
    if own.spec.fallback is None or not plan.scheduler.crosses_pools or workload.unit.asked_as is None:
        return (own,)
    return (
        own,
        *(pool for pool in chain(plan, own)[1:] if _is_open(workload, pool) and fits_topology(plan, workload, pool)),
    )


def deciding(plan: Plan, workload: Workload) -> tuple[Origin, ...]:
    """Return the places that decide which pools the pods reach beside their own. Some of them may not be written."""
    own = workload.pool
    if own.spec.fallback is None or not plan.scheduler.crosses_pools:
        return ()
    pools, asked = chain(plan, own), workload.unit.asked_as
    quotas = [found for pool in pools[1:] for found in _held(workload, pool, asked)]
    asked_level = [workload.closeness.at] if workload.closeness else []
    levels = [pool.at / "topology" / index for pool in pools for index in range(len(pool.spec.topology))]
    return (
        *(pool.at / "fallback" for pool in pools if pool.spec.fallback),
        *(quota.at / field for quota in quotas for field in ("pool", "limit", "guaranteed")),
        *(quota.at / "split" / workload.namespace for quota in quotas),
        *((*levels, *asked_level) if plan.scheduler.has_topologies else ()),
    )


def landings(plan: Plan, workload: Workload) -> tuple[tuple[Pool, Unit], ...]:
    """Return the unit that the pods get in each pool that they reach.

    Units of other pools have the same resource name.
    """
    asked = workload.unit.asked_as
    others = ((pool, quota.unit) for pool in reach(plan, workload)[1:] for quota in _held(workload, pool, asked)[:1])
    return ((workload.pool, workload.unit), *others)


def _held(workload: Workload, pool: Pool, asked: str | None) -> list[Quota]:
    return [found for found in workload.tenant.quotas if found.pool is pool and found.unit.asked_as == asked]


def _is_open(workload: Workload, pool: Pool) -> bool:
    """Whether admission lets the pods into a pool."""
    asked, count = workload.unit.asked_as, workload.spec.count
    found = grants(workload.tenant, workload.namespace) if workload.namespace in workload.tenant.spec.namespaces else ()
    return any(
        grant.pool == pool.name and grant.resource == asked and count <= (grant.most_per_container or count)
        for grant in found
    )


def fits_topology(plan: Plan, workload: Workload, pool: Pool) -> bool:
    """Whether what the pods say of their own pool's Topology holds in another pool as well.

    Pods that ask for a Topology get nothing of a flavor that has none, or not their level, and the other way round
    (`checkPodSetAndFlavorMatchForTAS` in `pkg/scheduler/flavorassigner/tas_flavorassigner.go` of Kueue).
    """
    if not plan.scheduler.has_topologies:
        return True
    here, there, asked = workload.pool.spec.topology, pool.spec.topology, workload.closeness
    return bool(here) == bool(there) and (asked is None or asked.level in there)


def resources_of(pool: Pool) -> frozenset[str]:
    """Return the names under which a pool's units are granted."""
    return frozenset(unit.asked_as or FRACTION for unit in pool.units)


def in_order(pools: Iterable[Pool], names: Iterable[str]) -> list[str]:
    """Return names of pools in their order, but each before those that it falls back to."""
    successors = {pool.name: pool.spec.fallback for pool in pools}
    left = dict.fromkeys(names)
    before: dict[str, list[str]] = {name: [] for name in left}
    for name in left:
        for later in _along(name, successors.get):
            if later != name and later in before:
                before[later].append(name)
    ordered: dict[str, None] = {}

    def put(name: str, open_: set[str]) -> None:
        if name not in ordered and name not in open_:
            for earlier in before[name]:
                put(earlier, open_ | {name})
            ordered[name] = None

    for name in left:
        put(name, set())
    return list(ordered)


def ordering_fallbacks(pools: Sequence[Pool], names: Sequence[str]) -> tuple[Origin, ...]:
    """Return the places of the fallbacks without which these names would have another order."""
    order = in_order(pools, names)
    others = ([other for other in pools if other is not pool] for pool in pools)
    return tuple(
        pool.at / "fallback"
        for pool, left in zip(pools, others, strict=True)
        if pool.spec.fallback and in_order(left, names) != order
    )


def _along(first: T, following: Callable[[T], T | None]) -> Iterator[T]:
    seen: list[T] = []
    found: T | None = first
    while found is not None and found not in seen:
        yield found
        seen.append(found)
        found = following(found)
