"""Throughput that was measured of partitions, as a document lists it or a table holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.catalog import parse_profile
from gpuplan.compiler.documents.remarks import MAX_FINDINGS
from gpuplan.features.packing.document import DemandedService, MeasuredThroughput
from gpuplan.features.packing.rules import THROUGHPUT_UNUSABLE
from gpuplan.features.packing.sizing.demand.tables import (
    RowDocument,
    Table,
    cells_of,
    number_in,
    plain,
    rest_unread,
    wrong_header,
)
from gpuplan.features.packing.sizing.needs import Throughput

Measured = tuple[Throughput, ...]

COLUMNS: Final = ("Mig instance", "Batch size", "Workload Number", "Throughput", "Latency")
"""Those of the profiles of ParvaGPU (SC'24), https://github.com/MunQ-Lee/ParvaGPU_SC24: compute slices, requests that
are answered together, processes, requests a second of each process, and seconds (it multiplies one by the processes and
the other by 1000 in src/data_load.c).
"""
_NAMES: Final = tuple(map(plain, COLUMNS))
_NO_VALUE: Final = frozenset(("", "n/a", "na", "nan", "-", "0"))
"""The cells for no measurement, such as of a batch that did not fit into the memory."""


def is_profile(table: Table) -> bool:
    return {"throughput", "latency"} <= table.names and "team" not in table.names


def measured_in(table: Table) -> tuple[Measured, tuple[Diagnostic, ...]]:
    """Return the measurements in the rows of a table; rows without any are left out."""
    renamed = {plain(column): column for column in table.columns}
    columns = (COLUMNS[_NAMES.index(plain(column))] if plain(column) in _NAMES else column for column in table.columns)
    canonical = replace(table, columns=tuple(columns))
    found = list(wrong_header(canonical, COLUMNS, [name for name in COLUMNS if plain(name) not in renamed]))
    if found:
        return (), tuple(found)
    measured: list[Throughput] = []
    for row in canonical.rows:
        if len(found) >= MAX_FINDINGS:
            found.append(rest_unread(canonical.file))
            break
        cells = cells_of(canonical, row)
        if any(cells.get(column, "").lower() in _NO_VALUE for column in COLUMNS[3:]):
            continue
        at = Origin(RowDocument(canonical, row, dict(cells)))
        read = _row(cells, canonical.separator)
        if isinstance(read, Throughput):
            measured.append(read)
            continue
        wanted = "a number above zero" if read != COLUMNS[0] else "a number of compute slices, or a MIG profile"
        finding = Finding(
            at / read,
            f"`{cells.get(read, '')}` is no {read.lower()}" if cells.get(read) else f"row has no {read.lower()}",
            label=wanted,
            help=f"write {wanted}, or `N/A` where nothing was measured",
        )
        found.append(THROUGHPUT_UNUSABLE.report(finding))
    return tuple(measured), tuple(found)


def _row(cells: Mapping[str, str], separator: str) -> Throughput | str:
    """The row, or the column that is wrong."""
    values = [number_in(cells.get(column, ""), separator) for column in COLUMNS]
    size, batch, processes, throughput, latency = values
    if not (parse_profile(size) if isinstance(size, str) else isinstance(size, int) and 1 <= size <= _MOST_SLICES):
        return COLUMNS[0]
    for column, value in zip(COLUMNS[1:3], (batch, processes), strict=True):
        if not isinstance(value, int) or not 1 <= value <= _MOST:
            return column
    for column, value in zip(COLUMNS[3:], (throughput, latency), strict=True):
        if isinstance(value, str) or not isfinite(value) or not 0 < value <= _MOST:
            return column
    number = int(processes)
    size = size if isinstance(size, str) else int(size)
    return Throughput(size, int(batch), number, float(throughput) * number, round(float(latency) * 1000, 6))


_MOST: Final = 1_000_000_000

_MOST_SLICES: Final = 8


def throughput_of(
    service: DemandedService, at: Origin, tables: Mapping[str, Measured]
) -> tuple[Measured, tuple[Diagnostic, ...]]:
    """Return the measurements of a service, and findings on those that cannot be used."""
    place = at / "throughput"
    if isinstance(service.throughput, str):
        measured = tables.get(service.throughput)
        if measured is None:
            finding = Finding(
                place,
                f"`{service.throughput}` is not among the files",
                label="not read",
                help=f"put the table beside this file, or name it: `gpuplan pack ... {service.throughput}`",
            )
            return (), (THROUGHPUT_UNUSABLE.report(finding),)
    else:
        found = tuple(_unknown_sizes(service.throughput, place))
        if found:
            return (), found
        measured = tuple(
            Throughput(
                item.size, item.batch, item.processes, float(item.requests_per_second), milliseconds(item.latency)
            )
            for item in service.throughput
        )
    return measured, tuple(_too_late(service, at, measured))


def _unknown_sizes(listed: Sequence[MeasuredThroughput], at: Origin) -> Iterator[Diagnostic]:
    for index, item in enumerate(listed):
        if isinstance(item.size, str) and parse_profile(item.size) is None:
            finding = Finding(
                at / index / "size",
                f"`{item.size}` is no MIG profile",
                label="not the name of one",
                help="write a number of compute slices, or a profile such as `2g.20gb`",
            )
            yield THROUGHPUT_UNUSABLE.report(finding)


def _too_late(service: DemandedService, at: Origin, measured: Measured) -> Iterator[Diagnostic]:
    """No partition, with as many processes as are allowed, answers in time."""
    allowed = [item for item in measured if item.processes <= service.max_processes]
    if not measured or not allowed:
        fewest = min((item.processes for item in measured), default=0)
        finding = Finding(
            at / ("maxProcesses" if measured else "throughput"),
            f"nothing was measured with at most {count(service.max_processes, 'process', 'processes')}"
            if measured
            else "nothing was measured",
            label=f"{fewest} are the fewest" if measured else "no row has a throughput",
            help=f"write `maxProcesses: {fewest}`" if measured else "measure at least one partition",
        )
        yield THROUGHPUT_UNUSABLE.report(finding)
        return
    if service.latency is None:
        return
    fastest = min(item.latency_ms for item in allowed)
    if fastest > milliseconds(service.latency):
        finding = Finding(
            at / "latency",
            f"no partition that was measured answers within {service.latency}",
            label=f"the fastest takes {fastest:g}ms",
            notes=(f"measured with at most {count(service.max_processes, 'process', 'processes')}",)
            if service.max_processes > 1
            else (),
            help=f"write `{fastest:g}ms` or more, or measure larger partitions or smaller batches",
        )
        yield THROUGHPUT_UNUSABLE.report(finding)


def milliseconds(latency: str) -> float:
    return float(latency.removesuffix("ms")) if latency.endswith("ms") else float(latency.removesuffix("s")) * 1000
