"""`gpuplan version`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Verb, format_option
from gpuplan.cli.terminal import Terminal


@click.command("version", cls=Verb)
@format_option("text", "json")
@click.pass_context
def command(context: click.Context, format_: str) -> None:
    """Print the version and what this gpuplan knows."""
    from gpuplan.views.version import version_json, version_text

    Terminal.of(context).print(version_json() if format_ == "json" else version_text())
