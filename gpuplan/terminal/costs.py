"""The costs of a cluster, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.catalog.currencies import currencies
from gpuplan.compiler.planning import prices
from gpuplan.compiler.planning.selection import Selection
from gpuplan.terminal.fitting import Table

_UNKNOWN: Final = "-"
_USUAL_DIGITS: Final = 2
_DIGITS_OF_DATA: Final = 6
_DIGITS_OF_AN_HOUR: Final = 4


# --- For people --------------------------------------------------------------------------------------------------


def cost_tables(shown: Selection) -> Iterator[tuple[str, Table]]:
    """Yield each table with its heading, or nothing if no document has prices."""
    costs = prices.selected_costs(shown)
    if costs is None:
        return
    currency, of_a_month = costs.currency, f"in {costs.currency} a month of {prices.HOURS_PER_MONTH} hours"

    def months(*amounts: prices.Money) -> Iterator[str]:
        return (month_text(amount, currency) for amount in amounts)

    rows: list[tuple[str, ...]] = [_pool_row(pool, currency) for pool in costs.pools]
    rows += [(name, "no price", *[_UNKNOWN] * 7) for name in costs.unpriced]
    if len(costs.pools) > 1:
        rows.append(("all", "", *months(costs.total, costs.guaranteed, costs.free, costs.not_cut), "", "", ""))
    headings: tuple[str, ...]
    headings = ("POOL", "NODE/H", "TOTAL", "GUARANTEED", "FREE", "UNUSABLE", "AS WHOLE GPUS", "SAVED", "TERM")
    yield f"Costs, {of_a_month}", Table(headings, rows, right=range(1, 8), extra=(8, 6, 7))
    rows = [
        (pool.pool.name, cost.unit.name, percentage(cost.part), hour_text(cost.each), *months(cost.each))
        for pool in costs.pools
        for cost in pool.units
    ]
    headings = ("POOL", "UNIT", "PART OF A GPU", "PER HOUR", "PER MONTH")
    yield f"Costs of a unit, in {currency}", Table(headings, rows, right=(2, 3, 4))
    rows = [
        ("/".join(filter(None, (cost.tenant.parent, cost.tenant.name))), *months(cost.guaranteed, cost.own, cost.most))
        for cost in costs.tenants
    ]
    yield (
        f"Costs of tenants, {of_a_month}",
        Table(("TENANT", "GUARANTEED", "ITS OWN", "AT MOST"), rows, right=(1, 2, 3)),
    )
    rows = [
        (
            *(cost.workload.name, cost.workload.tenant.name, *months(cost.fewest, cost.most, cost.whole_gpus)),
            percentage(prices.saved(cost.most, cost.whole_gpus)),
        )
        for cost in costs.workloads
    ]
    headings = ("WORKLOAD", "TENANT", "AT LEAST", "AT MOST", "AS WHOLE GPUS", "SAVED")
    yield f"Costs of workloads, {of_a_month}", Table(headings, rows, right=range(2, 6))


def month_text(amount: prices.Money, currency: str, sign: str = "") -> str:
    """Return an hourly amount for a month, with as many digits as the currency has; ``sign`` `+` shows one."""
    digits = currencies().get(currency, _USUAL_DIGITS)
    return f"{rounded(prices.per_month(amount), digits):{sign},.{digits}f}"


def hour_text(amount: prices.Money) -> str:
    return f"{rounded(amount, _DIGITS_OF_AN_HOUR):,f}"


def rounded(amount: Ratio, digits: int) -> Decimal:
    """To the nearest, and to the even one of two."""
    return Decimal(round(amount * 10**digits)).scaleb(-digits)


def percentage(part: Ratio | None) -> str:
    return _UNKNOWN if part is None else f"{rounded(part * 100, 1)}%"


def _pool_row(cost: prices.PoolCost, currency: str) -> tuple[str, ...]:
    shortest = Decimal(1).scaleb(-currencies().get(cost.price.currency, _USUAL_DIGITS))
    found = cost.price.per_node_hour.normalize()
    return (
        cost.pool.name,
        f"{found.quantize(shortest) if found == found.quantize(shortest) else found:,f}",
        *(month_text(amount, currency) for amount in (cost.total, cost.guaranteed, cost.free, cost.not_cut)),
        _UNKNOWN if cost.whole_gpus is None else month_text(cost.whole_gpus, currency),
        percentage(prices.saved(cost.total, cost.whole_gpus)),
        cost.pool.spec.billing.term.value,
    )


# --- For programs ------------------------------------------------------------------------------------------------


def costs_as_data(costs: prices.Costs) -> dict[str, Any]:
    """A part of `plan.schema.json`."""
    return {
        "currency": costs.currency,
        "hours_per_month": prices.HOURS_PER_MONTH,
        **_moneys(costs, *_OF_ALL),
        "pools": [_pool_as_data(cost) for cost in costs.pools],
        "tenants": [
            {
                "tenant": cost.tenant.name,
                **_moneys(cost, "guaranteed", "own", "most"),
                "by_pool": {pool: money_as_data(amount) for pool, amount in cost.by_pool.items()},
            }
            for cost in costs.tenants
        ],
        "workloads": [
            {
                "workload": cost.workload.name,
                **_moneys(cost, "fewest", "most", "whole_gpus"),
                "saved": _part_as_data(prices.saved(cost.most, cost.whole_gpus)),
            }
            for cost in costs.workloads
        ],
        "unpriced_pools": list(costs.unpriced),
    }


_OF_ALL: Final = ("total", "guaranteed", "free", "not_cut")


def _pool_as_data(cost: prices.PoolCost) -> dict[str, Any]:
    units = [
        {"unit": unit.unit.name, "part_of_gpu": str(unit.part), **_moneys(unit, "each", "guaranteed")}
        for unit in cost.units
    ]
    return {
        "pool": cost.pool.name,
        "term": cost.pool.spec.billing.term.value,
        "node_type": prices.node_type(cost.pool) or None,
        "per_node_hour": _number(Ratio(cost.price.per_node_hour)),
        "units": units,
        **_moneys(cost, *_OF_ALL),
        "whole_gpus": None if cost.whole_gpus is None else money_as_data(cost.whole_gpus),
        "saved": _part_as_data(prices.saved(cost.total, cost.whole_gpus)),
    }


def _moneys(cost: object, *names: str) -> dict[str, dict[str, int | float]]:
    """Return the amounts of a cost that have these names."""
    return {name: money_as_data(getattr(cost, name)) for name in names}


def money_as_data(amount: prices.Money) -> dict[str, int | float]:
    return {"per_hour": _number(amount), "per_month": _number(prices.per_month(amount))}


def _part_as_data(part: Ratio | None) -> int | float | None:
    return None if part is None else _number(part)


def _number(amount: Ratio) -> int | float:
    """JSON has no other numbers: this one is read as it is written."""
    found = rounded(amount, _DIGITS_OF_DATA)
    return int(found) if found == found.to_integral_value() else float(found)
