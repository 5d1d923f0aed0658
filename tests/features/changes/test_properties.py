"""What holds of any edits: more of them never disturb less, and none disturbs nothing."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.changes.model import Comparison
from tests.features.changes.edits import INDEPENDENT
from tests.features.changes.platform import Edit, between, loaded, original, state

pytestmark = pytest.mark.no_cover

_EDITS = st.sets(st.sampled_from(INDEPENDENT), max_size=5)


@cache
def _comparison(edits: frozenset[Edit]) -> Comparison:
    return between(state(original), state(*_in_order(edits)))


def _in_order(edits: frozenset[Edit]) -> list[Edit]:
    return [edit for edit in INDEPENDENT if edit in edits]


@settings(max_examples=40)
@given(_EDITS, st.sampled_from(INDEPENDENT))
def test_an_edit_more_never_lowers_the_worst_class(edits: set[Edit], one_more: Edit) -> None:
    fewer, more = _comparison(frozenset(edits)), _comparison(frozenset({*edits, one_more}))
    assert more.worst.rank >= fewer.worst.rank
    assert more.worst.rank >= _comparison(frozenset({one_more})).worst.rank


@settings(max_examples=25)
@given(_EDITS)
def test_all_that_differs_in_the_output_is_explained(edits: set[Edit]) -> None:
    before, after = state(original), state(*_in_order(frozenset(edits)))
    found = between(before, after)
    assert found.objects == ()
    assert (found.worst is ChangeClass.NONE) == (before.tree == after.tree)


@settings(max_examples=10)
@given(_EDITS)
def test_a_platform_does_not_differ_from_itself(edits: set[Edit]) -> None:
    in_order = _in_order(frozenset(edits))
    assert between(loaded(*in_order), loaded(*in_order)) == Comparison((), ())


@settings(max_examples=10)
@given(_EDITS)
def test_the_way_back_is_a_change_too(edits: set[Edit]) -> None:
    before, after = state(original), state(*_in_order(frozenset(edits)))
    there, back = between(before, after), between(after, before)
    assert (there.worst is ChangeClass.NONE) == (back.worst is ChangeClass.NONE)
