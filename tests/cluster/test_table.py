"""The table says what was planned and what was observed, and where the two differ."""

from __future__ import annotations

import pytest

from tests.cluster.table import Table


def lines(*rows: tuple[str, object, object]) -> list[str]:
    table = Table()
    for scenario, planned, observed in rows:
        if planned == observed:
            table.record(scenario, planned, observed)
        else:
            with pytest.raises(AssertionError, match=f"{scenario}: planned {planned}, observed {observed}"):
                table.record(scenario, planned, observed)
    return list(table.lines())


def test_columns_are_as_wide_as_their_cells() -> None:
    assert lines(("pods of a", 3, 3), ("a", "waits", "waits")) == [
        "scenario   planned  observed",
        "pods of a  3        3",
        "a          waits    waits",
        "2 rows, all as planned",
    ]


def test_what_differs_is_marked_and_counted() -> None:
    """Also where it reads alike."""
    assert lines(("a", 3, 4), ("b", 3, "3"), ("c", 1, 1))[1:] == [
        "a         3        4  <- differs",
        "b         3        3  <- differs",
        "c         1        1",
        "3 rows, 2 of them not as planned",
    ]


def test_long_cells_go_on_below() -> None:
    words = " ".join(["word"] * 9)
    assert lines((words, words, words))[1:-1] == [f"{words}  {words[:39]}  {words[:39]}", f"{'':44}  {'word':39}  word"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "none"),
        (False, "no"),
        ([True, False], "yes, no"),
        ((24, 1), "24, 1"),
        ({"b", "a"}, "a, b"),
        ((6, {"OverLimit"}), "6, OverLimit"),
        ({"nvidia.com/gpu": 8}, "nvidia.com/gpu: 8"),
        ({}, "none"),
        ("a b", "a b"),
        (None, "None"),
    ],
)
def test_values_are_in_words(value: object, text: str) -> None:
    table = Table()
    table.record("", value, value)
    assert [row.planned for row in table.rows] == [text]
