"""`gpuplan version`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Verb, option
from gpuplan.cli.terminal import Terminal


@click.command("version", cls=Verb)
@option(
    "--output-format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    section="Output",
    help="For people or for programs [default: text].",
)
@click.pass_context
def command(context: click.Context, format_: str) -> None:
    """Print the version and what this gpuplan knows."""
    from gpuplan.views.version import version_json, version_text

    Terminal.of(context).print(version_json() if format_ == "json" else version_text())
