"""The sharing strategy: pools that take turns, pools that are partitioned, priorities and quotas."""

from __future__ import annotations

from fractions import Fraction as Ratio
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler import catalog
from gpuplan.compiler.pipeline import validate
from gpuplan.compiler.planning.prices import costs, saved
from tests.platforms.seeds.platforms import SEEDS, an_object, built, container, document, findings

NAME = "sharing-strategy"


def plugin(key: str) -> Any:
    #: device-plugin-config
    data = an_object(NAME, "kubernetes", "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    return yaml.safe_load(data[key])["sharing"]["timeSlicing"]["resources"]


@pytest.mark.parametrize(
    ("pool", "replicas"),
    [
        ("a100-shared", 3),  #: 3 replicas
        ("h100-shared", 2),  #: 2 replicas
    ],
)
def test_replicas_per_gpu(pool: str, replicas: int) -> None:
    assert plugin(pool) == [{"name": "nvidia.com/gpu", "replicas": replicas}]


@pytest.mark.parametrize(
    ("pool", "memory"),
    [
        ("a100-shared", 26),  #: ~26GB
        ("h100-shared", 40),  #: ~40GB
    ],
)
def test_memory_of_a_replica_is_what_the_document_reckons(pool: str, memory: int) -> None:
    #: no isolation
    [plan] = validate(SEEDS / NAME, ("kubernetes",), kustomize="off").plans
    [unit] = next(found for found in plan.pools if found.name == pool).units
    assert unit.memory_mib is not None
    assert unit.memory_mib // 1024 == pytest.approx(memory, abs=1)
    assert str(unit.isolation) == "none"


@pytest.mark.parametrize(
    ("pool", "instances"),
    [
        ("production", {"3g.40gb": 1, "2g.20gb": 2}),  #: option 4 is used
        ("agents", {"2g.20gb": 3, "1g.10gb": 1}),
        ("small", {"1g.10gb": 7}),
    ],
)
def test_a_pool_has_the_option_that_it_names(pool: str, instances: dict[str, int]) -> None:
    #: a profile for each pool of nodes
    rule = an_object(NAME, "kubernetes", f"partitions/{pool}/nodefeaturerule-gpuplan-pool-{pool}.yaml")
    chosen = rule["spec"]["rules"][0]["labels"]["nvidia.com/mig.config"]
    data = an_object(NAME, "kubernetes", "gpu-operator/configmap-gpuplan-mig-parted-*.yaml")["data"]
    layouts = yaml.safe_load(data["config.yaml"])["mig-configs"]
    assert layouts[chosen] == [{"devices": "all", "mig-enabled": True, "mig-devices": instances}]


def test_option_three_does_not_fit(tmp_path: Path) -> None:
    #: option 3
    change = document("MigLayout", "option-4", "instances: {3g.40gb: 2, 1g.10gb: 1, 2g.20gb: null}")
    assert "GPU203" in {item.code for item in findings(NAME, "kubernetes", change, tmp_path)}


@pytest.mark.parametrize(("name", "value"), [("production-inference", 1000), ("training", 500), ("research", 100)])
def test_priorities_are_those_of_the_document(name: str, value: int) -> None:
    body = an_object(NAME, "kubernetes", f"scheduling/priorityclass-{name}.yaml")
    assert (body["value"], body.get("globalDefault", False)) == (value, False)


def test_the_quota_counts_what_pods_ask_for() -> None:
    """`limits.nvidia.com/gpu`, as the document has it, counts nothing: a pod's limits are its requests."""
    #: limits of 10
    hard = an_object(NAME, "kubernetes", "namespaces/production/resourcequota-gpuplan.yaml")["spec"]["hard"]
    assert hard["requests.nvidia.com/mig-3g.40gb"] == "10"
    assert hard["requests.nvidia.com/gpu"] == "0"


def test_a_partition_is_asked_for_by_its_profile() -> None:
    """Not by `nvidia.com/gpu`, as the document has it: a layout of two profiles publishes none."""
    body = an_object(NAME, "kubernetes", "workloads/production/deployment-llm.yaml")
    assert container(body)["resources"]["limits"] == {"nvidia.com/mig-3g.40gb": "1"}
    tolerated = body["spec"]["template"]["spec"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Equal", "value": "mig", "effect": "NoSchedule"} in tolerated


def test_production_is_disturbed_in_its_window_alone() -> None:
    project = yaml.safe_load(built(NAME, "kubernetes").tree["argocd/kubernetes/appproject-gpuplan-kubernetes.yaml"])
    [window] = project["spec"]["syncWindows"]
    assert (window["schedule"], window["duration"], window["timeZone"]) == ("0 2 * * 6", "4h", "Europe/Berlin")


@pytest.mark.parametrize(
    ("pool", "ids"),
    [
        ("a100-shared", ["20b2", "20b5", "20f3", "20f5"]),  #: time-slicing of A100 and H100
        ("production", ["20b2", "20b5", "20f3", "20f5"]),  #: MIG of A100 80GB
    ],
)
def test_only_nodes_with_the_board_are_labelled(pool: str, ids: list[str]) -> None:
    rule = an_object(NAME, "kubernetes", f"partitions/{pool}/nodefeaturerule-gpuplan-pool-{pool}.yaml")
    _, device = rule["spec"]["rules"][0]["matchFeatures"]
    assert device["matchExpressions"]["device"] == {"op": "In", "value": ids}


def test_labels_of_one_s_own_are_for_the_node_groups() -> None:
    groups = an_object(NAME, "own-labels", "partitions/node-groups.yaml")["nodeGroups"]
    [production] = [group for group in groups if group["pool"] == "production"]
    assert production["labels"]["workload-type"] == "production-inference"
    assert production["labels"]["mig-profile"] == "3g.40gb"


def test_labels_without_a_prefix_are_refused_where_nfd_sets_them(tmp_path: Path) -> None:
    change = document("Pool", "production", "nodeLabels: {mig-profile: 3g.40gb}")
    assert "GPU151" in {item.code for item in findings(NAME, "kubernetes", change, tmp_path)}


@pytest.mark.parametrize(
    ("profile", "memory", "sevenths"),
    [
        ("1g.10gb", 10, 1),  #: 1g.10gb is 1/7
        ("2g.20gb", 20, 2),  #: 2g.20gb is 2/7
        ("3g.40gb", 40, 3),  #: 3g.40gb is 3/7
    ],
)
def test_a_profile_has_the_memory_and_compute_of_the_table(profile: str, memory: int, sevenths: int) -> None:
    gpu = catalog.load().find("A100-80GB")
    found = gpu.find_profile(profile) if gpu else None
    assert found is not None
    assert found.compute_slices == sevenths
    assert found.memory_gib == pytest.approx(memory, abs=1)


@pytest.mark.parametrize(
    ("pool", "unit"),
    [
        ("production", "3g.40gb"),  #: 3g.40gb is handed out
        ("agents", "2g.20gb"),  #: 2g.20gb is handed out
        ("small", "1g.10gb"),  #: 1g.10gb is handed out
    ],
)
def test_a_pool_hands_out_what_it_is_called_after(pool: str, unit: str) -> None:
    [plan] = validate(SEEDS / NAME, ("kubernetes",), kustomize="off").plans
    [found] = [item for item in plan.pools if item.name == pool]
    assert f"nvidia.com/mig-{unit}" in {item.resource for item in found.units}


def test_work_goes_on_in_the_other_time_sliced_pool() -> None:
    #: time-sliced pools fall back
    job = an_object(NAME, "kubernetes", "workloads/research/job-experiment-*.yaml")
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["a100-shared", "h100-shared"]
    [first] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert first["preference"]["matchExpressions"][0]["values"] == ["a100-shared"]
    queue = an_object(NAME, "kueue", "scheduling/clusterqueue-research.yaml")["spec"]
    assert [flavor["name"] for flavor in queue["resourceGroups"][0]["flavors"]] == ["a100-shared", "h100-shared"]


def test_partitions_do_not_fall_back_to_shares(tmp_path: Path) -> None:
    #: MIG does not
    change = document("Pool", "production", "fallback: a100-shared")
    assert "GPU156" in {item.code for item in findings(NAME, "kubernetes", change, tmp_path)}


def test_more_urgent_work_evicts_less_urgent_work_on_plain_kubernetes() -> None:
    #: classes evict
    body = an_object(NAME, "kubernetes", "scheduling/priorityclass-production-inference.yaml")
    assert body.get("preemptionPolicy", "PreemptLowerPriority") == "PreemptLowerPriority"


def test_a_time_sliced_pool_needs_no_person() -> None:
    applications = "argocd/kubernetes/application-gpu-partitions-kubernetes-"
    tree = built(NAME, "kubernetes").tree
    shared, production = (
        yaml.safe_load(tree[f"{applications}{pool}.yaml"])["spec"]["syncPolicy"]
        for pool in ("a100-shared", "production")
    )
    assert "automated" in shared
    assert "automated" not in production


@pytest.mark.parametrize(
    "field",
    [
        "DCGM_FI_DEV_GPU_UTIL",  #: utilization, memory, temperature
        "DCGM_FI_DEV_FB_USED",  #: memory of instances
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",  #: MIG metrics
    ],
)
def test_the_exporter_collects_what_the_document_asks_for(field: str) -> None:
    metrics = an_object(NAME, "kubernetes", "gpu-operator/configmap-gpuplan-dcgm-metrics-*.yaml")["data"]
    assert f"\n{field}, gauge" in metrics["dcgm-metrics.csv"]


@pytest.mark.parametrize("cluster", ["kubernetes", "kueue"])
@pytest.mark.parametrize(
    "series",
    [
        "resource:gpuplan_waiting_units:sum",  #: units that wait
        "tenant:gpuplan_wait_seconds:p95",  #: time until work starts
    ],
)
def test_what_waits_is_measured(series: str, cluster: str) -> None:
    groups = an_object(NAME, cluster, "monitoring/rules/gpuplan-queues.yaml")["groups"]
    assert series in {rule["record"] for group in groups for rule in group["rules"]}


def test_a_share_of_three_costs_a_third_of_a_gpu() -> None:
    [plan] = validate(SEEDS / NAME, ("kubernetes",), kustomize="off").plans
    found = costs(plan)
    assert found is not None
    [shared] = [cost for cost in found.pools if cost.pool.name == "a100-shared"]
    [share] = shared.units
    assert share.each == Ratio(1, 3)  #: ~33 % of a dedicated GPU
    assert saved(shared.total, shared.whole_gpus) == Ratio(2, 3)
