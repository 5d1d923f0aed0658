"""What became of each document: it stays, goes, comes, or has another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)


def successors(
    before: Sequence[_Part], after: Sequence[_Part], is_same: Callable[[_Part, _Part], bool]
) -> Iterator[tuple[_Part | None, _Part | None]]:
    """Each part and what became of it, and each that is new; one that ``is_same`` as another that goes was renamed."""
    old, new = ({part.name: part for part in side} for side in (before, after))
    come = [part for name, part in new.items() if name not in old]
    for part in (part for name, part in old.items() if name not in new):
        successor = next((other for other in come if is_same(part, other)), None)
        if successor is not None:
            come.remove(successor)
        yield part, successor
    yield from ((None, part) for part in come)
    yield from ((old[name], new[name]) for name in old if name in new)
