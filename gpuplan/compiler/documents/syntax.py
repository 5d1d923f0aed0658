"""Words for what the YAML parser could not read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Location, Position, SourceFile, Span
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import count, help_on_variables, joined
from gpuplan.compiler.documents.data.syntax import BAD_NAME, CONFLICT, SLIPS, TAB, WORDS
from gpuplan.compiler.documents.document import Spot
from gpuplan.compiler.documents.repair import WIDTHS, Repair, Slip, Words, find_repairs
from gpuplan.compiler.documents.rules import SYNTAX_ERROR
from gpuplan.compiler.documents.stretches import Stretch, count_lines


def explain(
    error: yaml.YAMLError, file: SourceFile, part: Stretch, broken: Stretch, *, try_edits: bool = True
) -> Diagnostic:
    """The parser's error as a finding at the place that has to be changed.

    ``part`` is what the parser was given of the file, ``broken`` the document that the error is in.
    """
    problem = getattr(error, "problem", None) or "the text is not YAML"
    place = _position(getattr(error, "problem_mark", None), file, part)
    start = _position(getattr(error, "context_mark", None) or getattr(error, "problem_mark", None), file, part)
    words = WORDS.get(problem) or _cannot_start(problem, _character(file, place)) or Words(problem)
    is_behind = place.line > broken.line + count_lines(file.text, broken.start, broken.end)
    at, other = (start, place) if words.at_start or is_behind else (place, start)
    if words is BAD_NAME and (text := _text_from(file.lines[at.line - 1], at.column - 1)):
        words = words._replace(help=f'quote the text: `"{text}"`')
    repairs = _repairs(file, broken, place, start) if try_edits else ()
    if repairs:
        mistake = Position(broken.line + repairs[0].line + 1, repairs[0].column + 1)
        if repairs[0].slip is not Slip.BARE_TEXT:
            at, other = mistake, at
        words = _words_of(repairs, words, file.lines[mistake.line - 1])
    words = _unquoted(file.lines[at.line - 1]) or _unquoted(file.lines[other.line - 1]) or words
    if variables := help_on_variables(file.lines[at.line - 1]):
        words = Words("`{` in the place of a value begins a mapping", words.label, variables, other=words.other)
    if conflict := _CONFLICT.search(file.text, broken.start, broken.end):
        words, at = CONFLICT, Position(file.text.count("\n", 0, conflict.start()) + 1, 1)
    related = (Label(_spot(file, other).origin, words.other),) if words.other and other != at else ()
    finding = Finding(_spot(file, at).origin, words.message, words.label, related, help=words.help)
    return SYNTAX_ERROR.report(finding)


def _unquoted(line: str) -> Words | None:
    """Return words for a line whose text is a list to YAML: a range of a shell's, or a pattern that begins with `[`."""
    if len(line) > 2 * _LONGEST:
        return None
    if found := _RANGE.search(line):
        first, last = int(found[2]), int(found[3])
        names = [f"{found[1]}{number:0{len(found[2])}}{found[4]}" for number in range(first, last + 1)]
        text = f"write {', '.join(names)}" if 0 < len(names) <= _FEW else "write each name, or a `namePattern`"
        return Words("a range in braces is one of a shell, and not of YAML", "a mapping to YAML", text)
    if found := _BRACKETS.fullmatch(line):
        text = found[2] if "\\" not in found[2] else found[2].replace("\\", "\\\\")
        return Words(
            "text that begins with a bracket is a list to YAML", "ends behind `]`", f'write `{found[1]}: "{text}"`'
        )
    return None


_RANGE = regex(r"([A-Za-z0-9_.-]*)\{([0-9]{1,5})\.\.([0-9]{1,5})\}([A-Za-z0-9_.-]*)")
_BRACKETS = regex(r"\s*(?:- )?([A-Za-z]+):\s+(\[[^\]]*\][^\s,\]#][^\"#]*?)\s*")
_FEW = 16
_CONFLICT = regex(r"^<{7} ", re.MULTILINE)
_IN_FLOW = regex(r"[^,}\]#\"]*[^,}\]#\"\s]")
_IN_BLOCK = regex(r"[^#\"]*[^#\"\s]")


def _text_from(line: str, column: int) -> str:
    """Return the text that begins at a column, up to the end of its value."""
    pattern = _IN_FLOW if {"{", "["} & {*line[:column]} else _IN_BLOCK
    found = pattern.match(line, column)
    return found[0] if found and len(found[0]) <= _LONGEST else ""


def _repairs(file: SourceFile, broken: Stretch, place: Position, start: Position) -> tuple[Repair, ...]:
    rows = (max(position.line - 1 - broken.line, 0) for position in (place, start))
    return find_repairs(file.text[broken.start : broken.end], *rows)


def _words_of(repairs: Sequence[Repair], words: Words, written: str) -> Words:
    """The slip in a line, and the line as it should be."""
    repair = repairs[0]
    said = SLIPS.get(repair.slip, words)
    if repair.slip in (Slip.BRACKET, Slip.SURPLUS):
        said = said._replace(message=f"`{written[repair.column]}` {said.message}")
    if repair.slip in WIDTHS:
        label = said.label or f"indented by {count(len(written) - len(written.lstrip()), 'space')}"
        return said._replace(label=label, help=_indent_help([found.indentation for found in repairs]))
    if repair.slip is Slip.BLANK:
        return said._replace(help="write plain blanks in this line", other="")
    text = repair.text.strip()
    return said._replace(help=f"write `{text}`" if len(text) <= _LONGEST else said.help, other="")


def _indent_help(widths: Sequence[int]) -> str:
    if widths == [0]:
        return "write the line without spaces before it"
    if len(widths) > _MOST_WIDTHS:
        return "indent the line with spaces"
    return f"indent the line with {joined([str(width) for width in widths[:-1]] + [count(widths[-1], 'space')], 'or')}"


_MOST_WIDTHS = 3


_LONGEST = 100


def _cannot_start(problem: str, character: str) -> Words | None:
    if "that cannot start any token" not in problem:
        return None
    if character == "\t":
        return TAB
    name = "a backtick" if character == "`" else f"`{character}`"
    return Words(f"{name} cannot begin a value", "reserved by YAML", "put the text in quotes")


def _position(mark: yaml.Mark | None, file: SourceFile, part: Stretch) -> Position:
    """libyaml counts one line more at the end of a text whose last line has no line end."""
    if mark is None:
        return Position(part.line + 1, 1)
    row = part.line + mark.line
    if row >= len(file.lines):
        return Position(len(file.lines), len(file.lines[-1]) + 1)
    return Position(row + 1, mark.column + 1)


def _character(file: SourceFile, place: Position) -> str:
    return file.lines[place.line - 1][place.column - 1 : place.column]


def _spot(file: SourceFile, start: Position) -> Spot:
    """One character, which is all that the parser points at."""
    return Spot(Location(file, Span(start, Position(start.line, start.column + 1))))
