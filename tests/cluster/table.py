"""What was planned and what the programs did, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_WIDEST = 90


@dataclass(frozen=True, slots=True)
class Row:
    scenario: str
    planned: str
    observed: str

    @property
    def cells(self) -> tuple[str, str, str]:
        return self.scenario, self.planned, self.observed


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a run, in the order of the tests."""

    rows: list[Row] = field(default_factory=list)

    def record(self, scenario: str, planned: object, observed: object) -> None:
        """Write a row, also where it does not come out as planned; then it is an error."""
        self.rows.append(Row(scenario, str(planned), str(observed)))
        assert observed == planned, f"{scenario}: planned {planned}, observed {observed}"

    def lines(self) -> Iterator[str]:
        """The table as text; rows that did not come out as planned are marked, and few long cells move no column."""
        rows = [Row("scenario", "planned", "observed"), *self.rows]
        widths = [max(len(cell) for row in rows if len(cell := row.cells[column]) <= _WIDEST) for column in range(3)]
        for row in rows:
            marked = row is not rows[0] and row.planned != row.observed
            cells = "  ".join(cell.ljust(width) for cell, width in zip(row.cells, widths, strict=True))
            yield f"{cells.rstrip()}  <- differs" if marked else cells.rstrip()
