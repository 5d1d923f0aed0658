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
    """A document as it is to be in the cluster; ``spec`` is None if the document goes."""

    kind: str
    name: str
    spec: Data | None


def packed_path(cluster: str) -> str:
    """Return the path of the file with new documents, and with changes of those that clusters share."""
    return f"{OVERLAYS}/{cluster}/packed.yaml"


def patched(
    cluster: str, documents: Sequence[Document], texts: Mapping[str, str], wanted: Iterable[Wanted]
) -> dict[str, str | None]:
    """Return the files that make the cluster's ``documents`` as wanted, by path, with None for a file that goes.

    ``texts`` are those of the cluster's overlay. A document that is as wanted already is left out.
    """
    known = {(document.kind, document.name): document for document in documents}
    edits: dict[str, list[tuple[Layer, str]]] = {}
    added: list[str] = []
    for new in wanted:
        today = known.get((new.kind, new.name))
        if today is None:
            if new.spec is not None:
                added.append(to_yaml(document(new.kind, new.name, _plain(new.spec))))
        elif new.spec != today.data.get("spec"):
            layer = today.layers[-1]
            is_of_cluster = layer.file.path.startswith(f"{OVERLAYS}/{cluster}/")
            data = _overlay_data(new, None if is_of_cluster and len(today.layers) == 1 else today.layers[0].data)
            if is_of_cluster:
                edits.setdefault(layer.file.path, []).append((layer, _rewritten(layer, data)))
            elif data is not None:
                added.append(to_yaml(data))
    files: dict[str, str] = {}
    for path, stretches in edits.items():
        text = texts[path]
        for layer, stretch in sorted(stretches, key=lambda edit: -edit[0].start):
            text = text[: layer.start] + stretch + text[layer.end :]
        files[path] = text
    if added:
        path = packed_path(cluster)
        text = files.get(path, texts.get(path, ""))
        has_data = _has_data(text)
        begun = text if has_data else _ABOUT
        begun += "" if begun.endswith("\n") else "\n"
        files[path] = begun + ("---\n" if has_data else "") + "---\n".join(added)
    return {path: text if _has_data(text) else None for path, text in files.items()}


def _overlay_data(new: Wanted, base: Data | None) -> dict[str, Any] | None:
    """Return what the overlay has to add to the base so that a document is as wanted, or None if nothing."""
    if new.spec is None:
        metadata = {"name": new.name, "$patch": "delete"}
        return None if base is None else {"apiVersion": API_VERSION, "kind": new.kind, "metadata": metadata}
    spec = _plain(new.spec)
    patch = spec if base is None else merge_patch(base.get("spec") or {}, spec)
    return document(new.kind, new.name, patch) if patch else None


def _plain(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Return the same in dicts and lists, of which YAML is written."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


# --- Text --------------------------------------------------------------------------------------------------------

_ABOUT: Final = "# What `gpuplan pack` has changed for this cluster alone, and what it has added.\n"


def _has_data(text: str) -> bool:
    return any(line.strip() and not line.startswith(("#", "---")) for line in text.splitlines())


def _rewritten(layer: Layer, data: Data | None) -> str:
    """Return the stretch of a document with other data. Comments stay with the fields that stay.

    If the document is not in block style, its lines of data are written anew as a whole.
    """
    text = layer.file.text[layer.start : layer.end]
    if data is None:
        return ""
    lines = text.splitlines(keepends=True)
    of_data = [index for index, line in enumerate(lines) if not _NO_DATA.match(line)]
    if of_data and lines[-1].endswith("\n"):
        body = _edited_mapping(lines[of_data[0] :], 0, layer.data, data)
        if body is not None:
            dumped = _with_line_ends("".join(body), text).replace("\r\r\n", "\r\n")
            edited = "".join(lines[: of_data[0]]) + dumped
            documents, problems = read_text("", edited)
            if not problems and len(documents) == 1 and documents[0].data == data:
                return edited
    first, last = (of_data[0], of_data[-1]) if of_data else (0, 0)
    before, after = "".join(lines[:first]), "".join(lines[last + 1 :])
    return before + _with_line_ends(to_yaml(_plain(data)), text) + after


_NO_DATA: Final = re.compile(r"---[ \t]*(#.*)?\r?$|[ \t]*(#.*)?\r?$")


def _with_line_ends(text: str, like: str) -> str:
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _edited_mapping(lines: Sequence[str], indent: int, old: Data, new: Data) -> list[str] | None:
    """Return the lines of a mapping with those exchanged that differ, or None if it is not in block style."""
    parts = _parts(lines, indent)
    if [key for key, _ in parts if key] != list(old):
        return None
    out: list[str] = []
    for key, part in parts:
        if not key or (key in new and old[key] == new[key] and type(old[key]) is type(new[key])):
            out += part
        elif key in new:
            out += _edited_value(part, indent, old[key], new[key]) or _dumped(key, new[key], indent)
    return out + [line for key in new if key not in old for line in _dumped(key, new[key], indent)]


def _edited_value(part: Sequence[str], indent: int, old: object, new: object) -> list[str] | None:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old and new and _OPENS.match(part[0])):
        return None
    depth = next((len(line) - len(line.lstrip(" ")) for line in part[1:] if not _NO_DATA.match(line)), 0)
    inner = _edited_mapping(part[1:], depth, old, new) if depth > indent else None
    return None if inner is None else [part[0], *inner]


def _parts(lines: Sequence[str], indent: int) -> list[tuple[str, list[str]]]:
    """Return each key of a block mapping with its lines; comments and blank lines between them have no key."""
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
    """Yield the texts of the cluster's own files that say something of its documents, by path."""
    for one in documents:
        for layer in one.layers:
            if layer.file.path.startswith(f"{OVERLAYS}/{cluster}/"):
                yield layer.file.path, layer.file.text
