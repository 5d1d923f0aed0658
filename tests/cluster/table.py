"""What was planned and what the programs did, row by row."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

_WIDEST = (60, 40, 40)
"""Columns are no wider; what is longer goes on in the next line."""


@dataclass(frozen=True, slots=True)
class Row:
    scenario: str
    planned: str
    observed: str
    is_as_planned: bool

    @property
    def cells(self) -> tuple[str, str, str]:
        return self.scenario, self.planned, self.observed


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a run, in the order of the tests."""

    rows: list[Row] = field(default_factory=list)

    def record(self, scenario: str, planned: object, observed: object) -> None:
        """Write a row, also where it does not come out as planned; then it is an error."""
        self.rows.append(Row(scenario, _text(planned), _text(observed), observed == planned))
        assert observed == planned, f"{scenario}: planned {planned}, observed {observed}"

    def lines(self) -> Iterator[str]:
        """The table as text; rows that did not come out as planned are marked, and counted at the end."""
        rows = [Row("scenario", "planned", "observed", is_as_planned=True), *self.rows]
        wrapped = [[_wrapped(cell, width) for cell, width in zip(row.cells, _WIDEST, strict=True)] for row in rows]
        widths = [max(len(line) for cells in wrapped for line in cells[column]) for column in range(3)]
        for row, cells in zip(rows, wrapped, strict=True):
            for number, parts in enumerate(zip_longest(*cells, fillvalue="")):
                line = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
                yield line if row.is_as_planned or number else f"{line}  <- differs"
        differing = sum(not row.is_as_planned for row in self.rows)
        yield f"{len(self.rows)} rows, {f'{differing} of them not' if differing else 'all'} as planned"


def _wrapped(cell: str, width: int) -> list[str]:
    return textwrap.wrap(cell, width, break_on_hyphens=False) or [""]


def _text(value: object) -> str:
    """A value in words."""
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) or "none"
        case set() | frozenset():
            return _text(sorted(value))
        case Collection():
            return ", ".join(map(_text, value)) or "none"
        case _:
            return str(value)
