"""`gpuplan show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gpuplan.cli.commands import completing, format_option, option, verb
from gpuplan.cli.options import SCHEDULERS, cluster_option, pool_names, tenant_names, write_findings
from gpuplan.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpuplan.planning.plan import Plan
    from gpuplan.views.text import Theme

_FOR_PEOPLE = ("table", "wide")


@verb("show")
@cluster_option
@option(
    "--pool",
    "pools",
    metavar="NAME",
    multiple=True,
    section="Selection",
    shell_complete=completing(pool_names),
    help="Only pools of this name, in which * and ? stand for others, with the tenants and workloads there; may be"
    " repeated [default: all].",
)
@option(
    "--tenant",
    "tenants",
    metavar="NAME",
    multiple=True,
    section="Selection",
    shell_complete=completing(tenant_names),
    help="Only tenants of this name, and those that are part of them, with their pools, workloads, and who evicts whom;"
    " may be repeated [default: all].",
)
@format_option(
    "table",
    "wide",
    "json",
    "yaml",
    what="A table that fits the terminal, all columns, or the contract of `gpuplan schema plan`",
)
@option("--summary", is_flag=True, section="Output", help="One line for each cluster.")
@option(
    "--scheduler",
    type=click.Choice(SCHEDULERS),
    section="Output",
    help="Instead of the plan, what the policy gains and loses by this scheduler (`gpuplan schema comparison`).",
)
@option("--preemption", is_flag=True, section="Output", help="Instead of the plan, who can evict whom.")
@option(
    "--away",
    "away",
    metavar="NODE[:GPU]",
    multiple=True,
    section="Output",
    help="Instead of the plan, what is left while a node, one of its GPUs, or any node of a pool is away, and which "
    "guarantees do not hold; may be repeated.",
)
def command(
    terminal: Terminal,
    clusters: tuple[str, ...],
    pools: tuple[str, ...],
    tenants: tuple[str, ...],
    format_: str,
    scheduler: str | None,
    away: tuple[str, ...],
    *,
    summary: bool,
    preemption: bool,
) -> int:
    """Show the resolved plan: pools, capacity, tenants, what is free.

    Clusters whose policies have errors are shown as far as they could be planned; the errors are on stderr, and the
    exit code is then 1.

    \b
      gpuplan show --cluster prod
      gpuplan show --pool 'a100-*' --tenant research   what is theirs of these pools
      gpuplan show --output-format json | jq '.clusters[].pools[].units'
      gpuplan show --cluster prod --scheduler kai   what another scheduler would change
      gpuplan show --cluster prod --preemption      who can evict whom
      gpuplan show --cluster prod --away gpu-3:0    what holds while that GPU is away
    """
    from gpuplan import pipeline
    from gpuplan.planning.selection import select
    from gpuplan.views.plan import shown_plans

    if (summary or preemption or away) and format_ not in _FOR_PEOPLE:
        flag = "--summary" if summary else "--preemption" if preemption else "--away"
        raise click.UsageError(f"{flag} is for people, {format_} for programs, which find all of it in the plan.")
    if sum((summary, preemption, scheduler is not None, bool(away))) > 1:
        flags = "--summary, --preemption, --scheduler and --away"
        raise click.UsageError(f"{flags} each show something else: give one of them.")
    if (pools or tenants) and scheduler:
        raise click.UsageError("--scheduler compares what a whole cluster asks for: leave --pool and --tenant out.")
    if (pools or tenants) and away:
        raise click.UsageError("--away shows the pools that its nodes are in: leave --pool and --tenant out.")
    report = pipeline.validate(terminal.root, clusters)
    theme = replace(terminal.out_theme, is_fitted=False) if format_ == "wide" else terminal.out_theme
    if scheduler:
        terminal.print(_compared(report.plans, scheduler, format_, theme))
    elif away:
        terminal.print(_without(report.plans, away, theme))
    else:
        page = "summary" if summary else "preemption" if preemption else format_
        terminal.print(shown_plans(select(report.plans, pools, tenants), page, theme))
    if report.is_valid:
        return 0
    errors = tuple(diagnostic for diagnostic in report.diagnostics if diagnostic.is_error)
    write_findings(terminal, replace(report, diagnostics=errors), (), to_stderr=True)
    return 1


def _compared(plans: Sequence[Plan], scheduler: str, format_: str, theme: Theme) -> str:
    from gpuplan.checks.comparison import compare
    from gpuplan.planning.schedulers import SCHEDULERS as TRAITS
    from gpuplan.views.comparison import shown_comparisons

    return shown_comparisons([compare(plan, TRAITS[scheduler]) for plan in plans], format_, theme)


def _without(plans: Sequence[Plan], away: Sequence[str], theme: Theme) -> str:
    from gpuplan.planning.outages import find_away
    from gpuplan.views.outages import outage_page

    return "\n".join(outage_page(plan, found, theme) for plan, found in find_away(plans, away))
