"""Texts of other languages that back ends keep as data: expressions of CEL, rules of Prometheus."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from gpuplan.compiler.base.patterns import regex

Row = Mapping[str, Any]
"""Something that a data file lists; ``if`` and ``unless`` name facts, one or several of which one is enough."""

_PLACE: Final = regex("<([a-z_]+)>")


@cache
def read_rows(file: Path) -> Row:
    """Read a data file."""
    rows: Row = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return rows


def rows_for(facts: Collection[str], rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that belong where these facts hold, and no others."""
    for row in rows:
        if ("if" not in row or _holds(row["if"], facts)) and not _holds(row.get("unless", ()), facts):
            yield row


def _holds(wanted: str | Iterable[str], facts: Collection[str]) -> bool:
    return wanted in facts if isinstance(wanted, str) else any(fact in facts for fact in wanted)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with a value in each place ``<name>``; a ``KeyError`` where there is none for it."""
    return _PLACE.sub(lambda match: values[match[1]], text)


def places_in(text: str) -> list[str]:
    """The names of the places that `filled` fills in."""
    return _PLACE.findall(text)


def filled_body(part: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - anything that YAML holds
    """A part of an object with values in its places: a text that is a place alone becomes the value, whatever it is.

    A field whose value is None is left out.
    """
    match part:
        case dict():
            found = {key: filled_body(item, values) for key, item in part.items()}
            return {key: item for key, item in found.items() if item is not None}
        case list():
            return [filled_body(item, values) for item in part]
        case str():
            place = _PLACE.fullmatch(part)
            return values[place[1]] if place else filled(part, values)
        case _:
            return part
