"""Words for what the YAML parser could not read."""

from __future__ import annotations

from typing import NamedTuple

import yaml

from gpuplan.diagnostics import Diagnostic, Finding, Label, Location, Position, SourceFile, Span
from gpuplan.documents.document import Spot
from gpuplan.documents.rules import SYNTAX_ERROR


def explain(error: yaml.YAMLError, file: SourceFile) -> Diagnostic:
    """The parser's error as a finding at the place that has to be changed."""
    problem = getattr(error, "problem", None) or "the text is not YAML"
    place = _position(getattr(error, "problem_mark", None), file)
    start = _position(getattr(error, "context_mark", None) or getattr(error, "problem_mark", None), file)
    words = _WORDS.get(problem) or _cannot_start(problem, _character(file, place)) or _Words(problem)
    at, other = (start, place) if words.at_start else (place, start)
    related = (Label(_spot(file, other).origin, words.other),) if words.other and other != at else ()
    finding = Finding(_spot(file, at).origin, words.message, words.label, related, help=words.help)
    return SYNTAX_ERROR.report(finding)


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


def _cannot_start(problem: str, character: str) -> _Words | None:
    if "that cannot start any token" not in problem:
        return None
    if character == "\t":
        return _TAB
    name = "a backtick" if character == "`" else f"`{character}`"
    return _Words(f"{name} cannot begin a value", "reserved by YAML", "put the text in quotes")


def _position(mark: yaml.Mark | None, file: SourceFile) -> Position:
    """libyaml counts one line more at the end of a text whose last line has no line end."""
    if mark is None:
        return Position(1, 1)
    if mark.line >= len(file.lines):
        return Position(len(file.lines), len(file.lines[-1]) + 1)
    return Position(mark.line + 1, mark.column + 1)


def _character(file: SourceFile, place: Position) -> str:
    return file.lines[place.line - 1][place.column - 1 : place.column]


def _spot(file: SourceFile, start: Position) -> Spot:
    """One character, which is all that the parser points at."""
    return Spot(Location(file, Span(start, Position(start.line, start.column + 1))))
