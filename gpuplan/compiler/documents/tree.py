"""The parser of all YAML here, and the place where each value of a document was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import yaml

from gpuplan.compiler.base.diagnostics import Path, Position, Span
from gpuplan.compiler.base.values import Value


class Mark(Protocol):
    """A place in the text, counted from 0 in characters."""

    index: int
    line: int
    column: int


class Event(Protocol):
    """A step of the parser. Each kind has the marks, and of the rest what makes sense for it."""

    start_mark: Mark
    end_mark: Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    flow_style: bool
    version: tuple[int, int] | None
    tags: Mapping[str, str] | None


STREAM_END: type[object] = yaml.StreamEndEvent
DOCUMENT_START: type[object] = yaml.DocumentStartEvent
ALIAS: type[object] = yaml.AliasEvent
SCALAR: type[object] = yaml.ScalarEvent
MAPPING_START: type[object] = yaml.MappingStartEvent
MAPPING_END: type[object] = yaml.MappingEndEvent
SEQUENCE_START: type[object] = yaml.SequenceStartEvent
SEQUENCE_END: type[object] = yaml.SequenceEndEvent
"""The kinds of events: ``type(event) is SCALAR``."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a PyYAML without libyaml takes ten times as long


def event_source(text: str) -> Callable[[], Event]:
    """A function that gives the next event each time it is called.

    Events, unlike PyYAML's composed nodes, come without recursion (libyaml's composer overflows the stack at some
    ten thousand levels), before any alias is followed, and with the exact place of every anchor, alias and tag.
    """
    next_event: Callable[[], Event] = _Loader(text).get_event
    return next_event


# --- Places ----------------------------------------------------------------------------------------------------------


class Node(Value):
    """A written value: ``key`` spans its key (an item's is the item), ``shown`` what a finding about it underlines."""

    key: Span
    shown: Span
    children: dict[str, Node] | list[Node] | None = None


def read_tree(text: str, line: int) -> Node:
    """The places of a document that was read before; ``line`` is how many lines stand above the text."""
    return _Places(text, line).root()


def find_node(node: Node | None, path: Path) -> Node | None:
    for part in path:
        children = node and node.children
        if isinstance(children, dict) and isinstance(part, str):
            node = children.get(part)
        elif isinstance(children, list) and isinstance(part, int) and 0 <= part < len(children):
            node = children[part]
        else:
            return None
    return node


class _Places:
    def __init__(self, text: str, line: int) -> None:
        self._next = event_source(text)
        self._line = line + 1
        self._anchors: dict[str | None, Node] = {}

    def root(self) -> Node:
        while type(self._next()) is not DOCUMENT_START:
            pass
        return self._node(self._next(), None)

    def _node(self, event: Event, key: Span | None) -> Node:
        """A value whose key, if it has one, is already known."""
        if type(event) is ALIAS:
            written = self._span(event, event)
            anchored = self._anchors.get(event.anchor)
            return Node(key or written, written, anchored.children if anchored else None)
        if type(event) is SCALAR:
            node = self._scalar(event, key)
        else:
            node = self._mapping(event, key) if type(event) is MAPPING_START else self._sequence(event, key)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _scalar(self, event: Event, key: Span | None) -> Node:
        written = self._span(event, event)
        is_empty = not event.style and not event.value
        return Node(key or written, key if key and (is_empty or event.style in _BLOCK_STYLES) else written)

    def _mapping(self, start: Event, key: Span | None) -> Node:
        children: dict[str, Node] = {}
        first = None
        while type(event := self._next()) is not MAPPING_END:
            name = self._node(event, None).shown
            first = first or name
            value = self._node(self._next(), name)
            if type(event) is SCALAR:
                children.setdefault(event.value, value)
        return self._collection(start, event, key or first, key, children)

    def _sequence(self, start: Event, key: Span | None) -> Node:
        children: list[Node] = []
        while type(event := self._next()) is not SEQUENCE_END:
            children.append(self._node(event, None))
        first = children[0].shown if children else None
        return self._collection(start, event, key or first, key, children)

    def _collection(
        self, start: Event, end: Event, heading: Span | None, key: Span | None, children: dict[str, Node] | list[Node]
    ) -> Node:
        written = self._span(start, end)
        shown = written if start.flow_style or heading is None else heading
        return Node(key or shown, shown, children)

    def _span(self, start: Event, end: Event) -> Span:
        return Span(
            Position(start.start_mark.line + self._line, start.start_mark.column + 1),
            Position(end.end_mark.line + self._line, end.end_mark.column + 1),
        )


_BLOCK_STYLES = ("|", ">")
