"""The scenarios of a published scheduler of inference services: how many A100 they need under its own constraints."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.parvagpu import SCENARIOS, answer, node_type
from benchmarks.published import deployment, find_folder, measured, scenario
from gpuplan.features.packing.sizing.answers import Objective, Proof
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.needs import Throughput
from tests.features.packing.sizing.choosing.building import unmet
from tests.features.packing.sizing.choosing.verifying import verify

FOLDER = find_folder()
pytestmark = pytest.mark.skipif(FOLDER is None, reason="GPUPLAN_DATA names no folder of published tables")

GPUS = {3: [2, 3, 5, 7, 12, 16], 5: [2, 3, 5, 7, 12, 15]}
"""By the most processes in one partition."""


@pytest.fixture
def folder() -> Path:
    assert FOLDER is not None
    return FOLDER


def test_its_deployments_have_46_gpus(folder: Path) -> None:
    assert [len({part.gpu for part in deployment(folder, number)}) for number in SCENARIOS] == [2, 3, 5, 7, 13, 16]
    assert max(part.processes for number in SCENARIOS for part in deployment(folder, number)) == 5


@pytest.mark.parametrize("number", SCENARIOS)
def test_its_throughput_is_that_of_one_process(folder: Path, number: int) -> None:
    """Its deployments reach all requests if each process counts, and not if a row counts once."""
    reached: dict[str, float] = defaultdict(float)
    once: dict[str, float] = defaultdict(float)
    for part in deployment(folder, number):
        point = next(p for p in measured(folder, part.service) if p[:3] == (part.slices, part.batch, part.processes))
        reached[part.service] += point.requests_per_second
        once[part.service] += point.requests_per_second / part.processes
    rates = {need.name: need.service.requests_per_second for need in scenario(folder, number, 5) if need.service}
    assert [name for name, rate in rates.items() if reached[name] < rate] == []
    assert [name for name, rate in rates.items() if once[name] < rate]


@pytest.mark.parametrize("most", GPUS)
def test_sizes_chosen_together_need_fewer_gpus(folder: Path, most: int) -> None:
    answers = {number: answer(folder, number, most) for number in SCENARIOS}
    assert [found.gpus for found in answers.values()] == GPUS[most]
    assert {found.bound.proof for found in answers.values()} == {Proof.SOLVER}
    assert [found.bound.least for found in answers.values()] == GPUS[most]


def test_an_answer_reaches_its_requests_in_time(folder: Path) -> None:
    needs, types = scenario(folder, 5, 3), [node_type()]
    assert verify(choose(needs, types, Objective.GPUS), needs, types) == []


def test_a_point_that_is_late_or_has_too_many_processes_is_not_used(folder: Path) -> None:
    (need,) = (need for need in scenario(folder, 5, 3) if need.name == "inceptionv3")
    latest = 145.5 / 2 * 0.9
    assert need.service is not None
    assert need.service.latency_ms == pytest.approx(latest)
    late, crowded = a_point(latest + 0.01, 1), a_point(latest - 0.01, 4)
    service = replace(need.service, requests_per_second=1, measured=(late, crowded))
    assert unmet(choose([replace(need, service=service)], [node_type()], Objective.GPUS)) == {"inceptionv3": 1}


def a_point(latency: float, processes: int) -> Throughput:
    return Throughput(1, 1, processes, 100, latency)
