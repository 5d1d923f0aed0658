"""What findings of several checks say in the same way."""

from __future__ import annotations

import pytest

from gpuplan.compiler.checks.wording import crossing, repeats, those_there_are


@pytest.mark.parametrize(("amounts", "place"), [([7, 1], 0), ([3, 3, 1], 2), ([3, 4, 5], 1), ([1, 2], 1)])
def test_the_amount_that_makes_it_too_much_is_found(amounts: list[int], place: int) -> None:
    assert crossing(amounts, 6) == place


def test_every_later_item_of_a_key_comes_with_the_first() -> None:
    words = ["ant", "bee", "asp", "owl", "ape"]
    assert list(repeats(words, lambda word: word[0])) == [("asp", "ant"), ("ape", "ant")]


def test_one_name_is_and_several_are_and_of_none_nothing_is_said() -> None:
    assert those_there_are(["a100"]) == ("there is `a100`",)
    assert those_there_are(["a100", "h100"]) == ("there are `a100` and `h100`",)
    assert those_there_are([]) == ()
