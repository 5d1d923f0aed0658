"""Overlays: documents of a cluster laid over the bases by RFC 7386."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import value_at
from gpuplan.compiler.base.wording import misspelling, renaming
from gpuplan.compiler.documents.document import Document, Reading
from gpuplan.compiler.documents.rules import BAD_PATCH, DUPLICATE_DOCUMENT, NOTHING_TO_DELETE, NOTHING_TO_UNSET
from gpuplan.compiler.documents.scalars import shortened

_Key = tuple[str, str] | Document
"""Kind and name; a document that lacks one of them is only itself."""


def merge(
    bases: Iterable[Document], patches: Iterable[Document]
) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    """The bases as the patches of one overlay change them, in the order of the bases, then what the overlay adds.

    A document that nothing changes is the same object afterwards.
    """
    diagnostics: list[Diagnostic] = []
    documents = {key: _undirected(base, diagnostics) for key, base in _unique(bases, diagnostics)}
    known = tuple(key for key in documents if isinstance(key, tuple))
    for key, patch in _unique(patches, diagnostics):
        if (astray := _astray(patch)) and key in documents:
            del documents[key]
            said = f"{astray[-1]}: {value_at(patch.data, astray) or 'false'}"
            finding = Finding(
                at=(patch.origin._replace(path=astray)).key,
                message="`$patch: delete` belongs into `metadata`"
                if said == "$patch: delete"
                else f"`{said}` deletes no document",
                label="deletes nothing here",
                help=f"write `metadata: {{name: {patch.name}, $patch: delete}}`, and nothing below it",
            )
            diagnostics.append(BAD_PATCH.report(finding))
        elif _metadata(patch).get(_DIRECTIVE) == "delete":
            diagnostics += _judge_deletion(patch)
            if documents.pop(key, None) is None:
                close = renaming(patch.name, [name for kind, name in known if kind == patch.kind])
                documents.pop((patch.kind, close or ""), None)  # which was meant
                if close and patch.name in (close.lower(), close.lower().replace("_", "-")):
                    continue  # the base's name cannot stay as it is
                finding = Finding(
                    at=patch.origin / "metadata" / "name",
                    message=f"the bases have no {_title(patch)} to delete",
                    label=f"did you mean `{close}`" if close else "deletes nothing",
                    notes=tuple(f"there is a `{kind}` of this name" for kind, name in known if name == patch.name),
                    help=f"write `name: {close}`, as the bases have it"
                    if close
                    else "delete this document of the overlay",
                )
                diagnostics.append(NOTHING_TO_DELETE.report(finding))
        elif key in documents:
            documents[key] = _patched(documents[key], _undirected(patch, diagnostics), diagnostics)
        else:
            documents[key] = _undirected(patch, diagnostics)
    return tuple(documents.values()), tuple(diagnostics)


_DIRECTIVE = "$patch"


def _astray(patch: Document) -> Path | None:
    """Return where a patch says that it deletes its document, if it says so in a wrong place or in other words."""
    right = ("metadata", _DIRECTIVE)
    places = (*((*around, name) for around in ((), ("spec",), ("metadata",)) for name in (_DIRECTIVE, "patch")),)
    if value_at(patch.data, ("spec", "enabled")) is False:
        return "spec", "enabled"
    said = ((place, value_at(patch.data, place)) for place in places)
    return next(
        (place for place, value in said if str(value).lower() in _DELETIONS and (place, value) != (right, "delete")),
        None,
    )


_DELETIONS: Final = ("delete", "deleted", "drop", "remove", "removed")


def removals(patches: Iterable[Document]) -> dict[tuple[str, str], Origin]:
    """Where the patches of an overlay remove documents, by kind and name."""
    return {
        (patch.kind, patch.name): patch.origin._replace(path=place).key
        for patch in patches
        if (
            place := _astray(patch)
            or (("metadata", _DIRECTIVE) if _metadata(patch).get(_DIRECTIVE) == "delete" else None)
        )
    }


def _unique(documents: Iterable[Document], diagnostics: list[Diagnostic]) -> Iterator[tuple[_Key, Document]]:
    """Each document by its kind and name; of several with the same the first."""
    seen: dict[_Key, Document] = {}
    for document in documents:
        key = (document.kind, document.name) if document.kind and document.name else document
        first = seen.setdefault(key, document)
        if first is document:
            yield key, document
        elif first.is_whole and document.is_whole:
            paths = [document.file.path, first.file.path]
            copies = [path for path in paths if _COPY.search(PurePath(path).stem)]
            copy = copies[0] if len(copies) == 1 else max(paths, key=len)
            is_copied = document.file is not first.file and document.data == first.data
            finding = Finding(
                at=document.origin / "metadata" / "name",
                message=f"{_title(document)} is defined twice",
                label="defined again",
                related=(Label(first.origin / "metadata" / "name", "first defined here"),),
                help=f"delete `{copy}`, if it is a copy; otherwise rename one"
                if is_copied
                else "rename one of them, or join them",
            )
            diagnostics.append(DUPLICATE_DOCUMENT.report(finding))


_COPY: Final = regex(r"(^|[-_. (])(old|bak|backup|copy|orig|tmp|save|[0-9]\)?)(?=[-_. )]|$)|~", re.IGNORECASE)
"""The part of a file's name that its copies have."""


def _undirected(document: Document, diagnostics: list[Diagnostic]) -> Document:
    """The document without a ``$patch`` that means nothing where it stands."""
    metadata = _metadata(document)
    if _DIRECTIVE not in metadata:
        return document
    is_deletion = metadata[_DIRECTIVE] == "delete"
    finding = Finding(
        at=(document.origin / "metadata" / _DIRECTIVE).key,
        message=f"{_title(document)} is one of the bases, and only an overlay can delete"
        if is_deletion
        else "`$patch` can only say `delete`",
        label="means nothing here",
        help="delete the document's text" if is_deletion else "leave `$patch` out: an overlay's document merges anyway",
    )
    diagnostics.append(BAD_PATCH.report(finding))
    rest = {key: value for key, value in metadata.items() if key != _DIRECTIVE}
    return Document({**document.data, "metadata": rest}, document.layers, document.reading)


def _judge_deletion(patch: Document) -> Iterator[Diagnostic]:
    superfluous = next((name for name in patch.data if name not in ("apiVersion", "kind", "metadata")), None)
    if superfluous is not None:
        finding = Finding(
            at=(patch.origin / superfluous).key,
            message=f"{_title(patch)} is deleted, and yet sets `{shortened(superfluous)}`",
            label="has no effect",
            help="leave it out, or leave `$patch: delete` out",
        )
        yield BAD_PATCH.report(finding)


def _patched(base: Document, patch: Document, diagnostics: list[Diagnostic]) -> Document:
    if Reading.LOST in (base.reading, patch.reading):
        return Document({"kind": base.kind, "metadata": {"name": base.name}}, base.layers, Reading.LOST)
    idle: list[_Idle] = []
    data = _merge_mapping(base.data, patch.data, (), idle)
    for path, present in idle:
        close = misspelling(str(path[-1]), present)
        finding = Finding(
            at=Origin(patch, path, on_key=True),
            message=f"{_title(patch)} has no `{shortened(str(path[-1]))}` to remove here",
            label=f"did you mean `{close}`" if close else "removes nothing",
            help=f"write `{close}: null`" if close else "leave it out",
        )
        diagnostics.append(NOTHING_TO_UNSET.report(finding))
    return Document(data, base.layers + patch.layers, max(base.reading, patch.reading, key=_DOUBT.index))


_DOUBT = (Reading.WHOLE, Reading.DOUBTFUL)

_Idle = tuple[Path, list[str]]
"""A null that removes nothing, with the keys that are there instead."""


def _merge_mapping(target: object, patch: Mapping[str, object], path: Path, idle: list[_Idle]) -> dict[str, object]:
    """RFC 7386, section 2. What removes nothing goes into ``idle``."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if isinstance(value, dict):
            result[key] = _merge_mapping(result.get(key), value, (*path, key), idle)
        elif value is not None:
            result[key] = value
        elif key in result:
            del result[key]
        else:
            idle.append(((*path, key), list(result)))
    return result


def _metadata(document: Document) -> Mapping[str, Any]:
    metadata = document.data.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _title(document: Document) -> str:
    return f"{document.kind or 'document'} `{shortened(document.name)}`" if document.name else "document without a name"
