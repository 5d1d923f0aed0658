"""The work of `gpuplan explain` and `gpuplan rules`."""

from __future__ import annotations

from gpuplan.cli.views import explain as views
from gpuplan.compiler import pipeline
from gpuplan.terminal.session import Terminal


def explain(terminal: Terminal, subject: str) -> None:
    terminal.print(views.explain(subject, terminal.out_theme))


def rules(terminal: Terminal, format_: str) -> None:
    listed = pipeline.rules()
    terminal.print(views.rules_json(listed) if format_ == "json" else views.rules_table(listed, terminal.out_theme))
