"""Add up what all tenants have of each unit of each pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuplan.planning.plan import Amount, Pool, Quota, Tenant, Total

Key = tuple[str, str]


def add_up(pools: Sequence[Pool], tenants: Sequence[Tenant]) -> tuple[Total, ...]:
    """One total per unit, pools and units in their order.

    A tenant counts within the nearest ancestor that states a quota of its own for the unit: its guarantee is then a
    part of the ancestor's, and must not be counted again.
    """
    grants = _grants(tenants)
    by_name = {tenant.name: tenant for tenant in tenants}
    totals = []
    for pool in pools:
        for unit in pool.units:
            held = grants.get((pool.name, unit.name), ())
            holders = frozenset(tenant.name for tenant, _ in held)
            counted = tuple((t, q) for t, q in held if not _is_within(t, holders, by_name))
            totals.append(Total(pool, unit, _sum_guaranteed(counted), _sum_limits(counted), counted))
    return tuple(totals)


def _grants(tenants: Sequence[Tenant]) -> dict[Key, list[tuple[Tenant, Quota]]]:
    grants: dict[Key, list[tuple[Tenant, Quota]]] = {}
    for tenant in tenants:
        for quota in tenant.quotas:
            grants.setdefault((quota.pool.name, quota.unit.name), []).append((tenant, quota))
    return grants


def _is_within(tenant: Tenant, holders: frozenset[str], by_name: Mapping[str, Tenant]) -> bool:
    """Whether an ancestor holds a quota for the same unit; a cycle of parents ends the search."""
    seen = {tenant.name}
    parent = tenant.parent
    while parent is not None and parent not in seen and parent in by_name:
        if parent in holders:
            return True
        seen.add(parent)
        parent = by_name[parent].parent
    return False


def _sum_guaranteed(counted: Sequence[tuple[Tenant, Quota]]) -> Amount:
    return sum((quota.guaranteed for _, quota in counted), start=0)


def _sum_limits(counted: Sequence[tuple[Tenant, Quota]]) -> Amount | None:
    limits = [quota.limit for _, quota in counted]
    return None if None in limits else sum((limit for limit in limits if limit is not None), start=0)
