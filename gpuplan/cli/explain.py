"""`gpuplan explain`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import Verb
from gpuplan.cli.terminal import Terminal


@click.command("explain", cls=Verb)
@click.argument("subject", metavar="CODE|FIELD|GPU")
@click.pass_context
def command(context: click.Context, subject: str) -> None:
    """Explain a rule, a field or a GPU.

    \b
      gpuplan explain GPU203              a rule, by code or name
      gpuplan explain Pool.spec.sharing   a field of the policy language
      gpuplan explain A100-80GB           a GPU model of the catalog
    """
    from gpuplan.views.explain import explain

    terminal = Terminal.of(context)
    terminal.print(explain(subject, terminal.out_theme))
