"""Where the policies say what a change comes of: the value that was edited, in the layer that sets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.documents import Difference, Document, Layer, differences
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.parse import document_of

_Key = tuple[str, ...]


class Edit(NamedTuple):
    """A value that differs, at its ``route`` in the later document or, where it is gone, in the earlier one."""

    at: Origin
    route: Path


class Edits:
    """The edits between two plans of one cluster, document by document."""

    def __init__(self, before: Plan, after: Plan) -> None:
        old, new = documents_of(before), documents_of(after)
        removed: dict[_Key, Origin] = dict((*before.removed.items(), *after.removed.items()))
        known = ((key, tuple(_edits(old.get(key), new.get(key), removed.get(key)))) for key in {**new, **old})
        self._found: Mapping[_Key, tuple[Edit, ...]] = {key: found for key, found in known if found}
        self._plans = before, after

    def cause(self, at: Origin, sources: Callable[[], Iterable[Origin]] = tuple) -> Origin:
        """The edit that a change of what is ``at`` a place comes of; the place itself where none is known.

        It is the first one there; else the first in that document, of what the objects' traces lead to (``sources``),
        in one that it refers to, or in any. What is generated for a whole cluster follows from many documents, so its
        own comes last.
        """
        if not self._found or (document := document_of(at)) is None:
            return at
        own = _key(document)
        for edit in self._found.get(own, ()):
            if edit.route[: len(at.path)] == at.path:
                return edit.at
        if own[0] != "Cluster" and own in self._found:
            return self._found[own][0].at
        if linked := self.find(sources()):
            return linked
        return next((self._found[key][0].at for key in self._order(own) if key in self._found), at)

    def find(self, sources: Iterable[Origin]) -> Origin | None:
        """Return the first edit of what one of these places says, of a part of it, or of what it is a part of."""
        if not self._found:
            return None
        for source in sources:
            document = document_of(source)
            for edit in self._found.get(_key(document), ()) if document is not None else ():
                length = min(len(source.path), len(edit.route))
                if source.path[:length] == edit.route[:length]:
                    return edit.at
        return None

    def _order(self, key: _Key) -> Iterator[_Key]:
        if key[0] != "Cluster":
            yield from self._referred(key)
        yield from (other for other in self._found if other != key)
        yield key

    def _referred(self, key: _Key) -> Iterator[_Key]:
        for plan in reversed(self._plans):
            for origin, part in _parts(plan):
                if (document := document_of(origin)) and _key(document) == key:
                    yield from (_key(found) for found in map(document_of, _origins(part)) if found)


def is_of(plan: Plan, at: Origin) -> bool:
    """Whether a place is in the documents that a plan is made of, or in those that take others away."""
    document = document_of(at)
    return document in documents_of(plan).values() or any(document is found.source for found in plan.removed.values())


def documents_of(plan: Plan) -> Mapping[_Key, Document]:
    """The documents that a plan is made of."""
    found = (document_of(origin) for origin, _ in _parts(plan))
    return {_key(document): document for document in found if document is not None}


def _key(document: Document) -> _Key:
    """Return a key that a document keeps: a policy's kind and name, and for other documents also the place."""
    if document.kind in KINDS:
        return document.kind, document.name
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
    return document.kind, document.name, str(namespace), document.file.path


def _parts(plan: Plan) -> Iterator[tuple[Origin, object]]:
    yield plan.cluster.at, plan.cluster
    for parts in (
        plan.pools,
        plan.layouts,
        plan.gpus,
        plan.priority_classes,
        plan.tenants,
        plan.workloads,
        plan.retained,
        plan.price_lists,
    ):
        yield from ((part.at, part) for part in parts)
    yield from ((item.at, item) for item in plan.hand_written)
    yield from ((item.at, item) for item in plan.components if item.at is not None)


def _origins(part: object) -> Iterator[Origin]:
    """All places of a part of a plan and of what it refers to, the nearest first."""
    seen: set[int] = set()
    left = deque([part])
    while left:
        value = left.popleft()
        if id(value) in seen or isinstance(value, Gpu):
            continue
        seen.add(id(value))
        if isinstance(value, Origin):
            yield value
        elif isinstance(value, tuple):
            left.extend(value)
        elif isinstance(value, Mapping):
            left.extend(value.values())
        elif is_dataclass(value):
            left.extend(getattr(value, field.name) for field in fields(value))


# --- One document ------------------------------------------------------------------------------------------------


def _edits(old: Document | None, new: Document | None, removal: Origin | None) -> Iterator[Edit]:
    """Yield the edits of a document. The edit of a new or removed one is at its name, or at what removes it."""
    only = new or old
    if only is not None and (old is None or new is None):
        yield Edit(removal or only.origin / "metadata" / "name", ())
    elif old is not None and new is not None and old is not new:
        for difference in differences(old.data, new.data):
            yield Edit(_place(old, new, difference), difference.new or difference.old or ())


def _place(old: Document, new: Document, difference: Difference) -> Origin:
    """In the later document, unless the layer that sets the value there is as it was: another one was taken out."""
    layer = new.find_layer(difference.new) if difference.new is not None else None
    if difference.new is None or (
        difference.old is not None and (layer is None or _is_as_it_was(old, layer, difference))
    ):
        return old.origin / (difference.old or ())
    return new.origin / difference.new


def _is_as_it_was(old: Document, layer: Layer, difference: Difference) -> bool:
    same = (other for other in old.layers if other.file.path == layer.file.path)
    return any(other.find(difference.old or ()) == layer.find(difference.new or ()) for other in same)
