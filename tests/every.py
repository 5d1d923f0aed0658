"""A test of many cases at once: it names each case that fails, not only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from inspect import Signature
from textwrap import indent
from typing import TypeVar, TypeVarTuple, Unpack

import pytest

_Case = TypeVar("_Case")
_Parts = TypeVarTuple("_Parts")
FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""A case that skips counts as failed: otherwise it would skip all cases after it."""


def every(
    cases: Iterable[_Case], name: Callable[[_Case], str] = str
) -> Callable[[Callable[[_Case], None]], Callable[[], None]]:
    """Make one test of a function that takes a case; `parametrize` would make a test for each case."""
    return every_row([(case,) for case in cases], name)


def every_row(
    rows: Iterable[tuple[*_Parts]], name: Callable[[Unpack[_Parts]], str]
) -> Callable[[Callable[[Unpack[_Parts]], None]], Callable[[], None]]:
    """Make one test of a function that takes the values of a row, as `every` does for one value."""
    listed = [*rows]

    def of(law: Callable[[Unpack[_Parts]], None]) -> Callable[[], None]:
        @wraps(law)
        def test() -> None:
            assert_each((name(*row), partial(law, *row)) for row in listed)

        test.__signature__ = Signature()  # type: ignore[attr-defined]  # pytest takes parameters for fixtures
        return test

    return of


class Laws(list[Callable[[_Case], None]]):
    """The functions that one test runs for a case; each is decorated with the list that it stands in."""

    def __call__(self, law: Callable[[_Case], None]) -> Callable[[_Case], None]:
        self.append(law)
        return law

    def assert_each(self, case: _Case) -> None:
        assert_each((law.__name__, partial(law, case)) for law in self)


def assert_each(checks: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Run all checks, and fail with the name and the message of each that fails, or if there is no check."""
    __tracebackhide__ = True
    listed, failures = [*checks], list[tuple[str, BaseException]]()
    assert listed, "there is no case to check"
    for name, check in listed:
        try:
            check()
        except FAILURES as failure:
            failures.append((name, failure))
    if failures:
        lines = [f"{name}: {indent(_message(failure), '    ').lstrip()}" for name, failure in failures]
        raise AssertionError("\n".join((f"{len(failures)} of {len(listed)} fail:", *lines))) from failures[0][1]


def _message(failure: BaseException) -> str:
    return str(failure) if isinstance(failure, AssertionError) else f"{type(failure).__name__}: {failure}"
