"""Steps by chance: what is unsafe in some order is said. `make test-orders` tries many more than the sample here."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.laws.orders.edits import EDITS, TEXT_ONLY
from tests.laws.orders.oracle import UNSAFE
from tests.laws.orders.probe import Pair, pairs

pytestmark = pytest.mark.no_cover
IS_WHOLE: Final = bool(os.environ.get("GPUPLAN_TEST_ORDERS"))
PAIRS: Final = 2000 if IS_WHOLE else 20


@cache
def tried() -> tuple[Pair, ...]:
    return tuple(pairs(range(PAIRS), EDITS, Counter()))


def test_what_is_unsafe_in_some_order_is_said_with_its_node_or_pool() -> None:
    assert any(pair.examined.judgement.of(*UNSAFE) for pair in tried())
    assert {pair.seed: pair.examined.unsaid for pair in tried() if pair.examined.unsaid} == {}


def test_nodes_that_are_partitioned_anew_are_said_to_be() -> None:
    assert [
        pair.seed
        for pair in tried()
        if pair.examined.judgement.repartitioned
        and pair.examined.said.worst.rank < pair.examined.said.worst.REPARTITION.rank
    ] == []


def test_one_safe_step_of_a_hundred_is_called_worse_at_most() -> None:
    safe = [pair for pair in tried() if pair.examined.is_safe]
    assert len([pair for pair in safe if pair.examined.alarms]) <= max(len(safe) // 100, 1)


def test_text_alone_changes_nothing() -> None:
    found = tuple(pairs(range(PAIRS, PAIRS + max(PAIRS // 6, 8)), TEXT_ONLY, Counter()))
    assert [(pair.seed, pair.examined.alarms) for pair in found if pair.examined.alarms] == []
