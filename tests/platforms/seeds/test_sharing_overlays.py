"""The guide to overlays, less the overlays themselves: boards, and its test of one GPU and two pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler import catalog
from tests.platforms.seeds.platforms import an_object, built, container, document, findings

NAME = "sharing-overlays"


def plugin(cluster: str, pool: str) -> Any:
    data = an_object(NAME, cluster, "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    return yaml.safe_load(data[pool])


def test_one_gpu_becomes_two() -> None:
    #: whole GPUs
    #: one GPU is two
    assert plugin("whole", "a10g") == {"version": "v1"}
    assert plugin("shared", "a10g")["sharing"]["timeSlicing"]["resources"] == [
        {"name": "nvidia.com/gpu", "replicas": 2}
    ]


def test_both_pods_have_a_share() -> None:
    #: two pods and two shares
    test = an_object(NAME, "shared", "workloads/demo/deployment-nvidia-plugin-test.yaml")
    assert test["spec"]["replicas"] == 2
    assert container(test)["resources"]["limits"] == {"nvidia.com/gpu.shared": "1"}


def test_the_test_is_ready_when_it_runs() -> None:
    """It listens nowhere, so that nothing may ask it at a port: the document shows both pods as ready."""
    test = container(an_object(NAME, "shared", "workloads/demo/deployment-nvidia-plugin-test.yaml"))
    assert {"readinessProbe", "ports"} & test.keys() == set()
    assert "shared/workloads/demo/service-nvidia-plugin-test.yaml" not in built(NAME, "shared").tree


def test_two_pods_on_a_whole_gpu_are_refused(tmp_path: Path) -> None:
    #: two pods and one GPU
    change = document(
        "Workload",
        "nvidia-plugin-test",
        "tenant: demo, pool: a10g, image: registry.example.com/dcgmproftester:12, inference: {replicas: 2, port: none}",
    )
    assert "GPU571" in {item.code for item in findings(NAME, "whole", change, tmp_path)}


@pytest.mark.parametrize(
    ("cluster", "pool", "kind", "replicas"),
    [
        ("whole", "t4", "mps", 2),  #: MPS with 2 replicas
        ("shared", "t4", "mps", 4),
        ("whole", "l4", "timeSlicing", 4),
    ],
)
def test_boards_are_shared_each_in_its_way(cluster: str, pool: str, kind: str, replicas: int) -> None:
    #: MPS
    assert plugin(cluster, pool)["sharing"][kind]["resources"] == [{"name": "nvidia.com/gpu", "replicas": replicas}]


def test_what_is_not_of_nvidia_is_refused(tmp_path: Path) -> None:
    """The guide lists Intel's DL1 beside NVIDIA's boards."""
    #: a board of Intel
    change = document(
        "Pool", "dl1", "gpu: INTEL-DL1, nodes: {count: 1, gpusPerNode: 8}, sharing: {timeSlicing: {replicas: 2}}"
    )
    assert "GPU102" in {item.code for item in findings(NAME, "whole", change, tmp_path)}


def test_the_operator_comes_from_a_staging_catalog() -> None:
    #: a staging catalog
    spec = an_object(NAME, "staging", "gpu-operator/subscription-gpu-operator-certified.yaml")["spec"]
    assert (spec["source"], spec["channel"]) == ("gpu-operator-staging", "v25.10")


def test_an_image_of_the_staging_registry_needs_its_secret() -> None:
    policy = an_object(NAME, "staging", "gpu-operator/clusterpolicy-gpu-cluster-policy.yaml")["spec"]
    assert policy["devicePlugin"]["imagePullSecrets"] == ["staging-registry"]


def test_mig_devices_are_shared_by_profile() -> None:
    assert plugin("whole", "h100")["sharing"]["timeSlicing"]["resources"] == [
        {"name": "nvidia.com/mig-2g.20gb", "replicas": 4}
    ]


def test_a_strategy_follows_the_pool() -> None:
    assert plugin("whole", "a100")["flags"] == {"migStrategy": "single"}
    assert plugin("whole", "h100")["flags"] == {"migStrategy": "mixed"}


@pytest.mark.parametrize(
    ("board", "gpu"),
    [
        ("NVIDIA-A30", "A30-24GB"),  #: A30
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),  #: A100
        ("NVIDIA-A800-SXM4-80GB", "A100-80GB"),  #: A800
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB"),  #: H100
        ("NVIDIA-H200", "H200-141GB"),  #: H200
        ("NVIDIA-H800", "H100-80GB"),  #: H800
    ],
)
def test_boards_that_can_be_partitioned_are_in_the_catalog(board: str, gpu: str) -> None:
    found = catalog.load().find(gpu)
    assert found is not None
    assert board in {product.label for product in found.products}
    assert found.profiles


def test_what_the_catalog_lacks_is_answered_with_the_document_to_write(tmp_path: Path) -> None:
    """The guide has AX800 as well."""
    #: AX800
    change = document("Pool", "ax800", "gpu: AX800, nodes: {count: 1, gpusPerNode: 1}, sharing: {exclusive: {}}")
    [finding] = [item.finding for item in findings(NAME, "whole", change, tmp_path) if item.code == "GPU102"]
    assert "kind: Gpu" in f"{finding.help} {' '.join(finding.notes)}"


def test_a_board_that_the_platform_describes_is_used_as_those_of_the_catalog() -> None:
    groups = an_object(NAME, "whole", "partitions/node-groups.yaml")["nodeGroups"]
    [group] = [group for group in groups if group["pool"] == "a100x"]
    assert (group["gpu"], group["gpusPerNode"]) == ("a100x", 1)


def test_nodes_of_an_instance_type_have_a_machine_set() -> None:
    #: nodes by a MachineSet
    groups = an_object(NAME, "whole", "partitions/node-groups.yaml")["nodeGroups"]
    [group] = [group for group in groups if group["pool"] == "a10g"]
    assert group["selector"] == {"node.kubernetes.io/instance-type": "g5.2xlarge"}
    assert group["machineSet"]["spec"]["template"]["spec"]["metadata"]["labels"]["gpuplan.dev/pool"] == "a10g"


def test_node_feature_discovery_comes_along() -> None:
    #: Node Feature Discovery
    assert an_object(NAME, "whole", "gpu-operator/subscription-nfd.yaml")["spec"]["name"] == "nfd"


def test_mps_on_partitions_cannot_be_said(tmp_path: Path) -> None:
    #: MPS on MIG
    change = document("Pool", "a100", "sharing: {mig: {mps: {replicas: 2}}}")
    assert "GPU030" in {item.code for item in findings(NAME, "whole", change, tmp_path)}


def test_mps_on_openshift_is_told_of(tmp_path: Path) -> None:
    #: MPS on OpenShift
    assert "GPU310" in {item.code for item in findings(NAME, "whole", "", tmp_path)}
