"""Priority classes by value: which are above one, and below."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

from gpuplan.planning.plan import PriorityClass

Item = TypeVar("Item")


class Ladder:
    """Classes, lowest value first; what is above one of them is found without a look at all the others."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = sorted(classes, key=lambda found: found.spec.value)
        self._values = [found.spec.value for found in self._classes]
        self._names = [found.name for found in self._classes]

    def above(self, value: int) -> Sequence[PriorityClass]:
        return Tail(self._classes, bisect_right(self._values, value))

    def names_above(self, value: int) -> Sequence[str]:
        return Tail(self._names, bisect_right(self._values, value))

    def names_below(self, value: int) -> Sequence[str]:
        return self._names[: bisect_left(self._values, value)]


class Tail(Sequence[Item]):
    """What is in a list from an index on, without a copy: of each of ten thousand, what comes after it."""

    __slots__ = ("_items", "_start")

    def __init__(self, items: Sequence[Item], start: int) -> None:
        self._items = items
        self._start = start

    def __len__(self) -> int:
        return len(self._items) - self._start

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self._items[start + self._start : stop + self._start : step]
        return self._items[range(len(self))[index] + self._start]
