"""Where the requests to Run:ai come from."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.backends import runai
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.told import told, told_of_all
from tests.plans import a_cluster, a_plan
from tests.platforms import pool, tenant

CLUSTER = a_cluster("kind: runai, runai: {clusterId: 71f69d83-ba66-4822-adf5-55ce55efd210}")
TURNS = pool("turns", "timeSlicing: {replicas: 4}", "placement: spread")


def platform(*documents: str) -> Plan:
    return a_plan("".join((CLUSTER, TURNS, *documents)))


def told_of(plan: Plan, path: str) -> Mapping[str, list[str]]:
    (found,) = [item for item in runai.render(plan) if item.path == f"scheduling/runai/{path}"]
    return told(plan, found)


def test_a_request_is_there_because_of_the_scheduler_and_what_it_is_of() -> None:
    plan = platform(tenant("lab", "pool: turns, guaranteed: 4"))
    (found,) = [item for item in runai.render(plan) if item.path.endswith("departments/lab.json")]

    assert told_of_all(plan, found) == [
        "chosen by Cluster/test metadata.name",
        "chosen by Cluster/test spec.scheduler.kind",
        "chosen by Tenant/lab metadata.name",
    ]


def test_a_node_pool_says_which_cluster_and_which_nodes() -> None:
    found = told_of(platform(), "node-pools/turns.json")

    assert found["clusterId"] == ["copied Cluster/test spec.scheduler.runai.clusterId"]
    assert found["labelValue"] == ["copied Pool/turns metadata.name"]
    assert found["schedulingConfiguration.placementStrategy.gpu"] == ["copied Pool/turns spec.placement"]


def test_shares_cost_a_part_of_a_gpu() -> None:
    plan = platform(tenant("lab", "pool: turns, guaranteed: 4, limit: 8", more="surplus: {weight: 2}"))
    found = told_of(plan, "departments/lab.json")

    assert found["resources[0].gpu.deserved"] == [
        "chosen by Tenant/lab spec.quotas[0].pool",
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "product of Tenant/lab spec.quotas[0].guaranteed",
    ]
    assert found["resources[0].gpu.limit"] == [
        "chosen by Tenant/lab spec.quotas[0].pool",
        "chosen by Tenant/lab spec.surplus.weight",
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "product of Tenant/lab spec.quotas[0].limit",
    ]
    assert found["resources[0].gpu.overQuotaWeight"] == ["copied Tenant/lab spec.surplus.weight"]


def test_a_department_has_what_its_children_have_of_units_that_it_says_nothing_of() -> None:
    child = tenant("physics", "pool: turns, guaranteed: 4", more="parent: science")
    found = told_of(platform(tenant("science", namespaces=""), child), "departments/science.json")

    assert found["resources[0].gpu.deserved"] == [
        "chosen by Tenant/physics spec.parent",
        "chosen by Tenant/physics spec.quotas[0].pool",
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "product of Tenant/physics spec.quotas[0].guaranteed",
    ]


def test_a_namespace_has_a_part_as_the_split_says() -> None:
    lab = tenant("lab", "pool: turns, guaranteed: 4, split: {a: 3, b: 1}", namespaces="a, b")
    found = told_of(platform(lab), "projects/b.json")

    assert [source for source in found["resources[0].gpu.deserved"] if "split" in source] == [
        "product of Tenant/lab spec.quotas[0].split.a",
        "product of Tenant/lab spec.quotas[0].split.b",
    ]


def test_ranks_nearer_to_zero_decide_what_a_rank_is_called() -> None:
    plan = platform(
        tenant("high", "pool: turns, guaranteed: 1", more="surplus: {rank: 5}"),
        tenant("low", "pool: turns, guaranteed: 1", more="surplus: {rank: -5}"),
        tenant("middle", "pool: turns, guaranteed: 1", more="surplus: {rank: 2}"),
    )

    assert told_of(plan, "departments/high.json")["resources[0].rank"] == [
        "chosen by Tenant/high spec.surplus.rank",
        "chosen by Tenant/middle spec.surplus.rank",
    ]


def test_a_row_of_the_page_tells_of_the_department_that_a_project_is_in() -> None:
    child = tenant("physics", "pool: turns, guaranteed: 4", more="parent: science")
    plan = platform(tenant("science", namespaces=""), child)
    (page,) = [item for item in runai.render(plan) if item.path.endswith("README.md")]
    row = (
        page.data.decode()
        .splitlines()
        .index("| `projects/physics.json` | `POST /api/v1/org-unit/projects` | nodePool.id, parentId of `science` |")
    )

    assert {"copied Tenant/science metadata.name", "chosen by Tenant/physics spec.parent"} <= set(
        told_of(plan, "README.md")[f"[{row}]"]
    )
