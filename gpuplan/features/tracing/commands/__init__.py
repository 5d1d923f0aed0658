"""The command `trace`, with its options and its help; the module beside does its work."""

from __future__ import annotations

import click

from gpuplan.terminal.options import cluster_option
from gpuplan.terminal.verbs import format_option, verb


@verb("tracing")
@click.argument("target")
@click.argument("path", default="")
@cluster_option
@format_option("table", "json", "yaml", help="A table, or data of `gpuplan schema trace`")
def trace() -> None:
    """Show where a value comes from, or what depends on a line.

    TARGET is a file below out/ or a line of the file, an object, a line of a policy, or a document. PATH is a field in
    TARGET. With - gpuplan reads objects from stdin, as kubectl prints them, and compares them with the files in out/.
    For a file in out/, each value is shown with the policy lines that it comes from. For a policy, everything that
    depends on it is shown, with the Application that applies it.

    \b
      gpuplan trace out/prod/scheduling/priorityclass-training.yaml:5
      gpuplan trace -c prod ResourceQuota/research/gpuplan spec.hard
      gpuplan trace policies/layouts.yaml:20
      gpuplan trace Pool/a100-mixed spec.sharing
      kubectl get resourcequota -n research -o yaml | gpuplan trace -c prod -
    """
