"""Where the policies say what a change comes of: the value that was edited, in the layer that sets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain

from gpuplan.diagnostics import Origin, Path
from gpuplan.documents import Difference, Document, Layer, differences
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import KINDS
from gpuplan.policy.parse import document_of
from gpuplan.values import NamedTuple

_Key = tuple[str, ...]


class Edit(NamedTuple):
    """A value that differs, at its ``route`` in the later document or, where it is gone, in the earlier one."""

    at: Origin
    route: Path


class Edits:
    """What was edited between two plans of one cluster, document by document."""

    def __init__(self, before: Plan, after: Plan) -> None:
        old, new = documents_of(before), documents_of(after)
        removed: dict[_Key, Origin] = dict((*before.removed.items(), *after.removed.items()))
        known = ((key, tuple(_edits(old.get(key), new.get(key), removed.get(key)))) for key in {**new, **old})
        self._found = {key: found for key, found in known if found}

    def cause(self, at: Origin, about: AbstractSet[tuple[str, ...]]) -> Origin:
        """The edit that a change of what is ``at`` a place comes of; the place itself where none is known.

        It is the first one there; else the first in that document, in one that what differs is ``about`` as well, or in
        any. What is generated for a whole cluster follows from many documents, so its own comes last.
        """
        document = document_of(at)
        if document is None:
            return at
        own = _key(document)
        there = (edit.at for edit in self._found.get(own, ()) if edit.route[: len(at.path)] == at.path)
        others = sorted((key for key in self._found if key != own), key=lambda key: key not in about)
        order = (*others, own) if document.kind == "Cluster" else (own, *others)
        return next(chain(there, (self._found[key][0].at for key in order if key in self._found)), at)


def is_of(plan: Plan, at: Origin) -> bool:
    """Whether a place is in the documents that a plan is made of, or in those that take others away."""
    document = document_of(at)
    return document in documents_of(plan).values() or any(document is found.source for found in plan.removed.values())


def documents_of(plan: Plan) -> Mapping[_Key, Document]:
    """The documents that a plan is made of."""
    places = [plan.cluster.at, *(item.at for item in plan.hand_written), *(item.at for item in plan.components)]
    for parts in (plan.pools, plan.layouts, plan.priority_classes, plan.tenants, plan.workloads, plan.retained):
        places += (part.at for part in parts)
    found = (document_of(at) for at in places if at is not None)
    return {_key(document): document for document in found if document is not None}


def _key(document: Document) -> _Key:
    """What is the same document before and after: one of a policy has a name, and another one a place, too."""
    if document.kind in KINDS:
        return document.kind, document.name
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
    return document.kind, document.name, str(namespace), document.file.path


# --- One document ------------------------------------------------------------------------------------------------


def _edits(old: Document | None, new: Document | None, removal: Origin | None) -> Iterator[Edit]:
    """What differs in a document; one that comes or goes is named by its name, or by what takes it away."""
    only = new or old
    if only is not None and (old is None or new is None):
        yield Edit(removal or only.origin / "metadata" / "name", ())
    elif old is not None and new is not None and old is not new:
        for difference in differences(old.data, new.data):
            yield Edit(_place(old, new, difference), difference.new or difference.old or ())


def _place(old: Document, new: Document, found: Difference) -> Origin:
    """In the later document, unless the layer that sets the value there is as it was: another one was taken out."""
    layer = new.find_layer(found.new) if found.new is not None else None
    if found.new is None or (found.old is not None and (layer is None or _is_as_it_was(old, layer, found))):
        return old.origin / (found.old or ())
    return new.origin / found.new


def _is_as_it_was(old: Document, layer: Layer, found: Difference) -> bool:
    same = (other for other in old.layers if other.file.path == layer.file.path)
    return any(other.find(found.old or ()) == layer.find(found.new or ()) for other in same)
