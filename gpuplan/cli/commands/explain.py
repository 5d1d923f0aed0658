"""`gpuplan explain`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, verb


def _subjects(_: click.Context) -> Iterable[str]:
    from gpuplan.cli.views.explain import subjects

    return subjects()


@verb("explain", shows_pages=True)
@click.argument("subject", metavar="CODE|FIELD|GPU|SCHEDULER", shell_complete=completing(_subjects))
def command(terminal: Terminal, subject: str) -> None:
    """Explain a rule, a field, a GPU or a scheduler.

    \b
      gpuplan explain GPU203              a rule, by code or name
      gpuplan explain Pool.spec.sharing   a field of the policy language
      gpuplan explain A100-80GB           a GPU model of the catalog
      gpuplan explain scheduler/kueue     what a scheduler keeps of a policy; `scheduler` lists them
    """
    from gpuplan.cli.views.explain import explain

    terminal.print(explain(subject, terminal.out_theme))
