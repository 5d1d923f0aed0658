"""Output of other programs about a cluster: JSON or YAML, one document or many, in each an object or a List."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.depth import MAX_TEXT_DEPTH, is_deep_json
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents.document import Document
from gpuplan.compiler.documents.files import read_bytes, read_text
from gpuplan.compiler.documents.rules import SYNTAX_ERROR, TOO_LARGE
from gpuplan.compiler.documents.text import MAX_BYTES

_ITEMS: Final = "items"


class Printed(NamedTuple):
    """A document or an item of a List; ``data`` may be anything. Of JSON whose lines nobody knows it is no document."""

    at: Origin
    data: Any
    document: Document | None = None


def read_printed(name: str, content: bytes) -> tuple[tuple[Printed, ...], tuple[Diagnostic, ...]]:
    """The documents of a file with their lines, which nobody knows of JSON that is larger than any policy may be."""
    if len(content) > MAX_BYTES and is_json(content[:64].decode(errors="replace")):
        try:
            return read_json(name, content.decode("utf-8-sig")), ()
        except TooDeepError as error:
            return (), (TOO_LARGE.report(Finding(Origin(WholeFile(SourceFile(name, ""))), str(error))),)
        except ValueError as error:
            finding = Finding(
                Origin(WholeFile(SourceFile(name, ""))),
                f"the JSON cannot be read: {error}",
                help="run the command again, to the end",
            )
            return (), (SYNTAX_ERROR.report(finding),)
    if len(content) > MAX_BYTES:
        finding = Finding(
            Origin(WholeFile(SourceFile(name, ""))),
            f"YAML is larger than {MAX_BYTES // 2**20} MiB",
            help="collect it as JSON, which may be larger: `-o json` in place of `-o yaml`",
        )
        return (), (TOO_LARGE.report(finding),)
    documents, unread = read_bytes(name, content)
    return tuple(Printed(item.origin, item.data, item) for item in documents), unread


def read_plain(name: str, text: str) -> tuple[tuple[Printed, ...], tuple[Diagnostic, ...]]:
    """The documents of a YAML text."""
    documents, unread = read_text(name, text, strict=False)
    return tuple(Printed(item.origin, item.data, item) for item in documents), unread


def is_json(text: str) -> bool:
    """Whether a text is JSON if it is anything; YAML begins so only where a person wrote it."""
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


class TooDeepError(ValueError):
    """Why a JSON text is not read; the error says it in words of a finding."""


def read_json(name: str, text: str) -> tuple[Printed, ...]:
    """The values of a JSON text, one behind the other, without their lines; a ``ValueError`` where it is none."""
    if is_deep_json(text):
        raise TooDeepError(f"values are nested more than {MAX_TEXT_DEPTH} levels deep")
    values: list[object] = []
    whole, at = Origin(WholeFile(SourceFile(name, "", values))), 0
    decoder = json.JSONDecoder()
    text = text.lstrip("\ufeff")
    while at < len(text):
        data, at = decoder.raw_decode(text, _past_blanks(text, at))
        values.append(data)
        at = _past_blanks(text, at)
    return tuple(Printed(whole, data) for data in values)


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def is_list(data: object) -> bool:
    """Whether it stands for the objects that are in it: a `List`, or a `NodeList` as the API server gives it."""
    if not isinstance(data, Mapping):
        return False
    return str(data.get("kind", "")).endswith("List") and isinstance(data.get(_ITEMS), list)


def is_cut_off(data: object) -> bool:
    """Whether it begins as a List and has no kind, which kubectl writes last: what is left is YAML still."""
    return isinstance(data, Mapping) and "apiVersion" in data and _ITEMS in data and "kind" not in data


def objects_in(printed: Printed) -> Iterator[Printed]:
    """A document, or the items of a List and of Lists in it; an item without a kind is of that which the List names."""
    left, seen = [printed], set[int]()
    while left:
        found = left.pop()
        if not is_list(found.data):
            yield found
        elif id(found.data) not in seen:  # an alias may have a List stand in itself
            seen.add(id(found.data))
            left += reversed([*_items(found)])


def _items(printed: Printed) -> Iterator[Printed]:
    of = printed.data["kind"].removesuffix("List")
    for index, item in enumerate(printed.data[_ITEMS]):
        if of and isinstance(item, Mapping):
            known = {key: printed.data[key] for key in ("apiVersion",) if key in printed.data}
            item = {**known, "kind": of, **item}  # noqa: PLW2901 - `kubectl get --raw` prints items without them
        yield Printed(printed.at / _ITEMS / index, item)
