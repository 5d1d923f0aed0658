"""CPU, memory and pods of quotas: what the policy says, and what follows from units by exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.planning.amounts import amount_text, capacity, compute_cap, part_of_node
from gpuplan.compiler.planning.plan import Compute, Counted, Plan
from tests.platforms import a_platform, document, pool, tenant

NODES = "count: 2, gpusPerNode: 8, cpu: 130, memory: 1040Gi, reserve: {cpu: 2, memory: 16Gi}"
FOLLOWS = "followUnits: true"


def found(plan: Plan, counted: Counted, index: int = 0) -> Compute | None:
    return plan.tenants[0].quotas[index].find_compute(counted)


def amounts(compute: Compute | None) -> tuple[str, str | None, str]:
    assert compute is not None
    limit = None if compute.limit is None else amount_text(compute.counted, compute.limit)
    return amount_text(compute.counted, compute.guaranteed), limit, amount_text(compute.counted, compute.lendable)


def test_a_quota_says_what_is_guaranteed_and_the_limit_is_the_same() -> None:
    plan = a_platform(pool("p", nodes=NODES), tenant("t", "pool: p, guaranteed: 4, cpu: 64, memory: 1.5Ti, pods: 9"))
    assert amounts(found(plan, Counted.CPU)) == ("64", "64", "64")
    assert amounts(found(plan, Counted.MEMORY)) == ("1536Gi", "1536Gi", "1536Gi")
    assert amounts(found(plan, Counted.PODS)) == ("9", "9", "0")


def test_a_limit_may_be_higher_or_none() -> None:
    quota = "pool: p, guaranteed: 4, cpu: {guaranteed: 500m, limit: 4}, memory: {guaranteed: 1Gi, limit: none}"
    plan = a_platform(pool("p", nodes=NODES), tenant("t", quota))
    assert amounts(found(plan, Counted.CPU)) == ("500m", "4", "500m")
    assert amounts(found(plan, Counted.MEMORY)) == ("1Gi", None, "1Gi")


def test_a_quota_that_says_nothing_counts_nothing() -> None:
    plan = a_platform(pool("p", nodes=NODES), tenant("t", "pool: p, guaranteed: 4"))
    assert plan.tenants[0].quotas[0].compute == ()


def test_what_is_lent_of_units_is_lent_of_cpu() -> None:
    plan = a_platform(pool("p", nodes=NODES), tenant("t", "pool: p, guaranteed: 4, lendable: 1, cpu: 10"))
    assert amounts(found(plan, Counted.CPU)) == ("10", "10", "2500m")


def test_cpu_and_memory_follow_the_units_of_a_pool_less_its_reserve() -> None:
    plan = a_platform(
        pool("p", "exclusive: {}", FOLLOWS, nodes=NODES), tenant("t", "pool: p, guaranteed: 4, limit: 16")
    )
    assert amounts(found(plan, Counted.CPU)) == ("64", "256", "64")
    assert amounts(found(plan, Counted.MEMORY)) == ("512Gi", "2Ti", "512Gi")
    assert found(plan, Counted.PODS) is None


def test_a_quota_of_its_own_goes_before_what_follows() -> None:
    plan = a_platform(pool("p", "exclusive: {}", FOLLOWS, nodes=NODES), tenant("t", "pool: p, guaranteed: 4, cpu: 1"))
    assert amounts(found(plan, Counted.CPU)) == ("1", "1", "1")
    assert amounts(found(plan, Counted.MEMORY)) == ("512Gi", "512Gi", "512Gi")


def test_what_follows_is_rounded_down_to_millicores_and_mebibytes() -> None:
    nodes = "count: 1, gpusPerNode: 7, cpu: 10, memory: 10Gi"
    plan = a_platform(pool("p", "exclusive: {}", FOLLOWS, nodes=nodes), tenant("t", "pool: p, guaranteed: 1"))
    assert amounts(found(plan, Counted.CPU))[0] == "1428m"
    assert amounts(found(plan, Counted.MEMORY))[0] == "1462Mi"


@pytest.mark.parametrize(
    ("sharing", "parts"),
    [
        ("exclusive: {}", {"gpu": Fraction(1, 8)}),
        ("timeSlicing: {replicas: 4}", {"shared": Fraction(1, 32)}),
        ("fraction: {}", {"fraction": Fraction(1, 8)}),
        ("mig: {instances: {1g.10gb: 7}}", {"1g.10gb": Fraction(1, 56)}),
        ("mig: {instances: {3g.40gb: 2}}", {"3g.40gb": Fraction(1, 16)}),
        ("mig: {instances: {3g.40gb: 2}, strategy: single}", {"3g.40gb": Fraction(1, 16)}),
        ("mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}", {"2g.20gb": Fraction(2, 56), "3g.40gb": Fraction(3, 56)}),
    ],
)
def test_a_unit_is_the_part_of_a_node_that_its_slices_are(sharing: str, parts: dict[str, Fraction]) -> None:
    [found] = a_platform(pool("p", sharing)).pools
    assert {unit.name: part_of_node(found, unit) for unit in found.units} == parts


SHARINGS = (
    "exclusive: {}",
    "timeSlicing: {replicas: 3}",
    "mps: {replicas: 5}",
    "fraction: {}",
    "mig: {instances: {1g.10gb: 7}}",
    "mig: {instances: {1g.10gb: 1, 2g.20gb: 1, 3g.40gb: 1}}",
    "mig: {instances: {1g.20gb: 4}}",
    "mig: {devices: [{gpus: [0], enabled: false}, {gpus: [1, 2], instances: {3g.40gb: 2}}]}",
)


@given(st.sampled_from(SHARINGS))
def test_all_units_of_a_node_are_the_whole_node(sharing: str) -> None:
    [found] = a_platform(pool("p", sharing, nodes="count: 1, gpusPerNode: 3")).pools
    assert sum(part_of_node(found, unit) * unit.per_node for unit in found.units) == 1


@settings(max_examples=60)
@given(st.data())
def test_what_follows_from_units_never_is_more_than_the_nodes_have(data: st.DataObject) -> None:
    """However the units are divided among tenants, and whatever the numbers are."""
    cpu, memory = data.draw(st.integers(0, 10**6)), data.draw(st.integers(0, 2**44))
    nodes = f"count: {data.draw(st.integers(1, 5))}, gpusPerNode: 3, cpu: {cpu}m, memory: {memory}"
    shared = pool("p", data.draw(st.sampled_from(SHARINGS)), FOLLOWS, nodes=nodes)
    [bare] = a_platform(shared).pools
    tenants = []
    left = {unit.name: unit.capacity for unit in bare.units}
    for index in range(data.draw(st.integers(1, 4))):
        taken = {name: data.draw(st.integers(0, there)) for name, there in left.items()}
        left = {name: there - taken[name] for name, there in left.items()}
        quotas = [f"pool: p, unit: {name}, guaranteed: {units}" for name, units in taken.items()]
        tenants.append(tenant(f"t{index}", *quotas))
    plan = a_platform(shared, *tenants)
    for counted, least in ((Counted.CPU, 1), (Counted.MEMORY, 2**20)):
        held = [part for item in plan.tenants for quota in item.quotas if (part := quota.find_compute(counted))]
        there = capacity(plan.pools[0], counted)
        promised = sum(part.guaranteed for part in held)
        assert there is not None
        assert promised <= there
        if not any(left.values()):
            assert there - promised < least * max(len(held), 1)


@given(st.integers(0, 10**5), st.integers(1, 9), st.integers(1, 9))
def test_what_children_have_of_a_parent_follows_with_their_units(cpu: int, one: int, other: int) -> None:
    plan = a_platform(
        pool("p", "exclusive: {}", FOLLOWS, nodes=f"count: 3, gpusPerNode: 8, cpu: {cpu}m"),
        document("Tenant", "dept", f"quotas: [{{pool: p, guaranteed: {one + other}}}]"),
        tenant("a", f"pool: p, guaranteed: {one}", more="parent: dept"),
        tenant("b", f"pool: p, guaranteed: {other}", more="parent: dept"),
    )
    a, b, dept = [item.quotas[0].find_compute(Counted.CPU) for item in plan.tenants]
    assert a is not None
    assert b is not None
    assert dept is not None
    assert a.guaranteed + b.guaranteed <= dept.guaranteed


# --- Namespaces --------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(0, 9))
def test_a_split_divides_cpu_by_the_same_parts_as_units(cpu: int, one: int, other: int) -> None:
    quota = f"pool: p, guaranteed: {one + other}, cpu: {cpu}m, split: {{a: {one}, b: {other}}}"
    plan = a_platform(pool("p", nodes="count: 3, gpusPerNode: 8"), tenant("t", quota, namespaces="a, b"))
    compute = found(plan, Counted.CPU)
    assert compute is not None
    whole = one + other
    assert compute.caps == {"a": cpu * one // whole if whole else 0, "b": cpu * other // whole if whole else 0}


def test_caps_of_several_pools_are_summed_and_one_without_a_bound_leaves_none() -> None:
    pools = pool("p"), pool("q", "timeSlicing: {replicas: 2}")
    both = a_platform(*pools, tenant("t", "pool: p, guaranteed: 1, cpu: 4", "pool: q, guaranteed: 1, cpu: 500m"))
    one = a_platform(*pools, tenant("t", "pool: p, guaranteed: 1, cpu: 4", "pool: q, guaranteed: 1"))
    assert compute_cap(both.tenants[0].quotas, "t", Counted.CPU) == 4500
    assert compute_cap(one.tenants[0].quotas, "t", Counted.CPU) is None


def test_a_namespace_without_units_of_a_pool_has_none_of_its_cpu() -> None:
    pools = pool("p"), pool("q", "timeSlicing: {replicas: 2}")
    quotas = "pool: p, guaranteed: 1, cpu: 4, split: {a: 1}", "pool: q, guaranteed: 1, split: {b: 1}"
    [owner] = a_platform(*pools, tenant("t", *quotas, namespaces="a, b")).tenants
    assert compute_cap(owner.quotas, "a", Counted.CPU) == 4000
    assert compute_cap(owner.quotas, "b", Counted.CPU) is None
