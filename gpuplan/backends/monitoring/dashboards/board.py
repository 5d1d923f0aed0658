"""What a dashboard shows, in words that Grafana and OpenShift's console share."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple


class Format(StrEnum):
    """How a number is read; the values are Grafana's ids of units.

    The console knows some of them and shows plain numbers for the others, so that titles name what is measured.
    """

    COUNT = "none"
    PART = "percentunit"
    BYTES = "bytes"
    CELSIUS = "celsius"
    WATTS = "watt"


class Stat(NamedTuple):
    """One number; ``is_bad_above`` is where it stops being well, None where it never does."""

    title: str
    about: str
    expr: str
    is_bad_above: int | None = None


class Graph(NamedTuple):
    """Numbers over time; ``legend`` names a series by its labels."""

    title: str
    about: str
    expr: str
    legend: str
    format: Format
    is_stacked: bool = False


class Column(NamedTuple):
    """A column of numbers; without a title it is not shown, and only says which rows there are."""

    title: str
    expr: str
    format: Format = Format.COUNT


class Table(NamedTuple):
    """Numbers as they are now.

    ``labels`` are the columns that name a row, as label and title. Every expression has exactly these labels: that is
    how rows of several expressions are joined.
    """

    title: str
    about: str
    labels: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    is_narrow: bool = False


Panel = Stat | Graph | Table


class Variable(NamedTuple):
    """A choice among the values of a label; all are chosen at first. ``$name`` stands for it after ``=~``."""

    name: str
    title: str
    metric: str


class Row(NamedTuple):
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


class Board(NamedTuple):
    """A dashboard. ``uid`` is what links to it hold."""

    uid: str
    title: str
    tags: tuple[str, ...]
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]


COLUMNS: Final = 12
"""Of the grid that panels are laid out on, as the console counts; Grafana has two for each."""


def width(panel: Panel) -> int:
    """How many columns a panel takes."""
    match panel:
        case Stat():
            return COLUMNS // 4
        case Graph():
            return COLUMNS // 2
        case Table():
            return COLUMNS // 2 if panel.is_narrow else COLUMNS


def ref_ids() -> Iterator[str]:
    """Names of the expressions of one panel: A, B and so on."""
    return iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
