"""The tables are those that the tool makes of the source, and hold what is derived from them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpuplan.compiler.catalog.operators import lines
from tests.laws.operands.tables import EXPORTERS, FOLDER, RELEASES, exporter, line_of, operator

SOURCES = os.environ.get("GPUPLAN_SOURCES", "")
TOOLS = Path(__file__).resolve().parents[3] / "tools"
MAIN_OPERANDS = {
    "gpu-feature-discovery",
    "nvidia-container-toolkit-daemonset",
    "nvidia-dcgm",
    "nvidia-dcgm-exporter",
    "nvidia-device-plugin-daemonset",
    "nvidia-device-plugin-mps-control-daemon",
    "nvidia-driver-daemonset",
    "nvidia-mig-manager",
    "nvidia-node-status-exporter",
    "nvidia-operator-validator",
}


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("operator_tables")
    sys.path.remove(str(TOOLS))


@pytest.mark.skipif(not SOURCES, reason="GPUPLAN_SOURCES names no folder of mirrors: OWNER+NAME/repo")
def test_the_tables_are_what_the_source_says(tool: ModuleType) -> None:
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in os.listdir(FOLDER)} == tool.tables(
        Path(SOURCES)
    )


def test_each_line_that_the_catalog_knows_has_its_table(tool: ModuleType) -> None:
    assert {line_of(release) for release in RELEASES} == {line.name for line in lines()}
    assert tool.RELEASES == RELEASES
    assert tuple(EXPORTERS.values()) == tool.EXPORTERS


@pytest.mark.parametrize("release", RELEASES)
def test_a_table_has_each_operand_that_a_policy_can_turn_on(release: str) -> None:
    assert set(operator(release)["daemonSets"]) == MAIN_OPERANDS


@pytest.mark.parametrize("release", RELEASES)
def test_only_the_driver_waits_for_its_pods_to_be_deleted(release: str) -> None:
    strategies = {name: found["updateStrategy"] for name, found in operator(release)["daemonSets"].items()}
    assert strategies == dict.fromkeys(MAIN_OPERANDS, "RollingUpdate") | {"nvidia-driver-daemonset": "OnDelete"}


@pytest.mark.parametrize("release", RELEASES)
def test_the_device_plugins_file_is_read_by_three(release: str) -> None:
    readers = {
        name for name, found in operator(release)["daemonSets"].items() if "devicePlugin.config.name" in found["reads"]
    }
    assert readers == {
        "gpu-feature-discovery",
        "nvidia-device-plugin-daemonset",
        "nvidia-device-plugin-mps-control-daemon",
    }


@pytest.mark.parametrize(("release", "version"), EXPORTERS.items())
def test_a_chart_brings_the_exporter_whose_table_there_is(release: str, version: str) -> None:
    assert operator(release)["images"]["dcgmExporter"].startswith(f"{version}-")
    assert set(exporter(version)["resources"]) == {"nvidia.com/gpu", "nvidia.com/mig-"}
    assert "NVIDIA_RESOURCE_NAMES" in exporter(version)["environment"]
