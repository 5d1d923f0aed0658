"""Findings for people and editors, one on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic
from gpuplan.views.text import printable
from gpuplan.views.theme import SEVERITY_STYLES, Style, Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report


def concise(report: Report, theme: Theme) -> str:
    """``file:line:column: severity[code] message``, as editors and terminals turn into links."""
    return "".join(f"{_line(diagnostic, theme)}\n" for diagnostic in report.diagnostics)


def _line(diagnostic: Diagnostic, theme: Theme) -> str:
    location = diagnostic.finding.at.locate()
    start = location.span.start
    place = f"{theme.path(location.file.path)}:{start.line}:{start.column}"
    kind = theme.paint(f"{diagnostic.severity}[{diagnostic.code}]", SEVERITY_STYLES[diagnostic.severity])
    return f"{theme.paint(printable(place), Style.STRONG)}: {kind} {printable(diagnostic.finding.message)}"
