"""CPU and memory in KAI-Scheduler's queues: exactly what the policy says, in its units."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from gpuplan.compiler.backends import kai
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, document, pool, tenant

SIZED = pool("p", nodes="count: 2, gpusPerNode: 8, cpu: 64, memory: 1Ti")
UNBOUNDED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def platform(*tenants: str) -> Plan:
    return a_platform(SIZED, *tenants, scheduler="kai")


def resources(plan: Plan, queue: str) -> Any:
    (body,) = [item.body for item in kai.objects(plan) if (item.kind, item.name) == ("Queue", queue)]
    return body["spec"]["resources"]


def test_cpu_is_counted_in_thousandths_and_memory_in_millions_of_bytes() -> None:
    quota = "pool: p, guaranteed: 4, cpu: {guaranteed: 8, limit: 16500m}, memory: {guaranteed: 64G, limit: none}"
    found = resources(platform(tenant("a", quota, more="surplus: {weight: 2}")), "a-p")
    assert found["cpu"] == {"quota": 8000, "limit": 16500, "overQuotaWeight": 2}
    assert found["memory"] == {"quota": 64000, "limit": -1, "overQuotaWeight": 2}


def test_what_no_quota_counts_is_unbounded() -> None:
    found = resources(platform(tenant("a", "pool: p, guaranteed: 4, cpu: 8")), "a-p")
    assert found["cpu"]["limit"] == 8000
    assert found["memory"] == UNBOUNDED


def test_a_parent_has_what_it_says_and_its_own_work_what_it_leaves() -> None:
    plan = platform(
        tenant("dept", "pool: p, guaranteed: 8, cpu: {guaranteed: 64, limit: 100}"),
        tenant("a", "pool: p, guaranteed: 2, cpu: 24", more="parent: dept"),
        tenant("b", "pool: p, guaranteed: 2", more="parent: dept"),
    )
    cpu = {name: resources(plan, name)["cpu"] for name in ("dept-p.all", "dept-p", "a-p", "b-p")}
    assert {name: (found["quota"], found["limit"]) for name, found in cpu.items()} == {
        "dept-p.all": (64000, 100000),
        "dept-p": (40000, 100000),
        "a-p": (24000, 24000),
        "b-p": (-1, -1),
    }


def test_a_parent_that_says_nothing_bounds_nothing() -> None:
    plan = platform(
        document("Tenant", "dept", "quotas: [{pool: p, guaranteed: 8}]"),
        tenant("a", "pool: p, guaranteed: 2, cpu: 24", more="parent: dept"),
    )
    assert resources(plan, "dept-p")["cpu"] == UNBOUNDED
    assert resources(plan, "a-p")["cpu"]["limit"] == 24000


@given(st.integers(0, 2**50))
def test_pods_exactly_within_a_limit_on_memory_are_not_beyond_it(size: int) -> None:
    """KAI-Scheduler compares what is asked for with a product of floats, without a tolerance."""
    found = resources(platform(tenant("a", f"pool: p, guaranteed: 4, memory: {size}")), "a-p")["memory"]
    assert found["limit"] * 1_000_000 >= size
    assert found["limit"] * 1_000_000 < size + 2
