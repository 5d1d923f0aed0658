"""The one parser that everything here reads YAML with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import yaml


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
