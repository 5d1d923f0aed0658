"""A step of one cluster: a plan before and after, and what became of each document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.plan import Plan, Pool, Retained, Tenant
from gpuplan.features.changes.evidence import Evidence, resolved
from gpuplan.features.changes.model import Change

if TYPE_CHECKING:
    from gpuplan.compiler.planning.node_list import Node
    from gpuplan.features.changes.pods import Pod
from dataclasses import is_dataclass

from pydantic import BaseModel

from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.plan import values_of


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
    nodes: Sequence[Node] | None = None

    @classmethod
    def of(
        cls, before: Plan, after: Plan, pods: Sequence[Pod] | None = None, nodes: Sequence[Node] | None = None
    ) -> Step:
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
