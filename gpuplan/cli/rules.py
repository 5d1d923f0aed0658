"""`gpuplan rules`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Reader, format_option
from gpuplan.cli.terminal import Terminal


@click.command("rules", cls=Reader)
@format_option("table", "json")
@click.pass_context
def command(context: click.Context, format_: str) -> None:
    """List the rules.

    `gpuplan explain CODE` shows what one means, why it matters and what to write instead.
    """
    from gpuplan import pipeline
    from gpuplan.views.explain import rules_json, rules_table

    found = pipeline.rules()
    Terminal.of(context).print(rules_json(found) if format_ == "json" else rules_table(found))
