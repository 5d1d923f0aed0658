"""Findings as a GitLab code quality report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.views.fingerprint import fingerprints
from gpuplan.views.json_findings import json_text
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: Report, theme: Theme) -> str:
    """A list of issues; https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""
    marked = zip(report.diagnostics, fingerprints(report.diagnostics), strict=True)
    return json_text([_issue(diagnostic, fingerprint, theme) for diagnostic, fingerprint in marked])


def _issue(diagnostic: Diagnostic, fingerprint: str, theme: Theme) -> dict[str, Any]:
    location = diagnostic.finding.at.locate()
    return {
        "description": f"{diagnostic.code}: {diagnostic.finding.headline}",
        "check_name": diagnostic.rule.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[diagnostic.severity],
        "location": {
            "path": theme.path(location.file.path),
            "lines": {"begin": location.span.start.line, "end": location.span.end.line},
        },
    }
