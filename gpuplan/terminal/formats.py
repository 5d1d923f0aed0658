"""The formats in which findings can be asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from gpuplan.terminal.text import Theme

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report


class Format(StrEnum):
    """A format of findings; all but the first two are for programs."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    GITHUB = "github"
    GITLAB = "gitlab"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"


def findings(report: Report, format_: Format, theme: Theme) -> str:
    """The findings of a report in a format."""
    if format_ is Format.FULL or format_ is Format.CONCISE:
        from gpuplan.terminal.full import concise, full

        return (full if format_ is Format.FULL else concise)(report, theme)
    from gpuplan.compiler.pipeline import rules
    from gpuplan.terminal import ci, json_findings, markdown

    match format_:
        case Format.JSON:
            return json_findings.json_findings(report, theme)
        case Format.GITHUB:
            return ci.github(report, theme)
        case Format.GITLAB:
            return ci.gitlab(report, theme)
        case Format.SARIF:
            return ci.sarif(report, theme, ci.project_urls())
        case Format.JUNIT:
            return ci.junit(report, theme, rules())
        case Format.MARKDOWN:
            return markdown.markdown(report, theme)
