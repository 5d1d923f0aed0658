"""The guide to overlays, less the overlays themselves: boards, and its test of one GPU and two pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.seeds.platforms import an_object, container, document, findings

NAME = "sharing-overlays"


def plugin(cluster: str, pool: str) -> Any:
    data = an_object(NAME, cluster, "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    return yaml.safe_load(data[pool])


def test_one_gpu_becomes_two() -> None:
    assert plugin("whole", "a10g") == {"version": "v1"}
    assert plugin("shared", "a10g")["sharing"]["timeSlicing"]["resources"] == [
        {"name": "nvidia.com/gpu", "replicas": 2}
    ]


def test_both_pods_have_a_share() -> None:
    job = an_object(NAME, "shared", "workloads/demo/job-nvidia-plugin-test-*.yaml")
    assert job["spec"]["parallelism"] == 2
    assert container(job)["resources"]["limits"] == {"nvidia.com/gpu.shared": "1"}


def test_two_pods_on_a_whole_gpu_are_refused(tmp_path: Path) -> None:
    change = document(
        "Workload",
        "nvidia-plugin-test",
        "tenant: demo, pool: a10g, image: registry.example.com/dcgmproftester:12, training: {pods: 2}",
    )
    assert "GPU571" in {item.code for item in findings(NAME, "whole", change, tmp_path)}


@pytest.mark.parametrize(("pool", "kind", "replicas"), [("t4", "mps", 2), ("l4", "timeSlicing", 4)])
def test_boards_are_shared_each_in_its_way(pool: str, kind: str, replicas: int) -> None:
    assert plugin("whole", pool)["sharing"][kind]["resources"] == [{"name": "nvidia.com/gpu", "replicas": replicas}]


def test_what_is_not_of_nvidia_is_refused(tmp_path: Path) -> None:
    """The guide lists Intel's DL1 beside NVIDIA's boards."""
    change = document(
        "Pool", "dl1", "gpu: INTEL-DL1, nodes: {count: 1, gpusPerNode: 8}, sharing: {timeSlicing: {replicas: 2}}"
    )
    assert "GPU102" in {item.code for item in findings(NAME, "whole", change, tmp_path)}


def test_the_operator_comes_from_a_staging_catalog() -> None:
    spec = an_object(NAME, "staging", "gpu-operator/subscription-gpu-operator-certified.yaml")["spec"]
    assert (spec["source"], spec["channel"]) == ("gpu-operator-staging", "v26.7")
