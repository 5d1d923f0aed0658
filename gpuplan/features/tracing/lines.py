"""Find the lines in which a text holds its values, and spell the routes of values as people do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents.tree import Node, find_node, read_tree
from gpuplan.compiler.manifests.merging.applied import parsed

_BLOCK = regex(r"\|[0-9]?[-+]?")


class Stretch(NamedTuple):
    """Lines from the first to the last one."""

    first: int
    last: int

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


class Lines:
    """The lines of values in a text, by their routes; ``above`` is how many lines stand above the text.

    A text that is no document is a list of its lines.
    """

    def __init__(self, text: str, above: int = 0) -> None:
        self._above = above
        self._lines = text.splitlines()
        self._data = parsed(text)
        is_document = isinstance(self._data, dict) or self._data != self._lines
        self._tree = read_tree(text, above) if is_document else None
        self._inner: dict[Path, Lines] = {}

    @property
    def count(self) -> int:
        return self._above + len(self._lines)

    def text_at(self, line: int) -> str:
        return self._lines[line - self._above - 1]

    def find(self, route: Path) -> Stretch:
        """Return the lines of a value, or of the key of a mapping or list."""
        if self._tree is None:
            line = self._above + 1 + (route[0] if route and isinstance(route[0], int) else 0)
            return Stretch(line, line)
        node, data = self._tree, self._data
        for index, part in enumerate(route):
            child = find_node(node, (part,))
            if child is None:
                outer = route[:index]
                if not self._is_block(node):
                    return Stretch(node.key.start.line, node.key.start.line)
                if outer not in self._inner:
                    self._inner[outer] = Lines(str(data), node.key.start.line)
                return self._inner[outer].find(route[index:])
            node, data = child, _child(data, part)
        start = node.key.start.line
        return Stretch(start, start + len(str(data).splitlines()) if self._is_block(node) else node.shown.end.line)

    def find_nearest(self, route: Path) -> int:
        """Return the line of a value, or if it is not written, that of the innermost thing it would be in."""
        data = self._data
        for length, part in enumerate(route):
            if not (part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))):
                return self.find(route[:length]).first
            data = _child(data, part)
        return self.find(route).first

    def _is_block(self, node: Node) -> bool:
        """Whether a text begins on the line below its key."""
        if node.children is not None:
            return False
        return _BLOCK.fullmatch(self.text_at(node.key.start.line).rpartition(" ")[2]) is not None


def _child(data: object, part: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(part)
    if isinstance(data, Sequence) and isinstance(part, int) and not isinstance(data, str):
        return data[part]
    return None


# --- Routes ----------------------------------------------------------------------------------------------------------


_PLAIN: Final = regex(r"[A-Za-z_][A-Za-z0-9_-]*")
_QUOTED: Final = regex(r"""\[\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*\]""")
_INDEX: Final = regex(r"\[(\d+)\]")


def spelled(route: Path) -> str:
    """A route as Kubernetes spells it: an index or a key with dots is in brackets."""
    text = ""
    for part in route:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def loosely(text: str) -> str:
    """A path in the one form in which all spellings of it are equal: dots alone, none in front."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    text = _QUOTED.sub(lambda match: f".{match[2] if match[1] is None else match[1]}", text)
    text = _INDEX.sub(lambda match: f".{match[1]}", text).replace("\\.", ".").replace("/", ".")
    return text.strip(".")


def leads_to(text: str, route: Path) -> bool:
    """Whether a path, however it is spelled, is that of a value or of what the value is in."""
    wanted = loosely(text)
    return any(loosely_of(route[:length]) == wanted for length in range(len(route) + 1))


def loosely_of(route: Path) -> str:
    return ".".join(str(part) for part in route).replace("/", ".")
