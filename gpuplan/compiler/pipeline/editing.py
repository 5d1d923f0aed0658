"""Change fields of a document that somebody wrote, so that the rest of its text stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.documents import Document, read_text
from gpuplan.compiler.manifests import to_yaml


def with_fields(document: Document, layer: int, fields: Mapping[Path, Any]) -> str | None:
    """Return the text of the file in which a layer of a document was written, with other values at some paths.

    None takes a field away. A value in flow style stays in flow style; comments within a value, and behind its last
    line, go with it. None is returned where that cannot be done: for an alias in the way, for a field that is the only
    one of its mapping, and for a parent that is not written.
    """
    written = document.layers[layer]
    text = written.file.text[written.start : written.end]
    wanted = written.data
    for path, value in fields.items():
        wanted = _data_with(wanted, path, value)
        changed = None if wanted is None else _text_with(text, path, value)
        if changed is None or [read.data for read in read_text("", changed)[0]] != [wanted]:
            return None
        text = changed
    return written.file.text[: written.start] + text + written.file.text[written.end :]


def _data_with(data: Any, path: Path, value: Any) -> Any:  # noqa: ANN401 - plain YAML data
    """Return the data with another value at a path; None where its parent is not there."""
    key, *rest = path
    if not isinstance(data, Mapping) or (rest and key not in data):
        return None
    if rest:
        inner = _data_with(data[key], tuple(rest), value)
        return None if inner is None else {**data, key: inner}
    return {name: kept for name, kept in data.items() if name != key} | ({} if value is None else {key: value})


def _text_with(text: str, path: Path, value: Any) -> str | None:  # noqa: ANN401 - plain YAML data
    owner: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in path[:-1]:
        pairs = owner.value if isinstance(owner, yaml.MappingNode) else ()
        owner = next((inner for key, inner in pairs if key.value == part), None)
    if not isinstance(owner, yaml.MappingNode):
        return None
    key = str(path[-1])
    index = next((index for index, (name, _) in enumerate(owner.value) if name.value == key), None)
    if value is None and (index is None or len(owner.value) == 1):
        return text if index is None else None
    return (_in_flow if owner.flow_style else _in_block)(text, owner, index, key, value)


def _in_flow(text: str, owner: yaml.MappingNode, index: int | None, key: str, value: Any) -> str:  # noqa: ANN401
    if index is None:
        start, separator = owner.start_mark.index + 1, ", " if owner.value else ""
        return f"{text[:start]}{_flow({key: value})[1:-1]}{separator}{text[start:]}"
    name, old = owner.value[index]
    if value is not None:
        return text[: name.start_mark.index] + _flow({key: value})[1:-1] + text[old.end_mark.index :]
    if index:
        return text[: int(owner.value[index - 1][1].end_mark.index)] + text[old.end_mark.index :]
    return text[: int(name.start_mark.index)] + text[owner.value[1][0].start_mark.index :]


def _in_block(text: str, owner: yaml.MappingNode, index: int | None, key: str, value: Any) -> str:  # noqa: ANN401
    first, last = owner.value[0][0], owner.value[-1][1]
    margin = " " * first.start_mark.column
    newline = "\r\n" if "\r\n" in text else "\n"
    if index is None:
        start = end = _end_of_line(text, _end(last))
        before = newline + margin
        is_flow = False
    else:
        name, old = owner.value[index]
        start, end, before = int(name.start_mark.index), _end_of_line(text, _end(old)), ""
        is_flow = isinstance(old, yaml.CollectionNode) and bool(old.flow_style)
        if value is None:
            return str(text[: start - len(margin)] + text[end:].removeprefix(newline))
    shown = _flow({key: value})[1:-1] if is_flow else to_yaml({key: value}).rstrip("\n")
    return str(text[:start] + before + shown.replace("\n", newline + margin) + text[end:])


def _flow(value: Any) -> str:  # noqa: ANN401 - plain YAML data
    return str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=_NO_FOLDING)).strip()


_NO_FOLDING: Final = 2**20


def _end(node: yaml.Node) -> int:
    """Return where a value ends; the parser's own end of a block is where the next value begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


_COMMENT: Final = re.compile(r"[ \t]*(#[^\r\n]*)?")


def _end_of_line(text: str, end: int) -> int:
    """Return where the line ends that a value ends on, behind its comment."""
    found = _COMMENT.match(text, end)
    return found.end() if found else end
