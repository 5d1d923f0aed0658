"""Change documents of one cluster: in its overlay in place, in a layer of their own where clusters share them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import Document, Layer, read_text
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.pipeline.loading import OVERLAYS
from gpuplan.compiler.pipeline.writing import document, merge_patch
from gpuplan.compiler.policy.models import API_VERSION

Data = Mapping[str, Any]


class Wanted(NamedTuple):
    """What a document is to say in the cluster; ``spec`` is None where it goes."""

    kind: str
    name: str
    spec: Data | None


def packed_path(cluster: str) -> str:
    """The file that has what is changed of documents that clusters share, and what is new."""
    return f"{OVERLAYS}/{cluster}/packed.yaml"


def patched(
    cluster: str, documents: Sequence[Document], texts: Mapping[str, str], wanted: Iterable[Wanted]
) -> dict[str, str | None]:
    """The files that make the cluster's ``documents`` what is wanted, by path; None for one that goes.

    ``texts`` are those of the cluster's overlay. What already says what is wanted is left out.
    """
    known = {(item.kind, item.name): item for item in documents}
    edits: dict[str, list[tuple[Layer, str]]] = {}
    added: list[str] = []
    for item in wanted:
        there = known.get((item.kind, item.name))
        if there is None:
            if item.spec is not None:
                added.append(to_yaml(document(item.kind, item.name, _plain(item.spec))))
        elif item.spec != there.data.get("spec"):
            layer = _own_layer(there, cluster)
            base = None if layer is there.layers[0] else there.layers[0].data
            said = _said(item, base)
            if layer is not None:
                edits.setdefault(layer.file.path, []).append((layer, _rewritten(layer, said)))
            elif said is not None:
                added.append(to_yaml(said))
    files = {path: _replaced(texts[path], found) for path, found in edits.items()}
    if added:
        path = packed_path(cluster)
        files[path] = _with_added(files.get(path, texts.get(path, "")), added)
    return {path: text if _says_something(text) else None for path, text in files.items()}


def _own_layer(there: Document, cluster: str) -> Layer | None:
    """What the cluster's own overlay says of a document."""
    layer = there.layers[-1]
    return layer if layer.file.path.startswith(f"{OVERLAYS}/{cluster}/") else None


def _said(item: Wanted, base: Data | None) -> dict[str, Any] | None:
    """What the overlay has to say, above what the bases do; None where it has nothing to say."""
    if item.spec is None:
        metadata = {"name": item.name, "$patch": "delete"}
        return None if base is None else {"apiVersion": API_VERSION, "kind": item.kind, "metadata": metadata}
    spec = _plain(item.spec)
    patch = spec if base is None else merge_patch(base.get("spec") or {}, spec)
    return document(item.kind, item.name, patch) if patch else None


def _plain(value: Any) -> Any:  # noqa: ANN401 - plain data
    """The same with dicts and lists, which YAML is written of."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


# --- Text --------------------------------------------------------------------------------------------------------

_ABOUT: Final = "# What `gpuplan pack` has changed for this cluster alone, and what it has added.\n"


def _says_something(text: str) -> bool:
    return any(line.strip() and not line.startswith(("#", "---")) for line in text.splitlines())


def _replaced(text: str, edits: Sequence[tuple[Layer, str]]) -> str:
    """The text of a file with other stretches; all else stays byte by byte."""
    for layer, new in sorted(edits, key=lambda edit: -edit[0].start):
        text = text[: layer.start] + new + text[layer.end :]
    return text


def _with_added(text: str, added: Sequence[str]) -> str:
    begun = text if _says_something(text) else _ABOUT
    if begun and not begun.endswith("\n"):
        begun += "\n"
    joined = "---\n".join(added)
    return f"{begun}---\n{joined}" if _says_something(text) else begun + joined


def _rewritten(layer: Layer, said: Data | None) -> str:
    """The stretch of a document as it is to be; comments stay with the fields that do."""
    text = layer.file.text[layer.start : layer.end]
    if said is None:
        return ""
    edited = _edited(text, layer.data, said)
    if edited is not None and _reads_as(edited, said):
        return edited
    lines = text.splitlines(keepends=True)
    data = [index for index, line in enumerate(lines) if not _NO_DATA.match(line)] or [0]
    before, after = "".join(lines[: data[0]]), "".join(lines[data[-1] + 1 :])
    return before + _with_line_ends(to_yaml(_plain(said)), text) + after


_NO_DATA: Final = re.compile(r"---[ \t]*(#.*)?\r?$|[ \t]*(#.*)?\r?$")


def _with_line_ends(text: str, like: str) -> str:
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _reads_as(text: str, said: Data) -> bool:
    found, problems = read_text("", text)
    return not problems and len(found) == 1 and found[0].data == said


def _edited(text: str, old: Data, new: Data) -> str | None:
    """The text with those lines exchanged that say something else; None where it is not in block style."""
    lines = text.splitlines(keepends=True)
    first = next((index for index, line in enumerate(lines) if not _NO_DATA.match(line)), None)
    if first is None or (lines and not lines[-1].endswith("\n")):
        return None
    body = _edited_mapping(lines[first:], 0, old, new)
    return (
        None
        if body is None
        else "".join(lines[:first]) + _with_line_ends("".join(body), text).replace("\r\r\n", "\r\n")
    )


def _edited_mapping(lines: Sequence[str], indent: int, old: Data, new: Data) -> list[str] | None:
    parts = _parts(lines, indent)
    if [key for key, _ in parts if key] != list(old):
        return None
    out: list[str] = []
    for key, part in parts:
        if not key or (key in new and old[key] == new[key] and type(old[key]) is type(new[key])):
            out += part
        elif key in new:
            out += _inner(part, indent, old[key], new[key]) or _dumped(key, new[key], indent)
    for key in new:
        if key not in old:
            out += _dumped(key, new[key], indent)
    return out


def _inner(part: Sequence[str], indent: int, old: object, new: object) -> list[str] | None:
    """The lines of a mapping in block style with those exchanged that differ."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old and new and _OPENS.match(part[0])):
        return None
    depth = next((len(line) - len(line.lstrip(" ")) for line in part[1:] if not _NO_DATA.match(line)), 0)
    inner = _edited_mapping(part[1:], depth, old, new) if depth > indent else None
    return None if inner is None else [part[0], *inner]


def _parts(lines: Sequence[str], indent: int) -> list[tuple[str, list[str]]]:
    """Each key of a block mapping with its lines, and without a key the comments and blank lines between them."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    between: list[str] = []
    for line in lines:
        match = _KEY.match(line)
        if _NO_DATA.match(line):
            between.append(line)
        elif match and len(match[1]) == indent:
            parts += [("", between), (match[2], [line])]
            between = []
        else:
            parts[-1][1].extend((*between, line))
            between = []
    return [*parts, ("", between)]


_KEY: Final = re.compile(r"( *)([A-Za-z$][\w.$-]*):(?=[ \r\n]|$)")
_OPENS: Final = re.compile(r" *[A-Za-z$][\w.$-]*:[ \t]*(#.*)?\r?$")


def _dumped(key: str, value: object, indent: int) -> list[str]:
    text = to_yaml({key: _plain(value)})
    return [f"{' ' * indent}{line}" for line in text.splitlines(keepends=True)]


def overlay_texts(documents: Iterable[Document], cluster: str) -> Iterator[tuple[str, str]]:
    """The texts of the cluster's own files that say something of its documents, by path."""
    for item in documents:
        for layer in item.layers:
            if layer.file.path.startswith(f"{OVERLAYS}/{cluster}/"):
                yield layer.file.path, layer.file.text
