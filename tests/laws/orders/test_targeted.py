"""What is dangerous in one commit is refused; done as gpuplan says it is safe in every order, however late labels are.

`make test-orders` tries 300 moves, 200 kinds of sharing, 100 chains and 170 rollouts.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

import pytest

from tests.laws.orders.rollouts import Rollout, roll, write_twice
from tests.laws.orders.targeted import Outcome, a_chain, a_kind, a_move, judge_chain, judge_move, tried

pytestmark = pytest.mark.no_cover
IS_WHOLE: Final = bool(os.environ.get("GPUPLAN_TEST_ORDERS"))


def _many(whole: int, sample: int) -> range:
    return range(whole if IS_WHOLE else sample)


@cache
def moves() -> tuple[Outcome, ...]:
    return tuple(tried(a_move, judge_move, _many(300, 4)))


@cache
def kinds() -> tuple[Outcome, ...]:
    return tuple(tried(a_kind, judge_move, _many(200, 4)))


@cache
def chains() -> tuple[Outcome, ...]:
    return tuple(tried(a_chain, judge_chain, _many(100, 4)))


@cache
def rollouts() -> tuple[Rollout, ...]:
    return tuple(map(roll, _many(170, 4)))


def test_nodes_that_move_between_pools_keep_their_labels() -> None:
    assert {outcome.seed: outcome.problems for outcome in moves() if outcome.problems} == {}


def test_most_moves_in_one_commit_are_unsafe() -> None:
    assert sum("unsafe in one commit" in outcome.facts for outcome in moves()) > len(moves()) // 2


def test_another_kind_of_sharing_is_no_third_state() -> None:
    assert {outcome.seed: outcome.problems for outcome in kinds() if outcome.problems} == {}


def test_what_labels_name_stays_while_they_lag() -> None:
    assert {outcome.seed: outcome.problems for outcome in chains() if outcome.problems} == {}


def test_rollouts_keep_what_is_granted_in_every_order() -> None:
    assert {rollout.seed: rollout.problems for rollout in rollouts() if rollout.problems} == {}


def test_most_rollouts_have_a_way_and_something_is_granted() -> None:
    assert len([rollout for rollout in rollouts() if rollout.way]) * 4 > len(rollouts()) * 3
    assert len([rollout for rollout in rollouts() if rollout.way and rollout.guaranteed]) * 3 > len(rollouts())


@pytest.mark.parametrize("seed", _many(20, 3))
def test_a_step_is_not_written_twice_before_it_is_committed(seed: int) -> None:
    assert write_twice(seed) == []
