"""The costs of units: the policy's prices of nodes, divided over the units of their GPUs.

Amounts are for an hour, in the cluster's one currency, and exact: a third of a GPU has a third of its price, and views
round what they show. What a GPU costs is divided by the part of it that each unit is (`part_of_gpu`), so that the units
of a GPU whose slices are all in use have its whole price. What no unit holds, and what nobody has a guarantee on, is
idle: all pools together cost what tenants are guaranteed and what is idle, to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction as Ratio
from math import ceil
from typing import TYPE_CHECKING, Final, assert_never

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.discovered import INSTANCE_TYPE_LABEL
from gpuplan.compiler.planning.plan import (
    Amount,
    DynamicMig,
    Isolation,
    Plan,
    Pool,
    Prices,
    Tenant,
    Unit,
    UnitKey,
    Workload,
)
from gpuplan.compiler.policy.models import Rate, Term, Terms

if TYPE_CHECKING:
    from gpuplan.compiler.planning.selection import Selection

HOURS_PER_MONTH: Final = 730
"""A twelfth of a year of 365 days, as clouds count a month."""

Money = Ratio
"""An amount of the cluster's currency for an hour."""


def per_month(amount: Money) -> Ratio:
    return amount * HOURS_PER_MONTH


# --- Nodes -------------------------------------------------------------------------------------------------------


class Price(NamedTuple):
    """The price of a node for an hour, and its place."""

    at: Origin
    currency: str
    per_node_hour: Decimal


def node_price(plan: Plan, pool: Pool) -> Price | None:
    """Return the most specific price for the pool's term, or None."""
    if plan.prices is None:
        return None
    found = (hourly_rate(at, rate, pool) for at, rate in rates_for(plan.prices, pool))
    rate = next((rate for rate in found if rate is not None), None)
    return None if rate is None else Price(rate[0], plan.prices.spec.currency, rate[1])


def rates_for(prices: Prices, pool: Pool) -> Iterator[tuple[Origin, Rate]]:
    """Yield a price list's rates for a pool with their places, the most specific first."""
    spec, at = prices.spec, prices.at
    for field, rates, name in (
        ("pools", spec.pools, pool.name),
        ("nodeTypes", spec.node_types, node_type(pool)),
        ("gpus", spec.gpus, pool.gpu.id),
    ):
        if name in rates:
            yield at / field / name, rates[name]


def node_type(pool: Pool) -> str:
    """Return the type of the pool's nodes, by its billing or by its selector. It is empty if neither has it."""
    return pool.spec.billing.node_type or pool.nodes.selector.get(INSTANCE_TYPE_LABEL, "")


def hourly_rate(at: Origin, rate: Rate, pool: Pool) -> tuple[Origin, Decimal] | None:
    """Return the place and price of a node for an hour by a rate, or None if the rate lacks the pool's term."""
    for field, terms, number in (
        ("perGpuHour", rate.per_gpu_hour, pool.nodes.gpus_per_node),
        ("perNodeHour", rate.per_node_hour, 1),
    ):
        found = _price_of(at / field, terms, pool.spec.billing.term) if terms is not None else None
        if found is not None:
            return found[0], found[1] * number
    return None


def _price_of(at: Origin, price: str | Terms, term: Term) -> tuple[Origin, Decimal] | None:
    if isinstance(price, str):
        return at, Decimal(price)
    of_term = _price_of_term(price, term)
    if of_term is not None:
        return at / term.value, Decimal(of_term)
    return None if price.any is None else (at / "any", Decimal(price.any))


def _price_of_term(terms: Terms, term: Term) -> str | None:
    match term:
        case Term.ON_DEMAND:
            return terms.on_demand
        case Term.RESERVED_1_YEAR:
            return terms.reserved_1_year
        case Term.RESERVED_3_YEARS:
            return terms.reserved_3_years
        case Term.SPOT:
            return terms.spot
        case Term.OWNED:
            return terms.owned
        case _:
            assert_never(term)


# --- Units -------------------------------------------------------------------------------------------------------


def part_of_gpu(pool: Pool, unit: Unit) -> Ratio:
    """Return the part of a GPU that one unit is.

    A MIG instance is half as much as it has of the GPU's memory slices, and half as much as it has of the compute
    slices: a `4g.40gb` of an A100 is more than a `3g.40gb`, and both together are the GPU. No two instances have a
    slice in common, so that those of a GPU are never more than the GPU; they are less where slices are left, as the
    eighth memory slice is beside seven `1g.10gb`. A share is an even part of its device, and the unit `fraction` a GPU.
    """
    profile = pool.gpu.find_profile(pool.gpu.current_name(unit.name))
    whole = Ratio(1)
    if profile is not None:
        memory = Ratio(profile.memory_slices, pool.gpu.memory_slices)
        whole = (memory + Ratio(profile.compute_slices, pool.gpu.compute_slices)) / 2
    elif unit.isolation is Isolation.HARDWARE:
        return Ratio(0)  # a profile that nothing is known of, which is a finding of its own
    shares = pool.part_with(unit).shares_of(unit)
    return whole / max(shares.number, 1) if shares else whole


def gpus_in_place_of(part: Ratio, amount: Amount) -> int:
    """Return the number of whole GPUs in place of so many units: one, unless the units are GPUs already."""
    return ceil(amount) if part == 1 else 1


# --- Costs -------------------------------------------------------------------------------------------------------


class UnitCost(NamedTuple):
    """The cost of one unit of a pool, its part of a GPU, and the cost of all guarantees on it."""

    unit: Unit
    part: Ratio
    each: Money
    guaranteed: Money


class PoolCost(NamedTuple):
    """The cost of a pool's nodes: of guarantees, of what is ``not_cut`` into units, and of what is free.

    ``whole_gpus`` is what as many pods as there are units would cost with a GPU each; None where no number of units is
    a number of pods: of fractions, and of what is partitioned on demand.
    """

    pool: Pool
    price: Price
    units: tuple[UnitCost, ...]
    total: Money
    not_cut: Money
    whole_gpus: Money | None

    @property
    def guaranteed(self) -> Money:
        return _sum(unit.guaranteed for unit in self.units)

    @property
    def idle(self) -> Money:
        """The cost of units without a guarantee. It is negative if guarantees exceed the pool."""
        return self.total - self.guaranteed

    @property
    def free(self) -> Money:
        """The part of the idle cost that is cut into units."""
        return self.idle - self.not_cut


class TenantCost(NamedTuple):
    """The cost of a tenant's guarantees with all below it, and of the ``own`` part that is none of theirs.

    ``most`` is what it may use at most: all of a pool where it has no limit.
    """

    tenant: Tenant
    by_pool: Mapping[str, Money]
    own_by_pool: Mapping[str, Money]
    most_by_pool: Mapping[str, Money]

    @property
    def guaranteed(self) -> Money:
        return _sum(self.by_pool.values())

    @property
    def own(self) -> Money:
        return _sum(self.own_by_pool.values())

    @property
    def most(self) -> Money:
        return _sum(self.most_by_pool.values())

    def within(self, pools: Collection[str]) -> TenantCost:
        """Return the part of the cost in some pools."""
        found = (
            {pool: amount for pool, amount in amounts.items() if pool in pools}
            for amounts in (self.by_pool, self.own_by_pool, self.most_by_pool)
        )
        return TenantCost(self.tenant, *found)


class WorkloadCost(NamedTuple):
    """The cost of the fewest and the most pods of a workload, and of the most with a whole GPU each."""

    workload: Workload
    fewest: Money
    most: Money
    whole_gpus: Money


class Costs(Value):
    """The costs of a cluster. ``unpriced`` are the pools without a price, which are in no sum.

    Tenants and workloads are those that have something in a pool with a price.
    """

    currency: str
    pools: tuple[PoolCost, ...]
    tenants: tuple[TenantCost, ...]
    workloads: tuple[WorkloadCost, ...]
    unpriced: tuple[str, ...]

    @property
    def total(self) -> Money:
        return _sum(cost.total for cost in self.pools)

    @property
    def guaranteed(self) -> Money:
        """The cost of all guarantees, which is the sum of the tenants' own costs."""
        return _sum(cost.guaranteed for cost in self.pools)

    @property
    def not_cut(self) -> Money:
        return _sum(cost.not_cut for cost in self.pools)

    @property
    def free(self) -> Money:
        return _sum(cost.free for cost in self.pools)

    @property
    def idle(self) -> Money:
        return self.not_cut + self.free


def costs(plan: Plan) -> Costs | None:
    """Return the costs of a cluster, or None without a price list."""
    if plan.prices is None:
        return None
    priced = [(pool, price) for pool in plan.pools if (price := node_price(plan, pool))]
    guaranteed = {total.key: Ratio(total.guaranteed) for total in plan.totals}
    pools = {pool.name: _pool_cost(pool, price, guaranteed) for pool, price in priced}
    each = {(name, unit.unit.name): unit for name, pool in pools.items() for unit in pool.units}
    return Costs(
        currency=plan.prices.spec.currency,
        pools=tuple(pools.values()),
        tenants=tuple(_tenant_costs(plan, pools, each)),
        workloads=tuple(_workload_costs(plan, pools, each)),
        unpriced=tuple(pool.name for pool in plan.pools if pool.name not in pools),
    )


class Cost(NamedTuple):
    """The cost of the nodes of some pools. ``unpriced`` are those without a price, which are not in the sum."""

    currency: str
    amount: Money
    unpriced: tuple[str, ...]


def cost_of(plan: Plan, pools: Iterable[Pool]) -> Cost | None:
    """Return the cost of some pools of a plan, or None without a price list."""
    if plan.prices is None:
        return None
    priced = [(pool, node_price(plan, pool)) for pool in pools]
    return Cost(
        plan.prices.spec.currency,
        _sum(_of_all_nodes(pool, price) for pool, price in priced if price),
        tuple(pool.name for pool, price in priced if price is None),
    )


def selected_costs(shown: Selection) -> Costs | None:
    """Return the costs of a selection. The free part of a pool does not depend on the tenants that are shown."""
    found = costs(shown.plan)
    if found is None:
        return None
    pools = frozenset(pool.name for pool in shown.pools)
    tenants = frozenset(tenant.name for tenant in shown.tenants)
    work = frozenset(workload.name for workload in shown.workloads)
    own = (cost.within(pools) for cost in found.tenants if cost.tenant.name in tenants)
    return Costs(
        currency=found.currency,
        pools=tuple(cost for cost in found.pools if cost.pool.name in pools),
        tenants=tuple(cost for cost in own if cost.by_pool),
        workloads=tuple(cost for cost in found.workloads if cost.workload.name in work),
        unpriced=tuple(name for name in found.unpriced if name in pools),
    )


def saved(cost: Money, instead: Money | None) -> Ratio | None:
    """Return the saved part if a thing costs ``cost`` instead of ``instead``, or None if that is zero."""
    return 1 - cost / instead if instead else None


def _pool_cost(pool: Pool, price: Price, guaranteed: Mapping[UnitKey, Ratio]) -> PoolCost:
    gpu = Ratio(price.per_node_hour) / pool.nodes.gpus_per_node
    parts = ((unit, part_of_gpu(pool, unit)) for unit in pool.units)
    units = tuple(
        UnitCost(unit, part, gpu * part, gpu * part * guaranteed.get((pool.name, unit.name), 0)) for unit, part in parts
    )
    is_dynamic = any(isinstance(part.sharing, DynamicMig) for part in pool.parts)
    is_countable = not is_dynamic and all(unit.asked_as for unit in pool.units)
    return PoolCost(
        pool=pool,
        price=price,
        units=units,
        total=_of_all_nodes(pool, price),
        # Partitions on demand may be cut in any way, so that nothing of them is left.
        not_cut=_sum(
            gpu * (part.gpu_count - _sum(part_of_gpu(part, unit) * unit.capacity for unit in part.units))
            for part in pool.parts
            if not isinstance(part.sharing, DynamicMig)
        ),
        whole_gpus=gpu * sum(unit.capacity for unit in pool.units) if is_countable else None,
    )


def _of_all_nodes(pool: Pool, price: Price) -> Money:
    return Ratio(price.per_node_hour) * pool.nodes.count


_Each = Mapping[UnitKey, UnitCost]


def _tenant_costs(plan: Plan, pools: Mapping[str, PoolCost], each: _Each) -> Iterator[TenantCost]:
    for tenant in plan.tenants:
        quotas = {quota.key: quota for quota in plan.tree.together.get(tenant.name, tenant.quotas) if quota.key in each}
        guaranteed = {key: each[key].each * Ratio(quota.guaranteed) for key, quota in quotas.items()}
        most = {}
        for key, quota in quotas.items():
            capacity = quota.unit.capacity
            most[key] = each[key].each * Ratio(capacity if quota.limit is None else min(quota.limit, capacity))
        keys = dict.fromkeys(quota.key for quota in tenant.quotas if quota.key in each)
        own = {key: each[key].each * Ratio(plan.tree.left_over(tenant, key)) for key in keys}
        if quotas:
            yield TenantCost(
                tenant=tenant,
                by_pool=_by_pool(guaranteed),
                own_by_pool=_by_pool(own),
                # Of what is partitioned on demand no pool has the most of each unit at once.
                most_by_pool={name: min(found, pools[name].total) for name, found in _by_pool(most).items()},
            )


def _by_pool(amounts: Mapping[UnitKey, Money]) -> dict[str, Money]:
    found: dict[str, Money] = {}
    for (pool, _), amount in amounts.items():
        found[pool] = found.get(pool, Ratio(0)) + amount
    return found


def _workload_costs(plan: Plan, pools: Mapping[str, PoolCost], each: _Each) -> Iterator[WorkloadCost]:
    for workload in plan.workloads:
        unit = each.get(workload.key)
        if unit is None:
            continue
        price = pools[workload.pool.name].price
        gpu = Ratio(price.per_node_hour) / workload.pool.nodes.gpus_per_node
        pod = unit.each * Ratio(workload.amount_per_pod)
        whole = gpu * gpus_in_place_of(unit.part, workload.amount_per_pod)
        yield WorkloadCost(workload, pod * workload.fewest_pods, pod * workload.most_pods, whole * workload.most_pods)


def _sum(amounts: Iterable[Ratio]) -> Ratio:
    return sum(amounts, Ratio(0))
