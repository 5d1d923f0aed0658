"""The tree of tenants, against what its words say when they are taken one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, strategies as st

from gpuplan.compiler.planning.plan import Quota, Tenant, UnitKey
from gpuplan.compiler.planning.tree import Tree
from tests.plans import a_plan

_PLAN = a_plan("""\
    apiVersion: gpuplan.dev/v1
    kind: Pool
    metadata: {name: mig}
    spec:
      gpu: A100-80GB
      nodes: {count: 1, gpusPerNode: 8, names: [a]}
      sharing: {mig: {instances: {1g.10gb: 3, 2g.20gb: 2}}}
    ---
    apiVersion: gpuplan.dev/v1
    kind: Tenant
    metadata: {name: team}
    spec: {namespaces: [team], quotas: [{pool: mig, unit: 1g.10gb, guaranteed: 1}, {pool: mig, unit: 2g.20gb, guaranteed: 1}]}
""")  # noqa: E501 - a tenant is a line
(_TEAM,) = _PLAN.tenants
SMALL, LARGE = (quota.key for quota in _TEAM.quotas)


def a_tenant(name: str, parent: str | None, small: int | None = None, large: int | None = None) -> Tenant:
    amounts = zip(_TEAM.quotas, (small, large), strict=True)
    quotas = tuple(quota._replace(guaranteed=amount) for quota, amount in amounts if amount is not None)
    return _TEAM._replace(name=name, parent=parent, quotas=quotas)


_AMOUNT = st.none() | st.integers(0, 9)


@st.composite
def forests(draw: st.DrawFn) -> tuple[Tenant, ...]:
    """Any parents at all: nobody's, one's own, in a circle, and names that are no tenant's."""
    names = [f"t{number}" for number in range(draw(st.integers(0, 9)))]
    parent = st.none() | st.sampled_from([*names, "stranger"])
    return tuple(a_tenant(name, draw(parent), draw(_AMOUNT), draw(_AMOUNT)) for name in names)


@given(forests())
def test_a_guarantee_lies_within_that_of_the_nearest_who_has_one(tenants: tuple[Tenant, ...]) -> None:
    expected = [
        (tenant.name, quota.key, holder)
        for tenant in tenants
        for quota in tenant.quotas
        if (holder := _nearest_holder(tenants, tenant, quota.key))
    ]
    tree = Tree(tenants)
    assert [(part.tenant.name, part.quota.key, part.holder.name) for part in tree.nested_quotas] == expected
    assert all(part.whole in part.holder.quotas and part.whole.key == part.quota.key for part in tree.nested_quotas)


@given(forests())
def test_what_is_outermost_lies_within_nothing(tenants: tuple[Tenant, ...]) -> None:
    expected = [
        (tenant.name, quota)
        for tenant in tenants
        for quota in tenant.quotas
        if _nearest_holder(tenants, tenant, quota.key) is None
    ]
    assert [(tenant.name, quota) for tenant, quota in Tree(tenants).outermost] == expected


@given(forests())
def test_what_is_left_is_what_nothing_within_takes(tenants: tuple[Tenant, ...]) -> None:
    tree = Tree(tenants)
    for tenant in tenants:
        for quota in tenant.quotas:
            taken = sum(
                below.guaranteed
                for other in tenants
                for below in other.quotas
                if below.key == quota.key and _nearest_holder(tenants, other, quota.key) == tenant.name
            )
            assert tree.left_over(tenant, quota.key) == max(quota.guaranteed - taken, 0)


@given(forests())
def test_a_tenant_has_its_own_and_of_other_units_what_is_below(tenants: tuple[Tenant, ...]) -> None:
    tree = Tree(tenants)
    for tenant in tree.downward:
        expected = [
            quota
            for other in tenants
            for quota in other.quotas
            if (route := _route(tenants, other, tenant)) and not any(_has(above, quota.key) for above in route[1:])
        ]
        assert _sorted(tree.together[tenant.name]) == _sorted(expected)


@given(forests())
def test_downward_are_all_but_those_that_hang_from_a_circle(tenants: tuple[Tenant, ...]) -> None:
    tree = Tree(tenants)
    assert {tenant.name for tenant in tree.downward} == {item.name for item in tenants if _top(tenants, item)}
    places = {tenant.name: place for place, tenant in enumerate(tree.downward)}
    assert all(places[tenant.parent] < places[tenant.name] for tenant in tree.downward if tenant.parent in places)


@given(forests())
def test_nobody_is_above_itself_or_above_twice(tenants: tuple[Tenant, ...]) -> None:
    for tenant in tenants:
        names = [found.name for found in Tree(tenants).path(tenant)]
        assert len(set(names)) == len(names)


def test_a_circle_ends_where_it_began() -> None:
    one, other = a_tenant("one", "other", 3), a_tenant("other", "one", 2)
    tree = Tree((one, other))
    assert [above.name for above in tree.above(one)] == ["other"]
    assert [(part.tenant.name, part.holder.name) for part in tree.nested_quotas] == [("one", "other"), ("other", "one")]
    assert (tree.outermost, tree.downward, tree.together) == ((), [], {})


def test_levels_are_many_and_only_the_nearest_counts() -> None:
    names = [f"level{number}" for number in range(2000)]
    tenants = [
        a_tenant(name, parent, small=5 if number % 1000 == 0 else None)
        for number, (name, parent) in enumerate(zip(names, [None, *names], strict=False))
    ]
    leaf = a_tenant("leaf", names[-1], 2, 4)
    tree = Tree((*tenants, leaf))
    assert [(part.tenant.name, part.holder.name) for part in tree.nested_quotas] == [
        ("level1000", "level0"),
        ("leaf", "level1000"),
    ]
    assert [tree.left_over(tenants[level], SMALL) for level in (0, 1000)] == [0, 3]
    assert [(quota.key, quota.guaranteed) for quota in tree.together["level0"]] == [(SMALL, 5), (LARGE, 4)]


# --- The words, taken one by one ---------------------------------------------------------------------------------


def _route(tenants: Sequence[Tenant], low: Tenant, high: Tenant) -> list[Tenant]:
    """From one tenant up to another, both of them in it; empty where the other is not above it."""
    route = [low, *_above(tenants, low)]
    names = [tenant.name for tenant in route]
    return route[: names.index(high.name) + 1] if high.name in names else []


def _above(tenants: Sequence[Tenant], tenant: Tenant) -> list[Tenant]:
    by_name: Mapping[str | None, Tenant] = {found.name: found for found in tenants}
    found: list[Tenant] = []
    while (parent := by_name.get((found[-1] if found else tenant).parent)) and parent not in (tenant, *found):
        found.append(parent)
    return found


def _nearest_holder(tenants: Sequence[Tenant], tenant: Tenant, unit: UnitKey) -> str | None:
    return next((above.name for above in _above(tenants, tenant) if _has(above, unit)), None)


def _top(tenants: Sequence[Tenant], tenant: Tenant) -> bool:
    last = [tenant, *_above(tenants, tenant)][-1]
    return last.parent not in {found.name for found in tenants}


def _has(tenant: Tenant, unit: UnitKey) -> bool:
    return any(quota.key == unit for quota in tenant.quotas)


def _sorted(quotas: Sequence[Quota]) -> list[tuple[UnitKey, str]]:
    return sorted((quota.key, str(quota.guaranteed)) for quota in quotas)
