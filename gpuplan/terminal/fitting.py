"""Tables and lines that fit the width that they are shown in.

Where there is no width to fit, a table is as wide as its cells, and a line as long as its text. Where there is, nothing
is lost without a sign: headings and cells go on in the next line, then columns that `-o wide` shows are named below,
then each row is a block of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.terminal.data.legend import LEGEND
from gpuplan.terminal.text import PLAIN, Style, Theme, cells, indent, pad, printable

NARROWEST: Final = 40
"""Terminals with fewer cells are written for as if they had so many."""

NOTHING: Final = "-"
"""The text of a cell that has nothing in it."""

_GAP: Final = 2
_TALL: Final = 3
_TALLEST: Final = 5
"""Lines of a row that a reader still reads across: where columns can go, and where none can."""
_PIECE: Final = 16
"""A word that can be parted nowhere is broken after so many cells, if it must."""
_WORDS: Final = regex(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_PAINT: Final = regex(r"\x1b\[([0-9;]*)m")
_JOINTS: Final = regex(r"(?<=[-/,;:=])(?!(?<=[0-9],)[0-9]{3}(?![0-9]))(?=[^-/,;:=\s])")
"""Where a word may go on in the next line, if it must; not within a number, as after the comma of `1,250.00`."""


class Table(Value):
    """Rows below their headings. ``right`` are the columns of numbers.

    ``extra`` are columns that go where there is no room for them, the first one first: only tables of commands that
    know `-o wide` may have some. Those that have nothing in any row are not shown.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Iterable[int] = ()
    extra: Sequence[int] = ()

    def shown(self, theme: Theme = PLAIN) -> str:
        """The table as wide as the theme has room, and the meaning of its headings; nothing if it has no rows."""
        text, grid = self._fitted(theme) if self.rows else ("", _Grid((), (), frozenset()))
        meant = legend_of(grid.headings, grid.rows)
        return text + folded(f"{theme.paint(meant, Style.FAINT)}\n", theme) if meant else text

    def filled(self) -> Table:
        """Return the table without the ``extra`` columns that have nothing in any row."""
        empty = [index for index in self.extra if all(row[index] in ("", NOTHING) for row in self.rows)]
        grid = _Grid(tuple(self.headings), tuple(map(tuple, self.rows)), frozenset(self.right)).without(empty)
        extra = [index - sum(other < index for other in empty) for index in self.extra if index not in empty]
        return Table(*grid, extra)

    def _fitted(self, theme: Theme) -> tuple[str, _Grid]:
        """Return the table and the cells that it shows."""
        table = self.filled()
        rows = tuple(tuple(printable(cell) for cell in row) for row in table.rows)
        grid = _Grid(tuple(map(printable, table.headings)), rows, frozenset(table.right))
        natural, room = grid.widths(cells, cells), room_of(theme)
        if room is None or _sum(natural) <= room:
            return _lines(grid, natural), grid
        for number in range(len(table.extra) + 1):
            gone = table.extra[:number]
            left = grid.without(gone)
            widths = _fitting(left, room, is_last=number == len(table.extra))
            if widths:
                missing = ", ".join(grid.headings[index] for index in sorted(gone))
                sign = folded(f"{theme.paint(f'-o wide adds {missing}', Style.FAINT)}\n", theme) if gone else ""
                return _lines(left, widths) + sign, left
        # Each row is below the other: its first cell, and the others that have something in them after their
        # headings. A row without a first cell is one more of the row above it.
        blocks, first = [], ""
        for row in grid.rows:
            first = row[0] or first
            title, *others = (
                f"{heading} {cell}" for heading, cell in zip(grid.headings, ((first, *row[1:])), strict=True) if cell
            )
            lines: list[str] = []
            for part in others:
                if lines and cells(lines[-1]) + _GAP + cells(part) <= room - _GAP:
                    lines[-1] += " " * _GAP + part
                else:
                    lines.append(part)
            inner = theme.indented(_GAP)
            blocks.append(
                folded(f"{theme.paint(title, Style.STRONG)}\n", theme)
                + indent(folded("".join(f"{line}\n" for line in lines), inner))
            )
        return "\n".join(blocks), grid


def legend_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the meaning of those headings, and signs at the start of cells, that are terms, in one line."""
    signs = dict.fromkeys(cell[:1] for row in rows for cell in row)
    return "; ".join(f"{term} = {LEGEND[term]}" for term in (*headings, *signs) if term in LEGEND)


def folded(text: str, theme: Theme, *, hanging: int = 2) -> str:
    """Lines that are shown already, painted or not; what does not fit goes on below, indented by so many cells more."""
    room = room_of(theme)
    if room is None:
        return text
    return "".join(f"{part}\n" for line in text.splitlines() for part in _folded(line, room, hanging))


def folded_commands(text: str, theme: Theme, *, hanging: int = 2) -> str:
    """Commands that go on below as a shell has them, after a backslash; their comments come first.

    What stands in quotes is never parted: a line of it may be wider than there is room.
    """
    room = room_of(theme)
    if room is None:
        return text
    return "".join(f"{part}\n" for line in text.splitlines() for part in _folded_command(line, room, hanging))


def _folded_command(line: str, room: int, hanging: int) -> list[str]:
    if cells(line) <= room:
        return [line]
    command, sign, comment = line.partition("   # ")
    parts, part = wrapped(f"# {comment}", room, room - 2) if sign else [], ""
    parts[1:] = [f"# {more}" for more in parts[1:]]
    for word in _WORDS.findall(command):
        if part and cells(part) + cells(word) + 3 > room:
            parts.append(f"{part} \\")
            part = " " * hanging + word
        else:
            part += f" {word}" if part else word
    return [*parts, part]


def _folded(line: str, room: int, hanging: int) -> list[str]:
    plain = _PAINT.sub("", line)
    if cells(plain) <= room:
        return [line]
    before = min(len(plain) - len(plain.lstrip(" ")) + hanging, room // 2)
    parts, position, painted = [], 0, _painted(line)
    for index, part in enumerate(wrapped(plain, room, room - before)):
        position = plain.index(part, position)
        shown = groupby(painted[position : position + len(part)], key=itemgetter(1))
        text = "".join(_repainted("".join(char for char, _ in chars), style) for style, chars in shown)
        parts.append(f"{' ' * before if index else ''}{text}")
        position += len(part)
    return parts


def _painted(line: str) -> list[tuple[str, str]]:
    """The characters of a line that can be seen, each with how it is painted."""
    found, style = [], ""
    for index, part in enumerate(_PAINT.split(line)):
        if index % 2:
            style = "" if part == "0" else part
        else:
            found += [(char, style) for char in part]
    return found


def _repainted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def room_of(theme: Theme) -> int | None:
    """Return the cells that a line may have, or None for as many as it needs."""
    return max(theme.width, NARROWEST - theme.indentation) if theme.is_fitted else None


def wrapped(text: str, room: int, later: int | None = None) -> list[str]:
    """The parts of a line that fit, the first into ``room`` cells, the others into ``later`` ones.

    Blanks at a break go, those at the start stay. A word that fits into no line is parted after a sign, or anywhere.
    """
    later = room if later is None else later
    body = text.lstrip(" ")
    lines, line, width, is_open = [], " " * min(len(text) - len(body), room - 1), room, False
    for word in body.split(" "):
        longer = f"{line} {word}" if is_open else f"{line}{word}"
        if cells(longer) <= width:
            line, is_open = longer, is_open or bool(word)
            continue
        if is_open:
            lines.append(line.rstrip(" "))
            line, width = "", later
        *whole, line = _broken(word, width, later, line)
        lines += whole
        width = later if whole else width
        is_open = bool(line)
    return [*lines, line.rstrip(" ")]


def _broken(word: str, first: int, later: int, before: str) -> list[str]:
    """A word in parts of so many cells, the first after what stands ``before`` it; one where it fits."""
    parts, part, width = [], before, first
    for piece in _JOINTS.split(word):
        if cells(part) + cells(piece) <= width:
            part += piece
            continue
        if part.strip(" "):
            parts.append(part)
            part, width = "", later
        for char in piece:
            if cells(part + char) > width:
                parts.append(part)
                part, width = "", later
            part += char
    return [*parts, part]


# --- How a table is shown ----------------------------------------------------------------------------------------


class _Grid(NamedTuple):
    """Cells as they can be printed, and which of the table's columns they are."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]

    def without(self, gone: Iterable[int]) -> _Grid:
        left = [index for index in range(len(self.headings)) if index not in frozenset(gone)]
        return _Grid(
            tuple(self.headings[index] for index in left),
            tuple(tuple(row[index] for index in left) for row in self.rows),
            frozenset(new for new, index in enumerate(left) if index in self.right),
        )

    def widths(self, of_heading: Callable[[str], int], of_cell: Callable[[str], int]) -> list[int]:
        """Return the width of each column, by one measure of its heading and another of its cells."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.headings)
        return [
            max((of_heading(heading), *map(of_cell, set(column))))
            for heading, column in zip(self.headings, columns, strict=True)
        ]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _fitting(grid: _Grid, room: int, *, is_last: bool) -> list[int] | None:
    """Return the widths of the columns in a table that fits and is read across, or None if there is no such table."""
    natural, words = grid.widths(_longest_word, cells), grid.widths(_longest_word, _longest_word)
    pieces = grid.widths(_longest_word, _longest_piece)
    for least, most in ((natural, grid.widths(cells, cells)), (words, natural), (pieces, words)):
        found = _shared_out(least, most, room)
        if found and _is_legible(grid, found, is_last=is_last):
            columns = zip(grid.headings, *grid.rows, strict=True)
            return [
                max(cells(part) for cell in column for part in wrapped(cell, width))
                for column, width in zip(columns, found, strict=True)
            ]
    return None


def _is_legible(grid: _Grid, widths: Sequence[int], *, is_last: bool) -> bool:
    heights = [max(len(wrapped(cell, width)) for cell, width in zip(row, widths, strict=True)) for row in grid.rows]
    most = _TALLEST if is_last else _TALL
    return max(heights, default=1) <= most and (is_last or 2 * sum(heights) <= 3 * len(heights) + 1)


def _shared_out(least: Sequence[int], most: Sequence[int], room: int) -> list[int] | None:
    """Widths between two bounds that take no more than there is: wide columns give way to narrow ones."""
    if _sum(least) > room:
        return None
    low, high = 0, room
    while low < high:  # the highest level up to which each column is filled
        level = (low + high + 1) // 2
        low, high = (level, high) if _sum(_filled(least, most, level)) <= room else (low, level - 1)
    widths = _filled(least, most, low)
    for index, wish in enumerate(most):
        if widths[index] < wish and _sum(widths) < room:
            widths[index] += 1
    return widths


def _filled(least: Sequence[int], most: Sequence[int], level: int) -> list[int]:
    return [max(low, min(high, level)) for low, high in zip(least, most, strict=True)]


def _longest_word(text: str) -> int:
    return max(map(cells, text.split(" ")))


def _longest_piece(text: str) -> int:
    return max(min(cells(piece), _PIECE) for word in text.split(" ") for piece in _JOINTS.split(word))


def _lines(grid: _Grid, widths: Sequence[int]) -> str:
    return "".join(
        f"{line}\n"
        for is_heading, row in ((True, grid.headings), *((False, row) for row in grid.rows))
        for line in _row_lines(row, widths, grid.right, is_heading=is_heading)
    )


def _row_lines(row: Sequence[str], widths: Sequence[int], right: frozenset[int], *, is_heading: bool) -> Iterator[str]:
    """The lines of one row. What is parted begins at the top, headings end at the bottom."""
    parts = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, parts))
    columns = [
        [""] * (height - len(part)) + part if is_heading else part + [""] * (height - len(part)) for part in parts
    ]
    for line in zip(*columns, strict=True):
        padded = (pad(cell, widths[index], right=index in right) for index, cell in enumerate(line))
        yield (" " * _GAP).join(padded).rstrip()
