"""The differences between two states of a document's data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple


class Difference(NamedTuple):
    """The route of a value that differs, in either state. A list's item that comes or goes has one in one of them."""

    old: Path | None
    new: Path | None


def differences(old: object, new: object) -> Iterator[Difference]:
    """The smallest values that differ, in the order of the new state, then what is gone."""
    return _differences(old, new, (), ())


def _differences(old: object, new: object, was: Path, here: Path) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*new, *old)):
            if key in old and key in new:
                yield from _differences(old[key], new[key], (*was, key), (*here, key))
            else:
                yield Difference((*was, key), (*here, key))
    elif isinstance(old, Sequence) and isinstance(new, Sequence) and not isinstance(old, str):
        most = min(len(old), len(new))
        start = next((index for index in range(most) if old[index] != new[index]), most)
        end = next((index for index in range(most - start) if old[-1 - index] != new[-1 - index]), most - start)
        for index in range(start, max(len(old), len(new)) - end):
            if index >= len(new) - end:
                yield Difference((*was, index), None)
            elif index >= len(old) - end:
                yield Difference(None, (*here, index))
            else:
                yield from _differences(old[index], new[index], (*was, index), (*here, index))
    elif type(old) is not type(new) or old != new:
        yield Difference(was, here)
