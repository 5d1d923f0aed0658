"""Where the leaves of KAI-Scheduler's objects come from."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.backends import kai
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.told import told, told_of_all
from tests.platforms import a_platform, pool, tenant

PARTS = pool("parts", "mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}")
GPU = "spec.resources.gpu"


def platform(*documents: str) -> Plan:
    return a_platform(PARTS, pool("turns", "timeSlicing: {replicas: 4}"), *documents, scheduler="kai")


def told_of(plan: Plan, kind: str, name: str) -> Mapping[str, list[str]]:
    (found,) = [item for item in kai.objects(plan) if (item.kind, item.name) == (kind, name)]
    return told(plan, found)


def whole(plan: Plan, name: str) -> list[str]:
    (found,) = [item for item in kai.objects(plan) if (item.kind, item.name) == ("Queue", name)]
    return told_of_all(plan, found)


def test_a_shard_places_pods_as_its_pool_says() -> None:
    plan = a_platform(pool("a", "exclusive: {}", "placement: binpack"), scheduler="kai")

    assert told_of(plan, "SchedulingShard", "a")["spec.placementStrategy.gpu"] == ["copied Pool/a spec.placement"]


def test_partitions_cost_the_compute_slices_that_the_catalog_knows() -> None:
    found = told_of(
        platform(tenant("lab", "pool: parts, unit: 2g.20gb, guaranteed: 4, limit: 6")), "Queue", "lab-parts"
    )

    assert found[f"{GPU}.quota"] == [
        "chosen by Tenant/lab spec.quotas[0].unit",
        "fact gpuplan/compiler/catalog/data/a100-80gb.yaml mig.profiles[3]",
        "product of Tenant/lab spec.quotas[0].guaranteed",
    ]
    assert "product of Tenant/lab spec.quotas[0].limit" in found[f"{GPU}.limit"]


def test_a_share_costs_a_part_of_a_gpu() -> None:
    found = told_of(platform(tenant("lab", "pool: turns, guaranteed: 4")), "Queue", "lab-turns")

    assert found[f"{GPU}.quota"] == [
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "product of Tenant/lab spec.quotas[0].guaranteed",
    ]


def test_quotas_in_one_pool_add_up() -> None:
    plan = platform(
        tenant("lab", "pool: parts, unit: 2g.20gb, guaranteed: 4", "pool: parts, unit: 1g.10gb, guaranteed: 2")
    )
    found = told_of(plan, "Queue", "lab-parts")[f"{GPU}.quota"]

    assert [source for source in found if source.startswith("sum")] == [
        "sum of Tenant/lab spec.quotas[0].guaranteed",
        "sum of Tenant/lab spec.quotas[1].guaranteed",
    ]


def test_a_limit_of_none_alone_decides_that_there_is_no_bound() -> None:
    plan = platform(tenant("lab", "pool: turns, guaranteed: 4, limit: none"))

    assert told_of(plan, "Queue", "lab-turns")[f"{GPU}.limit"] == [
        "chosen by Tenant/lab spec.quotas[0].pool",
        "copied Tenant/lab spec.quotas[0].limit",
    ]


def test_what_a_tenant_says_of_surplus_and_protection_is_its_queue_s() -> None:
    said = "surplus: {rank: 2, weight: 3}, protect: {preempt: 10m, reclaim: 1h}"
    found = told_of(platform(tenant("lab", "pool: turns, guaranteed: 4", more=said)), "Queue", "lab-turns")

    assert found["spec.priority"] == ["sum of Tenant/lab spec.surplus.rank"]
    assert found["spec.preemptMinRuntime"] == ["copied Tenant/lab spec.protect.preempt"]
    assert found["spec.reclaimMinRuntime"] == ["copied Tenant/lab spec.protect.reclaim"]
    assert found[f"{GPU}.overQuotaWeight"] == ["copied Tenant/lab spec.surplus.weight"]


# --- The tree ----------------------------------------------------------------------------------------------------

SCIENCE = (
    tenant("science", "pool: turns, guaranteed: 8"),
    tenant("physics", "pool: turns, guaranteed: 2", more="parent: science"),
)


def test_the_queue_of_a_tenants_own_work_has_what_its_child_leaves() -> None:
    found = told_of(platform(*SCIENCE), "Queue", "science-turns")

    assert found[f"{GPU}.quota"] == [
        "chosen by Tenant/physics spec.parent",
        "chosen by Tenant/physics spec.quotas[0].pool",
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "sum of Tenant/physics spec.quotas[0].guaranteed",
        "sum of Tenant/science spec.quotas[0].guaranteed",
    ]


def test_the_only_child_decides_that_there_are_two_queues() -> None:
    plan = platform(*SCIENCE)

    assert "chosen by Tenant/physics spec.parent" in whole(plan, "science-turns")
    assert "chosen by Tenant/physics spec.parent" in whole(plan, "science-turns.all")
    assert "chosen by Tenant/science spec.quotas[0].pool" not in whole(plan, "science-turns.all")


def test_a_tenant_without_quotas_has_a_queue_because_of_its_only_child() -> None:
    child = tenant("physics", "pool: turns, guaranteed: 2", more="parent: science")
    plan = platform(tenant("science", namespaces=""), child)

    assert whole(plan, "science-turns") == [
        "chosen by Cluster/test metadata.name",
        "chosen by Cluster/test spec.scheduler.kind",
        "chosen by Pool/turns metadata.name",
        "chosen by Tenant/physics spec.parent",
        "chosen by Tenant/physics spec.quotas[0].pool",
        "chosen by Tenant/science metadata.name",
    ]
