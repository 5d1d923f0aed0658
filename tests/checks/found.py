"""What checks found, looked at closely."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.compiler.base.diagnostics import Finding


def only(findings: Iterable[Finding]) -> Finding:
    [finding] = findings
    return finding


def lines(*findings: Finding) -> list[str]:
    """The text of the lines that findings point at."""
    places = [finding.at.locate() for finding in findings]
    return [place.file.lines[place.span.start.line - 1].strip() for place in places]
