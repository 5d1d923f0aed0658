"""What gpuplan tells the DCGM exporter is what that exporter knows, by the tables of its source."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from gpuplan.compiler.catalog.loading import facts
from gpuplan.compiler.catalog.operators import parse_version
from tests.cli.runs import run
from tests.laws.operands.edits import CLUSTER, Platform, platform, write
from tests.laws.operands.tables import EXPORTERS, RELEASES, exporter, operator

each_release = pytest.mark.parametrize("release", RELEASES)
each_exporter = pytest.mark.parametrize(("release", "version"), EXPORTERS.items())


def _watched(release: str) -> Platform:
    given = platform(release)
    return {**given, CLUSTER: {**given[CLUSTER], "monitoring": {}}}


@cache
def _built(release: str) -> dict[str, str]:
    """Files of the operator's folder by name."""
    with TemporaryDirectory() as folder:
        write(_watched(release), Path(folder))
        assert run("-C", folder, "build").code == 0
        return {path.name: path.read_text(encoding="utf-8") for path in (Path(folder) / "out/c/gpu-operator").iterdir()}


def _values(release: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(_built(release)["values.yaml"])["dcgmExporter"]
    return values


def _environment(release: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in _values(release).get("env", ())}


def _collected(release: str) -> list[list[str]]:
    (body,) = (yaml.safe_load(text) for name, text in _built(release).items() if "dcgm-metrics" in name)
    rows = csv.reader(body["data"]["dcgm-metrics.csv"].splitlines(), skipinitialspace=True)
    return [row for row in rows if row and not row[0].startswith("#")]


@each_exporter
def test_each_variable_is_one_that_the_exporter_reads(release: str, version: str) -> None:
    assert set(_environment(release)) - set(exporter(version)["environment"]) == set()


@each_exporter
def test_each_field_is_one_that_the_exporter_knows(release: str, version: str) -> None:
    """It ends at the first that it does not know."""
    known = {f"DCGM_FI_{name}" for name in exporter(version)["fields"]} | set(exporter(version)["counters"])
    assert {row[0] for row in _collected(release)} - known == set()


@each_release
def test_the_exporter_is_told_of_what_it_takes_for_no_gpu(release: str) -> None:
    """It counts `nvidia.com/gpu` and what begins with `nvidia.com/mig-`; shared GPUs have another name."""
    assert _environment(release)["NVIDIA_RESOURCE_NAMES"].split(",") == ["nvidia.com/gpu.shared"]


@each_release
def test_each_value_of_the_exporter_is_one_that_the_chart_reads(release: str) -> None:
    read = {route.split(".")[1] for route in operator(release)["chart"]["read"] if route.startswith("dcgmExporter.")}
    assert set(_values(release)) - read == set()


@each_release
def test_the_catalog_has_the_exporter_that_the_chart_brings(release: str) -> None:
    brought = facts("operator_data", "exporters.yaml")["releases"]
    known = [
        version for first, version in brought.items() if (parse_version(first) or ()) <= (parse_version(release) or ())
    ]
    assert operator(release)["images"]["dcgmExporter"].startswith(f"{known[-1]}-")
