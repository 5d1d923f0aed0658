"""The words with which a command ends when something goes wrong."""

from __future__ import annotations

import os
import traceback
from pathlib import PurePath

import click

from gpuplan.compiler.base.credentials import hidden
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.text import Style, Theme, printable


def report_error(error: Exception, context: click.Context) -> None:
    """Say on stderr why a command failed: trouble in its own words, and everything else as a bug in gpuplan."""
    terminal = Terminal.of(context)
    theme = terminal.err_theme
    if terminal.verbose > 1 or os.environ.get("GPUPLAN_DEBUG"):
        terminal.insist(hidden("".join(traceback.format_exception(error))))
    if isinstance(error, GpuplanError):
        terminal.insist(trouble(error.message, error.hint, theme))
    elif isinstance(error, OSError) and error.strerror:
        place = f"`{error.filename}`: " if error.filename else ""
        terminal.insist(trouble(f"{place}{error.strerror.lower()}", "", theme))
    else:
        terminal.insist(bug(error, theme))


def trouble(message: str, hint: str, theme: Theme) -> str:
    """Return why a command could not do its work, and what to type instead."""
    text = f"{theme.paint('error', Style.ERROR)}{theme.paint(f': {printable(message)}', Style.STRONG)}\n"
    if hint:
        text += f"  = {theme.paint('help:', Style.HELP)} {printable(hint)}\n"
    return text


def bug(error: BaseException, theme: Theme) -> str:
    """Return how to report an error that nobody foresaw: its type and place, since its words may cite a value."""
    name = type(error).__name__
    steps = traceback.extract_tb(error.__traceback__)
    if ours := [step for step in steps if "gpuplan" in PurePath(step.filename).parts] or steps:
        parts = PurePath(ours[-1].filename).parts
        inside = "/".join(parts).rpartition("/gpuplan/")[2] if "gpuplan" in parts else "/".join(parts[-2:])
        name += f" in {inside}:{ours[-1].lineno}"
    hint = (
        "report it where you have gpuplan from, with what `gpuplan version` prints and what this command prints when "
        "GPUPLAN_DEBUG=1 is set, less the secrets that it may cite; in private, as SECURITY.md there says, if a "
        "stranger's files caused it"
    )
    return trouble(f"this is a bug in gpuplan: {name}", hint, theme)
