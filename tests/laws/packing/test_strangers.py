"""Answers of `pack` held against an oracle that shares nothing with it, by the policies that are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest
import yaml

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.pipeline import validate
from gpuplan.features.packing.computing import Packing, pack, write_packing
from gpuplan.features.packing.model import Numbers
from gpuplan.features.packing.sizing.answers import Proof
from tests.laws.packing.oracle import (
    Moves,
    Need,
    Policies,
    Question,
    faults,
    guaranteed,
    moves,
    needs_of,
    read,
    unserved,
)
from tests.laws.packing.strangers import CLUSTER, Stranger, stranger

STRANGERS: Final = range(500) if os.environ.get("GPUPLAN_TEST_PROOF") else (*range(100), 106)
"""In 106 a pod stands for guaranteed GPUs that nobody asks for."""


class Packed(Value):
    """A platform before and after its answer is written; ``again`` is the same question to what was written."""

    asked: Stranger
    before: Policies
    packing: Packing
    after: Policies | None = None
    again: Packing | None = None

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        return needs_of(self.asked.demand) if self.asked.demand else ()

    @cached_property
    def guarantees(self) -> tuple[Need, ...]:
        """What tenants must not lose of today's guarantees; those that the demand names may lose all, if so asked."""
        named = {need.team for need in self.needs} if self.asked.may_cut_guarantees else set()
        return tuple(need for need in guaranteed(self.before) if need.team not in named)

    @cached_property
    def question(self) -> Question:
        asked = self.asked
        return Question(self.before, self.needs, self.guarantees, asked.nodes_at_most, asked.keep)


@pytest.mark.parametrize("seed", STRANGERS)
def test_an_answer_is_least_serves_all_and_says_what_it_disturbs(seed: int, tmp_path: Path) -> None:
    packed = packed_of(stranger(seed), tmp_path)
    for check in CHECKS:
        check(packed)


def packed_of(asked: Stranger, folder: Path) -> Packed:
    for path, text in asked.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    assert validate(folder).is_valid
    before, packing = read(folder, CLUSTER), _ask(asked, folder)
    if not packing.is_valid:
        return Packed(asked, before, packing)
    write_packing(packing, folder)
    return Packed(asked, before, packing, read(folder, CLUSTER), _ask(asked, folder))


def _ask(asked: Stranger, folder: Path) -> Packing:
    demand = {"demand.yaml": yaml.safe_dump(asked.demand).encode()} if asked.demand else {}
    return pack(
        folder,
        demand,
        cluster=CLUSTER,
        keep=asked.keep,
        nodes_at_most=asked.nodes_at_most,
        may_cut_guarantees=asked.may_cut_guarantees,
        alternatives=False,
    )


# --- Checks ------------------------------------------------------------------------------------------------------


def what_is_unmet_is_what_cannot_be(packed: Packed) -> None:
    """Guarantees go first. Then an earlier need has all that it can before a later one has any."""
    served, chosen = packed.question.most_served(), packed.packing.chosen
    assert chosen is not None
    unmet = {(need.team, need.name): pods for need, pods in chosen.answer.unmet}
    if served is None:
        assert unmet
        return
    pairs = zip(packed.needs, served, strict=True)
    assert unmet == {(need.team, need.name): need.pods - pods for need, pods in pairs if need.pods > pods}


def no_answer_takes_fewer_gpus(packed: Packed) -> None:
    chosen = packed.packing.chosen
    if packed.after is None or chosen is None:
        return
    least, bound = packed.question.least_gpus, chosen.answer.bound
    assert chosen.numbers.gpus == sum(pool.nodes * len(pool.cut) for pool in packed.after.pools.values())
    assert least is not None
    assert bound.least <= least
    assert chosen.numbers.gpus == least if bound.proof is Proof.SOLVER else chosen.numbers.gpus >= least


def all_pods_run_at_once(packed: Packed) -> None:
    if packed.after is not None:
        assert [*faults(packed.after)] == []
        assert unserved(packed.after, packed.needs) == 0


def nobody_loses_a_guarantee(packed: Packed) -> None:
    if packed.after is not None:
        assert unserved(packed.after, packed.guarantees) == 0


def nodes_are_counted_that_are_cut_again_taken_away_or_new(packed: Packed) -> None:
    if packed.after is not None and packed.packing.chosen is not None:
        assert _moves(packed.packing.chosen.numbers) == moves(packed.before, packed.after)


def _moves(numbers: Numbers) -> Moves:
    return Moves(numbers.recut_nodes, numbers.removed_nodes, numbers.new_nodes)


def the_same_question_again_changes_nothing(packed: Packed) -> None:
    if packed.again is not None:
        assert packed.again.is_valid
        assert packed.again.chosen is not None
        assert packed.again.chosen.files == {}


CHECKS: Final[tuple[Callable[[Packed], None], ...]] = (
    what_is_unmet_is_what_cannot_be,
    no_answer_takes_fewer_gpus,
    all_pods_run_at_once,
    nobody_loses_a_guarantee,
    nodes_are_counted_that_are_cut_again_taken_away_or_new,
    the_same_question_again_changes_nothing,
)
