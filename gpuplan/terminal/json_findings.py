"""Findings as JSON for other programs: a stable contract, `findings.schema.json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin, Position, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal.full import tally
from gpuplan.terminal.text import Theme

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report

FORMAT_VERSION = "1.0"
"""A minor step only adds keys; lists are never null or absent."""

_LONE_SURROGATE = regex(r"(\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\ud[89a-f][0-9a-f]{2}")


def json_findings(report: Report, theme: Theme) -> str:
    """Everything that is known of every finding."""
    return json_text(findings_as_data(report, theme))


def findings_as_data(report: Report, theme: Theme) -> dict[str, Any]:
    """The same as plain data."""
    found = tally(report.diagnostics)
    return {
        "format_version": FORMAT_VERSION,
        "valid": report.is_valid,
        "summary": {
            "errors": found[Severity.ERROR],
            "warnings": found[Severity.WARNING],
            "notes": found[Severity.NOTE],
            "files": report.file_count,
        },
        "clusters": list(report.clusters),
        "diagnostics": [diagnostic_as_data(diagnostic, theme) for diagnostic in report.diagnostics],
    }


def json_text(body: object, *, indent: int | None = 2) -> str:
    """JSON in ASCII, which no terminal and no pipe can spoil; half of a surrogate pair is no character to anybody."""
    text = json.dumps(body, indent=indent) + "\n"
    return _LONE_SURROGATE.sub(lambda match: match[1] or "\\ufffd", text) if "\\ud" in text else text


def diagnostic_as_data(diagnostic: Diagnostic, theme: Theme) -> dict[str, Any]:
    finding = diagnostic.shown
    return {
        "code": diagnostic.code,
        "name": diagnostic.rule.name,
        "severity": diagnostic.severity.value,
        "message": finding.message,
        "label": finding.label,
        "clusters": list(diagnostic.clusters),
        "location": _location(finding.at, theme),
        "related": [{"text": label.text, "location": _location(label.at, theme)} for label in finding.related],
        "notes": list(finding.notes),
        "help": finding.help,
    }


def _location(origin: Origin, theme: Theme) -> dict[str, Any]:
    location = origin.locate()
    return {
        "file": theme.path(location.file.path),
        "path": str(origin),
        "start": _position(location.span.start),
        "end": _position(location.span.end),
    }


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}
