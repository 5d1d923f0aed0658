"""The cost of a step in money, and the changes of prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction as Ratio

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.prices import Costs, Money, costs
from gpuplan.compiler.policy.models import PricesSpec
from gpuplan.features.changes.kinds import differing_keys
from gpuplan.features.changes.model import NOTHING_RUNS, Change, of
from gpuplan.features.changes.step import Step, successors

# --- What it costs -----------------------------------------------------------------------------------------------


class AmountChange(NamedTuple):
    """An amount of money before and after. The amount is 0 on a side that lacks the thing."""

    before: Money
    after: Money

    @property
    def difference(self) -> Money:
        return self.after - self.before


class CostChange(Value):
    """The cost of a cluster ``before`` and ``after``, or None on a side without prices.

    Pools and tenants are those that cost something else, by name; tenants by what they are guaranteed, with all that
    are part of them. ``left_out`` are the pools without a price on a side: what is in them is in no number. Where
    prices are said on one side alone, or in two currencies, no difference is known.
    """

    before: Costs | None
    after: Costs | None
    pools: Mapping[str, AmountChange]
    tenants: Mapping[str, AmountChange]
    total: AmountChange | None
    idle: AmountChange | None
    left_out: tuple[str, ...]

    @property
    def currency(self) -> str:
        """That of the later side, where prices are said there."""
        found = self.after or self.before
        return found.currency if found else ""


def cost_change(before: Plan | None, after: Plan | None) -> CostChange | None:
    """Return the change of cost between two plans of a cluster, or None if no cost differs.

    A cluster that comes or goes costs nothing on the other side.
    """
    old, new = (costs(plan) if plan else None for plan in (before, after))
    if old is None and new is None:
        return None
    is_said_twice = (old or before is None) and (new or after is None)
    if not is_said_twice or (old and new and old.currency != new.currency):
        return CostChange(old, new, {}, {}, None, None, ())
    left_out = tuple(sorted({name for side in (old, new) if side for name in side.unpriced}))
    sides = [_costs_of(side, left_out) for side in (old, new)]
    pools, tenants, idle = map(_changes, *sides)
    total = AmountChange(*(sum(of_pools.values(), Ratio(0)) for of_pools, _, _ in sides))
    if not pools and not tenants and not idle:
        return None
    return CostChange(old, new, pools, tenants, total, idle.get("", AmountChange(Ratio(0), Ratio(0))), left_out)


def _costs_of(
    side: Costs | None, left_out: tuple[str, ...]
) -> tuple[dict[str, Money], dict[str, Money], dict[str, Money]]:
    """Return the costs of a side: of pools and of tenants by name, and of idle units."""
    if side is None:
        return {}, {}, {}
    pools = [cost for cost in side.pools if cost.pool.name not in left_out]
    names = frozenset(cost.pool.name for cost in pools)
    tenants = {cost.tenant.name: cost.within(names).guaranteed for cost in side.tenants}
    idle = sum((cost.idle for cost in pools), Ratio(0))
    return {cost.pool.name: cost.total for cost in pools}, tenants, {"": idle}


def _changes(before: Mapping[str, Money], after: Mapping[str, Money]) -> dict[str, AmountChange]:
    found = {
        name: AmountChange(before.get(name, Ratio(0)), after.get(name, Ratio(0))) for name in sorted({*before, *after})
    }
    return {name: amounts for name, amounts in found.items() if amounts.before != amounts.after}


# --- Changes of prices -------------------------------------------------------------------------------------------

_EFFECT = f"amounts of money change; {NOTHING_RUNS}"


def price_changes(step: Step) -> Iterator[Change]:
    """Yield the changes of price lists, and of the terms by which the nodes of pools are billed."""
    for before, after in successors(step.before.price_lists, step.after.price_lists):
        if before is not None and after is None:
            words, effect = "prices are said no more", "costs are known no more"
            yield Change(*of(step.before, before), ChangeClass.METADATA, words, effect)
        elif before is None and after is not None:
            words = f"prices are said, in {after.spec.currency}"
            yield Change(*of(step.after, after), ChangeClass.METADATA, words, f"costs are known; {NOTHING_RUNS}")
        elif before and after and (texts := [*_differences(before.spec, after.spec)]):
            yield Change(*of(step.after, after), ChangeClass.METADATA, f"prices change: {joined(texts)}", _EFFECT)
    for old, new in step.kept_pools:
        was, is_now = old.spec.billing, new.spec.billing
        texts = [f"term from `{was.term}` to `{is_now.term}`"] if was.term is not is_now.term else []
        if was.node_type != is_now.node_type:
            texts.append(f"node type from {_named(was.node_type)} to {_named(is_now.node_type)}")
        if texts:
            place = of(step.after, new, new.at / "billing")
            yield Change(*place, ChangeClass.METADATA, f"nodes are billed otherwise: {joined(texts)}", _EFFECT)


def _differences(old: PricesSpec, new: PricesSpec) -> Iterator[str]:
    if old.currency != new.currency:
        yield f"currency from {old.currency} to {new.currency}"
    rates = (
        ("GPU model", old.gpus, new.gpus),
        ("node type", old.node_types, new.node_types),
        ("pool", old.pools, new.pools),
    )
    for kind, before, after in rates:
        if names := differing_keys(before, after):
            yield f"{kind}{'s' * (len(names) > 1)} {listing(sorted(names))}"


def _named(name: str | None) -> str:
    return f"`{name}`" if name else "none"
