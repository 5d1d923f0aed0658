"""The findings about one file, collected while it is read."""

from __future__ import annotations

import re
from types import NoneType

import yaml

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    Label,
    Location,
    Origin,
    Path,
    Position,
    Rule,
    SourceFile,
    Span,
    WholeFile,
)
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import help_on_variables
from gpuplan.compiler.documents import rules
from gpuplan.compiler.documents.document import Document, Spot
from gpuplan.compiler.documents.ignores import find_malformed
from gpuplan.compiler.documents.repair import Trials
from gpuplan.compiler.documents.scalars import Doubt, quoted, shortened
from gpuplan.compiler.documents.stretches import SEPARATOR, Stretch, start_of_document, whole
from gpuplan.compiler.documents.syntax import explain
from gpuplan.compiler.documents.text import check_text, span_of
from gpuplan.compiler.documents.tree import SCALAR, Event

MAX_FINDINGS = 1_000


class UnreadableError(Exception):
    """Nothing after this place is read."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.finding.message)
        self.diagnostic = diagnostic


class Remarks:
    """Findings about a file; without ``strict`` only those on what cannot be read at all."""

    def __init__(self, file: SourceFile, trials: Trials, *, strict: bool) -> None:
        self._file = file
        self.strict = strict
        self._diagnostics: list[Diagnostic] = []
        self._repeated: list[tuple[Path, Span]] = []
        self._part = whole(file.text)
        self._trials = trials

    def all(self) -> tuple[Diagnostic, ...]:
        """In the order of the text."""
        self.end_document(None)
        return tuple(sorted(self._diagnostics, key=lambda diagnostic: diagnostic.finding.at.locate().span))

    def begin(self, part: Stretch) -> None:
        """From here on, events count from the beginning of this part of the file."""
        self._part = part

    @property
    def has_repeated_keys(self) -> bool:
        return bool(self._repeated)

    def add(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def check_text(self) -> None:
        refusal = check_text(self._file)
        if refusal is not None:
            raise UnreadableError(refusal)
        for diagnostic in find_malformed(self._file) if self.strict else ():
            self.add(diagnostic)
            self._limit()

    def check_documents(self, most: int) -> None:
        """Refuse a text with more documents than that, before any of them is read."""
        place = start_of_document(self._file.text, most)
        if place is not None:
            at = self._origin(span_of(self._file.text, place, place + len(SEPARATOR)), ())
            message = f"file holds more than {most:,} documents"
            raise UnreadableError(rules.TOO_LARGE.report(Finding(at, message, "the limit is here")))

    def syntax_error(self, error: yaml.YAMLError, broken: Stretch) -> None:
        self.end_document(None)
        try_edits = self._trials.take(broken.end - broken.start)
        found = explain(error, self._file, self._part, broken, try_edits=try_edits)
        line = _line(found)
        self._diagnostics = [
            item for item in self._diagnostics if item.rule is not rules.CURLY_QUOTE or _line(item) != line
        ]
        self.add(found)
        self._limit()

    def missing_separator(self, event: Event) -> None:
        message = "another document begins here, without `---` before it"
        label, help_text = "the first line of another document", "write `---` on a line of its own above"
        self._report(rules.MISSING_SEPARATOR, self._span(event), (), message, label, help_text)

    def too_large(self, event: Event, path: Path, message: str) -> UnreadableError:
        return UnreadableError(
            rules.TOO_LARGE.report(Finding(self._origin(self._span(event), path), message, "the limit is here"))
        )

    def directive(self, start: Event) -> None:
        place = self._span(start).start
        span = Span(place, Position(place.line, len(self._file.lines[place.line - 1]) + 1))
        message = "directive is not obeyed: policies are read as YAML 1.2"
        self._remark(rules.DIRECTIVE, span, (), message, "not obeyed", "remove the line")

    def not_a_mapping(self, root: Event, data: object) -> None:
        message = f"document is {_kind(data)}, not a mapping"
        help_text = "begin it with `apiVersion: gpuplan.dev/v1` and `kind`; separate documents with `---`"
        if patch := _patched(data):
            help_text = f"write a document of the kind and name of what it changes, with {patch}"
        self._remark(rules.NOT_A_MAPPING, self._span(root), (), message, "not a mapping", help_text)

    def doubt(self, event: Event, path: Path, doubt: Doubt) -> None:
        rule, message, label, help_text = doubt
        self._remark(rule, self._span(event), path, message, label, help_text)

    def key_doubt(self, event: Event, path: Path, doubt: Doubt) -> None:
        self.doubt(event, path, doubt._replace(help=f"quote the key: `{quoted(event.value)}`"))

    def key_not_text(self, event: Event, path: Path, key: object) -> None:
        is_scalar = type(event) is SCALAR
        name = f" `{shortened(event.value)}`" if is_scalar and event.value else ""
        line = self._file.lines[event.start_mark.line + self._part.line]
        help_text = help_on_variables(line) or "write a name as the key"
        if is_scalar:
            help_text = f"quote the key: `{quoted(event.value)}`"
        message = f"key{name} is {_kind(key)}, not text"
        self._remark(rules.KEY_NOT_TEXT, self._span(event), path, message, "not text", help_text)

    def merge_key(self, event: Event, path: Path) -> None:
        message = "merge key `<<` takes in fields that are written elsewhere"
        self._remark(rules.MERGE_KEY, self._span(event), path, message, "not part of YAML 1.2", "write the fields out")

    def anchor(self, event: Event, path: Path) -> None:
        message = f"anchor `&{shortened(event.anchor or '')}` names a value to repeat elsewhere"
        help_text = "remove it, and write the value out where it is needed"
        self._remark(rules.ANCHOR_OR_ALIAS, self._adornment(event, _ANCHOR), path, message, "an anchor", help_text)

    def alias(self, event: Event, path: Path) -> None:
        message = f"alias `*{shortened(event.anchor or '')}` repeats a value that is written elsewhere"
        self._remark(rules.ANCHOR_OR_ALIAS, self._span(event), path, message, "an alias", "write the value out")

    def unknown_alias(self, event: Event, path: Path) -> None:
        name = shortened(event.anchor or "")
        message, help_text = f"alias `*{name}` has no anchor before it", f'quote text that begins with `*`: `"*{name}"`'
        self._report(rules.SYNTAX_ERROR, self._span(event), path, message, "names nothing", help_text)

    def tag(self, event: Event, path: Path) -> None:
        span = self._adornment(event, _TAG)
        tag = self._file.lines[span.start.line - 1][span.start.column - 1 : span.end.column - 1]
        help_text = 'remove it; a number that is meant as text takes quotes, such as `"12"`'
        self._remark(rules.EXPLICIT_TAG, span, path, f"tag `{shortened(tag)}` is not obeyed", "a tag", help_text)

    def repeated_key(self, event: Event, path: Path) -> None:
        """Reported at the end of the document, when it is known where the first one was."""
        if self.strict:
            self._repeated.append((path, self._span(event)))
            self._limit()

    def end_document(self, document: Document | None) -> None:
        for path, span in self._repeated:
            related = (Label(Origin(document, path, on_key=True), "first set here"),) if document else ()
            message = f"key `{shortened(str(path[-1]))}` is set twice"
            finding = Finding(self._origin(span, path), message, "set again", related, help="keep one of the two")
            self.add(rules.DUPLICATE_KEY.report(finding))
        self._repeated.clear()

    def _remark(self, rule: Rule, span: Span, path: Path, message: str, label: str, help_text: str) -> None:
        """Report what is refused, though it could be read."""
        if self.strict:
            self._report(rule, span, path, message, label, help_text)

    def _report(self, rule: Rule, span: Span, path: Path, message: str, label: str, help_text: str) -> None:
        self.add(rule.report(Finding(self._origin(span, path), message, label, help=help_text)))
        self._limit()

    def _limit(self) -> None:
        if len(self._diagnostics) + len(self._repeated) >= MAX_FINDINGS:
            finding = Finding(
                Origin(WholeFile(self._file)), f"file has {MAX_FINDINGS:,} findings; the rest is not read"
            )
            raise UnreadableError(rules.TOO_LARGE.report(finding))

    def _origin(self, span: Span, path: Path) -> Origin:
        return Origin(Spot(Location(self._file, span)), path)

    def _span(self, event: Event) -> Span:
        start, end, above = event.start_mark, event.end_mark, self._part.line + 1
        return Span(Position(start.line + above, start.column + 1), Position(end.line + above, end.column + 1))

    def _adornment(self, event: Event, pattern: re.Pattern[str]) -> Span:
        """Where the anchor or the tag is written; a value's event begins with them, in either order."""
        mark = event.start_mark
        row = mark.line + self._part.line
        line = self._file.lines[row]
        found = pattern.search(line, mark.column)
        start, end = found.span() if found else (mark.column, mark.column + 1)
        return Span(Position(row + 1, start + 1), Position(row + 1, end + 1))


_ANCHOR = regex(r"&[\w-]+")
_TAG = regex(r"!(?:<[^>\s]*>|[^\s,\[\]{}]*)")


def _line(diagnostic: Diagnostic) -> int:
    return diagnostic.finding.at.locate().span.start.line


def _patched(data: object) -> str:
    """Return what a JSON patch sets, as a document of an overlay says it; nothing for any other list."""
    steps = data if isinstance(data, list) else []
    if not steps or not all(isinstance(step, dict) and "op" in step and "path" in step for step in steps):
        return ""
    fields: dict[str, object] = {}
    for step in steps:
        *parents, name = (part.replace("~1", "/") for part in str(step["path"]).strip("/").split("/"))
        holder: object = fields
        for part in parents:
            holder = holder.setdefault(part, {}) if isinstance(holder, dict) else None
        is_known = step["op"] in ("add", "replace", "remove") and not any(map(str.isdecimal, (*parents, name)))
        if not is_known or name == "-" or not isinstance(holder, dict):
            return "the fields that differ"
        holder[name] = step.get("value")
    text = yaml.safe_dump(fields, default_flow_style=True, sort_keys=False, width=1_000).strip()
    return f"`{text[1:-1]}`" if len(text) <= _LONGEST else "the fields that differ"


_LONGEST = 100


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a mapping")


_KINDS = {NoneType: "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list"}
