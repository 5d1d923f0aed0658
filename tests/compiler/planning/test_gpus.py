"""A platform's own GPU models: what a `Gpu` document says is a model as those of the catalog are."""

from __future__ import annotations

import json

import pytest

from gpuplan.compiler.catalog import PciDevice, load
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.subjects import about
from tests.compiler.catalog.test_listings import LGIP, LGIPP
from tests.plans import resolve_text
from tests.platforms import a_platform, document, pool

RTX = {
    "memoryMiB": "24564",
    "computeCapability": '"8.9"',
    "products": "[NVIDIA-GeForce-RTX-4090]",
    "pci": '["10de:2684"]',
}
A30 = {
    "memoryMiB": "24576",
    "computeCapability": '"8.0"',
    "products": "[NVIDIA-A30X]",
    "pci": '["10de:20b7/10de:14aa"]',
    "mig": json.dumps({"lgip": LGIP, "lgipp": LGIPP}),
}


def described(board: dict[str, str], name: str = "lab-gpu") -> str:
    return document("Gpu", name, *(f"{key}: {value}" for key, value in board.items()))


def lab(board: dict[str, str], sharing: str) -> Plan:
    return a_platform(pool("lab", sharing, gpu="lab-gpu", nodes="count: 2, gpusPerNode: 4"), described(board))


def unknown(*documents: str) -> list[tuple[str, str]]:
    """The codes, and what to type."""
    _, found = resolve_text("".join(documents))
    return [(item.code, item.finding.help) for item in found]


def test_a_pool_is_of_the_board_that_the_document_describes() -> None:
    (found,) = lab(RTX, "timeSlicing: {replicas: 2}").pools

    assert (found.gpu.id, found.gpu.architecture, found.gpu.memory_gib) == ("lab-gpu", "Ada Lovelace", 24)
    assert found.gpu.pci == (PciDevice("0x2684", "lab-gpu"),)
    assert [(unit.memory_mib, unit.capacity) for unit in found.units] == [(12282, 16)]
    assert "nvidia.com/mig.config" not in found.labels


def test_a_board_is_partitioned_by_what_its_driver_lists() -> None:
    (found,) = lab(A30, "mig: {instances: {2g.12gb: 1, 1g.6gb: 2}}").pools

    assert [(unit.name, unit.memory_mib, unit.capacity) for unit in found.units] == [
        ("1g.6gb", 5949, 16),
        ("2g.12gb", 11970, 8),
    ]
    assert isinstance(found.sharing.layout.entries[0].placed, Placed)  # type: ignore[union-attr]  # it is MIG
    assert found.gpu.pci == (PciDevice("0x20B7", "lab-gpu", "10DE14AA"),)


def test_a_board_without_a_listing_has_no_mig() -> None:
    board = {key: value for key, value in A30.items() if key != "mig"}

    assert not lab(board, "exclusive: {}").pools[0].gpu.supports_mig


def test_what_is_written_is_about_the_document_too() -> None:
    (found,) = lab(RTX, "exclusive: {}").pools

    assert about(found) == (Subject("Pool", "lab"), Subject("Gpu", "lab-gpu"))
    assert about(*a_platform(pool("lab")).pools) == (Subject("Pool", "lab"),)


def test_a_misspelt_name_of_a_document_is_told() -> None:
    assert unknown(pool("lab", gpu="LAB-GPU"), described(RTX)) == [("GPU102", "write `lab-gpu`")]


def test_a_document_that_cannot_be_read_is_not_said_to_be_missing() -> None:
    found = unknown(pool("lab", gpu="lab-gpu"), described({**RTX, "memoryMiB": "-1"}))

    assert [code for code, _ in found] == ["GPU033"]


@pytest.mark.parametrize("name", ["RTX-A6000", "A100X", "P40", "Quadro-RTX-6000", "L20"])
def test_no_other_board_is_offered_for_one_that_is_unknown(name: str) -> None:
    ((code, help_),) = unknown(pool("lab", gpu=name))

    assert code == "GPU102"
    assert f"add `{{apiVersion: gpuplan.dev/v1, kind: Gpu, metadata: {{name: {name.lower()}}}, " in help_
    assert help_.endswith(f"say `gpu: {name.lower()}` here")
    assert not any(id_ in help_ for id_ in load().ids())


def test_the_catalog_itself_does_not_change_with_a_platform() -> None:
    lab(RTX, "exclusive: {}")

    assert load().find("lab-gpu") is None
    assert "lab-gpu" not in load().ids()
