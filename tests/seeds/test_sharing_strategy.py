"""The sharing strategy: pools that take turns, pools that are partitioned, priorities and quotas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.pipeline import validate
from tests.seeds.platforms import SEEDS, an_object, built, container, document, findings

NAME = "sharing-strategy"


def plugin(key: str) -> Any:
    data = an_object(NAME, "kubernetes", "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    return yaml.safe_load(data[key])["sharing"]["timeSlicing"]["resources"]


@pytest.mark.parametrize(("pool", "replicas"), [("a100-shared", 3), ("h100-shared", 2)])
def test_replicas_per_gpu(pool: str, replicas: int) -> None:
    assert plugin(pool) == [{"name": "nvidia.com/gpu", "replicas": replicas}]


@pytest.mark.parametrize(("pool", "memory"), [("a100-shared", 26), ("h100-shared", 40)])
def test_memory_of_a_replica_is_what_the_document_reckons(pool: str, memory: int) -> None:
    [plan] = validate(SEEDS / NAME, ("kubernetes",), kustomize="off").plans
    [unit] = next(found for found in plan.pools if found.name == pool).units
    assert unit.memory_mib is not None
    assert unit.memory_mib // 1024 == pytest.approx(memory, abs=1)
    assert str(unit.isolation) == "none"


@pytest.mark.parametrize(
    ("pool", "instances"),
    [
        ("production", {"3g.40gb": 1, "2g.20gb": 2}),
        ("agents", {"2g.20gb": 3, "1g.10gb": 1}),
        ("small", {"1g.10gb": 7}),
    ],
)
def test_a_pool_has_the_option_that_it_names(pool: str, instances: dict[str, int]) -> None:
    rule = an_object(NAME, "kubernetes", f"partitions/{pool}/nodefeaturerule-gpuplan-pool-{pool}.yaml")
    chosen = rule["spec"]["rules"][0]["labels"]["nvidia.com/mig.config"]
    data = an_object(NAME, "kubernetes", "gpu-operator/configmap-gpuplan-mig-parted-*.yaml")["data"]
    layouts = yaml.safe_load(data["config.yaml"])["mig-configs"]
    assert layouts[chosen] == [{"devices": "all", "mig-enabled": True, "mig-devices": instances}]


def test_option_three_does_not_fit(tmp_path: Path) -> None:
    change = document("MigLayout", "option-4", "instances: {3g.40gb: 2, 1g.10gb: 1, 2g.20gb: null}")
    assert "GPU203" in {item.code for item in findings(NAME, "kubernetes", change, tmp_path)}


@pytest.mark.parametrize(("name", "value"), [("production-inference", 1000), ("training", 500), ("research", 100)])
def test_priorities_are_those_of_the_document(name: str, value: int) -> None:
    body = an_object(NAME, "kubernetes", f"scheduling/priorityclass-{name}.yaml")
    assert (body["value"], body.get("globalDefault", False)) == (value, False)


def test_the_quota_counts_what_pods_ask_for() -> None:
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
