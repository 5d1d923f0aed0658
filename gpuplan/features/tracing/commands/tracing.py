"""The work of `gpuplan trace`."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.features import tracing
from gpuplan.features.tracing.live import LIST
from gpuplan.features.tracing.views.trace import shown_tracing
from gpuplan.terminal.formats import write_errors
from gpuplan.terminal.lists import read_list
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.text import printable

STDIN = "-"


def trace(terminal: Terminal, target: str, path: str, clusters: Sequence[str], format_: str) -> int:
    objects = read_list(STDIN, LIST).decode("utf-8-sig", errors="replace") if target == STDIN else ""
    traced = tracing.trace(terminal.root, target, path, clusters, objects=objects)
    is_summary = traced.is_of_policy and not path and ":" not in target
    terminal.print(shown_tracing(traced, format_, terminal.out_theme, is_summary=is_summary))
    for note in traced.notes:
        terminal.say(f"{printable(note)}\n")
    return write_errors(terminal, traced.report)  # what has errors is traced as far as it could be planned
