"""Needs that are taken together."""

from __future__ import annotations

from fractions import Fraction

from gpuplan.sizing.answers import Way
from gpuplan.sizing.choosing.asking import asks
from tests.sizing.choosing.building import a_need, nodes


def test_what_many_needs_ask_for_is_added_up_once() -> None:
    """Programs ask for it hundreds of times, and a demand may have thousands of needs."""
    (ask,) = asks([a_need(pods=2, memory=8)] * 3, [nodes()], Way, ())
    assert ask.amount is ask.amount
    assert ask.amount == Fraction(6)
