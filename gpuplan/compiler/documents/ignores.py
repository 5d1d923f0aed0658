"""Comments that silence findings: ``# gpuplan: ignore[GPU203] reason``."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Generator, Iterator
from functools import lru_cache

import yaml

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Location, Origin, Position, SourceFile, Span
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.documents import stretches, tree
from gpuplan.compiler.documents.document import Spot
from gpuplan.compiler.documents.rules import MALFORMED_IGNORE
from gpuplan.compiler.documents.scalars import shortened
from gpuplan.compiler.documents.stretches import Stretch
from gpuplan.compiler.documents.text import check_text


class Ignore(Value):
    """Silences findings of some rules whose primary label begins on ``line``; ``span`` is the comment's."""

    file: SourceFile
    line: int
    codes: tuple[str, ...]
    reason: str
    span: Span

    @property
    def origin(self) -> Origin:
        return Spot(Location(self.file, self.span)).origin


def find_ignores(file: SourceFile) -> tuple[Ignore, ...]:
    """The well-formed comments. One at the end of a line is about that line; one alone about the next line of YAML."""
    comments = _comments(file)
    after = _lines_after(file.lines) if comments else []
    ignores = []
    for line, written in comments:
        instruction = _instruction(written["instruction"])
        if isinstance(instruction, _Instruction):
            is_alone = not written.string[: written.start()].strip()
            about = after[line] if is_alone else line + 1
            ignores.append(Ignore(file, about, instruction.codes, instruction.reason, _span(line, written)))
    return tuple(ignores)


def find_malformed(file: SourceFile) -> Iterator[Diagnostic]:
    """Yield findings on comments that begin like an instruction to gpuplan and are none."""
    for line, written in _comments(file):
        problem = _instruction(written["instruction"])
        if isinstance(problem, str):
            at = Spot(Location(file, _span(line, written))).origin
            named = _BRACKETS.search(written["instruction"])
            codes = ", ".join(_CODE.findall(named[0])) if named else ""
            help_ = f"write `# gpuplan: ignore[{codes or 'GPU203'}] reason`, with the reason in its place"
            yield MALFORMED_IGNORE.report(Finding(at, problem, "silences nothing", help=help_))


_MARKER = regex(r"(?<!\S)#\s*gpuplan:\s*(?P<instruction>.*)")
_IGNORE = regex(r"ignore\s*(?:\[(?P<codes>[^\]]*)\])?[\s:]*(?P<reason>.*)")
_BRACKETS = regex(r"\[[^\]]*\]?")
_CODE = regex(r"GPU[0-9]{3}")


class _Instruction(NamedTuple):
    codes: tuple[str, ...]
    reason: str


def _instruction(text: str) -> _Instruction | str:
    """Return the wish of a comment, or what is wrong with it."""
    written = text.rstrip()
    ignore = _IGNORE.fullmatch(written)
    if ignore is None:
        return f"comment `gpuplan: {shortened(written)}` is no instruction"
    if not (ignore["codes"] or "").strip():
        return "ignore names no rule"
    codes = tuple(code.strip() for code in ignore["codes"].split(","))
    wrong = [code for code in codes if not _CODE.fullmatch(code)]
    if wrong:
        return f"`{shortened(wrong[0])}` is not the code of a rule"
    return _Instruction(codes, ignore["reason"]) if ignore["reason"] else "ignore gives no reason"


def _span(line: int, written: re.Match[str]) -> Span:
    end = written.start() + len(written[0].rstrip())
    return Span(Position(line + 1, written.start() + 1), Position(line + 1, end + 1))


def _lines_after(lines: tuple[str, ...]) -> list[int]:
    """For each line the number of the next one, counted from 1, that is neither blank nor a comment."""
    after, following = [], len(lines)
    for number in range(len(lines), 0, -1):
        after.append(following)
        if lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#"):
            following = number
    return after[::-1]


@lru_cache(maxsize=64)
def _comments(file: SourceFile) -> tuple[tuple[int, re.Match[str]], ...]:
    """The markers that stand in comments rather than in text, with their lines counted from 0."""
    if "gpuplan:" not in file.text:
        return ()
    found = []
    texts = list(_texts(file.text)) if check_text(file) is None else [((0, 0), _FAR_AWAY)]
    for line, content in enumerate(file.lines):
        for written in _MARKER.finditer(content):
            place = (line, written.start())
            before = bisect_right(texts, (place, _FAR_AWAY)) - 1
            if before < 0 or place >= texts[before][1]:
                found.append((line, written))
    return tuple(found)


_Place = tuple[float, int]
_FAR_AWAY = (math.inf, 0)
_MAX_DEPTH = 64  # libyaml takes quadratic time in the depth of brackets


def _texts(text: str) -> Iterator[tuple[_Place, _Place]]:
    """Where scalars begin and end. What follows a syntax error counts as one more, up to the next document."""
    broken = yield from _texts_of(text, stretches.whole(text))
    for part in stretches.following(text, broken) if broken else ():
        yield from _texts_of(text, part)


def _texts_of(text: str, part: Stretch) -> Generator[tuple[_Place, _Place], None, Stretch | None]:
    depth = 0
    next_event = tree.event_source(text[part.start : part.end])
    try:
        while type(event := next_event()) is not tree.STREAM_END:
            depth += _NESTING.get(type(event), 0)
            if depth > _MAX_DEPTH:
                yield _place(event.start_mark, part), _FAR_AWAY
                return None
            if type(event) is tree.SCALAR:
                # A comment may follow the `|` of a block scalar, whose text begins on the line below.
                line = part.line + event.start_mark.line
                start = (line + 1, 0) if event.style in ("|", ">") else _place(event.start_mark, part)
                yield start, _place(event.end_mark, part)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        broken = stretches.broken(text, part, part.start + (mark.index if mark else 0))
        end = broken.line + stretches.count_lines(text, broken.start, broken.end)
        is_text = "scalar" in (error.context or "")  # an open one begins at the context's mark
        yield (
            _place((error.context_mark if is_text else None) or mark, part),
            (end, 0) if broken.end < len(text) else _FAR_AWAY,
        )
        return broken
    return None


_NESTING = {tree.MAPPING_START: 1, tree.SEQUENCE_START: 1, tree.MAPPING_END: -1, tree.SEQUENCE_END: -1}


def _place(mark: tree.Mark | None, part: Stretch) -> _Place:
    return (part.line + mark.line, mark.column) if mark else (part.line, 0)
