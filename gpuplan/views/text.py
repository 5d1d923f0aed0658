"""Text for terminals: what can be printed, how wide it is, columns that line up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from gpuplan.patterns import regex

TAB: Final = "    "

_UNPRINTABLE: Final = regex(
    "[\x00-\x1f\x7f-\x9f"  # control characters: a policy must not steer the reader's terminal
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, which show text in another order than it has
    "\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\uffff]"  # line ends, half characters, what XML cannot hold
)
_DELETE: Final = "\x7f"

_COMMAND: Final = regex(r"(?<=#)#(?=\w*\[)|\A\s*:(?=:[\w-]+[ :])")
"""What GitHub's runner obeys anywhere in a line, `##[set-output ...]`, and at its start, `::set-output ...::`, whoever
printed it (https://github.com/actions/runner, `ActionCommand.cs`); Azure Pipelines obeys `##vso[...]`."""


def printable(text: str) -> str:
    """The text on one line, with a picture in place of every character that would do something else than show.

    That goes for CI servers as well, which take commands from what a job prints: those lose a character.
    """
    if "##" in text or "::" in text:
        text = _COMMAND.sub(lambda match: f"{match[0][:-1]}{_wide(match[0][-1])}", text)
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(_picture, text)


def _wide(char: str) -> str:
    """The full-width form of an ASCII character, which looks like it and is another one."""
    return chr(ord(char) + 0xFEE0)


def _picture(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\t":
        return TAB
    if char < " ":
        return chr(0x2400 + ord(char))  # Unicode's Control Pictures are in the order of the controls
    return "\u2421" if char == _DELETE else "\ufffd"


def cells(text: str) -> int:
    """How many terminal cells a printable text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill up to a width in cells; ``right`` puts the text at the right end."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = (), gap: str = "  ") -> str:
    """Columns that line up, each as wide as its widest cell; ``right`` are the columns of numbers."""
    shown = [[printable(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(cells, column)) for column in zip(*shown, strict=True)]
    aligned = frozenset(right)
    lines = (
        gap.join(pad(cell, widths[index], right=index in aligned) for index, cell in enumerate(row)).rstrip()
        for row in shown
    )
    return "".join(f"{line}\n" for line in lines)


def indent(text: str, by: str = "  ") -> str:
    return "".join(f"{by}{line}" if line.strip() else line for line in text.splitlines(keepends=True))
