"""Where the leaves of Kueue's objects come from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.kueue.platform import files, manifests, platform, policy, team, tenant
from tests.laws.tracing.told import told, told_of_all
from tests.platforms import pool, priority_class

QUEUES = "spec.resourceGroups[0]"


def told_of(plan: Plan, kind: str, name: str) -> Mapping[str, list[str]]:
    (found,) = [item for item in manifests(plan) if (item.kind, item.name) == (kind, name)]
    return told(plan, found)


def whole(plan: Plan, kind: str, name: str) -> list[str]:
    (found,) = [item for item in manifests(plan) if (item.kind, item.name) == (kind, name)]
    return told_of_all(plan, found)


def cell(plan: Plan, kind: str, name: str, field: str, flavor: int = 0, resource: int = 0) -> list[str]:
    return told_of(plan, kind, name)[f"{QUEUES}.flavors[{flavor}].resources[{resource}].{field}"]


def test_the_scheduler_decides_that_there_are_such_objects() -> None:
    plan = platform(team("lab", "pool: whole, guaranteed: 2"))

    assert "chosen by Cluster/test spec.scheduler.kind" in whole(plan, "ClusterQueue", "lab")
    assert "chosen by Tenant/lab metadata.name" in whole(plan, "ClusterQueue", "lab")


# --- Queues ------------------------------------------------------------------------------------------------------


def test_what_a_single_quota_says_is_copied() -> None:
    plan = platform(team("lab", "pool: whole, guaranteed: 2, limit: 6, lendable: 1"))

    assert cell(plan, "ClusterQueue", "lab", "nominalQuota") == ["copied Tenant/lab spec.quotas[0].guaranteed"]
    assert cell(plan, "ClusterQueue", "lab", "borrowingLimit") == [
        "sum of Tenant/lab spec.quotas[0].guaranteed",
        "sum of Tenant/lab spec.quotas[0].limit",
    ]
    assert cell(plan, "ClusterQueue", "lab", "lendingLimit") == [
        "chosen by Tenant/lab spec.quotas[0].guaranteed",
        "copied Tenant/lab spec.quotas[0].lendable",
    ]


def test_without_a_limit_nothing_decides_that_nothing_is_borrowed() -> None:
    plan = platform(team("lab", "pool: whole, guaranteed: 2"))

    assert cell(plan, "ClusterQueue", "lab", "borrowingLimit") == []


def test_a_flavor_is_called_like_the_pool_that_the_quota_names() -> None:
    plan = platform(team("lab", "pool: whole, guaranteed: 2"))

    assert told_of(plan, "ClusterQueue", "lab")[f"{QUEUES}.flavors[0].name"] == [
        "copied Pool/whole metadata.name",
        "copied Tenant/lab spec.quotas[0].pool",
    ]


def test_of_two_quotas_on_a_pool_the_first_decides_where_its_flavor_is() -> None:
    plan = platform(
        team("lab", "pool: split, unit: 3g.40gb, guaranteed: 2", "pool: split, unit: 2g.20gb, guaranteed: 4")
    )
    found = told_of(plan, "ClusterQueue", "lab")

    assert found[f"{QUEUES}.flavors[0].name"] == [
        "chosen by Tenant/lab spec.quotas[0].pool",
        "copied Pool/split metadata.name",
    ]
    assert found[f"{QUEUES}.coveredResources[1]"] == [
        "chosen by Tenant/lab spec.quotas[0].unit",
        "order of Tenant/lab spec.quotas[1].unit",
    ]


def test_namespaces_are_in_the_order_of_their_names() -> None:
    plan = platform(tenant("lab", "namespaces: [z, a], quotas: [{pool: whole, guaranteed: 2}]"))

    assert told_of(plan, "ClusterQueue", "lab")["spec.namespaceSelector.matchExpressions[0].values[0]"] == [
        "copied Tenant/lab spec.namespaces[1]",
        "order of Tenant/lab spec.namespaces[0]",
        "order of Tenant/lab spec.namespaces[1]",
    ]


WITHIN = "spec.preemption.withinClusterQueue"


def test_a_queue_evicts_within_because_of_the_classes_that_would_change_it() -> None:
    plan = platform(
        priority_class("high", 100, "preemptible: false, preempts: true"),
        priority_class("low", 10, "preemptible: true, preempts: false"),
        team("lab", "pool: whole, guaranteed: 2", more="priorityClasses: [high, low]"),
    )

    assert told_of(plan, "ClusterQueue", "lab")[WITHIN] == [
        "chosen by PriorityClass/high spec.preempts",
        "chosen by PriorityClass/high spec.value",
        "chosen by PriorityClass/low spec.preemptible",
        "chosen by PriorityClass/low spec.value",
    ]


def test_a_single_class_decides_nothing_within_a_queue() -> None:
    plan = platform(
        priority_class("high", 100, "preempts: true"),
        team("lab", "pool: whole, guaranteed: 2", more="priorityClasses: [high]"),
    )

    assert told_of(plan, "ClusterQueue", "lab")[WITHIN] == []


# --- The tree ----------------------------------------------------------------------------------------------------

DEPARTMENT = (
    tenant("science", "quotas: [{pool: whole, guaranteed: 6, limit: 8}], surplus: {weight: 2}"),
    tenant("physics", "namespaces: [physics], parent: science, quotas: [{pool: whole, guaranteed: 4}]"),
)


def test_a_cohort_has_what_its_members_leave_of_the_guarantee() -> None:
    plan = platform(*DEPARTMENT)

    assert cell(plan, "Cohort", "science", "nominalQuota") == [
        "chosen by Tenant/physics spec.parent",
        "chosen by Tenant/physics spec.quotas[0].pool",
        "sum of Tenant/physics spec.quotas[0].guaranteed",
        "sum of Tenant/science spec.quotas[0].guaranteed",
    ]


def test_the_only_child_decides_that_there_is_a_cohort() -> None:
    plan = platform(*DEPARTMENT)

    assert "chosen by Tenant/physics spec.parent" in whole(plan, "Cohort", "science")
    assert told_of(plan, "Cohort", "science")["spec.fairSharing.weight"] == [
        "copied Tenant/science spec.surplus.weight"
    ]
    assert told_of(plan, "ClusterQueue", "physics")["spec.cohortName"] == [
        "copied Tenant/physics spec.parent",
        "copied Tenant/science metadata.name",
    ]


def test_of_two_children_none_alone_decides_that_there_is_a_cohort() -> None:
    plan = platform(*DEPARTMENT, tenant("biology", "namespaces: [biology], parent: science"))

    assert not [source for source in whole(plan, "Cohort", "science") if source.endswith("spec.parent")]


# --- What is nobody's --------------------------------------------------------------------------------------------


def test_what_is_free_is_the_capacity_less_all_guarantees() -> None:
    pools = pool("turns", "timeSlicing: {replicas: 4}", nodes="count: 1, gpusPerNode: 8")
    plan = platform(team("lab", "pool: turns, guaranteed: 10"), team("ops", "pool: turns, guaranteed: 2"), pools=pools)

    assert cell(plan, "Cohort", "gpuplan", "nominalQuota") == [
        "chosen by Tenant/lab spec.quotas[0].pool",
        "chosen by Tenant/ops spec.quotas[0].pool",
        "product of Pool/turns spec.nodes.count",
        "product of Pool/turns spec.nodes.gpusPerNode",
        "product of Pool/turns spec.sharing.timeSlicing.replicas",
        "sum of Tenant/lab spec.quotas[0].guaranteed",
        "sum of Tenant/ops spec.quotas[0].guaranteed",
    ]


def test_a_pool_of_which_nothing_is_free_would_come_first() -> None:
    pools = pool("a", nodes="count: 1, gpusPerNode: 8") + pool("b", nodes="count: 1, gpusPerNode: 8")
    plan = platform(team("lab", "pool: a, guaranteed: 8"), pools=pools)

    assert [source for source in cell(plan, "Cohort", "gpuplan", "nominalQuota") if source.startswith("order")] == [
        "order of Pool/a spec.nodes.count",
        "order of Pool/a spec.nodes.gpusPerNode",
        "order of Tenant/lab spec.quotas[0].guaranteed",
        "order of Tenant/lab spec.quotas[0].pool",
    ]


# --- Pools, and what is the cluster's ----------------------------------------------------------------------------


def test_a_flavor_tolerates_what_its_pool_says() -> None:
    pools = pool("a", "exclusive: {}", "taints: [{key: x/y, value: v, effect: NoSchedule}]")
    found = told_of(platform(pools=pools), "ResourceFlavor", "a")

    assert found["spec.tolerations[0].key"] == ["copied Pool/a spec.taints[0].key"]
    assert found["spec.tolerations[0].operator"] == ["chosen by Pool/a spec.taints[0].value"]


@pytest.mark.parametrize("kind", ["Topology", "ResourceFlavor"])
def test_a_topology_is_called_like_its_pool(kind: str) -> None:
    plan = platform(pools=pool("a", "exclusive: {}", "topology: [example.com/rack, kubernetes.io/hostname]"))

    assert told_of(plan, kind, "a")["metadata.name"] == ["copied Pool/a metadata.name"]


def test_the_values_of_classes_decide_which_labels_are_harmless() -> None:
    classes = priority_class("base", 50, "default: true") + priority_class("low", 10) + priority_class("high", 90)
    plan = platform(classes)
    found = told(plan, policy(plan))

    assert found["spec.validations[0].expression"] == [
        "chosen by PriorityClass/base spec.default",
        "chosen by PriorityClass/base spec.value",
        "chosen by PriorityClass/high spec.value",
        "chosen by PriorityClass/low spec.value",
        "copied PriorityClass/base metadata.name",
        "copied PriorityClass/base spec.value",
        "copied PriorityClass/low metadata.name",
    ]


def test_the_configuration_waits_for_pods_because_there_are_gangs() -> None:
    work = (
        "---\napiVersion: gpuplan.dev/v1\nkind: Workload\nmetadata: {name: work}\n"
        "spec: {tenant: lab, pool: whole, training: {pods: 2, gang: 2}, image: 'i.example/x:1'}\n"
    )
    plan = platform(team("lab", "pool: whole, guaranteed: 2"), work)
    (file,) = files(plan)

    assert told(plan, file)["waitForPodsReady.timeout"] == ["chosen by Workload/work spec.training.gang"]
