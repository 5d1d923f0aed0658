"""The documents of a text as far as its lines show them, for where the parser cannot go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents.scalars import CURLY_QUOTES

SEPARATOR = "---"


class Stretch(NamedTuple):
    """A part of a text, from ``start`` to ``end``; ``line`` is how many lines stand above it."""

    start: int
    end: int
    line: int


def whole(text: str) -> Stretch:
    return Stretch(0, len(text), 0)


def broken(text: str, part: Stretch, error: int) -> Stretch:
    """The document of a part of a text in which the parser met an error.

    Nothing that is left open goes on beyond a line that begins with `---`: the parser meets the error there at last.
    """
    line_start = text.rfind("\n", part.start, error) + 1 or part.start
    start = _last_separator(text, part.start, line_start)
    own = _BOUNDARY.match(text, start)
    behind = max(line_start, own.end() if own else 0)
    if text.startswith("%", line_start) and (own := _BOUNDARY.search(text, line_start, part.end)):
        behind = own.end()
    found = _BOUNDARY.search(text, behind, part.end)
    end = found.start() if found else part.end
    return Stretch(start, end, part.line + count_lines(text, part.start, start))


def following(text: str, part: Stretch) -> Iterator[Stretch]:
    """The documents that begin with `---` below a part of a text, one by one."""
    start, line = part.end, part.line + count_lines(text, part.start, part.end)
    while start < len(text):
        at_separator = _BOUNDARY.match(text, start)
        found = _BOUNDARY.search(text, at_separator.end() if at_separator else start + 1)
        end = found.start() if found else len(text)
        yield Stretch(start, end, line)
        line += count_lines(text, start, end)
        start = end


def start_of_document(text: str, number: int) -> int | None:
    """Where the document of this number begins, counted from 0; None where there are not so many.

    Documents that hold nothing count as well. It takes a hundredth of the time that the parser would.
    """
    if text.count(f"\n{SEPARATOR}") + text.count(f"\r{SEPARATOR}") < number:
        return None
    starts = [found.start() for found in islice(_SEPARATED.finditer(text), number + 1)]
    above = text[: starts[0]] if starts else text
    if any(line.strip() and not line.lstrip().startswith(("#", "%")) for line in above.splitlines()):
        starts.insert(0, 0)
    return starts[number] if number < len(starts) else None


def count_lines(text: str, start: int, end: int) -> int:
    """Return the number of line ends between two offsets; none of them is between a CR and its LF."""
    return text.count("\n", start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)


def kind_and_name(text: str, part: Stretch) -> tuple[str, str] | None:
    """Return the most likely kind and name of a document that cannot be read, if its lines show each once."""
    kinds = [found[1] for found in _KIND.finditer(text, part.start, part.end)]
    names = [found[1] or found[2] for found in _NAME.finditer(text, part.start, part.end)]
    return (kinds[0], names[0]) if len(kinds) == len(names) == 1 else None


def _last_separator(text: str, start: int, end: int) -> int:
    """Where the last line above ``end`` begins that separates documents, or ``start``."""
    while (found := text.rfind("\n" + SEPARATOR, start, end)) >= 0:
        if _BOUNDARY.match(text, found + 1):
            return found + 1
        end = found
    return start


_SEPARATED = regex(rf"(?:\A|(?<=[\r\n])){SEPARATOR}(?=[ \t\r\n]|\Z)")
"""Behind the first document libyaml wants one of these above each."""

_BOUNDARY = regex(r"(?:^%.*\n)*^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
"""Where a document begins: at `---`, or at the directives above it."""

_QUOTE = f"[\"'{CURLY_QUOTES}]?"
_WORD = rf"{_QUOTE}([\w.-]+){_QUOTE}[ \t]*(?:#.*)?\r?$"
_KIND = regex(rf"^[ \t]{{0,2}}kind:?[ \t]*{_WORD}", re.MULTILINE)
_NAME = regex(
    rf"^[ \t]{{0,2}}metadata:?[ \t]*(?:\r?\n[ \t]+name:?[ \t]*{_WORD}|\{{.*?\bname:?[ \t]*{_QUOTE}([\w.-]+))",
    re.MULTILINE,
)
