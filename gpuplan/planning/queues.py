"""The tree of tenants as schedulers with queues see it: who divides what, and what is left to divide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpuplan.planning.plan import Amount, Tenant

ROOT_COHORT: Final = "gpuplan"
"""The cohort of Kueue that all others, and the queues of tenants without a parent, are in."""

Held = tuple[str, str, str]
"""A tenant's name, and the pool and unit that it has a quota on."""


def parents(tenants: Sequence[Tenant]) -> frozenset[str]:
    """The names of tenants that others are part of."""
    names = {tenant.name for tenant in tenants}
    return frozenset(tenant.parent for tenant in tenants if tenant.parent in names and tenant.parent is not None)


def left_over(tenants: Sequence[Tenant]) -> Mapping[Held, Amount]:
    """What remains of each guarantee when those that lie within it are taken off; never less than nothing.

    A guarantee lies within that of the nearest ancestor with a quota on the same unit, as totals count it
    (`gpuplan.planning.totals`). So what remains to all tenants adds up to what all tenants are guaranteed.
    """
    left: dict[Held, Amount] = {}
    for tenant in tenants:
        for quota in tenant.quotas:
            held = tenant.name, quota.pool.name, quota.unit.name
            left[held] = left.get(held, 0) + quota.guaranteed
    by_name = {tenant.name: tenant for tenant in tenants}
    for tenant in tenants:
        for quota in tenant.quotas if tenant.parent is not None else ():
            above = _holder_above(tenant, quota.pool.name, quota.unit.name, by_name, left)
            if above is not None:
                left[above] -= quota.guaranteed
    return {held: max(amount, 0) for held, amount in left.items()}


def _holder_above(
    tenant: Tenant, pool: str, unit: str, by_name: Mapping[str, Tenant], held: Mapping[Held, Amount]
) -> Held | None:
    """The nearest ancestor's quota on the unit; a circle of parents ends the search."""
    seen = {tenant.name}
    parent = tenant.parent
    while parent is not None and parent not in seen and parent in by_name:
        if (parent, pool, unit) in held:
            return parent, pool, unit
        seen.add(parent)
        parent = by_name[parent].parent
    return None


def evicts_within(tenant: Tenant) -> bool:
    """Whether one of a tenant's classes may evict another: a queue of Kueue has one answer for all of them."""
    classes = tenant.priority_classes
    return any(
        higher.spec.preempts and lower.spec.preemptible and lower.spec.value < higher.spec.value
        for higher in classes
        for lower in classes
    )
