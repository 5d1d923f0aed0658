"""KAI-Scheduler's queues follow the tree of tenants, pool by pool, and count what a unit costs there."""

from __future__ import annotations

from fractions import Fraction as Ratio
from typing import NamedTuple

from gpuplan.compiler.planning.kai import queues
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL
from tests import platforms
from tests.platforms import a_platform, pool

POOLS = (
    pool("mig", "mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}", nodes="count: 2, gpusPerNode: 8, names: [a, b]"),
    pool("parts", "fraction: {}", nodes="count: 1, gpusPerNode: 8, names: [c]"),
    pool("whole", nodes="count: 2, gpusPerNode: 8, names: [d, e]"),
)


class Row(NamedTuple):
    """What a queue amounts to; ``limit`` is -1 where unbounded."""

    name: str
    parent: str
    quota: float
    limit: float


def tenant(name: str, *quotas: str, parent: str = "", namespaces: str | None = None) -> str:
    return platforms.tenant(name, *quotas, namespaces=namespaces, more=f"parent: {parent}" if parent else "")


def platform(*tenants: str, scheduler: str = "kai") -> Plan:
    return a_platform(*POOLS, *tenants, scheduler=scheduler)


def rows(*tenants: str) -> list[Row]:
    return [
        Row(queue.name, queue.parent, float(queue.quota), -1 if queue.limit is None else float(queue.limit))
        for queue in queues(platform(*tenants))
    ]


def test_a_tenant_has_a_queue_in_each_pool_that_it_has_a_quota_on() -> None:
    research = tenant("research", "pool: whole, guaranteed: 4, limit: 8", "pool: parts, guaranteed: 2")
    assert rows(research) == [Row("research-parts", "", 2, 2), Row("research-whole", "", 4, 8)]


def test_partitions_cost_their_compute_slices() -> None:
    small = "pool: mig, unit: 1g.10gb, guaranteed: 3, limit: 5"
    large = "pool: mig, unit: 2g.20gb, guaranteed: 4, limit: 8"
    assert rows(tenant("research", small, large)) == [Row("research-mig", "", 4 * 2 + 3, 8 * 2 + 5)]


def test_fractions_are_counted_in_gpus_exactly() -> None:
    (queue,) = queues(platform(tenant("research", "pool: parts, guaranteed: 0.1, limit: 1.33")))
    assert (queue.quota, queue.limit) == (Ratio(1, 10), Ratio(133, 100))


def test_one_unbounded_unit_leaves_the_queue_unbounded() -> None:
    small = "pool: mig, unit: 1g.10gb, guaranteed: 3, limit: 5"
    large = "pool: mig, unit: 2g.20gb, guaranteed: 4, limit: none"
    assert rows(tenant("research", small, large)) == [Row("research-mig", "", 11, -1)]


def test_a_parent_without_quota_has_what_its_children_have_and_bounds_nobody() -> None:
    department = tenant("science", namespaces="")
    physics = tenant("physics", "pool: whole, guaranteed: 3, limit: 4", parent="science")
    biology = tenant("biology", "pool: whole, guaranteed: 2", parent="science")
    assert rows(department, physics, biology) == [
        Row("science-whole", "", 5, -1),
        Row("biology-whole", "science-whole", 2, 2),
        Row("physics-whole", "science-whole", 3, 4),
    ]


def test_a_parents_quota_holds_its_childrens() -> None:
    department = tenant("science", "pool: whole, guaranteed: 8, limit: 12", namespaces="")
    physics = tenant("physics", "pool: whole, guaranteed: 3, limit: 4", parent="science")
    assert rows(department, physics) == [Row("science-whole", "", 8, 12), Row("physics-whole", "science-whole", 3, 4)]


def test_a_parent_that_works_itself_has_a_queue_for_all_and_one_for_its_own_work() -> None:
    department = tenant("science", "pool: whole, guaranteed: 8, limit: 12")
    physics = tenant("physics", "pool: whole, guaranteed: 3, limit: 4", parent="science")
    assert rows(department, physics) == [
        Row("science-whole.all", "", 8, 12),
        Row("science-whole", "science-whole.all", 5, 12),
        Row("physics-whole", "science-whole.all", 3, 4),
    ]


def test_depth_counts_the_queues_above_and_only_leaves_take_work() -> None:
    university = tenant("university", "pool: whole, guaranteed: 12", namespaces="")
    department = tenant("science", "pool: whole, guaranteed: 8", parent="university")
    physics = tenant("physics", "pool: whole, guaranteed: 3", parent="science")
    found = queues(platform(university, department, physics))

    assert [(queue.name, queue.depth, queue.takes_work) for queue in found] == [
        ("university-whole", 0, False),
        ("science-whole.all", 1, False),
        ("science-whole", 2, True),
        ("physics-whole", 2, True),
    ]


def test_a_unit_that_only_children_have_comes_on_top_of_the_parents() -> None:
    department = tenant("science", "pool: mig, unit: 2g.20gb, guaranteed: 4, limit: 6", namespaces="")
    physics = tenant("physics", "pool: mig, unit: 1g.10gb, guaranteed: 3, limit: 5", parent="science")
    assert rows(department, physics)[0] == Row("science-mig", "", 4 * 2 + 3, 6 * 2 + 5)


def test_a_grandparent_reaches_pools_that_only_grandchildren_have() -> None:
    top, middle = tenant("top", namespaces=""), tenant("middle", parent="top", namespaces="")
    plan = platform(top, middle, tenant("bottom", "pool: whole, guaranteed: 1", parent="middle"))
    assert [(queue.name, queue.depth, queue.takes_work) for queue in queues(plan)] == [
        ("top-whole", 0, False),
        ("middle-whole", 1, False),
        ("bottom-whole", 2, True),
    ]


def test_nodes_carry_their_shard_where_the_scheduler_has_shards() -> None:
    assert platform().pools[0].labels[NODE_POOL_LABEL] == "mig"
    assert NODE_POOL_LABEL not in platform(scheduler="kueue").pools[0].labels
