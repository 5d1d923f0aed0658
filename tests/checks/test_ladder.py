"""What is above a class, without a copy of it."""

from __future__ import annotations

import pytest

from gpuplan.checks.ladder import Tail
from gpuplan.wording import listing


def test_the_tail_of_a_list_is_listed_without_a_copy() -> None:
    tail = Tail("abcdefgh", 2)
    assert (len(tail), tail[0], tail[-1], list(tail[:2])) == (6, "c", "h", ["c", "d"])
    assert listing(tail) == "`c`, `d`, `e`, `f` and 2 more"
    assert not Tail("ab", 2)
    with pytest.raises(IndexError):
        Tail("ab", 1)[1]
