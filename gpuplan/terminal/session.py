"""The global options of a command, its streams, the files that its arguments name, and its last words."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path, PurePath
from shutil import get_terminal_size
from typing import TextIO

import click

from gpuplan.compiler.base.credentials import hidden
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import OVERLAYS, find_link, is_kept_inside
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.terminal.text import Style, Theme, printable
from gpuplan.terminal.verbs import late

ELSEWHERE = 120
"""The cells of a line of prose in a file or a pipe; tables have as many there as they need."""


class Terminal(NamedTuple):
    """The global options, and the two streams: data on stdout, words for people on stderr."""

    directory: str = "."
    quiet: int = 0
    verbose: int = 0
    color: str = "auto"
    named: frozenset[str] = frozenset()
    """The files that the command's arguments name."""

    @classmethod
    def of(cls, context: click.Context) -> Terminal:
        return cls(**context.find_root().ensure_object(dict))

    def naming(self, files: Iterable[str]) -> Terminal:
        """The terminal of a command whose arguments name these files."""
        return self._replace(named=frozenset(files))

    @property
    def root(self) -> Path:
        """The repository's root, as far from here as the reader is."""
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
        """Show on one line of a terminal what takes a while, until the next text replaces it; nothing clears it."""
        if not self.quiet and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text}", nl=False, err=True, color=True)

    def insist(self, text: str) -> None:
        """Say something to a person, even one who asked for silence."""
        click.echo(text, nl=False, err=True, color=True)

    def _theme(self, stream: TextIO) -> Theme:
        columns = os.environ.get("COLUMNS", "")
        is_fitted = (columns.isdecimal() and int(columns) > 0) or stream.isatty()
        width = get_terminal_size((ELSEWHERE, 24)).columns
        return Theme(_is_colored(self.color, stream), width, way_to(self.root), self.named, is_fitted)


def _is_colored(wish: str, stream: TextIO) -> bool:
    """Whether to use colours: a flag beats NO_COLOR (https://no-color.org), which beats FORCE_COLOR."""
    if wish != "auto":
        return wish == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def way_to(folder: Path) -> str:
    """Return the way from here to a folder, ready to be put before a path: empty, or ending in ``/``."""
    try:
        start, end = Path.cwd(), folder.resolve()
    except FileNotFoundError:  # somebody has removed the folder that we are in, and paths lead nowhere
        return ""
    if end == start:
        return ""
    return f"{end.relative_to(start) if end.is_relative_to(start) else end}/"


def begin(context: click.Context, *, needs_docstrings: bool) -> Terminal:
    """Return the terminal of a verb; raise `GpuplanError` if the verb cannot show or read what it needs."""
    if needs_docstrings and sys.flags.optimize > 1:
        raise GpuplanError(
            f"Python was started without docstrings, which hold what `gpuplan {context.info_name}` shows",
            "start it without `-OO`, or unset PYTHONOPTIMIZE",
        )
    terminal = Terminal.of(context)
    if terminal.directory != Terminal().directory:
        refuse_leaving(terminal.directory)
    return terminal


# --- Files that arguments name, and links on the way, which a branch may have brought ----------------------------


def write_named(root: Path, file: str, text: str) -> None:
    """Write a text to a file; raise `GpuplanError` if a link of a repository is on the way."""
    refuse_links(root, file)
    with open(file, "w", encoding="utf-8") as stream:  # noqa: PTH123 - as the user typed it
        stream.write(text)


def refuse_links(root: Path, path: str | os.PathLike[str], hint: str = "delete it, or name another file") -> None:
    """Raise `GpuplanError` if a link of a repository, or of the platform, is on the way to a path."""
    link = find_link(path, root if (root / OVERLAYS).is_dir() else "")
    if link:
        raise GpuplanError(f"`{os.path.relpath(link.path)}` is a link, and nothing is written through it", hint)


def refuse_leaving(path: str | os.PathLike[str]) -> None:
    """Raise `GpuplanError` if a link of a repository leads what is to be read out of it, or among Git's own files."""
    link = find_link(path)
    if link and not is_kept_inside(path, link.top):
        message = f"`{os.path.relpath(link.path)}` is a link out of the repository, and not followed"
        raise GpuplanError(message, "copy the file there, or name where the link leads")


# --- Words for errors ------------------------------------------------------------------------------------------------


_answer_trouble = late("gpuplan.terminal.habits:answer_trouble")


def report_error(error: Exception, context: click.Context) -> None:
    """Say on stderr why a command failed: trouble in its own words, and everything else as a bug in gpuplan."""
    terminal = Terminal.of(context)
    theme = terminal.err_theme
    if terminal.verbose > 1 or os.environ.get("GPUPLAN_DEBUG"):
        terminal.insist(hidden("".join(traceback.format_exception(error))))
    if isinstance(error, GpuplanError):
        terminal.insist(trouble(error.message, _answer_trouble(error.message, "", error.hint, context), theme))
    elif isinstance(error, OSError) and error.strerror:
        place = f"`{error.filename}`: " if error.filename else ""
        missing = str(error.filename or "") if isinstance(error, FileNotFoundError) else ""
        hint = _answer_trouble("", missing, "", context)
        terminal.insist(trouble(f"{place}{error.strerror.lower()}", hint, theme))
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
        "report it where you got gpuplan, with the output of `gpuplan version`, and of this command with "
        "GPUPLAN_DEBUG=1. Remove secrets first. If a stranger's files caused the bug, report it in private, as "
        "SECURITY.md there says"
    )
    return trouble(f"this is a bug in gpuplan: {name}", hint, theme)
