"""What tenants hold is added up per unit; a child counts within its parent."""

from __future__ import annotations

from decimal import Decimal

from gpuplan.compiler.planning.plan import Quota
from tests.platforms import a_platform, document, pool, tenant

POOL = pool("p", nodes="count: 1, gpusPerNode: 8, names: [a]")


def test_guarantees_and_limits_are_summed() -> None:
    plan = a_platform(POOL, tenant("a", "pool: p, guaranteed: 3, limit: 5"), tenant("b", "pool: p, guaranteed: 2"))
    (total,) = plan.totals
    assert (total.guaranteed, total.limit, total.free) == (5, 7, 3)


def test_one_unbounded_tenant_leaves_the_sum_unbounded() -> None:
    plan = a_platform(POOL, tenant("a", "pool: p, guaranteed: 3, limit: none"), tenant("b", "pool: p, guaranteed: 2"))
    (total,) = plan.totals
    assert (total.guaranteed, total.limit) == (5, None)


def test_child_counts_within_a_parent_that_holds_the_unit() -> None:
    plan = a_platform(
        POOL,
        tenant("dept", "pool: p, guaranteed: 6"),
        tenant("a", "pool: p, guaranteed: 4", more="parent: dept"),
        tenant("b", "pool: p, guaranteed: 1"),
    )
    (total,) = plan.totals
    assert total.guaranteed == 7
    assert [holder.name for holder, _ in total.quotas] == ["b", "dept"]


def test_child_counts_itself_when_the_parent_holds_nothing() -> None:
    plan = a_platform(document("Tenant", "dept"), POOL, tenant("a", "pool: p, guaranteed: 4", more="parent: dept"))
    (total,) = plan.totals
    assert total.guaranteed == 4


def test_parents_in_a_cycle_end_the_search() -> None:
    plan = a_platform(
        POOL,
        tenant("a", "pool: p, guaranteed: 1", more="parent: b"),
        tenant("b", "pool: p, guaranteed: 2", more="parent: a"),
    )
    assert [total.guaranteed for total in plan.totals] == [0]


def quota(line: str, namespaces: str = "[one, two]") -> Quota:
    plan = a_platform(POOL, document("Tenant", "t", f"namespaces: {namespaces}", f"quotas: [{line}]"))
    return plan.tenants[0].quotas[0]


def test_limit_is_the_guarantee_unless_stated() -> None:
    assert quota("{pool: p, guaranteed: 3}").limit == 3
    assert quota("{pool: p, guaranteed: 3, limit: 4}").limit == 4
    assert quota("{pool: p, guaranteed: 3, limit: none}").limit is None


def test_everything_may_be_lent_unless_stated() -> None:
    assert quota("{pool: p, guaranteed: 3}").lendable == 3
    assert quota("{pool: p, guaranteed: 3, lendable: 1}").lendable == 1


def test_caps_follow_the_split() -> None:
    assert quota("{pool: p, guaranteed: 3, split: {one: 1, two: 2}}").caps == {"one": 1, "two": 2}
    assert quota("{pool: p, guaranteed: 3, split: {one: 3}}").caps == {"one": 3, "two": 0}


def test_cap_of_an_only_namespace_is_the_limit() -> None:
    assert quota("{pool: p, guaranteed: 3, limit: 5}", "[one]").caps == {"one": 5}
    assert quota("{pool: p, guaranteed: 3, limit: none}", "[one]").caps == {"one": None}


def test_parts_of_a_unit_stay_exact() -> None:
    assert quota("{pool: p, guaranteed: 0.1}").guaranteed == Decimal("0.1")
