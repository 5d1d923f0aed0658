"""For any plan, every namespace's quota says something on every way to a GPU of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings, strategies as st

from gpuplan.compiler.backends import namespaces
from gpuplan.compiler.manifests import quantity
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, tenant

SHARINGS = {
    "exclusive: {}": ("gpu",),
    "timeSlicing: {replicas: 4}": ("shared",),
    "timeSlicing: {replicas: 3, rename: false}": ("shared",),
    "mps: {replicas: 2}": ("shared",),
    "mig: {instances: {1g.10gb: 7}}": ("1g.10gb",),
    "mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}": ("1g.10gb",),
    "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}": ("2g.20gb", "3g.40gb"),
    "mig: {instances: {3g.40gb: 2}, strategy: single}": ("3g.40gb",),
    "fraction: {}": ("fraction",),
}
"""Kinds of sharing, each with the units that it hands out."""


@dataclass(frozen=True)
class Grant:
    pool: int
    unit: str
    guaranteed: int
    limit: int | None


pools = st.lists(st.sampled_from(sorted(SHARINGS)), min_size=1, max_size=4)


@st.composite
def grants(draw: st.DrawFn, sharings: list[str]) -> list[Grant]:
    offered = [(index, unit) for index, sharing in enumerate(sharings) for unit in SHARINGS[sharing]]
    chosen = draw(st.lists(st.sampled_from(offered), unique=True, max_size=4))
    numbers = st.tuples(st.integers(0, 2000), st.none() | st.integers(0, 3000))
    return [Grant(pool, unit, *draw(numbers)) for pool, unit in chosen]


@st.composite
def platforms(draw: st.DrawFn) -> tuple[Plan, list[list[Grant]]]:
    sharings = draw(pools)
    tenants = draw(st.lists(grants(sharings), min_size=1, max_size=3))
    documents = [pool(f"pool-{index}", sharing) for index, sharing in enumerate(sharings)]
    documents += [_tenant(index, granted) for index, granted in enumerate(tenants)]
    return a_platform(*documents), tenants


def _tenant(index: int, granted: list[Grant]) -> str:
    quotas = (
        f"pool: pool-{grant.pool}, unit: {grant.unit}, guaranteed: {grant.guaranteed}, "
        f"limit: {'none' if grant.limit is None else grant.limit}"
        for grant in granted
    )
    return tenant(f"tenant-{index}", *quotas)


@settings(max_examples=60)
@given(platforms())
def test_every_unit_is_capped_banned_or_unbounded(drawn: tuple[Plan, list[list[Grant]]]) -> None:
    plan, tenants = drawn
    resources = {unit.resource for pool in plan.pools for unit in pool.units if unit.resource}
    hard = {
        item.namespace: item.body["spec"].get("hard", {})
        for item in namespaces.render(plan)
        if item.kind == "ResourceQuota"
    }
    for index, granted in enumerate(tenants):
        for resource in resources | {"nvidia.com/gpu"}:
            expected = _cap(plan, granted, resource)
            written = hard[f"tenant-{index}"].get(f"requests.{resource}")
            assert written == (None if expected is None else quantity(expected))


def _cap(plan: Plan, granted: list[Grant], resource: str) -> int | None:
    """The sum of the limits on a resource, zero without any, None where one is unbounded."""
    limits = []
    for grant in granted:
        found = plan.find_pool(f"pool-{grant.pool}")
        unit = found and found.find_unit(grant.unit)
        if unit and unit.resource == resource:
            limits.append(grant.limit)
    return None if None in limits else sum(limit for limit in limits if limit)
