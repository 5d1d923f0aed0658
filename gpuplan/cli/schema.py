"""`gpuplan schema`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Reader
from gpuplan.cli.terminal import Terminal
from gpuplan.views.schemas import NAMES


@click.command("schema", cls=Reader)
@click.argument("name", metavar="[NAME]", type=click.Choice(NAMES, case_sensitive=False), default="policy")
@click.pass_context
def command(context: click.Context, name: str) -> None:
    """Print a JSON Schema.

    \b
    NAME is one of
      policy    any document of the policy language [default]
      overlay   any document in an overlay, which may leave fields out
      cluster, pool, miglayout, priorityclass, tenant
                documents of that kind alone
      findings  what `validate --output-format json` writes
      plan      what `show --output-format json` writes
      comparison
                what `show --scheduler NAME --output-format json` writes
      diff      what `diff --output-format json` writes
      rollout   what `rollout --output-format json` writes

    \b
      gpuplan schema policy > .gpuplan/policy.schema.json
    """
    from gpuplan.views.schemas import schema_text

    Terminal.of(context).print(schema_text(name))
