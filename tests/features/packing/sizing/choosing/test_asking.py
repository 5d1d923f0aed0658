"""Needs that are taken together."""

from __future__ import annotations

from fractions import Fraction

from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Way
from gpuplan.features.packing.sizing.choosing.asking import asks
from gpuplan.features.packing.sizing.choosing.parts import SHARE
from tests.features.packing.sizing.choosing.building import SHARED, a_need, nodes


def test_what_many_needs_ask_for_is_added_up_once() -> None:
    """Programs ask for it hundreds of times, and a demand may have thousands of needs."""
    (ask,) = asks([a_need(pods=2, memory=8)] * 3, [nodes()], ())
    assert ask.amount is ask.amount
    assert ask.amount == Fraction(6)


def test_shares_of_one_size_come_in_one_order() -> None:
    """A solver that has its numbers in another order may give another answer, as good as the other."""
    needs = [a_need(memory=memory, isolation=Isolation.NONE) for memory in (5, 8, 10, 12, 16, 20, 30)]
    ask, *_ = asks(needs, [nodes(ways=SHARED)], ())
    ways = [part.way for _, part in ask.worth if part.name == SHARE]
    assert ways == [Way.TIME_SLICING, Way.MPS] * len(needs)
