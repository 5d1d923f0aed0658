"""The cost of a step in a month, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from typing import Any

from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.planning.prices import Costs
from gpuplan.features.changes.costs import AmountChange, CostChange
from gpuplan.terminal.costs import money_as_data, month_text


def summed_text(changes: Iterable[CostChange]) -> str:
    """``+1,200.00 EUR a month`` in all clusters; empty where no difference is known."""
    found = [f"{month_text(amount, currency, '+')} {currency}" for currency, amount in _sums(changes).items()]
    return f"{joined(found)} a month" if found else ""


def _sums(changes: Iterable[CostChange]) -> dict[str, Ratio]:
    """Return the sum of the differences, by currency."""
    found: dict[str, Ratio] = {}
    for change in changes:
        if change.total is not None:
            found[change.currency] = found.get(change.currency, Ratio(0)) + change.total.difference
    return dict(sorted(found.items()))


def cost_lines(change: CostChange, most: int) -> Iterator[str]:
    """Yield the differences in cost: in all, idle, by pool and by tenant. At most ``most`` of each are named."""
    currency = change.currency
    if change.total is None or change.idle is None:
        yield _without_difference(change)
        return
    yield f"{_text(change.total, currency)} {currency} a month"
    if change.idle.difference:
        yield f"idle: {_text(change.idle, currency)}"
    yield from _named("pool", change.pools, currency, most)
    yield from _named("tenant", change.tenants, currency, most)
    if change.left_out:
        are = "has" if len(change.left_out) == 1 else "have"
        yield f"without {listing(change.left_out)}, which {are} no price on a side"


def _text(amounts: AmountChange, currency: str) -> str:
    before, after = (month_text(amount, currency) for amount in amounts)
    return f"{month_text(amounts.difference, currency, '+')}, from {before} to {after}"


def _named(kind: str, changes: Mapping[str, AmountChange], currency: str, most: int) -> Iterator[str]:
    """The greatest differences first."""
    found = sorted(changes.items(), key=lambda change: (-abs(change[1].difference), change[0]))
    for name, amounts in found[:most]:
        yield f"{kind} `{name}`: {_text(amounts, currency)}"
    if len(found) > most:
        rest = sum((amounts.difference for _, amounts in found[most:]), Ratio(0))
        yield f"{len(found) - most} more {kind}s: {month_text(rest, currency, '+')}"


def _without_difference(change: CostChange) -> str:
    was, is_now = (
        f"{month_text(side.total, side.currency)} {side.currency} a month" if side else ""
        for side in (change.before, change.after)
    )
    if was and is_now:
        return f"{was} before, and {is_now} after: in two currencies no difference is known"
    return f"{is_now}; nobody said prices before" if is_now else f"{was} before; nobody says prices any more"


# --- For programs ------------------------------------------------------------------------------------------------


def sums_as_data(changes: Iterable[CostChange]) -> list[dict[str, Any]]:
    return [{"currency": currency, "change": money_as_data(amount)} for currency, amount in _sums(changes).items()]


def cost_change_as_data(change: CostChange | None) -> dict[str, Any] | None:
    """A part of `diff.schema.json`."""
    if change is None:
        return None
    return {
        "currency": {"before": _currency(change.before), "after": _currency(change.after)},
        "total": _amounts(change.total),
        "idle": _amounts(change.idle),
        "pools": _named_amounts("pool", change.pools),
        "tenants": _named_amounts("tenant", change.tenants),
        "left_out_pools": list(change.left_out),
    }


def _currency(side: Costs | None) -> str | None:
    return side.currency if side else None


def _amounts(amounts: AmountChange | None) -> dict[str, Any] | None:
    if amounts is None:
        return None
    found = {"before": amounts.before, "after": amounts.after, "change": amounts.difference}
    return {name: money_as_data(amount) for name, amount in found.items()}


def _named_amounts(kind: str, changes: Mapping[str, AmountChange]) -> Sequence[dict[str, Any]]:
    return [{kind: name, **(_amounts(amounts) or {})} for name, amounts in changes.items()]
