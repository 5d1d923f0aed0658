"""The last line of a run: how it went, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.views.theme import SEVERITY_STYLES, Style, Theme
from gpuplan.wording import count, joined

if TYPE_CHECKING:
    from gpuplan.pipeline import Report


def tally(diagnostics: Iterable[Diagnostic]) -> dict[Severity, int]:
    """How many findings there are of each severity, the worst first."""
    found = dict.fromkeys(Severity, 0)
    for diagnostic in diagnostics:
        found[diagnostic.severity] += 1
    return found


def verdict(report: Report, theme: Theme) -> str:
    """``2 errors and 1 warning in 12 files, 3 clusters``, and how to read more about the worst."""
    scope = f"{count(report.file_count, 'file')}, {count(len(report.clusters), 'cluster')}"
    found = {severity: number for severity, number in tally(report.diagnostics).items() if number}
    if not found:
        return f"{theme.paint('no findings', Style.HELP)} in {scope}\n"
    counts = [theme.paint(count(number, severity), SEVERITY_STYLES[severity]) for severity, number in found.items()]
    worst = next(item for item in report.diagnostics if item.severity is next(iter(found)))
    return f"{joined(counts)} in {scope}; `gpuplan explain {worst.code}` says more\n"
