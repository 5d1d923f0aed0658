"""`gpuplan show`."""

from __future__ import annotations

from dataclasses import replace

import click

from gpuplan.cli.commands import Verb, format_option, option
from gpuplan.cli.options import cluster_option, write_findings
from gpuplan.cli.terminal import Terminal


@click.command("show", cls=Verb)
@cluster_option
@format_option("table", "json", "yaml", what="A table for people, or the contract of `gpuplan schema plan`")
@option("--summary", is_flag=True, section="Output", help="One line for each cluster.")
@click.pass_context
def command(context: click.Context, clusters: tuple[str, ...], format_: str, *, summary: bool) -> None:
    """Show the resolved plan: pools, capacity, tenants, what is free.

    Clusters whose policies have errors are shown as far as they could be planned; the errors are on stderr, and the
    exit code is then 1.

    \b
      gpuplan show --cluster prod
      gpuplan show --output-format json | jq '.clusters[].pools[].units'
    """
    from gpuplan import pipeline
    from gpuplan.views.plan import shown_plans

    if summary and format_ != "table":
        raise click.UsageError(f"--summary is for people, {format_} for programs.")
    terminal = Terminal.of(context)
    report = pipeline.validate(terminal.root, clusters)
    terminal.print(shown_plans(report.plans, "summary" if summary else format_, terminal.out_theme))
    if not report.is_valid:
        errors = tuple(diagnostic for diagnostic in report.diagnostics if diagnostic.is_error)
        write_findings(terminal, replace(report, diagnostics=errors), (), to_stderr=True)
        context.exit(1)
