"""`gpuplan trace`."""

from __future__ import annotations

from dataclasses import replace

import click

from gpuplan.terminal.options import cluster_option, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import format_option, verb

STDIN = "-"


@verb("trace")
@click.argument("target")
@click.argument("path", default="")
@cluster_option
@format_option("table", "json", "yaml", what="A table for people, or the contract of `gpuplan schema trace`")
def command(terminal: Terminal, target: str, path: str, clusters: tuple[str, ...], format_: str) -> int:
    """Show where a value comes from, or what depends on a line.

    TARGET is a file below out/, or a line of one; an object; a line of a policy, or a document: PATH is a field in it.
    With - objects are read from stdin, as kubectl prints them, and compared with what is written for them. Of what is
    written each value is shown with the lines that it comes from, of a policy what depends on it, with what applies
    that.

    \b
      gpuplan trace out/prod/scheduling/priorityclass-training.yaml:5
      gpuplan trace -c prod ResourceQuota/research/gpuplan spec.hard
      gpuplan trace policies/layouts.yaml:20
      gpuplan trace Pool/a100-mixed spec.sharing
      kubectl get resourcequota -n research -o yaml | gpuplan trace -c prod -
    """
    from gpuplan.features.tracing import trace
    from gpuplan.features.tracing.views.trace import shown_tracing
    from gpuplan.terminal.text import printable

    objects = ""
    if target == STDIN:
        from gpuplan.features.tracing.live import LIST
        from gpuplan.terminal.lists import read_list

        objects = read_list(STDIN, LIST).decode("utf-8-sig", errors="replace")
    tracing = trace(terminal.root, target, path, clusters, objects=objects)
    is_summary = tracing.is_of_policy and not path and ":" not in target
    terminal.print(shown_tracing(tracing, format_, terminal.out_theme, is_summary=is_summary))
    for note in tracing.notes:
        terminal.say(f"{printable(note)}\n")
    report = tracing.report
    if report.is_valid:
        return 0
    errors = tuple(diagnostic for diagnostic in report.diagnostics if diagnostic.is_error)
    write_findings(terminal, replace(report, diagnostics=errors), (), to_stderr=True)
    return 1
