"""Texts whose aliases stand for more than anybody would write are told apart before they are gone through."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.depth import has_few_aliases


def _rows(levels: int, row: str) -> str:
    names = "abcdefghij"
    return "".join(
        f"{names[level + 1]}: &{names[level + 1]} {row % ', '.join([f'*{names[level]}'] * 10)}\n"
        for level in range(levels)
    )


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param("a: b * c\n", True, id="no-alias"),
        pytest.param("a: &a [1, 2]\nb: *a\n", True, id="one"),
        pytest.param("a: &a [1]\n" + _rows(3, "[%s]"), True, id="a-thousand"),
        pytest.param("a: &a [1]\n" + _rows(8, "[%s]"), False, id="many"),
        pytest.param("a: &a {k: 1}\n" + _rows(8, "{<<: [%s]}"), False, id="merged"),
        pytest.param("a: &a 1\nb: *a\nc: " + "[" * 1_000_000, False, id="that-nest-too-deep"),
        pytest.param("a: &a [*a]\n", False, id="in-itself"),
        pytest.param("a: &a 1\nb: &a [*a]\n", False, id="in-itself-by-another's-name"),
    ],
)
def test_what_aliases_stand_for(text: str, verdict: bool) -> None:
    assert has_few_aliases(text) is verdict
