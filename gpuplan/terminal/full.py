"""Findings for people: a verdict, a line for each, or the source with carets under what is meant, notes and help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from gpuplan.compiler.base.diagnostics import Diagnostic, Location, Rule, Severity
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import count, joined
from gpuplan.terminal.text import SEVERITY_STYLES, Style, Theme, cells, printable

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report

_ELLIPSIS = "..."
_LONGEST_BLOCK = 5
_MOST = 1000
_MOST_NOTES = 3
_NARROWEST = 24


def full(report: Report, theme: Theme) -> str:
    """Every finding with its code frame, and an empty line after it.

    Of many findings of one rule the first ones stand for the others, which are counted at the end.
    """
    found: Counter[tuple[Rule, Severity]] = Counter()
    shown: list[str] = []
    for diagnostic in report.diagnostics:
        kind = diagnostic.rule, diagnostic.severity
        found[kind] += 1
        if found[kind] <= _most(diagnostic.severity):
            shown.append(frame(diagnostic, theme, report.clusters))
    for (rule, severity), number in found.items():
        if number > _most(severity):
            word = theme.paint(f"{severity}[{rule.code}]", SEVERITY_STYLES[severity])
            more = count(number - _most(severity), f"more {severity}")
            shown.append(f"{word}: {more} like these; `--output-format concise` lists all\n")
    return "".join(f"{text}\n" for text in shown)


def _most(severity: Severity) -> int:
    """Return how many findings of one rule are shown. Nobody reads more, and CI servers cut off what is longer."""
    return _MOST_NOTES if severity is Severity.NOTE else _MOST


def frame(diagnostic: Diagnostic, theme: Theme, clusters: Sequence[str] = ()) -> str:
    """One finding. ``clusters`` are all that were looked at: where it holds for all of them none is named."""
    style = SEVERITY_STYLES[diagnostic.severity]
    finding = diagnostic.shown
    related = (_Mark(label.at.locate(), label.text, is_primary=False) for label in finding.related)
    marks = [_Mark(finding.at.locate(), finding.label, is_primary=True), *related]
    gutter = len(str(max(mark.last_line for mark in marks)))
    kind = theme.paint(f"{diagnostic.severity}[{diagnostic.code}]", style)
    lines = [f"{kind}{theme.paint(f': {printable(diagnostic.shown.message)}', Style.STRONG)}"]
    for section in _sections(marks):
        lines += _Drawing(theme, style, gutter).section(section)
    footer = list(_footer(diagnostic, theme, gutter, clusters))
    if footer and not marks[-1].location.is_whole_file:
        lines.append(theme.paint(" " * gutter + " |", Style.FRAME))
    return "".join(f"{line.rstrip()}\n" for line in (*lines, *footer))


# --- One on a line -----------------------------------------------------------------------------------------------


def concise(report: Report, theme: Theme) -> str:
    """``file:line:column: severity[code] message``, as editors and terminals turn into links."""
    return "".join(f"{_on_a_line(diagnostic, theme)}\n" for diagnostic in report.diagnostics)


def _on_a_line(diagnostic: Diagnostic, theme: Theme) -> str:
    location = diagnostic.finding.at.locate()
    start = location.span.start
    place = f"{theme.path(location.file.path)}:{start.line}:{start.column}"
    kind = theme.paint(f"{diagnostic.severity}[{diagnostic.code}]", SEVERITY_STYLES[diagnostic.severity])
    return f"{theme.paint(printable(place), Style.STRONG)}: {kind} {printable(diagnostic.shown.message)}"


# --- All in all --------------------------------------------------------------------------------------------------


def tally(diagnostics: Iterable[Diagnostic]) -> dict[Severity, int]:
    """Return the number of findings of each severity, the worst first."""
    found = dict.fromkeys(Severity, 0)
    for diagnostic in diagnostics:
        found[diagnostic.severity] += 1
    return found


def verdict(report: Report, theme: Theme) -> str:
    """``2 errors and 1 warning in 12 files, 3 clusters``, and how to read more about the worst."""
    scope = count(report.file_count, "file")
    if report.clusters:
        scope += f", {count(len(report.clusters), 'cluster')}"
    found = {severity: number for severity, number in tally(report.diagnostics).items() if number}
    judged = f"{report.scope}\n" if report.scope else ""
    if not found:
        return f"{theme.paint('no findings', Style.HELP)} in {scope}\n{judged}"
    counts = [theme.paint(count(number, severity), SEVERITY_STYLES[severity]) for severity, number in found.items()]
    worst = next(item for item in report.diagnostics if item.severity is next(iter(found)))
    return f"{joined(counts)} in {scope}; `gpuplan explain {worst.code}` says more\n{judged}"


# --- What is marked ----------------------------------------------------------------------------------------------


class _Mark(Value):
    """A stretch of source to underline, with the words beside it."""

    location: Location
    text: str
    is_primary: bool

    @property
    def line(self) -> int:
        return self.location.span.start.line

    @property
    def last_line(self) -> int:
        """The last line with something of the span on it; a block's span ends where the next token starts."""
        span, lines = self.location.span, self.location.file.lines
        last = span.end.line if span.end.column > 1 else span.end.line - 1
        last = min(last, len(lines))
        while last > span.start.line and not lines[last - 1].strip():
            last -= 1
        return max(last, span.start.line)

    @property
    def is_block(self) -> bool:
        return self.last_line > self.line

    @property
    def source(self) -> str:
        """The text of its first line; empty past the end of the file."""
        return self.location.file.confidential.line(self.line)

    @property
    def columns(self) -> tuple[int, int]:
        """Its part of the first line, counted from 0, at least one column wide."""
        span = self.location.span
        start = span.start.column - 1
        end = span.end.column - 1 if span.end.line == span.start.line else len(self.source.rstrip())
        return start, max(end, start + 1)


def _sections(marks: Sequence[_Mark]) -> Iterator[list[_Mark]]:
    """The marks that share a frame: those on single lines of one file. The primary one's frame comes first."""
    frames: dict[object, list[_Mark]] = {}
    for index, mark in enumerate(marks):
        key = index if mark.is_block or mark.location.is_whole_file else mark.location.file.path
        frames.setdefault(key, []).append(mark)
    yield from frames.values()


# --- Drawing -----------------------------------------------------------------------------------------------------


class _Drawing(Value):
    """Draws the frames of one finding; ``gutter`` is the width of its line numbers."""

    theme: Theme
    style: Style
    gutter: int

    def section(self, marks: Sequence[_Mark]) -> Iterator[str]:
        first = marks[0]
        arrow = "-->" if first.is_primary else ":::"
        place = printable(self.theme.place(first.location, column=True))
        yield f"{self.theme.paint(' ' * self.gutter + arrow, Style.FRAME)} {place}"
        if first.location.is_whole_file:
            if first.text:
                yield self._bar(f" = {printable(first.text)}", bar=" ")
            return
        yield self._bar()
        if first.is_block:
            yield from self._block(first)
        else:
            yield from self._lines(sorted(marks, key=lambda mark: (mark.location.span, not mark.is_primary)))

    def _bar(self, text: str = "", number: int | None = None, bar: str = "|") -> str:
        label = "" if number is None else str(number)
        return self.theme.paint(f"{label:<{self.gutter}} {bar}", Style.FRAME) + text

    def _lines(self, marks: Sequence[_Mark]) -> Iterator[str]:
        """Single lines, each once, with an underline for every mark on it."""
        before = 0
        for number, on_line in groupby(marks, key=lambda mark: mark.line):
            same_line = list(on_line)
            if before and number == before + 2:
                yield self._source(same_line[0].location.file.confidential.line(before + 1), before + 1)
            elif before and number > before + 2:
                yield self.theme.paint(_ELLIPSIS, Style.FRAME)
            shown = None
            for mark in same_line:
                text, offset, width = _crop(mark.source, mark.columns, self._room)
                if text != shown:
                    yield self._bar(f" {text}", mark.line)
                shown = text
                yield self._bar(f" {' ' * offset}{self._underline(mark, width)}")
            before = number

    def _underline(self, mark: _Mark, width: int) -> str:
        line = ("^" if mark.is_primary else "-") * width
        label = f" {printable(mark.text)}" if mark.text else ""
        return self.theme.paint(f"{line}{label}", self._mark_style(mark))

    def _block(self, mark: _Mark) -> Iterator[str]:
        """Several lines, with a line beside them instead of one below; the middle of a long block is left out."""
        style = self._mark_style(mark)
        first, last = mark.line, mark.last_line
        numbers = range(first, last + 1)
        is_long = len(numbers) > _LONGEST_BLOCK
        line = mark.location.file.confidential.line
        for number in (*numbers[:3], numbers[-1]) if is_long else numbers:
            if is_long and number == last:
                yield self.theme.paint(_ELLIPSIS, Style.FRAME)
            side = self.theme.paint("/" if number == first else "|", style)
            yield self._source(line(number), number, side)
        caret = "^" if mark.is_primary else "-"
        end, _, _ = _crop(line(last), (0, 1), self._room - 2)
        label = f" {printable(mark.text)}" if mark.text else ""
        yield self._bar(f" {self.theme.paint('|' + '_' * cells(end) + caret + label, style)}")

    def _source(self, line: str, number: int, side: str = "") -> str:
        text, _, _ = _crop(line, (0, 1), self._room - (2 if side else 0))
        return self._bar(f" {side} {text}" if side else f" {text}", number)

    def _mark_style(self, mark: _Mark) -> Style:
        return self.style if mark.is_primary else Style.FRAME

    @property
    def _room(self) -> int:
        return max(self.theme.width - self.gutter - 3, _NARROWEST)


def _crop(source: str, columns: tuple[int, int], room: int) -> tuple[str, int, int]:
    """The part of a line around some columns that fits into ``room`` cells; a line that fits is shown whole.

    With it come the cells before the columns and the cells that they take.
    """
    source = source.rstrip()
    start, end = columns
    if len(source) <= 4 * room and cells(printable(source)) <= room:
        before, marked = printable(source[:start]), printable(source[start:end])
        return printable(source), cells(before) + max(start - len(source), 0), _width(before, marked)
    # What is more than `room` characters away cannot be in it: a line may have millions of them.
    all_before = printable(source[max(start - room, 0) : start])
    all_marked = printable(source[start : min(end, start + room)])
    all_after = printable(source[end : end + room]) if end <= start + room else ""
    inner = room - 2 * len(_ELLIPSIS)
    marked = _head(all_marked, inner)
    rest = inner - cells(marked)
    before = _tail(all_before, rest - min(cells(all_after), rest // 2))
    after = _head(all_after, rest - cells(before))
    head = before if start <= room and before == all_before else _ELLIPSIS + before
    is_end = end + room >= len(source) and (marked, after) == (all_marked, all_after)
    return head + marked + after + ("" if is_end else _ELLIPSIS), cells(head), _width(head, marked)


def _width(before: str, marked: str) -> int:
    """The cells of a text where it stands: a combining character at its start belongs to what is before it."""
    return max(cells(before + marked) - cells(before), 1)


def _head(text: str, room: int) -> str:
    """As much of the start of a text as fits into ``room`` cells."""
    while (excess := cells(text) - room) > 0:
        text = text[: -max(excess // 2, 1)]
    return text


def _tail(text: str, room: int) -> str:
    """As much of the end of a text as fits into ``room`` cells."""
    while (excess := cells(text) - room) > 0:
        text = text[max(excess // 2, 1) :]
    return text


# --- Footer ------------------------------------------------------------------------------------------------------


def _footer(diagnostic: Diagnostic, theme: Theme, gutter: int, clusters: Sequence[str]) -> Iterable[str]:
    finding = diagnostic.shown
    for note in finding.notes:
        yield from _remark("note", note, Style.STRONG, theme, gutter)
    if diagnostic.clusters and set(diagnostic.clusters) != set(clusters):
        yield from _remark("in", ", ".join(diagnostic.clusters), Style.STRONG, theme, gutter)
    if finding.help:
        yield from _remark("help", finding.help, Style.HELP, theme, gutter)


def _remark(word: str, text: str, style: Style, theme: Theme, gutter: int) -> Iterator[str]:
    """A note or help; further lines of it are indented under the first."""
    first, *rest = text.split("\n")
    yield f"{theme.paint(' ' * gutter + ' =', Style.FRAME)} {theme.paint(f'{word}:', style)} {printable(first)}"
    for line in rest:
        yield " " * (gutter + len(word) + 5) + printable(line)
