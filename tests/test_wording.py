"""Turns of phrase."""

from __future__ import annotations

from gpuplan.wording import closest, joined, listing


def test_words_are_joined_as_people_do() -> None:
    assert [joined(words) for words in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == ["", "a", "a and b", "a, b and c"]
    assert joined(("a", "b"), "or") == "a or b"


def test_a_long_list_of_names_ends_in_a_count() -> None:
    assert listing(("a", "b", "c", "d")) == "`a`, `b`, `c` and `d`"
    assert listing(("a", "b", "c", "d", "e")) == "`a`, `b`, `c`, `d` and 1 more"
    assert listing(("a", "b", "c"), 1, "or") == "`a` or 2 more"
    assert listing(tuple("abcdef"), None) == "`a`, `b`, `c`, `d`, `e` and `f`"
    assert listing(()) == ""


def test_a_misspelt_name_is_guessed_whatever_its_case() -> None:
    assert closest("TIMESLICING", ("timeSlicing", "mig")) == "timeSlicing"
    assert closest("a100-mxied", ("a100-mixed", "h100-whole")) == "a100-mixed"


def test_what_is_like_nothing_known_is_not_guessed() -> None:
    assert closest("zebra", ("timeSlicing", "mig")) is None
    assert closest("mig", ()) is None
    assert closest("migs", ("mig",), likeness=0.9) is None
