"""Walk through plain data, and compare two trees of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path

ABSENT: Final = object()
"""A mark for a value that is absent, since None may be a value."""


def leaves(value: object, route: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield each value without parts, in order, with its route. An empty mapping or list is such a value."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from leaves(part, (*route, str(key)))
    elif isinstance(value, list | tuple) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*route, index))
    else:
        yield route, value


def unlike(
    one: object, other: object, route: Path = (), *, by_item: bool = True
) -> Iterator[tuple[Path, object, object]]:
    """Yield the routes at which two trees differ, with both values, either of which may be `ABSENT`.

    Lists of unequal length are compared item by item, or differ as a whole if not ``by_item``.
    """
    pairs: Iterator[tuple[Any, object, object]] | None = None
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        pairs = ((key, one.get(key, ABSENT), other.get(key, ABSENT)) for key in {**one, **other})
    elif isinstance(one, list) and isinstance(other, list) and (by_item or len(one) == len(other)):
        both = enumerate(zip_longest(one, other, fillvalue=ABSENT))
        pairs = ((index, item, another) for index, (item, another) in both)
    if pairs is not None:
        for key, part, another in pairs:
            yield from unlike(part, another, (*route, key), by_item=by_item)
    elif one != other:
        yield route, one, other
