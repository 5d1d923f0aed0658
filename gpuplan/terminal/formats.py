"""Write findings, and what else a command has to say, in each format that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.terminal.full import concise, full, verdict
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal, write_named
from gpuplan.terminal.text import Theme
from gpuplan.terminal.verbs import late

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


_WRITERS: Final[dict[Format, Callable[[Report, Theme], str]]] = {
    Format.FULL: full,
    Format.CONCISE: concise,
    Format.JSON: late("gpuplan.terminal.json_findings:json_findings"),
    Format.GITHUB: late("gpuplan.terminal.ci:github"),
    Format.GITLAB: late("gpuplan.terminal.ci:gitlab"),
    Format.SARIF: late("gpuplan.terminal.ci:sarif"),
    Format.JUNIT: late("gpuplan.terminal.ci:junit"),
    Format.MARKDOWN: late("gpuplan.terminal.markdown:markdown"),
}


def findings(report: Report, format_: Format, theme: Theme) -> str:
    """Return the findings of a report in a format."""
    return _WRITERS[format_](report, theme)


def write_findings(terminal: Terminal, report: Report, outputs: Sequence[Output], *, to_stderr: bool = False) -> None:
    """Write findings in each format that is asked for, and a verdict on stderr.

    ``to_stderr`` keeps stdout free for the command's own data.
    """
    theme, put = (terminal.err_theme, terminal.insist) if to_stderr else (terminal.out_theme, terminal.print)
    write_outputs(
        terminal.root, outputs, Format.FULL, theme, put, lambda name, theme: findings(report, Format(name), theme)
    )
    terminal.say(verdict(report, terminal.err_theme))


def write_errors(terminal: Terminal, report: Report) -> int:
    """Write the errors of a report to stderr, and return the exit code: 0 if there are none."""
    if report.is_valid:
        return 0
    errors = tuple(diagnostic for diagnostic in report.diagnostics if diagnostic.is_error)
    write_findings(terminal, replace(report, diagnostics=errors), (), to_stderr=True)
    return 1


def write_outputs(
    root: Path,
    outputs: Sequence[Output],
    usual: str,
    theme: Theme,
    put: Callable[[str], None],
    shown: Callable[[str, Theme], str],
) -> None:
    """Write in each format that is asked for, and in the usual one if no other goes to the terminal."""
    put(shown(next((output.format for output in outputs if output.file is None), usual), theme))
    for output in outputs:
        if output.file is not None:
            write_named(root, output.file, shown(output.format, Theme(width=theme.width, root=theme.root)))


def is_acceptable(report: Report, *, warnings_as_errors: bool) -> bool:
    """Whether a report lets a command go on, and CI be green."""
    refused = (Severity.ERROR, Severity.WARNING) if warnings_as_errors else (Severity.ERROR,)
    return all(diagnostic.severity not in refused for diagnostic in report.diagnostics)
