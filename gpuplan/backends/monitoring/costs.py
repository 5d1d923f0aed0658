"""Recording rules of what units cost, where the policy says prices: money by pool, unit and tenant.

All of it is for an hour, in the currency that each series names. What is planned and guaranteed is of the plan, in
which sums are exact; a series keeps nine digits behind the point. What is requested follows what pods hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction as Ratio
from typing import Final

from gpuplan.backends.monitoring.rules import (
    Group,
    Rule,
    constant,
    published,
    recording,
)
from gpuplan.diagnostics import Origin
from gpuplan.manifests.provenance import Links, Routes, choosing, chosen, copied, multiplied, multiplying, summed
from gpuplan.planning.plan import Plan, Pool, Prices, Tenant
from gpuplan.planning.prices import INSTANCE_TYPE_LABEL, Costs, PoolCost, costs, rates_for
from gpuplan.planning.sources import by_name, capacity_of, claims_of, named, resource_of, unit_name_of
from gpuplan.policy.models import Rate

GROUP: Final = "gpuplan-costs"

PRICES: Final = "cluster:gpuplan_prices:info"
"""{prices, currency}: 1 for the list of prices that is counted with."""
POOL_COST: Final = "pool:gpuplan_planned_cost:hourly"
"""{pool, currency}: what the pool's nodes cost by the plan."""
POOL_IDLE_COST: Final = "pool:gpuplan_idle_cost:hourly"
"""{pool, currency, idle}: what of it nobody is guaranteed: `free` is in units, `not-cut` in none."""
POOL_UNIT_COST: Final = "pool:gpuplan_unit_cost:hourly"
"""{pool, unit, resource, currency}: what one unit costs; without `resource` where devices are claimed."""
TENANT_COST: Final = "tenant:gpuplan_guaranteed_cost:hourly"
"""{tenant, pool, currency}: what the tenant is guaranteed, without what tenants are that are part of it."""
TENANT_REQUESTED_COST: Final = "tenant:gpuplan_requested_cost:hourly"
"""{tenant, pool, currency}: what the tenant's pods have; absent where there are none."""

_REQUESTED: Final = f"""\
sum by (tenant, pool, currency) (
  tenant:gpuplan_requested_units:sum
  * on (pool, unit, resource) group_left (currency) {POOL_UNIT_COST}
)"""


def cost_groups(plan: Plan) -> Iterator[Group]:
    """Nothing where no document says prices."""
    found = costs(plan)
    if plan.prices is not None and found is not None:
        yield Group(GROUP, tuple(_rules(plan.prices, found)))


def _rules(prices: Prices, found: Costs) -> Iterator[Rule]:
    of = {"currency": found.currency}
    yield constant(PRICES, 1, prices=prices.name, **of)
    for cost in found.pools:
        here = {"pool": cost.pool.name, **of}
        yield constant(POOL_COST, _number(cost.total), **here)
        yield constant(POOL_IDLE_COST, _number(cost.free), idle="free", **here)
        yield constant(POOL_IDLE_COST, _number(cost.not_cut), idle="not-cut", **here)
        for labels, each in _units(cost):
            yield constant(POOL_UNIT_COST, _number(each), **labels, **here)
    for tenant in found.tenants:
        for pool, amount in tenant.own_by_pool.items():
            yield constant(TENANT_COST, _number(amount), tenant=tenant.tenant.name, pool=pool, **of)
    if any(published(cost.pool) for cost in found.pools):
        yield recording(TENANT_REQUESTED_COST, _REQUESTED)


def _units(cost: PoolCost) -> Iterator[tuple[dict[str, str], Ratio]]:
    """What a pool hands out, by the labels of its series; what is published as one costs as much as its mean."""
    each = {unit.unit.name: unit for unit in cost.units}
    for item in published(cost.pool):
        parts = [each[name] for name in item.units]
        number = sum(part.unit.capacity for part in parts)
        whole = sum((part.each * part.unit.capacity for part in parts), Ratio(0))
        yield item.labels, whole / number if number else Ratio(0)
    if not published(cost.pool):
        yield from (({"unit": name}, unit.each) for name, unit in each.items())


_DIGITS: Final = 9


def _number(amount: Ratio) -> str:
    """A number of PromQL, without idle zeros."""
    whole, part = divmod(round(abs(amount) * 10**_DIGITS), 10**_DIGITS)
    digits = f"{part:0{_DIGITS}d}".rstrip("0")
    return f"{'-' if amount < 0 else ''}{whole}{f'.{digits}' if digits else ''}"


# --- Where it comes from -----------------------------------------------------------------------------------------


def routes(plan: Plan, rule: Rule) -> Routes:
    """Where a rule of the group comes from; ``rule`` is one that `cost_groups` has made."""
    prices, labels = plan.prices, rule.get("labels", {})
    if prices is None:
        return
    yield (), claims_of(plan)
    if "currency" in labels:
        yield ("labels", "currency"), copied(prices.at / "currency")
    if rule["record"] == PRICES:
        yield ("labels", "prices"), named(prices)
    if "pool" not in labels:
        return
    pool = next(pool for pool in plan.pools if pool.name == labels["pool"])
    yield (), by_name(plan.pools)
    yield ("labels", "pool"), named(pool)
    yield ("expr",), price_links(prices, pool)
    match rule["record"]:
        case name if name == POOL_COST:
            yield ("expr",), multiplied(pool.nodes.at / "count")
        case name if name == POOL_UNIT_COST:
            yield from _of_unit(pool, labels["unit"])
        case name if name == POOL_IDLE_COST:
            yield ("expr",), (*_of_units(pool), *_of_guarantees(plan.tenants, pool))
        case _:
            tenant = next(tenant for tenant in plan.tenants if tenant.name == labels["tenant"])
            yield (), by_name(plan.tenants)
            yield ("labels", "tenant"), named(tenant)
            yield ("expr",), (*_of_units(pool), *_of_guarantees((tenant, *plan.tree.children(tenant)), pool))


def price_links(prices: Prices, pool: Pool) -> Links:
    """What makes the price of a node: the rate that holds, those before it that do not, and what they are chosen by."""
    billing = pool.at / "billing"
    found = chosen(
        pool.at / "gpu", billing / "nodeType", billing / "term", pool.nodes.at / "selector" / INSTANCE_TYPE_LABEL
    )
    rates = [link for at, rate in rates_for(prices, pool) for link in _places(at, rate)]
    return (*found, *multiplied(*rates), *multiplied(pool.nodes.at / "gpusPerNode"))


def _places(at: Origin, rate: Rate) -> Iterator[Origin]:
    for field, terms in (("perGpuHour", rate.per_gpu_hour), ("perNodeHour", rate.per_node_hour)):
        if terms is not None:
            yield at / field


def _of_unit(pool: Pool, names: str) -> Routes:
    for unit in (unit for unit in pool.units if unit.name in names.split("/")):
        yield ("labels", "unit"), unit_name_of(pool, unit)
        yield ("labels", "resource"), resource_of(pool, unit)
        yield ("expr",), (*multiplying(capacity_of(pool, unit)), *choosing(unit_name_of(pool, unit)))


def _of_units(pool: Pool) -> Links:
    return tuple(dict.fromkeys(link for unit in pool.units for link in multiplying(capacity_of(pool, unit))))


def _of_guarantees(tenants: Iterable[Tenant], pool: Pool) -> Links:
    quotas = (quota for tenant in tenants for quota in tenant.quotas if quota.pool.name == pool.name)
    return summed(*(quota.at / "guaranteed" for quota in quotas))
