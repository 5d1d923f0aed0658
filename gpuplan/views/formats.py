"""The formats in which findings can be asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from gpuplan.views.text import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report


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
    match format_:
        case Format.FULL:
            from gpuplan.views.full import full

            return full(report, theme)
        case Format.CONCISE:
            from gpuplan.views.full import concise

            return concise(report, theme)
        case Format.JSON:
            from gpuplan.views.json_findings import json_findings

            return json_findings(report, theme)
        case Format.GITHUB:
            from gpuplan.views.ci import github

            return github(report, theme)
        case Format.GITLAB:
            from gpuplan.views.ci import gitlab

            return gitlab(report, theme)
        case Format.SARIF:
            from gpuplan.views.ci import project_urls, sarif

            return sarif(report, theme, project_urls())
        case Format.JUNIT:
            from gpuplan.pipeline import rules
            from gpuplan.views.ci import junit

            return junit(report, theme, rules())
        case Format.MARKDOWN:
            from gpuplan.views.markdown import markdown

            return markdown(report, theme)
