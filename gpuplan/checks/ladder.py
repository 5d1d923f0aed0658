"""Priority classes by value: which are above one, and below."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from gpuplan.planning.plan import PriorityClass
from gpuplan.wording import Tail


class Ladder:
    """Classes, lowest value first; what is above one of them is found without a look at all the others."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = sorted(classes, key=lambda found: found.value)
        self._values = [found.value for found in self._classes]
        self._names = [found.name for found in self._classes]

    def above(self, value: int) -> Sequence[PriorityClass]:
        return Tail(self._classes, bisect_right(self._values, value))

    def names_above(self, value: int) -> Sequence[str]:
        return Tail(self._names, bisect_right(self._values, value))

    def names_below(self, value: int) -> Sequence[str]:
        return self._names[: bisect_left(self._values, value)]
