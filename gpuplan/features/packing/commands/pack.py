"""`gpuplan pack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.terminal.files import content_below, contents
from gpuplan.terminal.options import cluster_option, pool_names, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, format_option, option, verb

if TYPE_CHECKING:
    from gpuplan.features.packing import Packing

OBJECTIVES = ("gpus", "changes", "price")
"""The values of `gpuplan.features.packing.sizing.answers.Objective`, which help must not load."""

PERCENTILE = 95.0
MARGIN = "20%"
"""The defaults of `gpuplan.features.packing.sizing.needs`."""

BASES = ("guaranteed", "limit", "workloads")
"""The values of `gpuplan.features.packing.sizing.needs.Basis`."""

_MOST = regex(r"([A-Za-z0-9][A-Za-z0-9.-]*)=([0-9]{1,5})")


def _read_most(_: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    matches = [_MOST.fullmatch(text) for text in texts]
    if not all(matches):
        raise click.BadParameter("use a GPU model and a number of nodes, such as A100-80GB=12.", param=parameter)
    return {match[1]: int(match[2]) for match in matches if match}


def _read_margin(_: click.Context, parameter: click.Parameter, text: str) -> Fraction:
    match = _PART.fullmatch(text)
    part = Fraction(match[1]) / (100 if match[2] else 1) if match else None
    if part is None or part > 10:
        raise click.BadParameter("use a part such as 30% or 0.3, at most 1000%.", param=parameter)
    return part


_PART = regex(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)(%?)")

_PLAN_FOR_MORE = (
    "To plan for more than today, write `growth: 30%` or `burst` in a `Demand` document, or use `--basis limit`."
)


class _Objective(click.Choice[str]):
    """The objectives; who asks for the one that earlier versions had learns what to type."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "accepted":
            self.fail(f"`accepted` is gone; use {listing(OBJECTIVES, None, 'or')}. {_PLAN_FOR_MORE}", param, ctx)
        return super().convert(value, param, ctx)


def _refuse_tolerance(_: click.Context, __: click.Parameter, text: str | None) -> None:
    if text is not None:
        raise click.UsageError(f"there is no `--tolerance` any more. {_PLAN_FOR_MORE}")


@verb("pack")
@click.argument("demand", nargs=-1, metavar="[DEMAND...]")
@cluster_option
@option(
    "--pool",
    "pools_",
    multiple=True,
    metavar="NAME",
    section="Selection",
    shell_complete=completing(pool_names),
    help="Only this pool; may be repeated [default: all whose GPUs can be cut].",
)
@option(
    "--objective",
    type=_Objective(OBJECTIVES),
    default="gpus",
    section="Input",
    help="What the answer is best in: fewest GPUs, fewest nodes cut otherwise, or lowest price [default: gpus].",
)
@option(
    "--basis",
    type=click.Choice(BASES),
    default="guaranteed",
    section="Input",
    help="What teams ask for that no file names: what their quotas guarantee, the limits of these, or what their "
    "workloads run [default: guaranteed].",
)
@option("--tolerance", hidden=True, expose_value=False, callback=_refuse_tolerance)
@option(
    "--percentile",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=PERCENTILE,
    metavar="NUMBER",
    section="Input",
    help=f"Of measured use, plan for what so many of 100 samples stay within [default: {PERCENTILE:g}].",
)
@option(
    "--margin",
    default=MARGIN,
    metavar="PERCENT",
    section="Input",
    callback=_read_margin,
    help=f"Of measured use, plan for so much more than that [default: {MARGIN}].",
)
@option(
    "--keep",
    multiple=True,
    metavar="POOL|LAYOUT",
    section="Input",
    shell_complete=completing(pool_names),
    help="Leave this pool, or the pools with this layout, cut as they are; may be repeated.",
)
@option("--most-layouts", type=click.IntRange(min=1), metavar="N", section="Input", help="No more layouts than these.")
@option(
    "--nodes-at-most",
    multiple=True,
    metavar="MODEL=N",
    section="Input",
    callback=_read_most,
    help="How many nodes of a GPU model there may be; may be repeated [default: those that there are].",
)
@option(
    "--alternative",
    type=click.IntRange(min=1),
    metavar="N",
    section="Mode",
    help="Show, or write, the Nth of the alternatives in place of the answer.",
)
@option("--write", is_flag=True, section="Mode", help="Write the policies of the answer, all files or none.")
@option(
    "--queries",
    is_flag=True,
    section="Mode",
    help="Print the command that asks Prometheus for what pods use, as a demand, and end.",
)
@format_option(
    "table", "json", "markdown", "diff", what="For people, for programs, for a merge request, or as a patch of files"
)
def command(
    terminal: Terminal,
    demand: tuple[str, ...],
    clusters: tuple[str, ...],
    pools_: tuple[str, ...],
    objective: str,
    keep: tuple[str, ...],
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
) -> int:
    """Compute how GPUs are best cut for a demand, as a patch of policies.

    DEMAND is `Demand` documents or tables: what teams need at once. Without, it is what the quotas of the platform
    guarantee. The answer says which pools there are, how their GPUs are cut and who gets what of them, why it cannot
    be less, and what the change disturbs; every number is that of the policies that it makes. Nodes stay in their
    pools as far as they can.

    It ends with 1 where the demand is not met, or no policies can be made of the answer; then nothing is written.

    \b
      gpuplan pack -c prod                        # are the quotas cut well?
      gpuplan pack teams.yaml -c prod -o diff     # the policies for another demand
      gpuplan pack --queries                      # how to measure a demand
      gpuplan pack -c prod --keep a100-mixed --write
    """
    from gpuplan.compiler.base.diagnostics import GpuplanError
    from gpuplan.features.packing import pack
    from gpuplan.features.packing.sizing.demand import queries as asked_of_prometheus
    from gpuplan.features.packing.views.packing import NAMES, shown_packing

    if queries:
        terminal.print(asked_of_prometheus())
        return 0
    if len(clusters) > 1:
        raise click.UsageError("a demand is of one cluster: give --cluster once.")
    try:
        packing = pack(
            terminal.root,
            _demand(demand),
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
        )
    finally:
        terminal.doing("")
    number = alternative or 0
    if packing.variants and number >= len(packing.variants):
        raise GpuplanError(
            f"there is no alternative {number}",
            f"there are {len(packing.alternatives)}; without the option all are listed",
        )
    terminal.print(shown_packing(packing, format_, terminal.out_theme, number))
    return _end(terminal, packing, number, write=write)


def _demand(names: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a demand by name, with the tables that they name."""
    if not names:
        return {}
    from gpuplan.compiler.documents.text import MAX_BYTES
    from gpuplan.features.packing.sizing.demand import tables_beside

    files = dict(contents(names, "a Demand document, or a table"))
    tables = {table.place: content_below(table.folder, table.path, MAX_BYTES + 1) for table in tables_beside(files)}
    return {**files, **{place: content for place, content in tables.items() if content is not None}}


def _end(terminal: Terminal, packing: Packing, number: int, *, write: bool) -> int:
    """Print findings and what was written, and return the exit code."""
    from gpuplan.features.packing import write_packing
    from gpuplan.features.packing.views.packing import written

    variant = packing.variants[number] if packing.variants else None
    errors = tuple(one for one in packing.report.diagnostics if one.is_error)
    findings = (*errors, *packing.diagnostics, *(variant.findings if variant else ()))
    if findings:
        write_findings(terminal, replace(packing.report, diagnostics=findings), (), to_stderr=True)
    if variant is None or not variant.is_valid or any(one.is_error for one in findings):
        if write:
            terminal.insist("nothing was written\n")
        return 1
    done = write_packing(packing, terminal.root, number) if write else ()
    terminal.say(written(packing, variant, done, terminal.err_theme))
    return 0
