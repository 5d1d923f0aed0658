"""`gpuplan schema`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Verb
from gpuplan.cli.terminal import Terminal
from gpuplan.views.schemas import NAMES


@click.command("schema", cls=Verb)
@click.argument("name", type=click.Choice(NAMES, case_sensitive=False), default="policy")
@click.pass_context
def command(context: click.Context, name: str) -> None:
    """Print a JSON Schema.

    `policy` is for any document of the policy language, `overlay` for documents in overlays, which may leave fields
    out; a kind is for that kind alone. `findings` and `plan` are what `validate` and `show` write as JSON.

    \b
      gpuplan schema policy > .gpuplan/schema.json
    """
    from gpuplan.views.schemas import schema_text

    Terminal.of(context).print(schema_text(name))
