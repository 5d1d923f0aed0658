"""What is sent to Run:ai: by value, and adding up to the policy."""

from __future__ import annotations

import json
from fractions import Fraction as Ratio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.backends import runai
from gpuplan.compiler.planning.amounts import portion_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.projects import ranks
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool

CLUSTER = a_cluster("kind: runai, runai: {clusterId: 71f69d83-ba66-4822-adf5-55ce55efd210}")
POOLS = "".join(
    (
        pool("whole", "exclusive: {}", "placement: binpack", gpu="H100-80GB", nodes="count: 2, gpusPerNode: 8"),
        pool("parts", "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}", nodes="count: 1, gpusPerNode: 8"),
        pool("fractions", "fraction: {}", nodes="count: 1, gpusPerNode: 8"),
    )
)


def a_tenant(name: str, quotas: str = "", more: str = "", namespaces: str | None = None) -> str:
    listed = name if namespaces is None else namespaces
    return document("Tenant", name, f"namespaces: [{listed}]", f"quotas: [{quotas}]{more}")


def files(*documents: str, cluster: str = CLUSTER) -> dict[str, bytes]:
    return {item.path: item.data for item in runai.render(plan_of(*documents, cluster=cluster))}


def plan_of(*documents: str, cluster: str = CLUSTER) -> Plan:
    return a_plan(cluster + POOLS + "".join(documents))


def body(path: str, *documents: str, cluster: str = CLUSTER) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(*documents, cluster=cluster)[f"scheduling/runai/{path}.json"])
    return found


def gpu(path: str, pool_name: str, *documents: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        item["gpu"] for item in body(path, *documents)["resources"] if item["nodePool"]["name"] == pool_name
    )
    return found


def test_other_schedulers_are_sent_nothing() -> None:
    assert files(cluster=a_cluster("kind: kai")) == {}


def test_a_node_pool_is_the_nodes_with_the_label() -> None:
    assert body("node-pools/whole") == {
        "clusterId": "71f69d83-ba66-4822-adf5-55ce55efd210",
        "name": "whole",
        "labelKey": "gpuplan.dev/pool",
        "labelValue": "whole",
        "schedulingConfiguration": {"placementStrategy": {"cpu": "binpack", "gpu": "binpack"}},
    }


TIMES = "timeLimits: {workspaces: {run: 12h, idle: 90m, preemptibleIdle: 30m}, trainings: {run: 72h, idle: 2h30m}}"
RULES = {
    "interactiveJobTimeLimitSeconds": 43200,
    "interactiveJobMaxIdleDurationSeconds": 5400,
    "interactiveJobPreemptIdleDurationSeconds": 1800,
    "trainingJobTimeLimitSeconds": 259200,
    "trainingJobMaxIdleDurationSeconds": 9000,
}


def test_the_time_of_a_tenants_work_is_bounded_in_its_department_and_its_projects() -> None:
    lab = document("Tenant", "lab", "namespaces: [one, two]", TIMES)
    found = [body(path, lab) for path in ("departments/lab", "projects/one", "projects/two")]
    assert [item["schedulingRules"] for item in found] == [RULES, RULES, RULES]


def test_a_tenant_within_another_has_times_of_its_own() -> None:
    lab = document("Tenant", "lab", "namespaces: []", "timeLimits: {trainings: {run: 1h}}")
    team = document("Tenant", "team", "namespaces: [team]", "parent: lab")
    assert body("departments/lab", lab, team)["schedulingRules"] == {"trainingJobTimeLimitSeconds": 3600}
    assert "schedulingRules" not in body("projects/team", lab, team)


def test_a_node_pool_protects_as_long_as_anybody_asks() -> None:
    tenants = (
        a_tenant("a", "{pool: parts, unit: 3g.40gb, guaranteed: 1}", ", protect: {preempt: 30m}"),
        a_tenant("b", "{pool: parts, unit: 3g.40gb, guaranteed: 1}", ", protect: {reclaim: 26h}"),
    )
    assert body("node-pools/parts", *tenants)["schedulingConfiguration"] == {"minGuaranteedRuntime": "1d2h"}
    assert "schedulingConfiguration" not in body("node-pools/fractions", *tenants)


def test_a_project_is_a_namespace_with_a_number_for_every_pool() -> None:
    tenant = a_tenant(
        "vision", "{pool: whole, guaranteed: 4, limit: 8}", ", surplus: {weight: 2, rank: 10}", "vision-lab"
    )
    assert body("projects/vision-lab", tenant) == {
        "clusterId": "71f69d83-ba66-4822-adf5-55ce55efd210",
        "name": "vision-lab",
        "requestedNamespace": "vision-lab",
        "defaultNodePools": ["whole"],
        "resources": [
            {
                "nodePool": {"name": name},
                "gpu": {"deserved": deserved, "limit": limit, "overQuotaWeight": 2},
                "rank": "Medium",
            }
            for name, deserved, limit in (("fractions", 0, 0), ("parts", 0, 0), ("whole", 4, 8))
        ],
    }
    assert body("departments/vision", tenant)["resources"] == body("projects/vision-lab", tenant)["resources"]


def test_partitions_cost_their_compute_slices() -> None:
    quotas = "{pool: parts, unit: 3g.40gb, guaranteed: 2}, {pool: parts, unit: 2g.20gb, guaranteed: 4, limit: 8}"

    assert gpu("projects/a", "parts", a_tenant("a", quotas)) == {"deserved": 14, "limit": 22, "overQuotaWeight": 1}


def test_fractions_are_counted_in_gpus() -> None:
    quota = "{pool: fractions, guaranteed: 1.5, limit: none}"

    assert gpu("projects/a", "fractions", a_tenant("a", quota)) == {
        "deserved": 1.5,
        "limit": None,
        "overQuotaWeight": 1,
    }


def test_without_a_weight_there_is_no_surplus() -> None:
    tenant = a_tenant("a", "{pool: whole, guaranteed: 4, limit: 8}", ", surplus: {weight: 0}")

    assert gpu("projects/a", "whole", tenant) == {"deserved": 4, "limit": 4}


def test_a_department_has_what_its_parts_have() -> None:
    tenants = (
        a_tenant("lab", namespaces=""),
        a_tenant("a", "{pool: whole, guaranteed: 4, limit: 8}", ", parent: lab"),
        a_tenant("b", "{pool: whole, guaranteed: 2}", ", parent: lab"),
    )
    assert gpu("departments/lab", "whole", *tenants) == {"deserved": 6, "limit": 10, "overQuotaWeight": 1}
    assert "scheduling/runai/departments/a.json" not in files(*tenants)


def test_a_department_with_a_quota_has_that_and_its_own_pods_the_rest() -> None:
    tenants = (
        a_tenant("lab", "{pool: whole, guaranteed: 10, limit: 12}"),
        a_tenant("a", "{pool: whole, guaranteed: 4, limit: 8}", ", parent: lab"),
    )
    assert gpu("departments/lab", "whole", *tenants)["deserved"] == 10
    assert gpu("projects/lab", "whole", *tenants) == {"deserved": 6, "limit": 12, "overQuotaWeight": 1}


def test_several_namespaces_divide_as_the_split_says() -> None:
    tenant = a_tenant("a", "{pool: whole, guaranteed: 5, limit: 10, split: {one: 7, two: 3}}", namespaces="one, two")
    assert (gpu("projects/one", "whole", tenant), gpu("projects/two", "whole", tenant)) == (
        {"deserved": 4, "limit": 7, "overQuotaWeight": 1},
        {"deserved": 1, "limit": 3, "overQuotaWeight": 1},
    )


def test_fractions_are_divided_to_the_hundredth() -> None:
    tenant = a_tenant(
        "a",
        "{pool: fractions, guaranteed: 1, limit: 3, split: {one: 1, two: 1, three: 1}}",
        namespaces="one, two, three",
    )
    assert [gpu(f"projects/{name}", "fractions", tenant)["deserved"] for name in ("one", "two", "three")] == [
        0.34,
        0.33,
        0.33,
    ]


def test_a_policy_bounds_what_a_container_asks_for() -> None:
    tenant = a_tenant("a", "{pool: whole, guaranteed: 4}", ", allow: {unitsPerContainer: 2}")

    assert body("policies/a", tenant) == {
        "meta": {"name": "a", "scope": "project"},
        "policy": {"rules": {"compute": {"gpuDevicesRequest": {"max": 2}}}},
    }
    assert "scheduling/runai/policies/a.json" not in files(a_tenant("a", "{pool: whole, guaranteed: 4}"))


def test_the_guide_lists_requests_in_the_order_in_which_they_work() -> None:
    tenant = a_tenant("a", "{pool: whole, guaranteed: 4}", ", allow: {unitsPerContainer: 2}")
    rows = [line for line in _guide(tenant).splitlines() if line.startswith("| `")]

    assert rows == [
        "| `node-pools/fractions.json` | `POST /api/v1/node-pools` | - |",
        "| `node-pools/parts.json` | `POST /api/v1/node-pools` | - |",
        "| `node-pools/whole.json` | `POST /api/v1/node-pools` | - |",
        "| `departments/a.json` | `POST /api/v1/org-unit/departments` | nodePool.id |",
        "| `projects/a.json` | `POST /api/v1/org-unit/projects` | nodePool.id, parentId of `a` |",
        "| `policies/a.json` | `PUT /api/v2/policy/workspaces` | meta.projectId of `a` |",
        "| `policies/a.json` | `PUT /api/v2/policy/trainings` | meta.projectId of `a` |",
        "| `policies/a.json` | `PUT /api/v2/policy/inferences` | meta.projectId of `a` |",
    ]


def test_a_cluster_without_an_id_leaves_it_to_the_sender() -> None:
    cluster = a_cluster("kind: runai")

    assert "clusterId" not in body("node-pools/whole", cluster=cluster)
    assert "| `node-pools/whole.json` | `POST /api/v1/node-pools` | clusterId |" in _guide(cluster=cluster)


def test_a_topology_is_asked_for() -> None:
    racks = pool("racks", "exclusive: {}", "topology: [example.com/block, example.com/rack]", gpu="H100-80GB")
    assert "Node pool `racks` needs a network topology of `example.com/block`, `example.com/rack`" in _guide(racks)


def _guide(*documents: str, cluster: str = CLUSTER) -> str:
    return files(*documents, cluster=cluster)["scheduling/runai/README.md"].decode()


def test_a_file_is_sent_three_times_and_written_once() -> None:
    tenant = a_tenant("a", "{pool: whole, guaranteed: 4}", ", allow: {unitsPerContainer: 2}")
    paths = [item.path for item in runai.render(plan_of(tenant))]

    assert len(paths) == len(set(paths))


def test_ranks_keep_their_order() -> None:
    tenants = [
        a_tenant(f"t{index}", more=f", surplus: {{rank: {rank}}}") for index, rank in enumerate((-5, -1, 0, 1, 7, 100))
    ]
    assert ranks(plan_of(*tenants).tenants) == {
        -5: "VeryLow",
        -1: "Low",
        0: "MediumLow",
        1: "Medium",
        7: "MediumHigh",
        100: "High",
    }


def test_ranks_that_are_too_many_share_the_last_name_on_their_side() -> None:
    tenants = [
        a_tenant(f"t{index}", more=f", surplus: {{rank: {rank}}}")
        for index, rank in enumerate((-9, -8, -7, 1, 2, 3, 4, 5))
    ]
    assert ranks(plan_of(*tenants).tenants) == {
        -9: "VeryLow",
        -8: "VeryLow",
        -7: "Low",
        0: "MediumLow",
        1: "Medium",
        2: "MediumHigh",
        3: "High",
        4: "VeryHigh",
        5: "VeryHigh",
    }


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("0s", "0m"),
        ("1s", "1m"),
        ("60s", "1m"),
        ("61s", "2m"),
        ("59m", "59m"),
        ("90m", "1h30m"),
        ("24h", "1d"),
        ("25h1m", "1d1h1m"),
    ],
)
def test_a_duration_is_sent_in_days_hours_and_minutes(written: str, sent: str) -> None:
    tenant = a_tenant("a", "{pool: parts, unit: 3g.40gb, guaranteed: 1}", f", protect: {{preempt: {written}}}")
    assert body("node-pools/parts", tenant)["schedulingConfiguration"] == {"minGuaranteedRuntime": sent}


@given(st.integers(0, 1000), st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any))
def test_parts_add_up_and_are_never_one_off(amount: int, weights: list[int]) -> None:
    named = {str(index): Ratio(weight) for index, weight in enumerate(weights)}
    total = sum(named.values(), Ratio(0))
    parts = portion_of(amount, named, total)

    assert sum(parts.values()) == amount
    assert all(abs(parts[name] - amount * weight / total) < 1 for name, weight in named.items())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4), st.integers(0, 5))
def test_what_projects_deserve_adds_up_to_what_is_guaranteed(children: list[tuple[int, int]], own: int) -> None:
    guaranteed = own + sum(large for large, _ in children)
    tenants = [
        a_tenant("lab", f"{{pool: parts, unit: 3g.40gb, guaranteed: {guaranteed}}}"),
        *(
            a_tenant(
                f"t{index}",
                f"{{pool: parts, unit: 3g.40gb, guaranteed: {large}, limit: 9}}, "
                f"{{pool: parts, unit: 2g.20gb, guaranteed: {small}, limit: 9}}",
                ", parent: lab",
            )
            for index, (large, small) in enumerate(children)
        ),
    ]
    bodies = {path: json.loads(data) for path, data in files(*tenants).items() if path.endswith(".json")}
    deserved = sum(
        item["gpu"]["deserved"]
        for path, found in bodies.items()
        if "/projects/" in path
        for item in found["resources"]
        if item["nodePool"]["name"] == "parts"
    )
    assert deserved == 3 * guaranteed + 2 * sum(small for _, small in children)
