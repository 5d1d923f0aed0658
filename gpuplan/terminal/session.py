"""Where a command's words and data go, and how they look there."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

from gpuplan.compiler.base.values import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from gpuplan.terminal.text import Theme


ELSEWHERE = 120
"""The cells of a line of prose in a file or a pipe; tables have as many there as they need."""


class Terminal(NamedTuple):
    """The global options, and the two streams: data on stdout, words for people on stderr."""

    directory: str = "."
    quiet: int = 0
    verbose: int = 0
    color: str = "auto"

    @classmethod
    def of(cls, context: click.Context) -> Terminal:
        return cls(**context.find_root().ensure_object(dict))

    @property
    def root(self) -> Path:
        """The repository's root, as far from here as the reader is."""
        from pathlib import Path

        return Path(self.directory)

    @property
    def out_theme(self) -> Theme:
        return self._theme(sys.stdout)

    @property
    def err_theme(self) -> Theme:
        return self._theme(sys.stderr)

    def print(self, text: str | bytes) -> None:
        """Print data, as it is."""
        click.echo(text, nl=False, color=True)

    def say(self, text: str) -> None:
        """Say something to a person, who may have asked for silence."""
        if not self.quiet:
            self.insist(text)

    def doing(self, text: str) -> None:
        """Say what takes a while, on one line of a terminal, until something else is; nothing clears that line."""
        if not self.quiet and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text}", nl=False, err=True, color=True)

    def insist(self, text: str) -> None:
        """Say something that has to be said."""
        click.echo(text, nl=False, err=True, color=True)

    def _theme(self, stream: TextIO) -> Theme:
        from shutil import get_terminal_size

        from gpuplan.terminal.text import Theme

        width = get_terminal_size((ELSEWHERE, 24)).columns
        return Theme(_is_colored(self.color, stream), width, way_to(self.root), is_fitted=_has_width(stream))


def _is_colored(wish: str, stream: TextIO) -> bool:
    """A flag beats the environment; of the environment NO_COLOR (https://no-color.org) beats FORCE_COLOR."""
    if wish != "auto":
        return wish == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _has_width(stream: TextIO) -> bool:
    """Whether somebody says how wide lines are: the variable that terminals set, or a terminal."""
    columns = os.environ.get("COLUMNS", "")
    return (columns.isdecimal() and int(columns) > 0) or stream.isatty()


def way_to(folder: Path) -> str:
    """The way from here to a folder, ready to be put before a path: empty, or ending in ``/``."""
    from pathlib import Path

    try:
        here, there = Path.cwd(), folder.resolve()
    except FileNotFoundError:  # somebody has removed the folder that we are in, and paths lead nowhere
        return ""
    if there == here:
        return ""
    return f"{there.relative_to(here) if there.is_relative_to(here) else there}/"
