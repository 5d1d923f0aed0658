"""Recording rules of what units cost, where the policy says prices: money by pool, unit and tenant.

All of it is for an hour, in the currency that each series names. What is planned and guaranteed is of the plan, in
which sums are exact; a series keeps nine digits behind the point. What is requested follows what pods hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction as Ratio
from typing import Final

from gpuplan.compiler.backends.monitoring.rules import Group, Rule, constant, divided, published, recording
from gpuplan.compiler.manifests.provenance import Links, Routes, choosing, chosen, copied, multiplied, ordering, summed
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.discovered import INSTANCE_TYPE_LABEL
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.plan import Plan, Pool, Prices, Tenant, Unit
from gpuplan.compiler.planning.prices import Costs, costs, node_price

GROUP: Final = "gpuplan-costs"
"""The beginning of the names of the groups."""

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
POOL_REQUESTED_COST: Final = "pool:gpuplan_requested_cost:hourly"
"""{pool, currency}: what pods have of the pool, whoever's; absent where there are none."""

_REQUESTED: Final = {
    TENANT_REQUESTED_COST: ("tenant, pool, currency", "tenant:gpuplan_requested_units:sum"),
    POOL_REQUESTED_COST: ("pool, currency", "pool:gpuplan_requested_units:sum"),
}
"""The labels of what is recorded, and the units that it is the price of, by record."""


def cost_groups(plan: Plan, recorded: Collection[str]) -> Iterator[Group]:
    """Yield the groups, if a document says prices. ``recorded`` are the series that other groups record."""
    counted = costs(plan)
    if plan.prices is not None and counted is not None:
        requested = [
            recording(
                record, f"sum by ({kept}) (\n  {units}\n  * on (pool, unit) group_left (currency) {POOL_UNIT_COST}\n)"
            )
            for record, (kept, units) in _REQUESTED.items()
            if units in recorded  # something says what pods have: of claimed devices Kueue alone
        ]
        yield from divided(GROUP, (*_rules(plan.prices, counted), *requested))


def _rules(prices: Prices, counted: Costs) -> Iterator[Rule]:
    of = {"currency": counted.currency}
    yield constant(PRICES, 1, prices=prices.name, **of)
    for cost in counted.pools:
        here = {"pool": cost.pool.name, **of}
        yield constant(POOL_COST, _number(cost.total), **here)
        yield constant(POOL_IDLE_COST, _number(cost.free), idle="free", **here)
        yield constant(POOL_IDLE_COST, _number(cost.not_cut), idle="not-cut", **here)
        each = {unit.unit.name: unit for unit in cost.units}
        for resource in published(cost.pool):  # several units that are published as one cost as much as their mean
            parts = [each[name] for name in resource.units]
            number = sum(part.unit.capacity for part in parts)
            whole = sum((part.each * part.unit.capacity for part in parts), Ratio(0))
            mean = whole / number if number else Ratio(0)
            yield constant(POOL_UNIT_COST, _number(mean), **resource.labels, **here)
        for name, unit in each.items() if not published(cost.pool) else ():
            yield constant(POOL_UNIT_COST, _number(unit.each), unit=name, **here)
    for tenant in counted.tenants:
        for pool, amount in tenant.own_by_pool.items():
            yield constant(TENANT_COST, _number(amount), tenant=tenant.tenant.name, pool=pool, **of)


_DIGITS: Final = 9


def _number(amount: Ratio) -> str:
    """Return a number of PromQL, without idle zeros."""
    whole, part = divmod(round(abs(amount) * 10**_DIGITS), 10**_DIGITS)
    digits = f"{part:0{_DIGITS}d}".rstrip("0")
    return f"{'-' if amount < 0 else ''}{whole}{f'.{digits}' if digits else ''}"


# --- Where it comes from -----------------------------------------------------------------------------------------


def routes(plan: Plan, rule: Rule) -> Routes:
    """Yield where a rule of the group comes from; ``rule`` is one that `cost_groups` has made."""
    prices, labels = plan.prices, rule.get("labels", {})
    if prices is None:
        return
    if rule["record"] != PRICES:
        # Names decide where a rule stands, and which of the pools have a price. Of claimed devices Kueue alone tells.
        kueue = (*sources.scheduler_of(plan), *sources.release_of(plan)) if uses_claims(plan) else ()
        names = (*sources.by_name(plan.pools), *sources.by_name(plan.tenants))
        priced = ordering(link for pool in plan.pools for link in _found_by(pool))
        is_short = len(plan.pools) <= sources.MOST_IN_ORDER
        yield (), (*sources.claims_of(plan), *kueue, *names, *(priced if is_short else ()))
    if "currency" in labels:
        yield ("labels", "currency"), copied(prices.at / "currency")
    if rule["record"] == PRICES:
        yield ("labels", "prices"), sources.named(prices)
    if "pool" not in labels:
        return
    pool = next(pool for pool in plan.pools if pool.name == labels["pool"])
    yield (), _found_by(pool)
    yield ("labels", "pool"), sources.named(pool)
    price = node_price(plan, pool)
    yield ("expr",), multiplied(price.at, pool.nodes.at / "gpusPerNode") if price else ()
    match rule["record"]:
        case name if name == POOL_COST:
            yield ("expr",), multiplied(pool.nodes.at / "count")
        case name if name == POOL_UNIT_COST:
            # What is published as one costs as much as its mean, so that it matters how many there are of each.
            units = [unit for unit in pool.units if unit.name in labels["unit"].split("/")]
            for unit in units:
                yield ("labels", "unit"), sources.unit_name_of(pool, unit)
                yield ("labels", "resource"), sources.resource_of(pool, unit)
                yield ("expr",), (*_part_of(pool, unit), *(sources.capacity_of(pool, unit) if units[1:] else ()))
        case name if name == POOL_IDLE_COST:
            capacity = dict.fromkeys(link for unit in pool.units for link in sources.capacity_of(pool, unit))
            yield ("expr",), (*capacity, *_of_guarantees(plan.tenants, pool))
        case _:
            tenant = next(tenant for tenant in plan.tenants if tenant.name == labels["tenant"])
            yield ("labels", "tenant"), sources.named(tenant)
            yield ("expr",), _of_guarantees((tenant, *plan.tree.children(tenant)), pool)


def _found_by(pool: Pool) -> Links:
    """Return what chooses the price of a pool's nodes."""
    billing, label = pool.at / "billing", pool.nodes.at / "selector" / INSTANCE_TYPE_LABEL
    stated = label if pool.spec.billing.node_type is None else billing / "nodeType"
    return chosen(pool.at / "gpu", stated, billing / "term")


def _part_of(pool: Pool, unit: Unit) -> Links:
    """Return what makes the part of a GPU that a unit is: its profile, and how many shares there are of a device."""
    shares = pool.part_with(unit).shares_of(unit)
    return (*choosing(sources.unit_name_of(pool, unit)), *(multiplied(shares.at) if shares else ()))


def _of_guarantees(tenants: Iterable[Tenant], pool: Pool) -> Links:
    quotas = [quota for tenant in tenants for quota in tenant.quotas if quota.pool.name == pool.name]
    units = {quota.unit.name: quota.unit for quota in quotas}.values()
    parts = (link for unit in units for link in _part_of(pool, unit))
    named_by = chosen(*(quota.at / field for quota in quotas for field in ("pool", "unit")))
    return (*parts, *named_by, *summed(*(quota.at / "guaranteed" for quota in quotas)))
