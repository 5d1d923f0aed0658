"""Walks through plain data, and differences of two trees of it."""

from __future__ import annotations

from gpuplan.compiler.base.trees import ABSENT, leaves, unlike


def test_leaves_are_in_order_and_what_is_empty_is_one() -> None:
    tree = {"b": [1, {"c": None}], "a": {}, 7: []}

    assert [*leaves(tree)] == [(("b", 0), 1), (("b", 1, "c"), None), (("a",), {}), (("7",), [])]
    assert [*leaves("text")] == [((), "text")]


def test_what_is_absent_on_one_side_differs() -> None:
    one, other = {"a": {"b": 1}, "c": None}, {"a": {"b": 1, "d": 2}}

    assert [*unlike(one, other)] == [(("a", "d"), ABSENT, 2), (("c",), None, ABSENT)]
    assert [*unlike(one, one)] == []


def test_lists_are_compared_by_item_or_differ_as_a_whole_if_one_is_longer() -> None:
    one, other = {"l": [1, 2]}, {"l": [1, 3, 4]}

    assert [*unlike(one, other)] == [(("l", 1), 2, 3), (("l", 2), ABSENT, 4)]
    assert [*unlike(one, other, by_item=False)] == [(("l",), [1, 2], [1, 3, 4])]
    assert [*unlike([1, 2], [1, 3], by_item=False)] == [((1,), 2, 3)]


def test_values_of_two_kinds_differ_as_a_whole() -> None:
    assert [*unlike({"a": 1}, [1], ("x",))] == [(("x",), {"a": 1}, [1])]
