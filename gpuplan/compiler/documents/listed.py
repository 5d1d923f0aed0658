"""Objects of some kinds in what kubectl printed, whatever else was asked for: lists, dumps, several of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.documents import MAX_BYTES
from gpuplan.compiler.documents.printed import Printed, is_json, is_list, objects_in, read_json, read_plain


class Wanted(NamedTuple):
    """The kind that a list has to have, what several of it are called, and the command that lists them."""

    kind: str
    called: str
    way: str

    def trouble(self, name: str, why: str, instead: str = "") -> GpuplanError:
        """Why the text of a name is no such list."""
        told = f"{f'`{name}`' if name else 'this'} is no list of {self.called}: {why}"
        return GpuplanError(told, instead or f"write it with `{self.way}`")


def find_objects(texts: Mapping[str, str], wanted: Wanted) -> Iterator[tuple[str, Body]]:
    """The objects in texts by name, those of all kinds, each with the text that it is in.

    Trouble when one of the texts holds anything else than objects, or when there are objects, and none of the kind that
    is wanted. Secrets are not among them.
    """
    first: tuple[str, Body] | None = None
    is_found = False
    for name, text in texts.items():
        for document in _documents(name, text, wanted):
            for found in objects_in(document):
                body = found.data
                if not isinstance(body, dict):
                    raise wanted.trouble(name, _NO_OBJECTS if is_list(document.data) else _NOTHING)
                first, is_found = first or (name, body), is_found or body.get("kind") == wanted.kind
                if body.get("kind") != "Secret":
                    yield name, body
    if first is not None and not is_found:
        kind, others = first[1].get("kind"), len(texts) - 1
        what = _short(kind) if isinstance(kind, str) and kind else "objects without a kind"
        rest = f", and {count(others, 'other file')} {'has' if others == 1 else 'have'} none" if others else ""
        raise wanted.trouble(first[0], f"it lists {what}, and no {wanted.kind}{rest}")


_NOTHING: Final = "it is no object and no list of objects"
_NO_OBJECTS: Final = "its `items` is no list of objects"


def is_list_of_objects(text: str) -> bool:
    """Whether a text is to be read as kubectl's JSON or YAML; otherwise it may hold a name a line."""
    return bool(_OBJECTS.match(text))


_OBJECTS: Final = regex(r"\s*(?:#[^\n]*\n\s*)*(?:\{|\[|---|apiVersion:|items:|kind:|metadata:)")


def _documents(name: str, text: str, wanted: Wanted) -> Iterator[Printed]:
    found = _from_json(name, text, wanted) if is_json(text) else _from_yaml(name, text, wanted)
    for document in found:
        if not isinstance(document.data, dict):
            raise wanted.trouble(name, _NOTHING)
        if "items" in document.data and not is_list(document.data):
            items, kind = document.data["items"], document.data.get("kind")
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise wanted.trouble(name, _NO_OBJECTS)
            if kind is None and document.document is None:  # JSON that can be read was not cut off
                document = document._replace(data={**document.data, "kind": "List"})  # noqa: PLW2901
            elif not isinstance(kind, str):  # the last lines of a list say it
                raise wanted.trouble(name, "it has no `kind` beside `items`, as one that was cut off")
        yield document


def _from_json(name: str, text: str, wanted: Wanted) -> tuple[Printed, ...]:
    try:
        return read_json(name, text)
    except ValueError as error:
        raise wanted.trouble(name, f"it is not JSON: {_short(str(error))}") from error


def _from_yaml(name: str, text: str, wanted: Wanted) -> tuple[Printed, ...]:
    if not text.strip():
        raise wanted.trouble(name, "it is empty")
    if not is_list_of_objects(text):
        raise wanted.trouble(name, "it is neither JSON nor YAML of kubectl; a table or names alone show no labels")
    if len(text) > MAX_BYTES:
        instead = f"pass JSON: `{wanted.way}`"
        raise wanted.trouble(name, f"as YAML it may have {MAX_BYTES // 2**20} MiB", instead)
    documents, found = read_plain(name, text)
    if trouble := next((item for item in found if item.is_error), None):
        line = trouble.finding.at.locate().span.start.line
        raise wanted.trouble(name, f"line {line} is no YAML: {_short(trouble.shown.message)}")
    return documents


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_WHY else f"{text[:_LONGEST_WHY]}..."


_LONGEST_WHY: Final = 160
