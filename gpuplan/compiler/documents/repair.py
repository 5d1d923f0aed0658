"""One edit that makes YAML of a document again, where all such edits that there are agree on what it then says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto

import yaml

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import tree
from gpuplan.compiler.documents.scalars import CURLY_QUOTES

MAX_LENGTH = 16 * 1024
"""The characters of a document that is worth the trial of edits; one written by hand has a tenth of it."""
MAX_TRIED = 512 * 1024
"""The characters of all documents that are read together: a folder of broken ones alone takes a few seconds."""


class Trials:
    """The rest of the text that edits may be tried on."""

    def __init__(self) -> None:
        self._left = MAX_TRIED

    def take(self, length: int) -> bool:
        """Whether edits of a document of this length may be tried."""
        is_enough = length <= min(MAX_LENGTH, self._left)
        self._left -= length if is_enough else 0
        return is_enough


class Slip(Enum):
    """The slip that was made."""

    TAB = auto()
    BLANK = auto()
    INDENTATION = auto()
    COLON = auto()
    SPACE = auto()
    DASH = auto()
    BRACKET = auto()
    SURPLUS = auto()
    QUOTE = auto()
    CURLY_QUOTE = auto()
    BARE_TEXT = auto()
    SEPARATOR = auto()


class Words(NamedTuple):
    """``at_start`` puts the finding where the unfinished thing began; ``other`` labels the end that is left."""

    message: str
    label: str = ""
    help: str = ""
    at_start: bool = False
    other: str = ""


WIDTHS = (Slip.TAB, Slip.INDENTATION)
"""The slips whose fault is the indentation."""


class Repair(NamedTuple):
    """``line`` and ``column`` say where the mistake is, counted from 0; ``text`` is what the line should be."""

    slip: Slip
    line: int
    column: int
    text: str

    @property
    def indentation(self) -> int:
        return len(self.text) - len(self.text.lstrip(" "))


def find_repairs(text: str, met: int, begun: int) -> tuple[Repair, ...]:
    """The edit for a document in whose line ``met`` the parser saw an error in what began in line ``begun``.

    There are several where only the width of one line's indentation is in doubt, narrowest first; none where more is.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    meanings: dict[object, tuple[_Strangeness, Repair]] = {}
    for repair in _candidates(lines, met, begun):
        edited = [*lines[: repair.line], repair.text, *lines[repair.line + 1 :]]
        if repair.slip is Slip.TAB:
            edited = [_without_tabs(line) for line in edited]
        elif repair.slip is Slip.BLANK:
            edited = [_with_plain_blanks(line) for line in lines]
        elif repair.slip is Slip.DASH:
            edited = [*_with_blanks(lines)]
        meaning = _meaning("\n".join(edited))
        if meaning is not None:
            widths = len({_indentation(line) for line in edited if _says_something(line)})
            meanings.setdefault(meaning.steps, (_Strangeness(meaning.empty, widths), repair))
    least = min((strangeness for strangeness, _ in meanings.values()), default=None)
    found = [repair for strangeness, repair in meanings.values() if strangeness == least]
    is_width = len({(repair.slip, repair.line) for repair in found}) == 1 and found[0].slip in WIDTHS
    return tuple(sorted(found, key=lambda repair: repair.indentation)) if is_width or len(found) == 1 else ()


class _Strangeness(NamedTuple):
    """The reasons against an edit: values that it leaves empty, and widths of indentation that nothing else has."""

    empty: int
    widths: int


# --- Edits -------------------------------------------------------------------------------------------------------


def _candidates(lines: Sequence[str], met: int, begun: int) -> Iterator[Repair]:
    """The edits worth trying; those of a kind that is plain to see are the only ones."""
    last = len(lines) - 1
    met, begun = min(met, last), min(begun, last)
    above = next((row for row in range(met - 1, -1, -1) if _says_something(lines[row])), met)
    rows = tuple(dict.fromkeys((met, begun, above)))
    telling = tuple(_telling(lines, rows))
    yield from telling
    if not telling:
        yield from _subtle(lines, rows)


def _telling(lines: Sequence[str], rows: Iterable[int]) -> Iterator[Repair]:
    tabbed = next((row for row, line in enumerate(lines) if _TABBED.match(line)), None)
    if tabbed is not None:
        tail = lines[tabbed].lstrip()
        head = _HEAD.match(tail)
        if head and not any(line.startswith(head[0]) for line in lines):
            yield Repair(Slip.TAB, tabbed, 0, tail)
            return
        above = next((line for line in reversed(lines[:tabbed]) if _says_something(line)), "")
        widths = {_indentation(line) for line in lines if not _TABBED.match(line)} | {_indentation(above) + 2}
        for width in sorted(widths - {0})[:_MOST_TRIALS]:
            yield Repair(Slip.TAB, tabbed, 0, " " * width + tail)
        return
    odd = next((row for row, line in enumerate(lines) if line != _with_plain_blanks(line)), None)
    if odd is not None:
        found = _ODD_BLANK.search(lines[odd])
        yield Repair(Slip.BLANK, odd, found.start() if found else 0, _with_plain_blanks(lines[odd]))
        return
    for row in rows:
        line = lines[row]
        if _ONLY_DASHES.fullmatch(line) and line.rstrip() != "---":
            yield Repair(Slip.SEPARATOR, row, 0, "---")
        elif _TIGHT_DASH.fullmatch(line):
            yield Repair(Slip.DASH, row, _indentation(line), next(_with_blanks([line])))
        elif curly := _CURLY.search(line):
            yield Repair(Slip.CURLY_QUOTE, row, curly.start(), straightened(line))


def _subtle(lines: Sequence[str], rows: Iterable[int]) -> Iterator[Repair]:
    for row in rows:
        line = lines[row]
        if not _says_something(line):
            continue
        column = _indentation(line)
        yield Repair(Slip.INDENTATION, row, column, f" {line}")
        if column:
            yield Repair(Slip.INDENTATION, row, column, line[1:])
        if missing := _NO_COLON.fullmatch(line):
            yield Repair(Slip.COLON, row, column, f"{missing[1]}:{missing[2]}")
        if tight := _NO_SPACE.fullmatch(line):
            yield Repair(Slip.SPACE, row, tight.end(1) - 1, f"{tight[1]} {tight[2]}")
        found = re.search(r"\s+#.*$|\s+$", line)
        body, comment = (line[: found.start()], line[found.start() :]) if found else (line, "")
        brackets, quote = _left_open(body)
        if quote is not None:
            last = len(body.rstrip("]} ,")) if brackets else len(body)
            ends = [found.start() for found in re.finditer(",", body) if found.start() > quote] if brackets else []
            if before_key := _BEFORE_KEY.search(body, quote) if brackets else None:
                ends, last = [], before_key.start()
            for end in dict.fromkeys((*ends[:_MOST_TRIALS], last)):
                yield Repair(Slip.QUOTE, row, quote, f"{body[:end]}{body[quote]}{body[end:]}{comment}")
        elif brackets:
            closers = "".join(_CLOSERS[body[at]] for at in reversed(brackets))
            yield Repair(Slip.BRACKET, row, brackets[-1], f"{body}{closers}{comment}")
        elif body.endswith(("}", "]")):
            yield Repair(Slip.SURPLUS, row, len(body) - 1, f"{body[:-1].rstrip()}{comment}")
        if bare := _BARE_TEXT.fullmatch(line):
            yield Repair(Slip.BARE_TEXT, row, bare.start(2), f'{bare[1]}"{bare[2].rstrip()}"{bare[3] or ""}')


def straightened(line: str) -> str:
    return "".join('"' if character in CURLY_QUOTES else character for character in line)


def _with_plain_blanks(line: str) -> str:
    """Return a line with plain blanks for others before its text, and behind its `-` and its key."""
    head = _HEAD_OF_LINE.match(line)
    return _ODD_BLANK.sub(" ", head[0]) + line[head.end() :] if head else line


def _without_tabs(line: str) -> str:
    found = _TABBED.match(line)
    return found[0].replace("\t", "  ") + line[found.end() :] if found else line


def _with_blanks(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with a blank behind each `-`, and those of its item aligned with what follows it."""
    width = None
    for line in lines:
        if tight := _TIGHT_DASH.fullmatch(line):
            width = len(tight[1])
            yield f"{tight[1]}- {tight[2]}"
            continue
        if width is not None and _says_something(line) and _indentation(line) <= width:
            width = None
        yield f" {line}" if width is not None and _indentation(line) == width + 1 else line


def _left_open(body: str) -> tuple[list[int], int | None]:
    """Where the brackets are that a line leaves open, and the quote that it does."""
    brackets: list[int] = []
    quote = None
    for index, character in enumerate(body):
        if quote is not None:
            quote = None if character == body[quote] else quote
        elif character in "\"'" and not body[max(index - 1, 0) : index].isalnum():
            quote = index
        elif character in _CLOSERS:
            brackets.append(index)
        elif brackets and character == _CLOSERS[body[brackets[-1]]]:
            brackets.pop()
    return brackets, quote


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


_MOST_TRIALS = 12  # of one kind for one line

_CLOSERS = {"{": "}", "[": "]"}
_HEAD = regex(r"(apiVersion|kind|metadata|spec):")  # which a document has, and has at the left edge
_TABBED = regex(r" *\t[ \t]*")
_ODD_BLANK = regex(r"[^\S \t\r\n]")
_HEAD_OF_LINE = regex(r"\s*(?:-\s+)*(?:[^\s:#'\"{}\[\],]+:\s+)?")
_TIGHT_DASH = regex(r"( *)-([A-Za-z_][\w.]*:(?:\s.*)?)")
_CURLY = regex(f"[{CURLY_QUOTES}]")
_BEFORE_KEY = regex(r",\s*[A-Za-z][\w-]*:\s")
_ONLY_DASHES = regex("\\s*[-\u2013\u2014]{1,6}\\s*")
_NO_COLON = regex(r"(\s*(?:- +)*\w[\w./-]*)((?:\s+[^\s:].*)?\s*)")
_NO_SPACE = regex(r"(\s*(?:- +)*\w[\w./-]*:)([^\s/].*)")
_BARE_TEXT = regex(r"""(\s*(?:- +)*\w[\w./-]*:\s+|\s*- +)([^\s"'#\[{|>].*?)(\s+#.*)?""")


# --- What a text says --------------------------------------------------------------------------------------------


class _Meaning(NamedTuple):
    """All that a text says, and how many of its values are empty."""

    steps: tuple[tuple[type[object], str], ...]
    empty: int


def _meaning(text: str) -> _Meaning | None:
    """Return the data of a text for comparison, or None if it is no YAML or nothing that somebody meant to write."""
    next_event = tree.event_source(text)
    found: list[tuple[type[object], str]] = []
    empty = 0
    reader = _Keys()
    try:
        while (kind := type(event := next_event())) is not tree.STREAM_END:
            value, style = (event.value, event.style) if kind is tree.SCALAR else ("", None)
            goes_on = kind is tree.SCALAR and not style and event.start_mark.line != event.end_mark.line
            if goes_on or not reader.accepts(kind, value):
                return None
            empty += kind is tree.SCALAR and not style and not value
            found.append((kind, value))
    except yaml.YAMLError:
        return None
    return _Meaning(tuple(found), empty)


class _Keys:
    """Refuses documents that are no mappings, keys that are said twice or are a text of several words."""

    def __init__(self) -> None:
        self._open: list[set[str] | None] = []  # the keys of each open mapping; None for a list
        self._takes_key: list[bool] = []
        self._is_root = False

    def accepts(self, kind: type[object], value: str) -> bool:
        if kind is tree.DOCUMENT_START:
            self._is_root = True
            return True
        if self._is_root and kind is not tree.MAPPING_START:
            return False
        self._is_root = False
        if kind in (tree.MAPPING_END, tree.SEQUENCE_END):
            self._open.pop()
            self._takes_key.pop()
            return True
        return len(self._open) < _MAX_DEPTH and self._takes(kind, value)

    def _takes(self, kind: type[object], value: str) -> bool:
        keys = self._open[-1] if self._open else None
        if keys is not None:
            is_key, self._takes_key[-1] = self._takes_key[-1], not self._takes_key[-1]
            if is_key and (kind is not tree.SCALAR or value in keys or not value or re.search(r"[\s{}\[\],]", value)):
                return False
            if is_key:
                keys.add(value)
        if kind in (tree.MAPPING_START, tree.SEQUENCE_START):
            self._open.append(set() if kind is tree.MAPPING_START else None)
            self._takes_key.append(True)
        return True


_MAX_DEPTH = 32
