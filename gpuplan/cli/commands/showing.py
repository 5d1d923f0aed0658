"""The work of `gpuplan show`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import click

from gpuplan.cli.views.showing import shown_plans, shown_preemption, shown_summary
from gpuplan.compiler import pipeline
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.planning.selection import select
from gpuplan.terminal.fitting import folded
from gpuplan.terminal.formats import write_errors
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import late

_compare = late("gpuplan.compiler.checks.comparison:compare")
_shown_comparisons = late("gpuplan.cli.views.comparison:shown_comparisons")
_find_away = late("gpuplan.compiler.planning.outages:find_away")
_outage_page = late("gpuplan.cli.views.outages:outage_page")

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


def show(
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
        comparisons = [_compare(plan, SCHEDULERS[scheduler]) for plan in report.plans]
        terminal.print(_shown_comparisons(comparisons, format_, theme))
    elif away:
        terminal.print("\n".join(_outage_page(plan, nodes, theme) for plan, nodes in _find_away(report.plans, away)))
    else:
        shown = shown_summary if summary else shown_preemption if preemption else shown_plans
        text = shown(select(report.plans, pools, tenants), format_, theme)
        terminal.print(text)
        if format_ == "table" and not flags and text.count("\n") > _LONG:
            terminal.say(folded(_SHORTER, terminal.err_theme))
    return write_errors(terminal, report)
