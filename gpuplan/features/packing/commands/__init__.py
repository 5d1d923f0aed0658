"""The command `pack`, with its options and its help; the module beside does its work."""

from __future__ import annotations

from fractions import Fraction

import click

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.terminal.options import cluster_option, pool_names, refuse_clusters
from gpuplan.terminal.verbs import completing, format_option, option, verb

OBJECTIVES = ("gpus", "changes", "price")
"""The values of `gpuplan.features.packing.sizing.answers.Objective`, which help must not load."""

PERCENTILE = 95.0
MARGIN = "20%"
"""The defaults of `gpuplan.features.packing.sizing.needs`."""

BASES = ("guaranteed", "limit", "workloads")
"""The values of `gpuplan.features.packing.sizing.needs.Basis`."""

_PART = regex(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)(%?)")
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
    if part and text.isdecimal():
        raise click.BadParameter(f"{text} is ambiguous: type `{text}%` or `{text}00%`.", param=parameter)
    return part


def _read_percentile(_: click.Context, parameter: click.Parameter, number: float) -> float:
    if not 1 <= number <= 100:  # a range of click lets NaN pass
        raise click.BadParameter("use a number from 1 to 100.", param=parameter)
    return number


_PLAN_FOR_MORE = (
    "To plan for more than today, write `growth: 30%` or `burst` in a `Demand` document, or use `--basis limit`."
)


class _Objective(click.Choice[str]):
    """The objectives; who asks for the one that earlier versions had learns what to type."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "accepted":
            self.fail(f"`accepted` is gone; use {listing(OBJECTIVES, None, 'or')}. {_PLAN_FOR_MORE}", param, ctx)
        return super().convert(value, param, ctx)


@verb("packing")
@click.argument("demand", nargs=-1, metavar="[DEMAND...]", callback=refuse_clusters)
@cluster_option
@option(
    "--pool",
    "pools_",
    multiple=True,
    metavar="NAME",
    section="Selection",
    shell_complete=completing(pool_names),
    help="Only this pool; may be repeated [default: all pools whose GPUs can be partitioned].",
)
@option(
    "--objective",
    type=_Objective(OBJECTIVES),
    default="gpus",
    section="Input",
    help="The goal: fewest GPUs, fewest repartitioned nodes, or lowest price [default: gpus].",
)
@option(
    "--basis",
    type=click.Choice(BASES),
    default="guaranteed",
    section="Input",
    help="The demand of teams that no file names: the guarantees of their quotas, the limits of their quotas, or "
    "their workloads [default: guaranteed].",
)
@option(
    "--percentile",
    type=click.FloatRange(min=1, max=100),
    default=PERCENTILE,
    callback=_read_percentile,
    metavar="NUMBER",
    section="Input",
    help=f"Plan for this percentile of measured use [default: {PERCENTILE:g}].",
)
@option(
    "--margin",
    default=MARGIN,
    metavar="PERCENT",
    section="Input",
    callback=_read_margin,
    help=f"Add this much to the percentile of measured use [default: {MARGIN}].",
)
@option(
    "--may-cut-guarantees",
    is_flag=True,
    section="Input",
    help="Lower the guarantees of teams in the demand to their demand [default: keep guarantees].",
)
@option(
    "--keep",
    multiple=True,
    metavar="POOL|LAYOUT",
    section="Input",
    shell_complete=completing(pool_names),
    help="Do not repartition this pool, or the pools with this layout; may be repeated.",
)
@option(
    "--most-layouts", type=click.IntRange(min=1), metavar="N", section="Input", help="The most layouts of an answer."
)
@option(
    "--nodes-at-most",
    multiple=True,
    metavar="MODEL=N",
    section="Input",
    callback=_read_most,
    help="The most nodes of a GPU model; may be repeated [default: the existing nodes].",
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
    help="Print the command that asks Prometheus for the use of pods, as a demand, and end.",
)
@format_option(
    "table", "json", "markdown", "diff", help="For people, for programs, for a merge request, or as a patch of files"
)
def pack() -> None:
    """Compute how to partition the GPUs for a demand.

    DEMAND is `Demand` documents or tables with the units that teams need at once. Without DEMAND, gpuplan takes the
    guarantees of the platform's quotas. The answer lists pools, their layouts and each team's units, the reason why
    fewer are not enough, and the effects of the change. All numbers come from the policies of the answer. Nodes stay in
    their pools if possible.

    The exit code is 1 if the answer does not meet the demand, or cannot be written as policies. gpuplan then writes
    nothing.

    \b
      gpuplan pack -c prod                        # are the quotas cut well?
      gpuplan pack teams.yaml -c prod -o diff     # the policies for another demand
      gpuplan pack --queries                      # how to measure a demand
      gpuplan pack -c prod --keep a100-mixed --write
    """
