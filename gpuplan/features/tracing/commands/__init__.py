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

    TARGET is a file below out/ or its line, an object, a line of a policy, or a document; PATH is a field in the object
    or document. With -, gpuplan reads objects of kubectl from stdin, and compares them with out/. For a value in out/,
    gpuplan shows the lines that it comes from. For a line of a policy, gpuplan shows the values that depend on it, and
    the Applications that sync them.

    \b
      gpuplan trace out/prod/scheduling/priorityclass-training.yaml:5
      gpuplan trace -c prod ResourceQuota/research/gpuplan spec.hard
      gpuplan trace policies/layouts.yaml:20
      gpuplan trace Pool/a100-mixed spec.sharing
      kubectl get resourcequota -n research -o yaml | gpuplan trace -c prod -
    """
