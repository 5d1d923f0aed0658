"""`gpuplan rules`."""

from __future__ import annotations

from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import format_option, verb


@verb("rules", shows_pages=True)
@format_option("table", "json")
def command(terminal: Terminal, format_: str) -> None:
    """List the rules.

    `gpuplan explain CODE` shows what one means, why it matters and what to write instead.
    """
    from gpuplan.cli.views.explain import rules_json, rules_table
    from gpuplan.compiler import pipeline

    found = pipeline.rules()
    terminal.print(rules_json(found) if format_ == "json" else rules_table(found, terminal.out_theme))
