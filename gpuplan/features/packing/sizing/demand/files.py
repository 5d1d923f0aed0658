"""Demand from files: which reader each is for is told by what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from posixpath import dirname, join, normpath
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.packing.rules import NO_DEMAND
from gpuplan.features.packing.sizing.demand.asked import (
    MOST_NEEDS,
    Asked,
    asked_in_documents,
    asked_in_table,
    is_demand,
    tables_named,
    too_many,
)
from gpuplan.features.packing.sizing.demand.measured import (
    Series,
    is_range_query,
    is_use,
    needs_of_use,
    read_range_query,
    use_in_table,
)
from gpuplan.features.packing.sizing.demand.profiles import Measured, is_profile, measured_in
from gpuplan.features.packing.sizing.demand.tables import Table, read_table
from gpuplan.features.packing.sizing.demand.teams import need_of, platform_of
from gpuplan.features.packing.sizing.needs import MARGIN, PERCENTILE, Need


def from_files(
    files: Mapping[str, bytes], plan: Plan | None = None, *, percentile: float = PERCENTILE, margin: Fraction = MARGIN
) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
    """The needs that files ask for: `Demand` documents and tables in their order, then what was measured.

    ``percentile`` is that of samples, above 0 and at most 100, and ``margin`` the part that comes on top of it.

    Tables of throughput that they name are among the files, by their path from the same place (`tables_beside`). With a
    plan, teams are its tenants.
    """
    read = _Read(files)
    needs: list[Need] = []
    found = [*read.diagnostics]
    platform = platform_of(plan)
    for item in read.asked:
        folder = dirname(item.at.locate().file.path) if item.work.service else ""
        named = ((path, Beside(folder, path).place) for _, path in tables_named([item]))
        tables = {path: read.profiles[place] for path, place in named if place in read.profiles}
        need, wrong = need_of(item.work, item.at, platform, tables, item.growth)
        found += wrong
        needs += [need] if need else []
    if read.series:
        measured, told = needs_of_use(read.series, platform, percentile, margin)
        needs += measured[:MOST_NEEDS]
        found += (*told, *(too_many(need.at) for need in measured[MOST_NEEDS : MOST_NEEDS + 1] if need.at))
    return tuple(needs), tuple(found)


def tables_beside(files: Mapping[str, bytes]) -> tuple[Beside, ...]:
    """The files with measured throughput that the given ones name and that are not among them, sorted."""
    given = {normpath(name) for name in files}
    naming = {name: content for name, content in files.items() if _MAY_NAME_TABLES.search(content)}
    named = {Beside(dirname(item.at.locate().file.path), path) for item, path in tables_named(_Read(naming).asked)}
    return tuple(sorted(table for table in named if table.place not in given))


_MAY_NAME_TABLES: Final = re.compile(rb"throughput|\\")
"""The field, or an escape, with which a key of YAML may be written otherwise."""


class Beside(NamedTuple):
    """A table that a file in ``folder`` names by its ``path`` from there."""

    folder: str
    path: str

    @property
    def place(self) -> str:
        """The name that it has among files."""
        return normpath(join(self.folder, self.path))


class _Read:
    """All files, each by its reader."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.asked: list[Asked] = []
        self.profiles: dict[str, Measured] = {}
        self.series: list[Series] = []
        self.diagnostics: list[Diagnostic] = []
        for name, content in files.items():
            if is_range_query(content):
                series, found = read_range_query(name, content)
                self.series += series
            elif _IS_DOCUMENT.search(content[:_HEAD]):
                asked, found = asked_in_documents(name, content, len(self.asked))
                self.asked += asked
            else:
                found = self._read_table(name, content)
            self.diagnostics += found

    def _read_table(self, name: str, content: bytes) -> tuple[Diagnostic, ...]:
        table, unread = read_table(name, content)
        if table is None:
            return unread
        if is_profile(table):
            self.profiles[normpath(name)], found = measured_in(table)
        elif is_demand(table):
            asked, found = asked_in_table(table, len(self.asked))
            self.asked += asked
        elif is_use(table):
            series, found = use_in_table(table)
            self.series += series
        else:
            found = (_nothing(name, table),)
        return (*unread, *found)


_HEAD: Final = 2**16
_IS_DOCUMENT: Final = re.compile(rb"""(?m)^\s*(?:[{]\s*)?["']?(?:apiVersion|kind|metadata|spec)["']?\s*:""")


def _nothing(name: str, table: Table) -> Diagnostic:
    what = "is empty" if not table.columns else "says no demand"
    finding = Finding(
        Origin(WholeFile(SourceFile(name, ""))) if not table.columns else table.header,
        f"`{name}` {what}",
        label="" if not table.columns else "neither a demand nor a measurement",
        notes=(
            "a document has `kind: Demand`",
            "a table of demand has the columns `team`, `pods` and `memory`",
            "a table of throughput has the columns `Throughput` and `Latency`",
        ),
        help="write `kind: Demand`, or a first row with the names of columns",
    )
    return NO_DEMAND.report(finding)
