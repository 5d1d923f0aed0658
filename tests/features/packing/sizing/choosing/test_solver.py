"""What is said without HiGHS, and what HiGHS says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import NodeType, Objective, Proof
from gpuplan.features.packing.sizing.choosing import choose, highs
from gpuplan.features.packing.sizing.needs import Need
from tests.features.packing.sizing.choosing.building import L4, SHARED, a_need, a_pool, a_service, nodes, units, unmet
from tests.features.packing.sizing.choosing.test_optimum import paid, some_needs, some_types
from tests.features.packing.sizing.choosing.verifying import verify

VIDEO = a_need(3, "video", engines={"dec": 1}), a_need(9, "small", memory=9)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "is_there", lambda: False)


@given(some_needs, some_types)
def test_without_a_solver_there_is_an_answer_and_a_bound(needs: list[Need], types: list[NodeType]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highs, "is_there", lambda: False)
        answers = [choose(needs, types, objective) for objective in (Objective.GPUS, Objective.PRICE)]
    for answer in answers:
        assert verify(answer, needs, types) == []
        assert answer.bound.least <= paid(answer)


@pytest.mark.usefixtures("without")
def test_without_a_solver_the_gap_is_stated() -> None:
    answer = choose(VIDEO, [nodes()], Objective.GPUS)
    assert answer.bound.proof is Proof.NONE
    assert 0 < answer.bound.least <= answer.gpus


@pytest.mark.usefixtures("without")
def test_without_a_solver_price_lists_give_the_bound() -> None:
    answer = choose([a_need(9, memory=9), a_need(3, "half", memory=30)], [nodes(gpus=4)], Objective.GPUS)
    assert answer.bound.proof is Proof.NONE
    assert answer.gpus == 4
    assert answer.bound.least == Fraction(21, 8)


@pytest.mark.usefixtures("without")
def test_without_a_solver_services_pools_and_shares_are_served_too() -> None:
    kept = a_pool("kept", 1, {"3g.40gb": 2}, is_kept=True)
    needs = [
        a_need(2, "half", memory=30),
        a_service(50, {1: 10, 3: 35}),
        a_need(9, "lax", memory=5, isolation=Isolation.NONE),
    ]
    types = [nodes(count=4, pools=(kept,)), nodes(L4, ways=SHARED)]
    answer = choose(needs, types, Objective.GPUS)
    assert (verify(answer, needs, types), unmet(answer)) == ([], {})
    assert units(answer)["half", "3g.40gb"] == 2


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize(
    ("objective", "most", "what"),
    [(Objective.CHANGES, None, "the fewest nodes to cut again"), (Objective.GPUS, 1, "1 layout for all needs")],
)
def test_what_only_a_solver_finds_is_trouble_without(objective: Objective, most: int | None, what: str) -> None:
    needs = [a_need(7, memory=9), a_need(2, "half", memory=30), a_need(1, "large", memory=60)]
    with pytest.raises(GpuplanError, match=what) as trouble:
        choose(needs, [nodes()], objective, most_layouts=most)
    assert trouble.value.hint == "run `pip install gpuplan[solver]`"


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
    types = [nodes(count=4)]
    answer = choose(VIDEO, types, Objective.GPUS)
    assert (verify(answer, VIDEO, types), unmet(answer)) == ([], {})
    assert answer.bound.proof is Proof.NONE
