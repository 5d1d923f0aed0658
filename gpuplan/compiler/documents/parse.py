"""Plain data from YAML text, read by the core schema of YAML 1.2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from gpuplan.compiler.base.depth import MAX_ALIASED_VALUES
from gpuplan.compiler.base.diagnostics import Diagnostic, SourceFile
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import stretches
from gpuplan.compiler.documents.document import Document, Layer, Reading
from gpuplan.compiler.documents.remarks import Remarks, UnreadableError
from gpuplan.compiler.documents.repair import Trials
from gpuplan.compiler.documents.scalars import read_plain
from gpuplan.compiler.documents.stretches import Stretch
from gpuplan.compiler.documents.tree import (
    ALIAS,
    DOCUMENT_START,
    MAPPING_END,
    MAPPING_START,
    SCALAR,
    SEQUENCE_END,
    STREAM_END,
    Event,
    Mark,
    event_source,
)

MAX_DEPTH = 64
MAX_DOCUMENTS = 100_000


def parse(
    file: SourceFile, *, strict: bool = True, trials: Trials | None = None
) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    """The documents of a file; after a place that cannot be read it goes on at the next `---`.

    Of a document that cannot be read there is its kind and name, as far as its lines show them.
    What is merely refused (tags, aliases, merge keys, doubtful scalars) is still read as it was meant, so that later
    stages find no second fault in it. Without ``strict`` only what cannot be read at all is reported, and documents
    that are neither mappings nor lists are passed over. ``trials`` are those of all files that are read together.
    """
    remarks = Remarks(file, trials or Trials(), strict=strict)
    documents: list[Document] = []
    try:
        remarks.check_text()
        remarks.check_documents(MAX_DOCUMENTS)
        first_broken = _read_part(file, stretches.whole(file.text), remarks, documents)
        if first_broken is not None:
            for part in stretches.following(file.text, first_broken):
                _read_part(file, part, remarks, documents)
    except UnreadableError as stop:
        remarks.add(stop.diagnostic)
    return tuple(documents), remarks.all()


def read_data(text: str) -> Any:  # noqa: ANN401 - whoever reads a file of gpuplan's own knows what it holds
    """The data of a text that is known to hold one document without a fault, such as a file of the catalog."""
    documents, _ = parse(SourceFile("", text), strict=False)
    return documents[0].data


def _read_part(file: SourceFile, part: Stretch, remarks: Remarks, documents: list[Document]) -> Stretch | None:
    """Read a part of the file up to the first document that is no YAML, which is returned."""
    remarks.begin(part)
    reader = _Reader(file, part, remarks, documents)
    try:
        reader.read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        broken = stretches.broken(file.text, part, part.start + (mark.index if mark else 0))
        broken = reader.behind_last_split(broken)
        while documents and documents[-1].layers[0].start >= broken.start:
            documents.pop()
        if remarks.strict and (title := stretches.kind_and_name(file.text, broken)) is not None:
            documents.append(_lost(file, broken, *title))
        remarks.syntax_error(error, broken)
        return broken
    return None


def _lost(file: SourceFile, part: Stretch, kind: str, name: str) -> Document:
    data = {"kind": kind, "metadata": {"name": name}}
    return Document(data, (Layer(file, data, part.start, part.end, part.line),), Reading.LOST)


class _Anchored(NamedTuple):
    """A value that aliases may repeat, with the number of values in it and the levels that it nests."""

    value: object
    size: int
    height: int


class _NoKey(str):
    """A node in the place of a key that becomes no key of the data."""

    __slots__ = ()


_MERGE = _NoKey("<<")
_UNUSABLE = _NoKey("?")


class _Reader:
    """One pass over the parser's events; ``_path`` says where in the document the pass is."""

    def __init__(self, file: SourceFile, part: Stretch, remarks: Remarks, documents: list[Document]) -> None:
        self._file = file
        self._part = part
        self._remarks = remarks
        self._documents = documents
        self._next = event_source(file.text[part.start : part.end])
        self._path: list[str | int] = []
        self._depth = 0
        self._deepest = 0
        self._count = 0
        self._aliased = 0
        self._anchors: dict[str | None, _Anchored] = {}
        self._begin = part
        self._split: Stretch | None = None
        self._is_split_judged = False

    def read(self) -> None:
        while type(start := self._next()) is not STREAM_END:
            if type(start) is DOCUMENT_START:
                self._document(start)

    def _document(self, start: Event) -> None:
        if start.version == (1, 1) or start.tags:
            self._remarks.directive(start)
        self._anchors.clear()
        self._begin_at(start.start_mark)
        self._is_split_judged = False
        root = self._next()
        data = self._value(root)
        end = self._next().start_mark
        if isinstance(data, dict) or (isinstance(data, list) and not self._remarks.strict):
            self._end(data, end)
            return
        if data is not None:
            self._remarks.not_a_mapping(root, data)
        self._remarks.end_document(None)

    def _begin_at(self, mark: Mark) -> None:
        """The document begins on the line of this mark."""
        start = self._part.start + mark.index - mark.column
        self._begin = Stretch(start, self._part.end, self._part.line + mark.line)

    def _end(self, data: object, mark: Mark) -> None:
        """The document that has begun ends at this mark."""
        begin = self._begin
        layer = Layer(self._file, data, begin.start, self._part.start + mark.index, begin.line)
        reading = Reading.DOUBTFUL if self._remarks.has_repeated_keys else Reading.WHOLE
        document = Document(data, (layer,), reading)
        self._documents.append(document)
        self._remarks.end_document(document)

    def behind_last_split(self, broken: Stretch) -> Stretch:
        """Return the broken stretch behind a whole document that was taken off it."""
        split = self._split
        return Stretch(split.start, broken.end, split.line) if split and split.start > broken.start else broken

    def _begins_another(self, event: Event, key: str, data: Mapping[str, object]) -> bool:
        """Whether a key that is there already is the first of a document that has no `---` before it."""
        if self._depth != 1 or key not in _FIRST_KEYS or event.start_mark.column or not self._remarks.strict:
            return False
        if self._is_split_judged or not data.keys() >= _HEADING:
            return False
        wanted = set(_HEADING)
        for found in _TOP_LINE.finditer(self._file.text, self._part.start + event.start_mark.index, self._part.end):
            wanted.discard(found[1])
            if not wanted or found[1] == stretches.SEPARATOR:
                break
        self._is_split_judged = bool(wanted)
        return not wanted

    def _value(self, event: Event) -> object:
        """The value that begins with this event; the parser stands behind it afterwards."""
        kind = type(event)
        if kind is ALIAS:
            return self._alias(event)
        if event.anchor is not None or event.tag is not None:
            return self._adorned(event)
        if kind is SCALAR:
            return event.value if event.style else self._plain(event)
        return self._mapping(event) if kind is MAPPING_START else self._sequence(event)

    def _plain(self, event: Event) -> object:
        value, doubt = read_plain(event.value)
        if doubt is not None:
            self._remarks.doubt(event, tuple(self._path), doubt)
        return value

    def _mapping(self, start: Event) -> dict[str, object]:
        self._enter(start)
        next_event, path = self._next, self._path
        data: dict[str, object] = {}
        merged: list[object] = []
        path.append("")
        while type(event := next_event()) is not MAPPING_END:
            path[-1] = key = self._key(event)
            if key in data and self._begins_another(event, key, data):
                self._end(data, event.start_mark)
                self._remarks.missing_separator(event)
                self._begin_at(event.start_mark)
                self._split = self._begin
                data = {}
            value = self._value(next_event())
            if key in data:
                self._remarks.repeated_key(event, tuple(path))
            elif type(key) is str:
                data[key] = value
            elif key is _MERGE:
                merged.append(value)
        path.pop()
        self._leave(len(data))
        return _merge_in(data, merged) if merged else data

    def _sequence(self, start: Event) -> list[object]:
        self._enter(start)
        next_event, path = self._next, self._path
        data: list[object] = []
        path.append(0)
        while type(event := next_event()) is not SEQUENCE_END:
            path[-1] = len(data)
            data.append(self._value(event))
        path.pop()
        self._leave(len(data))
        return data

    def _enter(self, start: Event) -> None:
        self._depth += 1
        if self._depth > self._deepest:
            self._descend(start, self._depth)

    def _leave(self, size: int) -> None:
        self._depth -= 1
        self._count += size

    def _descend(self, event: Event, depth: int) -> None:
        self._deepest = max(self._deepest, depth)
        if depth > MAX_DEPTH:
            raise self._too_large(event, f"values are nested more than {MAX_DEPTH} levels deep")

    def _key(self, event: Event) -> str:
        if type(event) is not SCALAR or event.anchor is not None or event.tag is not None:
            return self._odd_key(event)
        text: str = event.value
        if event.style:
            return text
        value, doubt = read_plain(text)
        if type(value) is not str:
            self._remarks.key_not_text(event, (*self._path[:-1], text), value)
            return text
        if doubt is not None:
            self._remarks.key_doubt(event, (*self._path[:-1], text), doubt)
        if value != "<<":
            return value
        self._remarks.merge_key(event, (*self._path[:-1], text))
        return _MERGE

    def _odd_key(self, event: Event) -> str:
        """A key that is more than a scalar; for its parts the pass is still at the mapping."""
        previous = self._path.pop()
        value = self._value(event)
        if not isinstance(value, str):
            self._remarks.key_not_text(event, tuple(self._path), value)
        self._path.append(previous)
        if isinstance(value, str):
            return value
        return event.value if type(event) is SCALAR else _UNUSABLE

    def _alias(self, event: Event) -> object:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            self._remarks.unknown_alias(event, tuple(self._path))
            return f"*{event.anchor}"  # most likely text without its quotes
        self._remarks.alias(event, tuple(self._path))
        self._count += anchored.size
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._too_large(event, f"aliases stand for more than {MAX_ALIASED_VALUES:,} values")
        self._descend(event, self._depth + anchored.height)
        return anchored.value

    def _adorned(self, event: Event) -> object:
        """A value with a tag, an anchor or both."""
        if event.tag is not None:
            self._remarks.tag(event, tuple(self._path))
        if event.anchor is None:
            return self._tagged(event)
        self._remarks.anchor(event, tuple(self._path))
        count, deepest = self._count, self._deepest
        self._deepest = self._depth
        value = self._tagged(event)
        self._anchors[event.anchor] = _Anchored(value, self._count - count + 1, self._deepest - self._depth)
        self._deepest = max(deepest, self._deepest)
        return value

    def _tagged(self, event: Event) -> object:
        """The tags of YAML's own scalar types mean what they say; all others mean nothing."""
        if type(event) is SCALAR:
            is_text = event.tag == "tag:yaml.org,2002:str" or (event.style and event.tag not in _CORE_TAGS)
            return event.value if is_text else self._plain(event)
        return self._mapping(event) if type(event) is MAPPING_START else self._sequence(event)

    def _too_large(self, event: Event, message: str) -> UnreadableError:
        return self._remarks.too_large(event, tuple(self._path), message)


_FIRST_KEYS = frozenset(("apiVersion", "kind"))
_HEADING = frozenset(("kind", "metadata"))
_TOP_LINE = regex(r"^(kind|metadata|---)(?=:|[ \t\r\n]|\Z)", re.MULTILINE)

_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float")}


def _merge_in(data: dict[str, object], merged: list[object]) -> dict[str, object]:
    """Merge keys as YAML 1.1 has them: what the mapping says itself counts, then the first that says it."""
    result = dict(data)
    for source in (item for value in merged for item in (value if isinstance(value, list) else [value])):
        if isinstance(source, dict):
            result.update((key, value) for key, value in source.items() if key not in data and key not in result)
    return result
