"""The work of `gpuplan pack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import click

from gpuplan.compiler.base.diagnostics import GpuplanError, has_errors
from gpuplan.compiler.documents.text import MAX_BYTES
from gpuplan.features.packing import computing
from gpuplan.features.packing.model import Packing
from gpuplan.features.packing.sizing import demand as demands
from gpuplan.features.packing.views.packing import NAMES, shown_alternatives, shown_packing, written
from gpuplan.terminal.formats import write_findings
from gpuplan.terminal.lists import content_below, contents
from gpuplan.terminal.session import Terminal


def pack(
    terminal: Terminal,
    demand: Sequence[str],
    clusters: Sequence[str],
    pools_: Sequence[str],
    objective: str,
    keep: Sequence[str],
    most_layouts: int | None,
    nodes_at_most: dict[str, int],
    basis: str,
    percentile: float,
    margin: Fraction,
    alternative: int | None,
    format_: str,
    *,
    write: bool,
    queries: bool,
    may_cut_guarantees: bool,
) -> int:
    if queries:
        terminal.print(demands.queries())
        return 0
    shown: list[Packing] = []

    def show(packing: Packing) -> None:
        """Show the answer as soon as it is there: alternatives may take longer than it."""
        terminal.doing("")
        terminal.print(shown_packing(packing, format_, terminal.out_theme))
        shown.append(packing)

    if len(clusters) > 1:
        raise click.UsageError("a demand is of one cluster: give --cluster once.")
    try:
        files = dict(contents(demand, "a Demand document, or a table"))
        named = demands.tables_beside(files)
        terminal = terminal.naming((*files, *(table.place for table in named)))
        tables = {table.place: content_below(table.folder, table.path, MAX_BYTES + 1) for table in named}
        packing = computing.pack(
            terminal.root,
            {**files, **{place: content for place, content in tables.items() if content is not None}},
            cluster="".join(clusters),
            pools=pools_,
            objective=objective,
            keep=keep,
            most_layouts=most_layouts,
            nodes_at_most=nodes_at_most,
            begin=lambda variation: terminal.doing(f"looking for an answer: {NAMES[variation]} ..."),
            basis=basis,
            percentile=percentile,
            margin=margin,
            may_cut_guarantees=may_cut_guarantees,
            answered=show if format_ == "table" and alternative is None else None,
        )
    finally:
        terminal.doing("")
    number = alternative or 0
    if packing.variants and number >= len(packing.variants):
        raise GpuplanError(
            f"there is no alternative {number}",
            f"there are {len(packing.alternatives)}; without the option all are listed",
        )
    if not shown:
        terminal.print(shown_packing(packing, format_, terminal.out_theme, number))
    if format_ == "table":
        terminal.print(shown_alternatives(packing, terminal.out_theme))
    return _end(terminal, packing, number, write=write)


def _end(terminal: Terminal, packing: Packing, number: int, *, write: bool) -> int:
    """Write findings, write the policies if asked to, and return the exit code."""
    variant = packing.variants[number] if packing.variants else None
    errors = tuple(diagnostic for diagnostic in packing.report.diagnostics if diagnostic.is_error)
    diagnostics = (*errors, *packing.diagnostics, *(variant.findings if variant else ()))
    if diagnostics:
        write_findings(terminal, replace(packing.report, diagnostics=diagnostics), (), to_stderr=True)
    if variant is None or not variant.is_valid or has_errors(diagnostics):
        if write:
            terminal.insist("nothing was written\n")
        return 1
    done = computing.write_packing(packing, terminal.root, number) if write else ()
    terminal.say(written(packing, variant, done, terminal.err_theme))
    return 0
