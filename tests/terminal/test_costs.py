"""What costs are shown as: rounded for people, and as numbers for programs."""

from __future__ import annotations

import json
from fractions import Fraction as Ratio
from typing import Any

import jsonschema
import pytest

from gpuplan.cli.views.showing import shown_plans
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.selection import select
from gpuplan.features.changes.comparing import Diff
from gpuplan.features.changes.costs import cost_change
from gpuplan.features.changes.views.diff import shown_diff
from gpuplan.terminal.costs import month_text, percentage, rounded
from gpuplan.terminal.plan import plan_page
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN, Theme
from tests.features.changes.views.test_diff import a_diff
from tests.platforms import a_platform, document, pool, tenant
from tests.terminal.test_plan import strictly

PRICES = document("Prices", "list", "currency: EUR", "gpus: {A100-80GB: {perGpuHour: 2}}")
WORK = document("Workload", "chat", "tenant: lab, pool: b, image: x, inference: {replicas: 3}")


def a_priced_platform(*more: str) -> Plan:
    return a_platform(
        pool("a", "mig: {instances: {1g.10gb: 7}}", nodes="count: 1, gpusPerNode: 8"),
        pool("b", "timeSlicing: {replicas: 3}", nodes="count: 1, gpusPerNode: 1"),
        tenant("lab", "pool: a, guaranteed: 7", "pool: b, guaranteed: 3"),
        tenant("shop", "pool: a, guaranteed: 14"),
        *(more or (PRICES,)),
        WORK,
    )


def costs_shown(plan: Plan) -> str:
    page = plan_page(plan, PLAIN)
    return page[page.index("Costs") :]


def data(plan: Plan) -> Any:
    found = json.loads(shown_plans([plan], "json", PLAIN))
    jsonschema.validate(found, strictly(schema("plan")))
    return found["clusters"][0]["costs"]


def test_headings_go_on_below() -> None:
    page = plan_page(a_priced_platform(), Theme(width=40, is_fitted=True))
    assert "\nCosts of tenants, in EUR a month of 730\n  hours\n" in page


def test_costs_are_shown_by_pool_unit_tenant_and_workload() -> None:
    assert costs_shown(a_priced_platform()) == (
        "Costs, in EUR a month of 730 hours\n"
        "  POOL  NODE/H      TOTAL  GUARANTEED      FREE  UNUSABLE  AS WHOLE GPUS  SAVED  TERM\n"
        "  a      16.00  11,680.00    4,106.25  6,843.75    730.00      81,760.00  85.7%  onDemand\n"
        "  b       2.00   1,460.00    1,460.00      0.00      0.00       4,380.00  66.7%  onDemand\n"
        "  all           13,140.00    5,566.25  6,843.75    730.00\n"
        "  FREE = guaranteed to no tenant; UNUSABLE = part of no unit; "
        "AS WHOLE GPUS = with a whole GPU for each pod; SAVED = by sharing, if all units are in use\n"
        "\n"
        "Costs of a unit, in EUR\n"
        "  POOL  UNIT     PART OF A GPU  PER HOUR  PER MONTH\n"
        "  a     1g.10gb          13.4%    0.2679     195.54\n"
        "  b     shared           33.3%    0.6667     486.67\n"
        "\n"
        "Costs of tenants, in EUR a month of 730 hours\n"
        "  TENANT  GUARANTEED   ITS OWN   AT MOST\n"
        "  lab       2,828.75  2,828.75  2,828.75\n"
        "  shop      2,737.50  2,737.50  2,737.50\n"
        "\n"
        "Costs of workloads, in EUR a month of 730 hours\n"
        "  WORKLOAD  TENANT  AT LEAST   AT MOST  AS WHOLE GPUS  SAVED\n"
        "  chat      lab     1,460.00  1,460.00       4,380.00  66.7%\n"
        "  AS WHOLE GPUS = with a whole GPU for each pod; SAVED = by sharing, if all units are in use\n"
    )


def test_without_prices_there_is_nothing_of_costs() -> None:
    plan = a_platform(pool("a"))
    assert "Costs" not in plan_page(plan, PLAIN)
    assert data(plan) is None


def test_pool_without_a_price_is_named_and_in_no_sum() -> None:
    plan = a_platform(pool("a"), pool("b", gpu="L4-24GB"), PRICES)
    assert "  b     no price          -" in costs_shown(plan)
    assert data(plan)["unpriced_pools"] == ["b"]


def test_part_of_a_plan_has_its_part_of_the_costs() -> None:
    (part,) = select([a_priced_platform()], pools=["b"])
    found = json.loads(shown_plans([part], "json", PLAIN))["clusters"][0]["costs"]

    assert [item["pool"] for item in found["pools"]] == ["b"]
    assert [(item["tenant"], item["guaranteed"]["per_hour"]) for item in found["tenants"]] == [("lab", 2)]
    assert found["total"] == {"per_hour": 2, "per_month": 1460}


def test_programs_read_amounts_by_hour_and_month_and_parts_as_ratios() -> None:
    found = data(a_priced_platform())

    assert (found["currency"], found["hours_per_month"]) == ("EUR", 730)
    assert found["total"] == {"per_hour": 18, "per_month": 13140}
    assert found["pools"][0]["units"][0] == {
        "unit": "1g.10gb",
        "part_of_gpu": "15/112",
        "each": {"per_hour": 0.267857, "per_month": 195.535714},
        "guaranteed": {"per_hour": 5.625, "per_month": 4106.25},
    }
    assert found["pools"][1]["saved"] == found["workloads"][0]["saved"] == 0.666667


def test_a_fraction_s_pool_says_nothing_of_whole_gpus() -> None:
    plan = a_platform(pool("a", "fraction: {}"), PRICES, scheduler="kai")
    (found,) = data(plan)["pools"]
    assert (found["whole_gpus"], found["saved"]) == (None, None)


@pytest.mark.parametrize(
    ("currency", "text"), [("EUR", "1,234.50"), ("JPY", "1,234"), ("KWD", "1,234.500"), ("USD", "1,234.50")]
)
def test_amounts_have_as_many_digits_as_the_currency_has(currency: str, text: str) -> None:
    assert month_text(Ratio(12345, 10) / 730, currency) == text


def test_amounts_are_rounded_to_the_nearest_and_ties_to_the_even_one() -> None:
    assert [str(rounded(Ratio(amount, 1000), 2)) for amount in (5, 15, 14, -5)] == ["0.00", "0.02", "0.01", "0.00"]


def test_a_part_that_is_not_known_has_no_percentage() -> None:
    assert (percentage(None), percentage(Ratio(2, 3))) == ("-", "66.7%")


# --- What a step costs ---------------------------------------------------------------------------------------------


def a_step(before: Plan, after: Plan) -> Diff:
    change = cost_change(before, after)
    return a_diff(costs={"prod": change} if change else {})


def other_prices(price: str, currency: str = "EUR") -> str:
    return document("Prices", "list", f"currency: {currency}", f"gpus: {{A100-80GB: {{perGpuHour: {price}}}}}")


def test_what_a_step_costs_is_in_the_verdict_and_below_its_cluster() -> None:
    page = shown_diff(a_step(a_priced_platform(), a_priced_platform(other_prices("2.5"))), "table", PLAIN)

    assert page.startswith("none: nothing that is applied differs, +3,285.00 EUR a month\n")
    assert page[page.index("Cluster prod") :] == (
        "Cluster prod\n"
        "  costs   +3,285.00, from 13,140.00 to 16,425.00 EUR a month\n"
        "          idle: +1,893.44, from 7,573.75 to 9,467.19\n"
        "          pool `a`: +2,920.00, from 11,680.00 to 14,600.00\n"
        "          pool `b`: +365.00, from 1,460.00 to 1,825.00\n"
        "          tenant `lab`: +707.19, from 2,828.75 to 3,535.94\n"
        "          tenant `shop`: +684.38, from 2,737.50 to 3,421.88\n"
    )


def test_what_a_step_saves_has_a_minus() -> None:
    page = shown_diff(a_step(a_priced_platform(), a_priced_platform(other_prices("1"))), "table", PLAIN)
    assert page.startswith("none: nothing that is applied differs, -6,570.00 EUR a month\n")


def test_of_many_tenants_those_with_most_are_named_and_the_others_summed() -> None:
    teams = "".join(tenant(f"t{number}", f"pool: a, guaranteed: {number}") for number in range(1, 13))
    before, after = (
        a_platform(pool("a", nodes="count: 10, gpusPerNode: 8"), teams, other_prices(price)) for price in "12"
    )
    page = shown_diff(a_step(before, after), "table", PLAIN)

    assert "tenant `t12`: +8,760.00, from 8,760.00 to 17,520.00\n" in page
    assert "tenant `t2`" not in page
    assert page.endswith("          2 more tenants: +2,190.00\n")


def test_a_merge_request_reads_what_it_costs() -> None:
    page = shown_diff(a_step(a_priced_platform(), a_priced_platform(other_prices("2.5"))), "markdown", PLAIN)
    assert (
        "### What it costs\n\n- <code>prod</code>: +3,285.00, from 13,140.00 to 16,425.00 EUR a month; idle: " in page
    )


def test_prices_that_nobody_said_before_make_no_difference() -> None:
    page = shown_diff(a_step(a_platform(pool("a")), a_platform(pool("a"), PRICES)), "table", PLAIN)
    assert page.startswith("none: nothing that is applied differs\n")
    assert "costs   23,360.00 EUR a month; nobody said prices before\n" in page


def test_prices_that_nobody_says_any_more_make_no_difference() -> None:
    page = shown_diff(a_step(a_platform(pool("a"), PRICES), a_platform(pool("a"))), "table", PLAIN)
    assert "costs   23,360.00 EUR a month before; nobody says prices any more\n" in page


def test_two_currencies_make_no_difference() -> None:
    page = shown_diff(a_step(a_priced_platform(), a_priced_platform(other_prices("2", "USD"))), "table", PLAIN)
    said = "13,140.00 EUR a month before, and 13,140.00 USD a month after: in two currencies no difference is known"
    assert f"costs   {said}\n" in page


def test_programs_read_what_a_step_costs() -> None:
    diff = a_step(a_priced_platform(), a_priced_platform(other_prices("2.5")))
    found = json.loads(shown_diff(diff, "json", PLAIN))
    jsonschema.validate(found, strictly(schema("diff")))

    assert found["costs"] == [{"currency": "EUR", "change": {"per_hour": 4.5, "per_month": 3285}}]
    (cluster,) = found["clusters"]
    assert (cluster["class"], cluster["costs"]["total"]["change"]["per_month"]) == ("none", 3285)
    assert cluster["costs"]["pools"][1] == {
        "pool": "b",
        "before": {"per_hour": 2, "per_month": 1460},
        "after": {"per_hour": 2.5, "per_month": 1825},
        "change": {"per_hour": 0.5, "per_month": 365},
    }


def test_programs_read_that_no_difference_is_known() -> None:
    found = json.loads(shown_diff(a_step(a_platform(pool("a")), a_platform(pool("a"), PRICES)), "json", PLAIN))
    jsonschema.validate(found, strictly(schema("diff")))
    (cluster,) = found["clusters"]
    assert (cluster["costs"]["currency"], cluster["costs"]["total"]) == ({"before": None, "after": "EUR"}, None)
