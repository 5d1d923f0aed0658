"""A test of many cases fails with the name of each case that breaks its law."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.every import Laws, assert_each, every, every_row


def test_each_case_that_fails_is_named_with_its_message() -> None:
    @every(range(5), lambda number: f"number {number}")
    def law(number: int) -> None:
        assert number < 3, f"{number} is too large"

    with pytest.raises(AssertionError) as caught:
        law()

    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 5 fail:"
    assert [line for line in lines if "number " in line] == ["number 3: 3 is too large", "number 4: 4 is too large"]


def test_an_error_is_a_failure_of_its_case_alone() -> None:
    @every_row([("one", "1"), ("two", "x"), ("three", "y")], lambda name, _: name)
    def law(_: str, text: str) -> None:
        int(text)

    with pytest.raises(AssertionError, match=r"(?s)2 of 3 fail:\ntwo: ValueError: .*'x'\nthree: ValueError: .*'y'"):
        law()


@pytest.mark.parametrize("end", [pytest.skip, pytest.fail])
def test_a_case_that_skips_or_fails_hides_no_other(end: Callable[[str], None]) -> None:
    def ends() -> None:
        end("here")

    def breaks() -> None:
        raise AssertionError("there")

    with pytest.raises(BaseException, match=r"2 of 2 fail:\na: \w+: here\nb: there"):  # a skip would skip this test
        assert_each([("a", ends), ("b", breaks)])


def test_no_case_is_a_failure() -> None:
    @every(tuple[str, ...]())
    def law(case: str) -> None:
        raise AssertionError(case)

    with pytest.raises(AssertionError, match="there is no case"):
        law()


def test_each_law_that_a_case_breaks_is_named() -> None:
    laws = Laws[int]()

    @laws
    def is_small(number: int) -> None:
        assert number < 3

    @laws
    def is_even(number: int) -> None:
        assert number % 2 == 0

    laws.assert_each(2)
    with pytest.raises(AssertionError, match=r"(?s)1 of 2 fail:\nis_small: "):
        laws.assert_each(4)
    with pytest.raises(AssertionError, match=r"(?s)2 of 2 fail:\nis_small: .*\nis_even: "):
        laws.assert_each(5)


def test_what_holds_for_each_case_passes() -> None:
    seen = list[int]()

    every([1, 2])(seen.append)()

    assert seen == [1, 2]
