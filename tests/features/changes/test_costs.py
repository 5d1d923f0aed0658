"""What a step costs, and what is said of prices that change."""

from __future__ import annotations

from fractions import Fraction as Ratio

from hypothesis import given

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.prices import costs
from gpuplan.features.changes.costs import AmountChange, cost_change
from gpuplan.features.changes.states import ClusterState, compare
from tests.compiler.planning.test_prices import priced
from tests.plans import CLUSTER, a_plan
from tests.platforms import a_platform, document, pool, tenant

BY_GPU = "gpus: {A100-80GB: {perGpuHour: 2}}"
LAB = tenant("lab", "pool: a, guaranteed: 4")


def prices(*fields: str, currency: str = "EUR") -> str:
    return document("Prices", "list", f"currency: {currency}", *fields)


def amounts(before: int, after: int) -> AmountChange:
    return AmountChange(Ratio(before), Ratio(after))


def nodes(count: int) -> str:
    return pool("a", nodes=f"count: {count}, gpusPerNode: 8")


def test_without_prices_nothing_costs_more() -> None:
    assert cost_change(a_platform(nodes(1)), a_platform(nodes(2))) is None


def test_what_costs_the_same_is_no_difference() -> None:
    cheaper = prices("gpus: {A100-80GB: {perNodeHour: 16}}")
    assert cost_change(a_platform(nodes(1), prices(BY_GPU)), a_platform(nodes(1), cheaper)) is None


def test_a_node_more_costs_its_price_and_is_idle() -> None:
    found = cost_change(a_platform(nodes(1), LAB, prices(BY_GPU)), a_platform(nodes(2), LAB, prices(BY_GPU)))
    assert found is not None
    assert (found.total, found.idle) == (amounts(16, 32), amounts(8, 24))
    assert (found.pools, found.tenants) == ({"a": amounts(16, 32)}, {})


def test_a_guarantee_more_costs_nothing_and_is_less_idle() -> None:
    more = tenant("lab", "pool: a, guaranteed: 6")
    found = cost_change(a_platform(nodes(1), LAB, prices(BY_GPU)), a_platform(nodes(1), more, prices(BY_GPU)))
    assert found is not None
    assert (found.total, found.idle) == (amounts(16, 16), amounts(8, 4))
    assert (found.pools, found.tenants) == ({}, {"lab": amounts(8, 12)})


def test_other_prices_cost_more_where_nothing_else_changes() -> None:
    dearer = prices("gpus: {A100-80GB: {perGpuHour: 3}}")
    found = cost_change(a_platform(nodes(1), LAB, prices(BY_GPU)), a_platform(nodes(1), LAB, dearer))
    assert found is not None
    assert (found.total, found.tenants) == (amounts(16, 24), {"lab": amounts(8, 12)})


def test_a_cluster_that_comes_costs_all_of_it() -> None:
    found = cost_change(None, a_platform(nodes(1), prices(BY_GPU)))
    assert found is not None
    assert (found.total, found.pools) == (amounts(0, 16), {"a": amounts(0, 16)})


def test_a_cluster_that_goes_costs_nothing_more() -> None:
    found = cost_change(a_platform(nodes(1), prices(BY_GPU)), None)
    assert found is not None
    assert (found.total, found.currency) == (amounts(16, 0), "EUR")


def test_of_prices_that_are_new_no_difference_is_known() -> None:
    found = cost_change(a_platform(nodes(1)), a_platform(nodes(2), prices(BY_GPU)))
    assert found is not None
    assert (found.total, found.before) == (None, None)
    assert found.after is not None
    assert found.after.total == 32


def test_of_two_currencies_no_difference_is_known() -> None:
    found = cost_change(a_platform(nodes(1), prices(BY_GPU)), a_platform(nodes(1), prices(BY_GPU, currency="USD")))
    assert found is not None
    assert (found.total, found.currency) == (None, "USD")


def test_a_pool_without_a_price_on_a_side_is_in_no_number() -> None:
    both = "gpus: {A100-80GB: {perGpuHour: 2}, L4-24GB: {perGpuHour: 1}}"
    other = pool("b", gpu="L4-24GB")
    found = cost_change(a_platform(nodes(1), other, prices(BY_GPU)), a_platform(nodes(2), other, prices(both)))
    assert found is not None
    assert (found.total, found.left_out) == (amounts(16, 32), ("b",))


@given(priced(), priced())
def test_what_pools_cost_more_is_what_all_of_it_does(before: Plan, after: Plan) -> None:
    found, old, new = cost_change(before, after), costs(before), costs(after)
    assert old is not None
    assert new is not None
    difference = new.total - old.total
    if found is None:
        assert difference == 0
    else:
        assert found.total == AmountChange(old.total, new.total)
        assert sum(amounts.difference for amounts in found.pools.values()) == difference


# --- What is said of it --------------------------------------------------------------------------------------------

WATCHED = f"{CLUSTER}  monitoring: {{}}\n"


def watched(*documents: str) -> Plan:
    return a_plan(WATCHED + "".join(documents))


def told(before: Plan, after: Plan) -> list[tuple[str, str, ChangeClass]]:
    """What is said, with the class; all that differs in what is written is explained by it."""
    sides = ([ClusterState.of(plan, (("", artifact) for _, artifact in artifacts(plan)))] for plan in (before, after))
    found = compare(*sides)
    assert found.objects == ()
    return [(change.subject.kind, change.what, change.change_class) for change in found.changes]


def test_prices_that_change_are_told_by_what_they_are_of() -> None:
    one = prices("gpus: {A100-80GB: {perGpuHour: 2}}", "pools: {a: {perNodeHour: 9}}")
    other = prices("gpus: {A100-80GB: {perGpuHour: 3}}", "pools: {a: {perNodeHour: 8}}", currency="USD")
    said = "prices change: currency from EUR to USD, GPU model `A100-80GB` and pool `a`"

    assert told(watched(nodes(1), one), watched(nodes(1), other)) == [("Prices", said, ChangeClass.METADATA)]


def test_prices_that_come_and_go_are_told() -> None:
    without, with_prices = watched(nodes(1)), watched(nodes(1), prices(BY_GPU))

    assert told(without, with_prices) == [("Prices", "prices are said, in EUR", ChangeClass.METADATA)]
    assert told(with_prices, without) == [("Prices", "prices are said no more", ChangeClass.METADATA)]


def test_another_term_of_a_pool_is_told() -> None:
    terms = prices("gpus: {A100-80GB: {perGpuHour: {any: 2, spot: 1}}}")
    spot = pool("a", "exclusive: {}", "billing: {term: spot}", nodes="count: 1, gpusPerNode: 8")
    said = "nodes are billed otherwise: term from `onDemand` to `spot`"

    assert told(watched(nodes(1), terms), watched(spot, terms)) == [("Pool", said, ChangeClass.METADATA)]


def test_another_node_type_of_a_pool_is_told() -> None:
    typed = prices("nodeTypes: {big: {perNodeHour: 2}}", BY_GPU)
    big = pool("a", "exclusive: {}", "billing: {nodeType: big}", nodes="count: 1, gpusPerNode: 8")
    said = "nodes are billed otherwise: node type from none to `big`"

    assert told(watched(nodes(1), typed), watched(big, typed)) == [("Pool", said, ChangeClass.METADATA)]


def test_prices_of_a_cluster_that_nobody_watches_change_nothing_that_is_written() -> None:
    dearer = prices("gpus: {A100-80GB: {perGpuHour: 3}}")
    assert told(a_platform(nodes(1), prices(BY_GPU)), a_platform(nodes(1), dearer)) == []
