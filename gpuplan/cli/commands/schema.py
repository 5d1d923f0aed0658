"""`gpuplan schema`."""

from __future__ import annotations

from textwrap import fill

import click

from gpuplan.terminal.schemas import GIVEN, KINDS, NAMES, OUTPUTS
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import verb

HELP = """Print a JSON Schema.

\b
NAME is one of
  policy      any document of the policy language [default]
  overlay     any document in an overlay, which may leave fields out
{kinds}
              documents of that kind alone
{outputs}

\b
  gpuplan schema policy > .gpuplan/policy.schema.json
""".format(
    kinds=fill(", ".join((*KINDS, *GIVEN)).lower(), 64, initial_indent="  ", subsequent_indent="  "),
    outputs="\n".join(f"  {name:<11} what `{verb} --output-format json` writes" for name, verb in OUTPUTS.items()),
)


@verb("schema", shows_pages=True, help=HELP)
@click.argument("name", metavar="[NAME]", type=click.Choice(NAMES, case_sensitive=False), default="policy")
def command(terminal: Terminal, name: str) -> None:
    from gpuplan.terminal.schemas import schema_text

    terminal.print(schema_text(name))
