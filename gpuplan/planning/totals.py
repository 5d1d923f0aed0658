"""Add up what all tenants have of each unit of each pool."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.planning.plan import Amount, Pool, Quota, Tenant, Total, UnitKey
from gpuplan.planning.tree import Tree


def add_up(pools: Sequence[Pool], tenants: Sequence[Tenant]) -> tuple[Total, ...]:
    """One total per unit, pools and units in their order.

    A tenant counts within the nearest ancestor that states a quota of its own for the unit: its guarantee is then a
    part of the ancestor's, and must not be counted again.
    """
    counted: dict[UnitKey, list[tuple[Tenant, Quota]]] = {}
    for tenant, quota in Tree(tenants).outermost:
        counted.setdefault(quota.key, []).append((tenant, quota))
    return tuple(
        Total(pool, unit, _sum_guaranteed(found), _sum_limits(found), tuple(found))
        for pool in pools
        for unit in pool.units
        for found in [counted.get((pool.name, unit.name), [])]
    )


def _sum_guaranteed(counted: Sequence[tuple[Tenant, Quota]]) -> Amount:
    return sum((quota.guaranteed for _, quota in counted), start=0)


def _sum_limits(counted: Sequence[tuple[Tenant, Quota]]) -> Amount | None:
    limits = [quota.limit for _, quota in counted]
    return None if None in limits else sum((limit for limit in limits if limit is not None), start=0)
