"""HiGHS: its answers, and those that it does not find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.features.packing.sizing.answers import Objective
from gpuplan.features.packing.sizing.choosing import choose, highs
from tests.features.packing.sizing.choosing.building import L4, a_need, nodes, unmet

VIDEO = a_need(3, "video", engines={"dec": 1}), a_need(9, "small", memory=9)


def test_a_solver_that_cannot_be_loaded_is_trouble_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(GpuplanError, match="HiGHS cannot be loaded") as trouble:
        choose(VIDEO, [nodes()], Objective.GPUS)
    assert trouble.value.hint == "run `pip install --force-reinstall highspy`"


@pytest.mark.parametrize(("most", "goal"), [(None, "an answer in time"), (1, "an answer with 1 layout in time")])
def test_a_search_that_ends_without_an_answer_is_trouble(most: int | None, goal: str) -> None:
    needs = [a_need(7, memory=9), a_need(2, "half", memory=30), a_need(1, "large", memory=60)]
    with pytest.raises(GpuplanError, match=goal):
        choose(needs, [nodes()], Objective.GPUS, most_layouts=most, clock=highs.Clock(end_s=0))


def test_too_little_for_all_is_trouble_where_nothing_may_lack() -> None:
    needs, types = [a_need(15, memory=9)], [nodes(count=2)]
    assert unmet(choose(needs, types, Objective.GPUS)) == {"need": 1}
    with pytest.raises(GpuplanError, match="an answer in time"):
        choose(needs, types, Objective.GPUS, may_lack=False)


def test_only_a_search_that_ended_says_that_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    needs, types = [a_need(15, memory=9)], [nodes(count=2)]
    assert choose(needs, types, Objective.GPUS).is_exhaustive
    solve = highs.Program.solve

    def stopped(program: highs.Program, costs: Mapping[int, float], **settings: float) -> highs.Solution:
        found = solve(program, costs, **settings)
        is_first = found.outcome is highs.Outcome.INFEASIBLE and costs
        return found if is_first or found.values else found._replace(outcome=highs.Outcome.UNDECIDED)

    monkeypatch.setattr(highs.Program, "solve", stopped)
    assert not choose(needs, types, Objective.GPUS).is_exhaustive


def test_prices_are_needed_for_the_lowest() -> None:
    with pytest.raises(GpuplanError, match="no price is known of `free`"):
        choose([], [nodes(name="free"), nodes(L4, price="1")], Objective.PRICE)


def test_the_solver_prints_nothing_and_says_the_same_each_time() -> None:
    code = (
        "from tests.features.packing.sizing.choosing.test_solver import *\n"
        "assert choose(VIDEO, [nodes()], Objective.GPUS) == choose(VIDEO, [nodes()], Objective.GPUS)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_program_without_an_answer_is_told_from_one_with() -> None:
    program = highs.Program()
    one, other = program.number(upper=3), program.number()
    program.row(7, {one: 2, other: 3}, highs.INFINITE)
    best = program.solve({one: 2, other: 4}, step=1)
    assert (best.outcome, best.values, best.bound) == (highs.Outcome.OPTIMAL, (2, 1), 8.0)
    program.row(0, {one: 1, other: 1}, 1)
    assert program.solve({}).outcome is highs.Outcome.INFEASIBLE


@pytest.mark.parametrize("wrong", [-1, 1])
def test_numbers_that_do_not_hold_once_rounded_are_not_taken(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    solve = highs.Program.solve

    def off_by_one(program: highs.Program, costs: Mapping[int, float], **settings: float) -> highs.Solution:
        found = solve(program, costs, **settings)
        return found._replace(values=tuple(value + wrong if value else 0 for value in found.values))

    monkeypatch.setattr(highs.Program, "solve", off_by_one)
    with pytest.raises(GpuplanError, match="has not found an answer"):
        choose(VIDEO, [nodes(count=4)], Objective.GPUS)
