"""Boards outside the catalog count their GPUs, and quotas and queues on them are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.features.live.importing import Import, adopt, write_import

Body = dict[str, Any]
LABELS = {"nvidia.com/gpu.memory": "49140", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "6"}


def lab(product: str, **labels: str) -> list[Body]:
    """Two nodes with four such boards each, and a namespace whose quota is six GPUs."""
    told = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "4", **labels}
    status = {"allocatable": {"nvidia.com/gpu": "4"}, "nodeInfo": {"kubeletVersion": "v1.33.4"}}
    return [
        *(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": told}, "status": status}
            for name in ("a", "b")
        ),
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "vision", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": "vision"},
            "spec": {"hard": {"requests.nvidia.com/gpu": "6"}},
        },
    ]


def imported(root: Path, *bodies: Body, merges: bool = False) -> Import:
    return adopt({"dump.yaml": yaml.safe_dump_all(bodies).encode()}, root, "lab", merges=merges)


def quotas(found: Import) -> list[tuple[str, object]]:
    [plan] = found.report.plans
    return [(quota.pool.name, quota.limit) for tenant in plan.tenants for quota in tenant.quotas]


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA-RTX-A6000",
        "NVIDIA-GeForce-RTX-3090",
        "NVIDIA-GeForce-RTX-4090",
        "GeForce-RTX-2080-Ti",
        "Quadro-RTX-8000",
        "NVIDIA-T1000",
        "Tesla-P40",
        "NVIDIA-A16",
    ],
)
def test_a_common_board_is_known_without_labels_on_it(product: str, tmp_path: Path) -> None:
    found = imported(tmp_path, *lab(product))

    assert found.report.is_valid
    [pool] = found.report.plans[0].pools
    assert quotas(found) == [(pool.name, 6)]
    assert {item.code for item in found.report.diagnostics} <= {"GPU806", "GPU810"}


@pytest.mark.parametrize(("memory", "pools"), [({}, 0), ({"nvidia.com/gpu.memory": "16380"}, 1)])
def test_the_memory_of_a_board_that_comes_in_two_sizes_is_its_label(
    memory: dict[str, str], pools: int, tmp_path: Path
) -> None:
    found = imported(tmp_path, *lab("NVIDIA-GeForce-RTX-4060-Ti", **memory))

    assert found.report.is_valid
    assert [pool.gpu.memory_mib for pool in found.report.plans[0].pools] == [16380] * pools


def test_the_label_of_a_node_goes_before_the_table_of_boards(tmp_path: Path) -> None:
    found = imported(tmp_path, *lab("NVIDIA-RTX-A6000", **{**LABELS, "nvidia.com/gpu.memory": "46068"}))

    assert [pool.gpu.memory_mib for pool in found.report.plans[0].pools] == [46068]


def test_boards_that_nfd_found_go_before_the_labels(tmp_path: Path) -> None:
    """Labels name a device only where NFD was told to write it."""
    device = {"attributes": {"class": "0302", "vendor": "10de", "device": "2230"}}
    features = {"instances": {"pci.device": {"elements": [device]}}}
    found_by_nfd = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "spec": {"features": features}}
    named = [{**found_by_nfd, "metadata": {"name": name, "namespace": "nfd"}} for name in ("a", "b")]
    found = imported(tmp_path, *lab("NVIDIA-RTX-Unheard-Of", **LABELS), *named)

    assert [[device.spelt for device in pool.gpu.pci] for pool in found.report.plans[0].pools] == [["10de:2230"]]


@pytest.mark.parametrize("product", ["NVIDIA-RTX-Unheard-Of", "GRID-T4-16Q", "NVIDIA-A40-48Q"])
def test_a_board_without_a_pci_id_counts_all_the_same(product: str, tmp_path: Path) -> None:
    found = imported(tmp_path, *lab(product, **LABELS))

    assert found.report.is_valid
    [pool] = found.report.plans[0].pools
    assert (pool.gpu.pci, pool.nodes.gpus_per_node) == ((), 4)
    assert quotas(found) == [(pool.name, 6)]


def test_a_board_that_nothing_describes_is_in_no_pool_until_a_document_does(tmp_path: Path) -> None:
    bodies = lab("NVIDIA-RTX-Unheard-Of")
    before = imported(tmp_path, *bodies)
    write_import(before, tmp_path)
    [told] = [item.finding for item in before.report.diagnostics if "GPU model" in item.finding.message]

    text = told.help.split("`")[1]
    document = tmp_path / told.help.split(" into ")[1].split(":")[0]
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(text)
    after = imported(tmp_path, *bodies, merges=True)

    assert before.report.is_valid
    assert not before.report.plans[0].pools
    assert after.report.is_valid
    assert [path for path in after.files if "/tenants/" in path or "/pools/" in path]
    assert quotas(after) == [(after.report.plans[0].pools[0].name, 6)]


def test_a_model_that_a_document_describes_is_left_as_it_is_written(tmp_path: Path) -> None:
    document = tmp_path / "policies" / "gpus" / "workstation.yaml"
    document.parent.mkdir(parents=True)
    spec = {"memoryMiB": 49140, "computeCapability": "8.6", "products": ["NVIDIA-RTX-A6000"], "pci": ["10de:2230"]}
    body = {"apiVersion": "gpuplan.dev/v1", "kind": "Gpu", "metadata": {"name": "workstation"}, "spec": spec}
    document.write_text(yaml.safe_dump(body))

    found = imported(tmp_path, *lab("NVIDIA-RTX-A6000", **LABELS))

    assert found.report.is_valid
    assert [pool.gpu.id for pool in found.report.plans[0].pools] == ["workstation"]
    assert not [path for path in found.files if "/gpus/" in path]
