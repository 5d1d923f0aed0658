"""Cohorts, ClusterQueues and LocalQueues."""

from __future__ import annotations

import pytest

from tests.compiler.backends.kueue.platform import cells, found, manifests, platform, team, tenant
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool

# --- What is there -----------------------------------------------------------------------------------------------


def test_each_tenant_has_a_queue_and_each_of_its_namespaces_a_way_into_it() -> None:
    plan = platform(
        tenant("research", "namespaces: [lab, papers], quotas: [{pool: shared, guaranteed: 8}]"),
        team("serving", "pool: whole, guaranteed: 4"),
    )
    queues = [item for item in manifests(plan) if item.kind in ("ClusterQueue", "LocalQueue")]
    assert [(item.folder, item.kind, item.name, item.body["spec"].get("clusterQueue")) for item in queues] == [
        ("scheduling", "ClusterQueue", "research", None),
        ("scheduling", "ClusterQueue", "serving", None),
        ("namespaces/lab", "LocalQueue", "default", "research"),
        ("namespaces/papers", "LocalQueue", "default", "research"),
        ("namespaces/serving", "LocalQueue", "default", "serving"),
    ]


def test_a_queue_of_namespaces_by_label_is_open_to_the_label() -> None:
    plan = platform(
        tenant("research", "namespaces: [lab], labelledNamespaces: true, quotas: [{pool: shared, guaranteed: 8}]")
    )
    assert found(plan, "ClusterQueue", "research")["namespaceSelector"] == {
        "matchLabels": {"gpuplan.dev/tenant": "research"}
    }


def test_a_tenant_whose_namespaces_all_are_by_label_has_a_queue() -> None:
    plan = platform(tenant("research", "labelledNamespaces: true, quotas: [{pool: shared, guaranteed: 8}]"))
    assert [item.kind for item in manifests(plan) if "Queue" in item.kind] == ["ClusterQueue"]


def test_a_tenant_without_quotas_has_no_queue() -> None:
    plan = platform(tenant("web", "namespaces: [web]"))
    assert [item.kind for item in manifests(plan) if "Queue" in item.kind] == []


@pytest.mark.parametrize("scheduler", ["kubernetes", "kai", "runai"])
def test_another_scheduler_has_nothing_of_it(scheduler: str) -> None:
    plan = a_plan(f"{a_cluster(f'kind: {scheduler}')}{document('PriorityClass', 'urgent', 'value: 1')}")
    assert manifests(plan) == []


def test_a_queue_tries_a_pool_before_the_one_that_it_falls_back_to() -> None:
    pools = pool("first", "exclusive: {}", "fallback: second") + pool("second")
    quotas = team("research", "pool: second, guaranteed: 4", "pool: first, guaranteed: 4")
    plan = platform(quotas, pools=pools)
    [group] = found(plan, "ClusterQueue", "research")["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["first", "second"]
    assert list(cells(plan, "ClusterQueue", "research")) == [("first", "gpu"), ("second", "gpu")]


# --- A queue -----------------------------------------------------------------------------------------------------


def test_a_queue_as_a_whole() -> None:
    plan = platform(
        team(
            "research",
            "pool: split, unit: 2g.20gb, guaranteed: 4, limit: 12, lendable: 1",
            "pool: shared, guaranteed: 8",
        )
    )
    assert found(plan, "ClusterQueue", "research") == {
        "cohortName": "gpuplan",
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["research"]}]
        },
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu.shared", "nvidia.com/mig-2g.20gb"],
                "flavors": [
                    {
                        "name": "split",
                        "resources": [
                            {"name": "nvidia.com/gpu.shared", "nominalQuota": "0", "borrowingLimit": "0"},
                            {
                                "name": "nvidia.com/mig-2g.20gb",
                                "nominalQuota": "4",
                                "borrowingLimit": "8",
                                "lendingLimit": "1",
                            },
                        ],
                    },
                    {
                        "name": "shared",
                        "resources": [
                            {"name": "nvidia.com/gpu.shared", "nominalQuota": "8", "borrowingLimit": "0"},
                            {"name": "nvidia.com/mig-2g.20gb", "nominalQuota": "0", "borrowingLimit": "0"},
                        ],
                    },
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("quota", "cell"),
    [
        ("guaranteed: 8", ("8", "0", None)),
        ("guaranteed: 8, limit: 8, lendable: 8", ("8", "0", None)),
        ("guaranteed: 8, limit: 20", ("8", "12", None)),
        ("guaranteed: 8, limit: none", ("8", None, None)),
        ("guaranteed: 8, lendable: 0", ("8", "0", "0")),
        ("guaranteed: 0, limit: 32", ("0", "32", None)),
    ],
)
def test_a_quota_is_a_nominal_quota_with_bounds(quota: str, cell: tuple[str, ...]) -> None:
    plan = platform(team("research", f"pool: shared, {quota}"))
    assert cells(plan, "ClusterQueue", "research") == {("shared", "gpu.shared"): cell}


def test_pools_are_tried_in_the_order_of_the_policy() -> None:
    quotas = "pool: whole, guaranteed: 1", "pool: shared, guaranteed: 1"
    plan = platform(team("first", *quotas), team("second", *reversed(quotas)))
    order = [
        [flavor["name"] for flavor in found(plan, "ClusterQueue", name)["resourceGroups"][0]["flavors"]]
        for name in ("first", "second")
    ]
    assert order == [["whole", "shared"], ["shared", "whole"]]


def test_units_of_a_pool_that_have_one_resource_are_one_cell() -> None:
    pool = document(
        "Pool",
        "half",
        "gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 2}, sharing: {mig: {strategy: single, "
        "devices: [{gpus: [0], instances: {3g.40gb: 2}}, {gpus: [1], enabled: false}]}}",
    )
    plan = platform(
        team(
            "research",
            "pool: half, unit: 3g.40gb, guaranteed: 2, lendable: 1",
            "pool: half, unit: gpu, guaranteed: 0, limit: 1",
        ),
        pools=pool,
    )
    assert cells(plan, "ClusterQueue", "research") == {("half", "gpu"): ("2", "1", "1")}


def test_numbers_are_written_as_the_api_server_writes_them_back() -> None:
    plan = platform(team("research", "pool: shared, guaranteed: 3000, limit: 4500"))
    assert cells(plan, "ClusterQueue", "research") == {("shared", "gpu.shared"): ("3k", "1500", None)}


@pytest.mark.parametrize(
    ("weight", "sharing"), [("1", None), ("2", {"weight": "2"}), ("0.5", {"weight": "500m"}), ("0", {"weight": "0"})]
)
def test_a_weight_is_written_unless_it_is_one(weight: str, sharing: dict[str, str] | None) -> None:
    more = f", surplus: {{weight: {weight}}}"
    plan = platform(team("research", "pool: shared, guaranteed: 8", more=more))
    assert found(plan, "ClusterQueue", "research").get("fairSharing") == sharing


HIGH, LOW = document("PriorityClass", "high", "value: 500"), document("PriorityClass", "low", "value: 100")
MEEK = document("PriorityClass", "meek", "value: 700, preempts: false")
SAFE = document("PriorityClass", "safe", "value: 50, preemptible: false")


@pytest.mark.parametrize(
    ("classes", "policy"),
    [("", "Never"), ("high", "Never"), ("high, low", "LowerPriority"), ("meek, low", "Never"), ("high, safe", "Never")],
)
def test_a_queue_evicts_its_own_where_one_of_its_classes_may(classes: str, policy: str) -> None:
    more = f", priorityClasses: [{classes}]"
    plan = platform(HIGH, LOW, MEEK, SAFE, team("research", "pool: shared, guaranteed: 8", more=more))
    assert found(plan, "ClusterQueue", "research")["preemption"]["withinClusterQueue"] == policy


# --- The tree ----------------------------------------------------------------------------------------------------


def test_what_nobody_has_a_guarantee_on_is_the_roots() -> None:
    plan = platform(
        team("research", "pool: shared, guaranteed: 20", "pool: split, unit: 3g.40gb, guaranteed: 16"),
        team("serving", "pool: shared, guaranteed: 8", "pool: whole, guaranteed: 8"),
    )
    assert cells(plan, "Cohort", "gpuplan") == {
        ("shared", "gpu.shared"): ("4", None, None),
        ("shared", "mig-2g.20gb"): ("0", None, None),
        ("split", "gpu.shared"): ("0", None, None),
        ("split", "mig-2g.20gb"): ("32", None, None),
    }


def test_the_root_has_no_quota_where_all_is_guaranteed() -> None:
    pool = document("Pool", "whole", "gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}")
    plan = platform(team("research", "pool: whole, guaranteed: 8"), pools=pool)
    assert found(plan, "Cohort", "gpuplan") == {}


def test_a_parent_has_a_cohort_with_its_bounds_and_what_it_leaves_to_no_child() -> None:
    plan = platform(
        tenant("science", "surplus: {weight: 3}, quotas: [{pool: shared, guaranteed: 20, limit: 24, lendable: 10}]"),
        team("physics", "pool: shared, guaranteed: 8, limit: none", more=", parent: science"),
        team("biology", "pool: shared, guaranteed: 6", more=", parent: science"),
    )
    assert found(plan, "Cohort", "science") == {
        "parentName": "gpuplan",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu.shared"],
                "flavors": [
                    {
                        "name": "shared",
                        "resources": [
                            {
                                "name": "nvidia.com/gpu.shared",
                                "nominalQuota": "6",
                                "borrowingLimit": "4",
                                "lendingLimit": "10",
                            }
                        ],
                    }
                ],
            }
        ],
        "fairSharing": {"weight": "3"},
    }
    assert [found(plan, "ClusterQueue", name)["cohortName"] for name in ("physics", "biology")] == [
        "science",
        "science",
    ]
    assert cells(plan, "Cohort", "gpuplan")["shared", "gpu.shared"] == ("12", None, None)


def test_a_parent_with_namespaces_runs_what_it_leaves_to_no_child() -> None:
    plan = platform(
        team("science", "pool: shared, guaranteed: 20, limit: 24", more=", surplus: {weight: 3}"),
        team("physics", "pool: shared, guaranteed: 8", more=", parent: science"),
    )
    assert cells(plan, "Cohort", "science") == {("shared", "gpu.shared"): ("0", "4", None)}
    assert cells(plan, "ClusterQueue", "science") == {("shared", "gpu.shared"): ("12", None, None)}
    assert found(plan, "ClusterQueue", "science")["cohortName"] == "science"
    assert "fairSharing" not in found(plan, "ClusterQueue", "science")


def test_a_parent_without_quotas_only_groups() -> None:
    plan = platform(tenant("all", ""), team("physics", "pool: shared, guaranteed: 8, limit: 9", more=", parent: all"))
    assert found(plan, "Cohort", "all") == {"parentName": "gpuplan"}
    assert cells(plan, "ClusterQueue", "physics") == {("shared", "gpu.shared"): ("8", "1", None)}


def test_a_cohort_does_not_bound_what_its_tenant_has_no_quota_on() -> None:
    plan = platform(
        tenant("all", "quotas: [{pool: shared, guaranteed: 8}, {pool: split, unit: 2g.20gb, guaranteed: 8}]"),
        team("physics", "pool: shared, guaranteed: 8", more=", parent: all"),
    )
    assert cells(plan, "Cohort", "all") == {
        ("shared", "gpu.shared"): ("0", "0", None),
        ("shared", "mig-2g.20gb"): ("0", None, None),
        ("split", "gpu.shared"): ("0", None, None),
        ("split", "mig-2g.20gb"): ("8", "0", None),
    }


def test_a_guarantee_lies_within_the_nearest_one_above() -> None:
    plan = platform(
        tenant("top", "quotas: [{pool: shared, guaranteed: 20}]"),
        tenant("middle", "parent: top"),
        team("bottom", "pool: shared, guaranteed: 8", more=", parent: middle"),
    )
    assert cells(plan, "Cohort", "top") == {("shared", "gpu.shared"): ("12", "0", None)}
    assert found(plan, "Cohort", "middle") == {"parentName": "top"}


# --- CPU, memory and pods ----------------------------------------------------------------------------------------

SIZED = pool("sized", nodes="count: 2, gpusPerNode: 8, cpu: 68, memory: 544Gi, reserve: {cpu: 4, memory: 32Gi}")
SIZED_TOO = pool("sized-too", nodes="count: 1, gpusPerNode: 8, cpu: 64, memory: 512Gi")


def test_cpu_memory_and_pods_are_counted_in_the_flavor_of_the_pool() -> None:
    quota = "pool: sized, guaranteed: 4, limit: 8, cpu: {guaranteed: 32, limit: 64500m}, memory: 256Gi, pods: 20"
    plan = platform(team("research", quota), pools=SIZED)
    assert cells(plan, "ClusterQueue", "research") == {
        ("sized", "gpu"): ("4", "4", None),
        ("sized", "cpu"): ("32", "32500m", None),
        ("sized", "memory"): ("256Gi", "0", None),
        ("sized", "pods"): ("20", "0", "0"),
    }


def test_what_the_nodes_have_beyond_all_guarantees_is_the_roots() -> None:
    plan = platform(team("research", "pool: sized, guaranteed: 4, cpu: 32, memory: 256Gi"), pools=SIZED)
    free = cells(plan, "Cohort", "gpuplan")
    assert free["sized", "cpu"] == ("96", None, None)
    assert free["sized", "memory"] == ("768Gi", None, None)


def test_what_a_quota_lends_of_its_units_it_lends_of_cpu() -> None:
    plan = platform(team("research", "pool: sized, guaranteed: 4, lendable: 1, cpu: 32"), pools=SIZED)
    assert cells(plan, "ClusterQueue", "research")["sized", "cpu"] == ("32", "0", "8")


def test_a_queue_without_a_bound_has_more_than_there_is_and_lends_none_of_it() -> None:
    """Kueue admits nothing that asks for what its queue does not cover, and counts a resource in all queues or none."""
    bounded = team("research", "pool: sized, guaranteed: 4, cpu: 32", "pool: sized-too, guaranteed: 1")
    other = team("other", "pool: sized, guaranteed: 4")
    plan = platform(bounded, other, pools=SIZED + SIZED_TOO)
    assert cells(plan, "ClusterQueue", "research")["sized-too", "cpu"] == ("1M", None, "0")
    assert cells(plan, "ClusterQueue", "other")["sized", "cpu"] == ("1M", None, "0")
    assert ("sized", "memory") not in cells(plan, "ClusterQueue", "other")


def test_a_child_that_says_nothing_borrows_from_the_parent_that_bounds_it() -> None:
    parent = tenant("dept", "quotas: [{pool: sized, guaranteed: 8, cpu: 64}]")
    child = team("research", "pool: sized, guaranteed: 4", more=", parent: dept")
    plan = platform(parent, child, pools=SIZED)
    assert cells(plan, "Cohort", "dept")["sized", "cpu"] == ("64", "0", None)
    assert cells(plan, "ClusterQueue", "research")["sized", "cpu"] == ("0", None, None)
