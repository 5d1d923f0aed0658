"""The costs of a cluster, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.catalog.currencies import currencies
from gpuplan.compiler.planning.prices import (
    HOURS_PER_MONTH,
    Costs,
    Money,
    PoolCost,
    Price,
    node_type,
    per_month,
    saved,
    selected_costs,
)
from gpuplan.compiler.planning.selection import Selection
from gpuplan.terminal.fitting import Table

_UNKNOWN: Final = "-"
_USUAL_DIGITS: Final = 2
_DIGITS_OF_DATA: Final = 6
_DIGITS_OF_AN_HOUR: Final = 4


# --- For people --------------------------------------------------------------------------------------------------


def cost_tables(shown: Selection) -> Iterator[tuple[str, Table]]:
    """Each table with its heading; nothing where no document says prices."""
    found = selected_costs(shown)
    if found is None:
        return
    of_a_month = f"in {found.currency} a month of {HOURS_PER_MONTH} hours"
    yield f"Costs, {of_a_month}", _pools(found)
    yield f"Costs of a unit, in {found.currency}", _units(found)
    yield f"Costs of tenants, {of_a_month}", _tenants(found)
    yield f"Costs of workloads, {of_a_month}", _workloads(found)


def month_text(amount: Money, currency: str, sign: str = "") -> str:
    """Return an hourly amount for a month, with as many digits as the currency has; ``sign`` `+` shows one."""
    digits = currencies().get(currency, _USUAL_DIGITS)
    return f"{rounded(per_month(amount), digits):{sign},.{digits}f}"


def hour_text(amount: Money) -> str:
    return f"{rounded(amount, _DIGITS_OF_AN_HOUR):,f}"


def rounded(amount: Ratio, digits: int) -> Decimal:
    """To the nearest, and to the even one of two."""
    return Decimal(round(amount * 10**digits)).scaleb(-digits)


def percentage(part: Ratio | None) -> str:
    return _UNKNOWN if part is None else f"{rounded(part * 100, 1)}%"


def _pools(costs: Costs) -> Table:
    rows = [_pool_row(pool, costs.currency) for pool in costs.pools]
    rows += [(name, "no price", *[_UNKNOWN] * 7) for name in costs.unpriced]
    if len(costs.pools) > 1:
        sums = (costs.total, costs.guaranteed, costs.free, costs.not_cut)
        rows.append(("all", "", *(month_text(amount, costs.currency) for amount in sums), "", "", ""))
    headings = ("POOL", "NODE/H", "IN ALL", "GUARANTEED", "FREE", "NOT CUT", "AS WHOLE GPUS", "SAVED", "TERM")
    return Table(headings, rows, right=range(1, 8), extra=(8, 6, 7))


def _pool_row(cost: PoolCost, currency: str) -> tuple[str, ...]:
    return (
        cost.pool.name,
        _price_text(cost.price),
        *(month_text(amount, currency) for amount in (cost.total, cost.guaranteed, cost.free, cost.not_cut)),
        _UNKNOWN if cost.whole_gpus is None else month_text(cost.whole_gpus, currency),
        percentage(saved(cost.total, cost.whole_gpus)),
        cost.pool.spec.billing.term.value,
    )


def _price_text(price: Price) -> str:
    """As it is written, and no shorter than amounts of its currency are."""
    shortest = Decimal(1).scaleb(-currencies().get(price.currency, _USUAL_DIGITS))
    found = price.per_node_hour.normalize()
    return f"{found.quantize(shortest) if found == found.quantize(shortest) else found:,f}"


def _units(costs: Costs) -> Table:
    rows = [
        (
            pool.pool.name,
            cost.unit.name,
            percentage(cost.part),
            hour_text(cost.each),
            month_text(cost.each, costs.currency),
        )
        for pool in costs.pools
        for cost in pool.units
    ]
    return Table(("POOL", "UNIT", "OF A GPU", "AN HOUR", "A MONTH"), rows, right=(2, 3, 4))


def _tenants(costs: Costs) -> Table:
    rows = [
        (
            cost.tenant.name if cost.tenant.parent is None else f"{cost.tenant.parent}/{cost.tenant.name}",
            *(month_text(amount, costs.currency) for amount in (cost.guaranteed, cost.own, cost.most)),
        )
        for cost in costs.tenants
    ]
    return Table(("TENANT", "GUARANTEED", "ITS OWN", "AT MOST"), rows, right=(1, 2, 3))


def _workloads(costs: Costs) -> Table:
    rows = [
        (
            cost.workload.name,
            cost.workload.tenant.name,
            *(month_text(amount, costs.currency) for amount in (cost.fewest, cost.most, cost.whole_gpus)),
            percentage(saved(cost.most, cost.whole_gpus)),
        )
        for cost in costs.workloads
    ]
    headings = ("WORKLOAD", "TENANT", "AT LEAST", "AT MOST", "AS WHOLE GPUS", "SAVED")
    return Table(headings, rows, right=range(2, 6))


# --- For programs ------------------------------------------------------------------------------------------------


def costs_as_data(costs: Costs) -> dict[str, Any]:
    """A part of `plan.schema.json`."""
    return {
        "currency": costs.currency,
        "hours_per_month": HOURS_PER_MONTH,
        "total": money_as_data(costs.total),
        "guaranteed": money_as_data(costs.guaranteed),
        "free": money_as_data(costs.free),
        "not_cut": money_as_data(costs.not_cut),
        "pools": [_pool_as_data(cost) for cost in costs.pools],
        "tenants": [
            {
                "tenant": cost.tenant.name,
                "guaranteed": money_as_data(cost.guaranteed),
                "own": money_as_data(cost.own),
                "most": money_as_data(cost.most),
                "by_pool": {pool: money_as_data(amount) for pool, amount in cost.by_pool.items()},
            }
            for cost in costs.tenants
        ],
        "workloads": [
            {
                "workload": cost.workload.name,
                "fewest": money_as_data(cost.fewest),
                "most": money_as_data(cost.most),
                "whole_gpus": money_as_data(cost.whole_gpus),
                "saved": _part_as_data(saved(cost.most, cost.whole_gpus)),
            }
            for cost in costs.workloads
        ],
        "unpriced_pools": list(costs.unpriced),
    }


def _pool_as_data(cost: PoolCost) -> dict[str, Any]:
    return {
        "pool": cost.pool.name,
        "term": cost.pool.spec.billing.term.value,
        "node_type": node_type(cost.pool) or None,
        "per_node_hour": _number(Ratio(cost.price.per_node_hour)),
        "units": [
            {
                "unit": unit.unit.name,
                "part_of_gpu": str(unit.part),
                "each": money_as_data(unit.each),
                "guaranteed": money_as_data(unit.guaranteed),
            }
            for unit in cost.units
        ],
        "total": money_as_data(cost.total),
        "guaranteed": money_as_data(cost.guaranteed),
        "free": money_as_data(cost.free),
        "not_cut": money_as_data(cost.not_cut),
        "whole_gpus": None if cost.whole_gpus is None else money_as_data(cost.whole_gpus),
        "saved": _part_as_data(saved(cost.total, cost.whole_gpus)),
    }


def money_as_data(amount: Money) -> dict[str, int | float]:
    return {"per_hour": _number(amount), "per_month": _number(per_month(amount))}


def _part_as_data(part: Ratio | None) -> int | float | None:
    return None if part is None else _number(part)


def _number(amount: Ratio) -> int | float:
    """JSON has no other numbers: this one is read as it is written."""
    found = rounded(amount, _DIGITS_OF_DATA)
    return int(found) if found == found.to_integral_value() else float(found)
