"""A step of one cluster: a plan before and after, what became of each document, and the edit that a change comes of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.plan import Plan, Pool, Retained, Tenant
from gpuplan.features.changes.evidence import Evidence, Listed, resolved
from gpuplan.features.changes.model import Change

if TYPE_CHECKING:
    from gpuplan.features.changes.pods import Pod
from collections import deque
from dataclasses import fields, is_dataclass

from pydantic import BaseModel

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.documents import Difference, Document, Layer, differences
from gpuplan.compiler.planning.plan import values_of
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.parse import document_of


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Part = TypeVar("_Part", bound=_Named)


class Step(Value, eq=False):
    """Two states of one cluster, and what is known of it: None where nobody says. What is found of one is kept.

    ``pods`` are those that hold something in it, ``nodes`` all that it has. With these, pools have the names that their
    patterns match: `of` sees to it.
    """

    before: Plan
    after: Plan
    pods: Sequence[Pod] | None = None
    nodes: Listed = None

    @classmethod
    def of(cls, before: Plan, after: Plan, pods: Sequence[Pod] | None = None, nodes: Listed = None) -> Step:
        return cls(*resolved(before, after, nodes), pods, nodes)

    @cached_property
    def evidence(self) -> Evidence | None:
        return None if self.nodes is None else Evidence(self.before, self.nodes, self.after)

    def naming(self, label: str, value: str) -> tuple[str, ...] | None:
        """The nodes that have this label now; None where nobody knows."""
        return None if self.evidence is None else self.evidence.naming(label, value)

    def needing(self, retained: Retained) -> tuple[str, ...] | None:
        """The nodes that still need what a document retains; None where nobody knows."""
        return None if self.evidence is None else self.evidence.needing(retained.what, self.after)

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.after.cluster_names

    @property
    def keeps_plugin_file(self) -> bool:
        """Whether the device plugin's ConfigMap is one and the same, so that no pod restarts for what is in it."""
        plans = self.before, self.after
        is_there = all(plan.pools or plan.retained_plugin_configs for plan in plans)
        return is_there and all(plan.cluster.gpu_operator.keeps_plugin_file for plan in plans)

    @cached_property
    def pools(self) -> Sequence[tuple[Pool | None, Pool | None]]:
        """Each pool and what became of it; one that has another's names or pattern was renamed."""
        return tuple(successors(self.before.pools, self.after.pools, _has_same_nodes))

    @property
    def kept_pools(self) -> Iterator[tuple[Pool, Pool]]:
        """The pools that stay, before and after."""
        return ((old, new) for old, new in self.pools if old is not None and new is not None)

    @cached_property
    def renamed_pools(self) -> Mapping[str, str]:
        """The pools that have another name now, by the name that they had."""
        return {old.name: new.name for old, new in self.kept_pools if old.name != new.name}

    @cached_property
    def tenants(self) -> Sequence[tuple[Tenant | None, Tenant | None]]:
        """Each tenant and what became of it; one with another's namespaces was renamed."""
        return tuple(successors(self.before.tenants, self.after.tenants, _has_same_namespaces))


def _has_same_nodes(one: Pool, other: Pool) -> bool:
    nodes, others = one.nodes, other.nodes
    if nodes.names or others.names:
        is_same = set(nodes.names) == set(others.names)
    else:
        by_pattern = bool(nodes.name_pattern) and nodes.name_pattern == others.name_pattern
        is_same = by_pattern or (nodes.are_by_board and others.are_by_board)
    return is_same and one.gpu.id == other.gpu.id


def _has_same_namespaces(one: Tenant, other: Tenant) -> bool:
    return bool(one.spec.namespaces) and set(one.spec.namespaces) == set(other.spec.namespaces)


def successors(
    before: Iterable[_Part],
    after: Iterable[_Part],
    is_same: Callable[[_Part, _Part], bool] = lambda *_: False,
    key: Callable[[_Part], object] = attrgetter("name"),
) -> Iterator[tuple[_Part | None, _Part | None]]:
    """Each part and what became of it, and each that is new; one that ``is_same`` as another that goes was renamed."""
    old, new = ({key(part): part for part in side} for side in (before, after))
    come = [part for known, part in new.items() if known not in old]
    for part in (part for known, part in old.items() if known not in new):
        successor = next((other for other in come if is_same(part, other)), None)
        if successor is not None:
            come.remove(successor)
        yield part, successor
    yield from ((None, part) for part in come)
    yield from ((old[known], new[known]) for known in old if known in new)


def changes_of(
    step: Step,
    pairs: Iterable[tuple[_Part | None, _Part | None]],
    added: Callable[[Step, _Part], Iterator[Change]],
    removed: Callable[[Step, _Part], Iterator[Change]],
    changed: Callable[[Step, _Part, _Part], Iterator[Change]],
) -> Iterator[Change]:
    """The changes of documents of one kind; those of one that was renamed are about its earlier name, too."""
    for old, new in pairs:
        if old is not None and new is not None:
            for change in changed(step, old, new):
                was = () if old.name == new.name else (change.subject._replace(name=old.name),)
                yield change._replace(also=(*was, *change.also))
        elif new is not None:
            yield from added(step, new)
        elif old is not None:
            yield from removed(step, old)


_DERIVED = "placed"
"""Follows from what stands beside it, and takes long to compare."""


def means_same(one: object, other: object) -> bool:
    """Whether two parts of plans differ in nothing but where they were written."""
    return one is other or meaning(one) == meaning(other)


def meaning(part: object) -> object:
    """The part as plain data without origins; parts that mean the same are equal."""
    if isinstance(part, Gpu):
        return part.id
    if isinstance(part, Mapping):
        return {key: meaning(value) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return tuple(meaning(value) for value in part)
    if isinstance(part, BaseModel | tuple) or is_dataclass(part):
        return type(part).__name__, {name: meaning(value) for name, value in values_of(part) if name != _DERIVED}
    return part


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
        own = _document_key(document)
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
            for edit in self._found.get(_document_key(document), ()) if document is not None else ():
                length = min(len(source.path), len(edit.route))
                if source.path[:length] == edit.route[:length]:
                    return edit.at
        return None

    def _order(self, key: _Key) -> Iterator[_Key]:
        if key[0] != "Cluster":
            for plan in reversed(self._plans):
                for origin, part in _parts(plan):
                    if (document := document_of(origin)) and _document_key(document) == key:
                        yield from (_document_key(found) for found in map(document_of, _origins(part)) if found)
        yield from (other for other in self._found if other != key)
        yield key


def is_of(plan: Plan, at: Origin) -> bool:
    """Whether a place is in the documents that a plan is made of, or in those that take others away."""
    document = document_of(at)
    return document in documents_of(plan).values() or any(document is found.source for found in plan.removed.values())


def documents_of(plan: Plan) -> Mapping[_Key, Document]:
    """The documents that a plan is made of."""
    found = (document_of(origin) for origin, _ in _parts(plan))
    return {_document_key(document): document for document in found if document is not None}


def _document_key(document: Document) -> _Key:
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
