"""Findings as GitHub workflow commands, which put annotations on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, Severity, Span
from gpuplan.views.text import printable
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_ORDER = tuple(_COMMANDS)


MOST = 50
"""Findings shown. GitHub shows ten of each kind in a step and fifty in a job; others would only fill the log."""


def github(report: Report, theme: Theme) -> str:
    """A command for each finding, errors first, and one that says how many there is no room for.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    worst_first = sorted(report.diagnostics, key=lambda diagnostic: _ORDER.index(diagnostic.severity))
    commands = [_command(diagnostic, theme) for diagnostic in worst_first[:MOST]]
    total = len(worst_first)
    if total > MOST:
        text = f"{total - MOST} of {total} findings are not shown; `gpuplan validate` prints them all"
        commands.append(f"::notice title=gpuplan::{escape_message(text)}")
    return "".join(f"{command}\n" for command in commands)


def _command(diagnostic: Diagnostic, theme: Theme) -> str:
    location = diagnostic.finding.at.locate()
    properties = {
        "file": printable(theme.path(location.file.path)),
        **_place(location.span),
        "title": f"{diagnostic.code} {diagnostic.rule.name}",
    }
    written = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[diagnostic.severity]} {written}::{escape_message(_message(diagnostic))}"


def _place(span: Span) -> dict[str, str]:
    """Lines, and columns where they are of one line: otherwise GitHub refuses the annotation."""
    place = {"line": str(span.start.line), "endLine": str(span.end.line)}
    if span.start.line == span.end.line:
        place |= {"col": str(span.start.column), "endColumn": str(span.end.column)}
    return place


def _message(diagnostic: Diagnostic) -> str:
    finding = diagnostic.finding
    lines = [finding.headline]
    lines += (line for note in finding.notes for line in f"note: {note}".split("\n"))
    lines += [f"help: {finding.help}"] if finding.help else []
    return "\n".join(map(printable, lines))


def escape_message(text: str) -> str:
    """As the runner's own toolkit escapes: a line end would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
