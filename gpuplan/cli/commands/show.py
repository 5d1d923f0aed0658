"""`gpuplan show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from gpuplan.terminal.options import SCHEDULERS, cluster_option, pool_names, tenant_names, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, format_option, option, verb

if TYPE_CHECKING:
    from gpuplan.compiler.planning.plan import Plan
    from gpuplan.terminal.text import Theme

_FORMATS: Final = {
    "--summary": ("table", "wide", "markdown"),
    "--preemption": ("table", "wide", "markdown"),
    "--scheduler": ("table", "wide", "json", "yaml"),
    "--away": ("table", "wide"),
}
_ELSEWHERE: Final = {
    "--summary": " Programs count in json.",
    "--preemption": " Programs find it in json, as `evictions`.",
}
_WHOLE: Final = {
    "--scheduler": "--scheduler compares what whole clusters ask for",
    "--away": "--away shows the pools that its nodes are in",
}
_LONG: Final = 200
_SHORTER: Final = "`--summary` has a line for each cluster; `--pool NAME` and `--tenant NAME` show some.\n"


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
    "name",
    "markdown",
    "svg",
    "json",
    "yaml",
    what="A table as wide as the terminal, or with all columns; names as `gpuplan trace` takes them, one on a line;"
    " tables for a merge request; a picture; or the contract of `gpuplan schema plan`",
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
    from gpuplan.cli.views.showing import shown_plans, shown_preemption, shown_summary
    from gpuplan.compiler import pipeline
    from gpuplan.compiler.base.wording import joined
    from gpuplan.compiler.planning.selection import select
    from gpuplan.terminal.fitting import folded

    wanted = {"--summary": summary, "--preemption": preemption, "--scheduler": bool(scheduler), "--away": bool(away)}
    flags = [flag for flag, is_given in wanted.items() if is_given]
    if len(flags) > 1:
        raise click.UsageError(f"{joined(flags)} each show something else: give one of them.")
    for flag in flags:
        if format_ not in _FORMATS[flag]:
            raise click.UsageError(f"{flag} has no {format_}, but {joined(_FORMATS[flag])}.{_ELSEWHERE.get(flag, '')}")
        if (pools or tenants) and flag in _WHOLE:
            raise click.UsageError(f"{_WHOLE[flag]}: leave --pool and --tenant out.")
    report = pipeline.validate(terminal.root, clusters)
    theme = replace(terminal.out_theme, is_fitted=False) if format_ == "wide" else terminal.out_theme
    if scheduler:
        terminal.print(_compared(report.plans, scheduler, format_, theme))
    elif away:
        terminal.print(_without(report.plans, away, theme))
    else:
        shown = shown_summary if summary else shown_preemption if preemption else shown_plans
        text = shown(select(report.plans, pools, tenants), format_, theme)
        terminal.print(text)
        if format_ == "table" and not flags and text.count("\n") > _LONG:
            terminal.say(folded(_SHORTER, terminal.err_theme))
    if report.is_valid:
        return 0
    errors = tuple(diagnostic for diagnostic in report.diagnostics if diagnostic.is_error)
    write_findings(terminal, replace(report, diagnostics=errors), (), to_stderr=True)
    return 1


def _compared(plans: Sequence[Plan], scheduler: str, format_: str, theme: Theme) -> str:
    from gpuplan.cli.views.comparison import shown_comparisons
    from gpuplan.compiler.checks.comparison import compare
    from gpuplan.compiler.planning.schedulers import SCHEDULERS as TRAITS

    return shown_comparisons([compare(plan, TRAITS[scheduler]) for plan in plans], format_, theme)


def _without(plans: Sequence[Plan], away: Sequence[str], theme: Theme) -> str:
    from gpuplan.cli.views.outages import outage_page
    from gpuplan.compiler.planning.outages import find_away

    return "\n".join(outage_page(plan, found, theme) for plan, found in find_away(plans, away))
