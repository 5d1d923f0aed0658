"""Words for what the YAML parser could not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import yaml

from gpuplan.diagnostics import Diagnostic, Finding, Label, Location, Position, SourceFile, Span
from gpuplan.documents.document import Spot
from gpuplan.documents.repair import WIDTHS, Repair, Slip, find_repairs
from gpuplan.documents.rules import SYNTAX_ERROR
from gpuplan.documents.stretches import Stretch, count_lines
from gpuplan.wording import count, joined


def explain(
    error: yaml.YAMLError, file: SourceFile, part: Stretch, broken: Stretch, *, try_edits: bool = True
) -> Diagnostic:
    """The parser's error as a finding at the place that has to be changed.

    ``part`` is what the parser was given of the file, ``broken`` the document that the error is in.
    """
    problem = getattr(error, "problem", None) or "the text is not YAML"
    place = _position(getattr(error, "problem_mark", None), file, part)
    start = _position(getattr(error, "context_mark", None) or getattr(error, "problem_mark", None), file, part)
    words = _WORDS.get(problem) or _cannot_start(problem, _character(file, place)) or _Words(problem)
    is_behind = place.line > broken.line + count_lines(file.text, broken.start, broken.end)
    at, other = (start, place) if words.at_start or is_behind else (place, start)
    repairs = _repairs(file, broken, place, start) if try_edits else ()
    if repairs:
        mistake = Position(broken.line + repairs[0].line + 1, repairs[0].column + 1)
        if repairs[0].slip is not Slip.BARE_TEXT:
            at, other = mistake, at
        words = _words_of(repairs, words, file.lines[mistake.line - 1])
    related = (Label(_spot(file, other).origin, words.other),) if words.other and other != at else ()
    finding = Finding(_spot(file, at).origin, words.message, words.label, related, help=words.help)
    return SYNTAX_ERROR.report(finding)


def _repairs(file: SourceFile, broken: Stretch, place: Position, start: Position) -> tuple[Repair, ...]:
    rows = (max(position.line - 1 - broken.line, 0) for position in (place, start))
    return find_repairs(file.text[broken.start : broken.end], *rows)


def _words_of(repairs: Sequence[Repair], words: _Words, written: str) -> _Words:
    """What was done wrong in the line, and the line as it should be."""
    repair = repairs[0]
    said = _SLIPS.get(repair.slip, words)
    if repair.slip in (Slip.BRACKET, Slip.SURPLUS):
        said = said._replace(message=f"`{written[repair.column]}` {said.message}")
    if repair.slip in WIDTHS:
        label = said.label or f"indented by {count(len(written) - len(written.lstrip()), 'space')}"
        return said._replace(label=label, help=_indent_help([found.indentation for found in repairs]))
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


class _Words(NamedTuple):
    """``at_start`` puts the finding where the unfinished thing began; ``other`` labels the end that is left."""

    message: str
    label: str = ""
    help: str = ""
    at_start: bool = False
    other: str = ""


_TAB = _Words("a tab cannot indent YAML", "a tab", "indent with spaces")
_UNCLOSED_TEXT = _Words(
    "text in quotes is not closed", "opens here", "close it with the same quote", at_start=True, other="read up to here"
)
_BROKEN_ESCAPE = _Words(
    "a backslash in double quotes begins no escape that YAML knows",
    "no such escape",
    "double the backslash, or use single quotes",
)
_BAD_NAME = _Words(
    "`*` and `&` begin an alias or an anchor, and no name follows",
    "no name here",
    'quote the text: `"*"`',
    at_start=True,
)
_BLOCK_HEADER = _Words(
    "nothing but `+`, `-` or a digit can follow `|` or `>` on its line", "unexpected", "put the text on the next line"
)
_TAG = _Words("`!` begins a tag, and this is not one", "unexpected", 'quote text that begins with `!`: `"!x"`')
_DIRECTIVE = _Words("a line that begins with `%` is a directive, and this is none", "unknown", "quote the text")

_WORDS = {
    "found a tab character that violates indentation": _TAB,
    "found a tab character where an indentation space is expected": _TAB,
    "found unexpected end of stream": _UNCLOSED_TEXT,
    "found unexpected document indicator": _UNCLOSED_TEXT,
    "found unknown escape character": _BROKEN_ESCAPE,
    "did not find expected hexdecimal number": _BROKEN_ESCAPE,
    "found invalid Unicode character escape code": _BROKEN_ESCAPE,
    "did not find expected alphabetic or numeric character": _BAD_NAME,
    "did not find expected comment or line break": _BLOCK_HEADER,
    "found an indentation indicator equal to 0": _BLOCK_HEADER,
    "did not find expected whitespace or line break": _TAG,
    "did not find the expected '>'": _TAG,
    "did not find expected '!'": _TAG,
    "did not find expected tag URI": _TAG,
    "found undefined tag handle": _Words("a tag has a prefix that no `%TAG` declares", "this tag", "remove the tag"),
    "mapping values are not allowed in this context": _Words(
        "`: ` cannot stand here", "a second value", "quote text that holds `: `, or correct the indentation"
    ),
    "block sequence entries are not allowed in this context": _Words(
        "`- ` cannot begin a list here", "an item", "put the list on the lines below, indented"
    ),
    "mapping keys are not allowed in this context": _Words(
        "`? ` cannot begin a key here", "a key", "correct the indentation"
    ),
    "could not find expected ':'": _Words(
        "line is neither `key: value` nor `- item`", "no `:` follows", "write `key: value`", at_start=True
    ),
    "did not find expected key": _Words(
        "indentation or text fits no mapping that is open",
        "no key of the mapping above",
        "align it with the other keys of its mapping",
        other="this mapping is still open",
    ),
    "did not find expected '-' indicator": _Words(
        "indentation fits no list that is open",
        "no item of the list above",
        "begin the line with `- `, or correct the indentation",
        other="this list is still open",
    ),
    "did not find expected ',' or ']'": _Words(
        "list in brackets goes on without `,` or `]`", "`,` or `]` expected", "close the list", other="opens here"
    ),
    "did not find expected ',' or '}'": _Words(
        "mapping in braces goes on without `,` or `}`", "`,` or `}` expected", "close the mapping", other="opens here"
    ),
    "did not find expected node content": _Words(
        "a value is expected here", "no value", "write one, or quote the text"
    ),
    "did not find expected <document start>": _Words(
        "text follows a document that has ended", "unexpected", "begin a new document with `---` on a line of its own"
    ),
    "found incompatible YAML document": _Words(
        "directive asks for a version of YAML that does not exist here", "not read", "remove the directive"
    ),
    "found unknown directive name": _DIRECTIVE,
    "could not find expected directive name": _DIRECTIVE,
}


_SLIPS = {
    Slip.TAB: _TAB,
    Slip.INDENTATION: _Words("indentation fits nothing that is open", other="does not fit what stands above"),
    Slip.COLON: _WORDS["could not find expected ':'"],
    Slip.SPACE: _Words("`:` has no space behind it", "no space behind it", "write a space behind the `:`"),
    Slip.BRACKET: _Words("is not closed", "opens here", "close it at the end of the line"),
    Slip.SURPLUS: _Words("closes nothing", "opens nowhere", "remove it"),
    Slip.QUOTE: _UNCLOSED_TEXT,
    Slip.CURLY_QUOTE: _Words("curly quotes are letters to YAML", "a curly quote", 'write `"`'),
    Slip.SEPARATOR: _Words("this line separates no documents", "not `---`"),
}
"""What a repair says; of what it leaves out the parser's words hold."""


def _cannot_start(problem: str, character: str) -> _Words | None:
    if "that cannot start any token" not in problem:
        return None
    if character == "\t":
        return _TAB
    name = "a backtick" if character == "`" else f"`{character}`"
    return _Words(f"{name} cannot begin a value", "reserved by YAML", "put the text in quotes")


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
