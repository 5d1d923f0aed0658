"""Units that a change gives or takes, and the pods that may hold them."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from gpuplan.compiler.planning.plan import Amount, DynamicMig, Fraction, Plan, Pool, Quota, Tenant, Unit
from gpuplan.features.changes.model import CapacityChange, GrantChange


def capacities(before: Pool | None, after: Pool | None, nodes: int | None = None) -> tuple[CapacityChange, ...]:
    """The units whose number differs; of ``nodes`` nodes, or of the pools' own."""
    present = [pool for pool in (before, after) if pool is not None]
    units = dict.fromkeys(unit.name for pool in present for unit in pool.units)
    found = ((unit, _capacity(before, unit, nodes), _capacity(after, unit, nodes)) for unit in units)
    return tuple(CapacityChange(present[-1].name, unit, old, new) for unit, old, new in found if old != new)


def _capacity(pool: Pool | None, unit: str, nodes: int | None) -> int:
    found = pool.find_unit(unit) if pool is not None else None
    if found is None:
        return 0
    return found.capacity if nodes is None else found.per_node * nodes


Held = tuple[str, str]
"""A pool and a unit of it, by name."""


def quotas(tenant: Tenant | None, renamed: Mapping[str, str]) -> dict[Held, Quota]:
    """A tenant's quotas, in the order of the policy; ``renamed`` are pools by the name that they had."""
    found = tenant.quotas if tenant is not None else ()
    return {(renamed.get(quota.pool.name, quota.pool.name), quota.unit.name): quota for quota in found}


def grants(before: Tenant | None, after: Tenant | None, renamed: Mapping[str, str]) -> tuple[GrantChange, ...]:
    """The grants that differ, in the order of the policy."""
    old, new = quotas(before, renamed), quotas(after, {})
    name = next(tenant.name for tenant in (after, before) if tenant is not None)
    found = ((key, _numbers(old.get(key)), _numbers(new.get(key))) for key in dict.fromkeys((*old, *new)))
    return tuple(
        GrantChange(name, *key, one[0], other[0], one[1], other[1]) for key, one, other in found if one != other
    )


def _numbers(quota: Quota | None) -> tuple[Amount, Amount | None]:
    return (quota.guaranteed, quota.limit) if quota is not None else (0, 0)


_HUNDREDTHS: Final = 100
"""Pods that one GPU may have at once where a scheduler divides it: it counts in hundredths."""


def pods_on(plan: Plan, pool: Pool, nodes: int) -> int:
    """Return the number of pods that may hold units on so many nodes of a pool or of a part of a pool."""
    limits = {total.unit.name: total.limit for total in plan.totals if total.pool.name == pool.name}
    found = 0
    for unit in pool.units:
        there, limit = unit.per_node * nodes, limits.get(unit.name)
        found += ceil((there if limit is None else min(there, limit)) * _pods_per_unit(pool, unit))
    if isinstance(pool.sharing, DynamicMig):  # of which a GPU has no more at once than compute slices
        return min(found, pool.gpu.compute_slices * pool.nodes.gpus_per_node * nodes)
    return found


def all_pods(plan: Plan) -> int:
    return sum(pods_on(plan, part, part.nodes.count) for part in plan.parts)


def pods_of(tenant: Tenant) -> int:
    """Return the number of pods with units that a tenant may have, one for each unit."""
    return sum(
        ceil((quota.unit.capacity if quota.limit is None else quota.limit) * _pods_per_unit(quota.pool, quota.unit))
        for quota in tenant.quotas
    )


def _pods_per_unit(pool: Pool, unit: Unit) -> int:
    return _HUNDREDTHS if isinstance(pool.part_with(unit).sharing, Fraction) else 1
