"""Text for terminals: how it is to look there, what can be printed, how wide it is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from enum import StrEnum
from typing import Final

from gpuplan.compiler.base.credentials import hidden
from gpuplan.compiler.base.diagnostics import Location, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value

# --- Looks -------------------------------------------------------------------------------------------------------


class Style(StrEnum):
    """The role of a piece of text; the value is its ANSI colour (SGR parameters)."""

    ERROR = "1;31"
    WARNING = "1;33"
    NOTE = "1;36"
    HELP = "1;32"
    FRAME = "1;34"
    STRONG = "1"
    FAINT = "2"
    ADDED = "32"
    REMOVED = "31"
    ONE_SLICE = "30;46"
    TWO_SLICES = "30;42"
    THREE_SLICES = "30;43"
    FOUR_SLICES = "97;44"
    SEVEN_SLICES = "30;45"


SEVERITY_STYLES = {Severity.ERROR: Style.ERROR, Severity.WARNING: Style.WARNING, Severity.NOTE: Style.NOTE}


class Theme(Value):
    """Colours are used only when asked for. ``width`` is in terminal cells; source lines are cropped to it.

    ``root`` is the way from where the reader stands to the repository's root: empty, or a path that ends in ``/``.
    ``named`` are files that the reader has named, from there: they need not be in the repository.
    Where it ``is_fitted``, tables and lines of prose keep to the width, too; elsewhere they are as wide as they need.
    ``indentation`` is what has been taken off the width for what stands before each line.
    """

    color: bool = False
    width: int = 120
    root: str = ""
    named: frozenset[str] = frozenset()
    is_fitted: bool = False
    indentation: int = 0

    def indented(self, by: int = 2) -> Theme:
        """The theme of a text that is to be indented by so many cells."""
        return replace(self, width=self.width - by, indentation=self.indentation + by)

    def paint(self, text: str, style: Style) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and text else text

    def path(self, path: str) -> str:
        """A file's path as the reader can open it."""
        return path if path in self.named else self.root + path

    def place(self, location: Location, *, column: bool = False) -> str:
        """``pool.yaml:3``, ``demand.csv:12, column team``, or a file alone where a finding is about it as such."""
        start = location.span.start
        line = "" if location.is_whole_file else f":{start.line}"
        part = f", {location.part}" if location.part else f":{start.column}" if column and line else ""
        return f"{self.path(location.file.path)}{line}{part}"


PLAIN = Theme()


_MARKUP: Final = regex(r"(?m)^#+ (?P<heading>.*)$|`(?P<code>[^`\n]+)`")


def marked_up(markdown: str, theme: Theme) -> str:
    """Markdown as a terminal shows it: headings strong, code marked, everything else as written."""

    def paint(match: re.Match[str]) -> str:
        if match["heading"]:
            return theme.paint(match["heading"], Style.STRONG)
        return theme.paint(match["code"], Style.NOTE) if theme.color else match[0]

    return _MARKUP.sub(paint, markdown)


def section(heading: str, text: str, theme: Theme) -> str:
    """A heading, and a text indented below it; nothing where there is no text."""
    return f"{theme.paint(printable(heading), Style.STRONG)}\n{indent(text)}" if text else ""


# --- Characters --------------------------------------------------------------------------------------------------

TAB: Final = "    "

_UNPRINTABLE: Final = regex(
    "[\x00-\x1f\x7f-\x9f"  # control characters: a policy must not steer the reader's terminal
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, which show text in another order than it has
    "\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\uffff]"  # line ends, half characters, what XML cannot hold
)
_DELETE: Final = "\x7f"

_COMMAND: Final = regex(r"(?<=#)#(?=\w*\[)|\A\s*:(?=:[\w-]+[ :])")
"""The commands that GitHub's runner obeys anywhere in a line, `##[set-output ...]`, and at its start, `::set-output
...::`, whoever printed it (https://github.com/actions/runner, `ActionCommand.cs`); Azure Pipelines obeys `##vso[...]`.
"""
_LOOKALIKES: Final = {"#": "\u266f", ":": "\ua789"}
"""As wide as what they stand for, so that carets stay under what they mark: a sharp sign and a letter like a colon."""


def printable(text: str) -> str:
    """The text on one line, with a picture in place of every character that would do something else than show.

    That goes for CI servers as well, which take commands from what a job prints: those lose a character. And many may
    read what they print: what looks like a credential is stars.
    """
    text = hidden(text)
    if "##" in text or "::" in text:
        text = _COMMAND.sub(lambda match: f"{match[0][:-1]}{_LOOKALIKES[match[0][-1]]}", text)
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\t":
        return TAB
    if char < " ":
        return chr(0x2400 + ord(char))  # Unicode's Control Pictures are in the order of the controls
    return "\u2421" if char == _DELETE else "\ufffd"


def cells(text: str) -> int:
    """Return the number of cells that a printable text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill up to a width in cells; ``right`` puts the text at the right end."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def indent(text: str, by: str = "  ") -> str:
    return "".join(f"{by}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


def literal(value: object) -> str:
    """A value as it would be typed: a text as it is, all else as JSON."""
    return printable(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str))


def cropped(text: str, width: int) -> str:
    """The text, cut off with dots where it is longer."""
    return text if len(text) <= width else f"{text[: width - 3]}..."
