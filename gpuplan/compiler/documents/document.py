"""A document of a policy: its data, and where each part of it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Any

from gpuplan.compiler.base.diagnostics import Location, Origin, Path, Position, SourceFile, Span
from gpuplan.compiler.base.plain import text, value_of
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.documents.tree import Node, find_node, read_tree


class Reading(Enum):
    """The part of a document that was read."""

    WHOLE = auto()
    DOUBTFUL = auto()
    """It says something twice; its data is what it says first."""
    LOST = auto()
    """No YAML; its data is the kind and the name that its lines show."""


class Document:
    """One Kubernetes-style document, made of the text that defines it and of the overlay's text that changes it.

    ``data`` is shared between documents and never changed. It is a mapping; in hand-written files it may be a list, as
    a JSON patch is. Documents are compared by identity: one that no overlay touches stays the same object in every
    cluster. Nothing is to be concluded from one whose ``reading`` is not whole, but that it exists.

    One that ``is_named`` may have an empty name, which is judged as names are.
    """

    __slots__ = ("data", "is_named", "kind", "layers", "name", "reading")

    def __init__(
        self,
        data: Any,  # noqa: ANN401 (plain YAML data)
        layers: tuple[Layer, ...],
        reading: Reading = Reading.WHOLE,
    ) -> None:
        self.data = data
        self.layers = layers
        self.reading = reading
        self.kind = text(value_of(data, ("kind",)))
        name = value_of(data, ("metadata", "name"))
        self.name = text(name)
        self.is_named = isinstance(name, str)

    def __repr__(self) -> str:
        return f"<{self.kind or 'document'} {self.name or '?'} of {self.file.path}>"

    @property
    def file(self) -> SourceFile:
        """The file that defines the document."""
        return self.layers[0].file

    @property
    def is_whole(self) -> bool:
        return self.reading is Reading.WHOLE

    @property
    def origin(self) -> Origin:
        return Origin(self)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}".strip()

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        """Where the value at ``path`` was written by the layer that set it last, or its key.

        What was not written is located by the key of its nearest parent, unless an overlay's ``null`` removed it: that
        null is the place. Values in block style, which go over several lines, are shown by their key as well. The whole
        document is shown by its name.
        """
        if self.reading is Reading.LOST:
            line = self.layers[0].line + 1
            return Location(self.file, Span(Position(line, 1), Position(line, 1)))
        for length in range(len(path), 0, -1):
            layer = self.find_layer(path[:length])
            node = find_node(layer.tree, path[:length]) if layer is not None else None
            if layer is not None and node is not None:
                return Location(layer.file, node.key if on_key or length < len(path) else node.shown)
        return Location(self.file, _heading(self.layers[0].tree))

    def find_written(self, path: Path) -> Path | None:
        """The route of what says the value at ``path``: its own, or that of a text which stands for a mapping.

        None for what is left out.
        """
        for length in range(len(path), -1, -1):
            exists, value = _get(self.data, path[:length])
            if exists:
                return path[:length] if length == len(path) or not isinstance(value, dict | list) else None
        return None

    def find_layer(self, path: Path) -> Layer | None:
        """The last layer that wrote the value that ``path`` has now, or the null that removed it."""
        exists, _ = _get(self.data, path)
        for layer in reversed(self.layers):
            is_written, value = layer.find(path)
            if is_written and (exists or value is None):
                return layer
        return None


def file_of(at: Origin) -> SourceFile:
    """The file in which something is; to ask where in it would read a document of one layer again."""
    source = at.source
    return source.file if isinstance(source, Document) and len(source.layers) == 1 else at.locate().file


class Layer(Value, eq=False):
    """The part of one file that makes up a document; ``line`` counts the lines before it."""

    file: SourceFile
    data: Any
    start: int
    end: int
    line: int

    @cached_property
    def tree(self) -> Node:
        """Where each value stands. Read again from the text, because most documents are never asked for it."""
        return read_tree(self.file.text[self.start : self.end], self.line)

    def find(self, path: Path) -> tuple[bool, object]:
        """Whether it has a value at ``path``, and the value."""
        return _get(self.data, path)


class Spot(Value):
    """A place in a file that is no value of a document, such as a syntax error. Its parts are where it is."""

    location: Location
    title: str = ""

    @property
    def origin(self) -> Origin:
        return Origin(self)

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 (one place, whatever is asked)
        return self.location


def _get(data: object, path: Path) -> tuple[bool, object]:
    """Whether plain data has a value at ``path``, and the value."""
    for part in path:
        match data:
            case dict() if part in data:
                data = data[part]
            case list() if isinstance(part, int) and 0 <= part < len(data):
                data = data[part]
            case _:
                return False, None
    return True, data


def _heading(root: Node) -> Span:
    """The name, the kind, or whatever comes first in a document."""
    for path in (("metadata", "name"), ("kind",)):
        node = find_node(root, path)
        if node is not None:
            return node.shown
    return root.shown


# --- Two states of a document's data ---------------------------------------------------------------------------------


class Difference(NamedTuple):
    """The route of a value that differs, in either state. A list's item that comes or goes has one in one of them."""

    old: Path | None
    new: Path | None


def differences(old: object, new: object) -> Iterator[Difference]:
    """The smallest values that differ, in the order of the new state, then what is gone."""
    return _differences(old, new, (), ())


def _differences(old: object, new: object, was: Path, here: Path) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*new, *old)):
            if key in old and key in new:
                yield from _differences(old[key], new[key], (*was, key), (*here, key))
            else:
                yield Difference((*was, key), (*here, key))
    elif isinstance(old, Sequence) and isinstance(new, Sequence) and not isinstance(old, str):
        most = min(len(old), len(new))
        start = next((index for index in range(most) if old[index] != new[index]), most)
        end = next((index for index in range(most - start) if old[-1 - index] != new[-1 - index]), most - start)
        for index in range(start, max(len(old), len(new)) - end):
            if index >= len(new) - end:
                yield Difference((*was, index), None)
            elif index >= len(old) - end:
                yield Difference(None, (*here, index))
            else:
                yield from _differences(old[index], new[index], (*was, index), (*here, index))
    elif type(old) is not type(new) or old != new:
        yield Difference(was, here)
