"""A list of a cluster's nodes as evidence: the nodes that patterns match, and the entries that labels name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from gpuplan.compiler.base.plain import Body, items, value_of
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.manifests import Identity, identity_of
from gpuplan.compiler.manifests.kinds import find_kind
from gpuplan.compiler.planning.node_list import Node
from gpuplan.compiler.planning.node_patterns import find_pattern, has_node
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Nodes,
    Plan,
    Pool,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
)
from gpuplan.compiler.planning.plugin_configs import pool_of

_CONFIGS: Final = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
_WRITTEN: Final = (POOL_LABEL, *_CONFIGS)
"""Labels that nodes of every pool have: whoever has none of them is no node of ours, or was not labelled yet."""


Listed = Sequence[Node] | None
"""The nodes of a cluster, None where nobody has listed them."""

RetainedPart = RetainedLayout | RetainedDevicePluginConfig | RetainedNodes | RetainedObject


class Named(NamedTuple):
    """Something that the cluster names: a label's value, or an object's identity, where the label is empty."""

    label: str
    name: str | Identity

    def __str__(self) -> str:
        if not isinstance(self.name, Identity):
            return f"`{self.label}: {self.name}`"
        where = f" in namespace `{self.name.namespace}`" if self.name.namespace else ""
        return f"{self.name.kind} `{self.name.name}`{where}"


def named_by(retained: RetainedPart) -> Named:
    """Return the name whose meaning a document retains."""
    match retained:
        case RetainedLayout(spec=layout):
            return Named(MIG_CONFIG_LABEL, layout.config_name)
        case RetainedDevicePluginConfig(spec=plugin):
            return Named(DEVICE_PLUGIN_CONFIG_LABEL, plugin.key)
        case RetainedNodes(spec=kept):
            return of_nodes(kept.pool, kept.name_pattern, retained.nodes.names)
        case RetainedObject(spec=kept_object):
            return Named("", identity_of(kept_object.manifest))


def of_nodes(pool: str, pattern: str | None, names: Iterable[str]) -> Named:
    return Named(POOL_LABEL, f"{pool} ({pattern or ', '.join(sorted(names))})")


class Lack(NamedTuple):
    """Nodes that a pool counts and a list does not have: their ``names``, where the policies say them."""

    pool: Pool
    nodes: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        named = f": {listing(self.names)}" if self.names else ""
        return f"the list of nodes lacks {self.nodes} of pool `{self.pool.name}`{named}"


class Evidence(Value):
    """The nodes of a cluster, beside what its policies say of them, and what they are to say.

    ``objects`` are others that were listed with them, by identity. ``made`` are those that the cluster has by its
    policies: where one is missing, the list has not all of its kind.
    """

    plan: Plan
    nodes: Sequence[Node]
    after: Plan
    objects: Mapping[Identity, Body] = field(default_factory=dict)
    made: frozenset[Identity] = frozenset()

    @cached_property
    def shows_labels(self) -> bool:
        """Whether any node has a label that we write; otherwise the list may be of another cluster."""
        return any(not node.labels.keys().isdisjoint(_WRITTEN) for node in self.nodes)

    @cached_property
    def lacks(self) -> tuple[Lack, ...]:
        return tuple(lacks(self.plan, self.nodes))

    @property
    def is_foreign(self) -> bool:
        """Whether no node has a label that we write, though pools give them some."""
        return bool(self.plan.pools) and not self.shows_labels

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the list is no proof of what no node names; nothing where it is."""
        if self.is_foreign:
            return (f"none of {count(len(self.nodes), 'node')} in the list has a label that pools give",)
        return (*self.strangers, *map(str, self.lacks))

    @cached_property
    def strangers(self) -> tuple[str, ...]:
        """The first node of a pool that the cluster does not have: patterns may match nodes of another cluster."""
        plans = self.plan, self.after
        known = {pool.name for plan in plans for pool in plan.pools}
        known |= {kept.spec.pool for plan in plans for _, kept in plan.retained_nodes}
        known |= {pool_of(kept.spec.key) for plan in plans for kept in plan.retained_plugin_configs}
        labelled = ((node.name, node.labels[POOL_LABEL]) for node in self.nodes if POOL_LABEL in node.labels)
        unknown = ((name, pool) for name, pool in labelled if pool not in known)
        return tuple(
            f"node `{name}` in the list is of pool `{pool}`, which cluster `{self.plan.cluster.name}` does not have"
            for name, pool in islice(unknown, 1)
        )

    @property
    def is_whole(self) -> bool:
        """Whether what no node of the list names is named by none."""
        return not self.doubts

    @cached_property
    def named(self) -> frozenset[tuple[str, str]]:
        """The entries and files that nodes name, each with the label that does."""
        return frozenset((key, value) for node in self.nodes for key, value in node.labels.items() if key in _CONFIGS)

    def naming(self, label: str, value: str) -> tuple[str, ...] | None:
        """The nodes with this label; None where the list names none, and is no proof that there is none."""
        return self._proven(tuple(node.name for node in self.nodes if node.labels.get(label) == value))

    def needing(self, retained: RetainedPart, after: Plan) -> tuple[str, ...] | None:
        """Return the nodes or objects that still need a retained part, or None if the list does not show them."""
        if isinstance(retained, RetainedNodes):
            # The nodes that would be without labels in some order of syncs, were it not for the retained rule. Those
            # that are still the pool's own have it by that one's. One with the label of another pool has that one's
            # rule, which is to stay theirs: where they go on to a third pool, something must keep that label in turn.
            has = {node.name: node.labels.get(POOL_LABEL) for node in self.nodes}
            meant = retained.nodes.names or tuple(name for name in has if has_node(retained.nodes, name))
            mine = [name for name in meant if retained.spec.pool not in _homes(after, name)]
            if any(name not in has for name in mine):
                return None
            return self._proven(tuple(name for name in mine if not _is_settled(after, retained, name, has[name])))
        label, name = named_by(retained)
        return self._holding(name) if isinstance(name, Identity) else self.naming(label, name)

    def _holding(self, identity: Identity) -> tuple[str, ...] | None:
        """Return the users of an object, or None if the list does not show them or has nodes of another cluster."""
        kind = find_kind(identity.group, identity.kind)
        if kind is None or kind.held_by is None or not self.is_whole:
            return None
        hold = kind.held_by
        if not hold.kind:
            live = self.objects.get(identity)
            number = value_of(live, hold.field.split("."))
            is_stopped = not kind.takes_work or value_of(live, ("spec", "stopPolicy")) in _STOPPED
            if type(number) is not int or (number == 0 and not is_stopped):
                return None
            return ("work that it let in",) if number else ()
        held = [one for one in self.objects if (one.group, one.kind) == (identity.group, hold.kind)]
        expected = [one for one in self.made if (one.group, one.kind) == (identity.group, hold.kind)]
        if not held or any(one not in self.objects for one in expected):
            return None
        route = tuple(hold.field.replace("[*]", ".[*]").split("."))
        return tuple(f"{one.kind} `{one.name}`" for one in held if identity.name in _values(self.objects[one], route))

    def _proven(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        return names if names or self.is_whole else None


_STOPPED: Final = ("Hold", "HoldAndDrain")


def _values(body: object, route: Sequence[str]) -> Iterator[object]:
    """Yield the values at the ends of a route. `[*]` in a route stands for each item of a list."""
    if not route:
        yield body
    elif route[0] == "[*]":
        for item in items(body):
            yield from _values(item, route[1:])
    elif isinstance(body, Mapping) and route[0] in body:
        yield from _values(body[route[0]], route[1:])


def _is_settled(after: Plan, kept: RetainedNodes, name: str, label: str | None) -> bool:
    """Whether a node has left a pool for another one that has it now, or keeps its label."""
    homes = _homes(after, name)
    others = {item.spec.pool for _, item in after.retained_nodes if item is not kept and has_node(item.nodes, name)}
    return label not in (None, kept.spec.pool) and (not homes or label in homes | others)


def _homes(plan: Plan, name: str) -> set[str]:
    """The pools that have a node: one, unless something is wrong."""
    return {pool.name for pool in plan.pools if any(has_node(part.nodes, name) for part in pool.parts)}


def lacks(plan: Plan, nodes: Sequence[Node]) -> Iterator[Lack]:
    """Yield the nodes that a list lacks of those that the policies count, by pool."""
    listed = {node.name: node.labels.get(POOL_LABEL) for node in nodes}
    for pool in plan.pools:
        names = tuple(sorted(name for part in pool.parts for name in part.nodes.names if name not in listed))
        if pool.nodes.names:
            missing = len(names)
        elif (pattern := find_pattern(pool.nodes.name_pattern)) is not None:
            missing = max(len(names), pool.nodes.count - sum(map(pattern.matches, listed)))
        else:
            missing = max(len(names), pool.nodes.count - sum(label == pool.name for label in listed.values()))
        if missing > 0:
            yield Lack(pool, missing, names)


def resolved(before: Plan, after: Plan, nodes: Listed) -> tuple[Plan, Plan]:
    """Both plans with the names of the nodes that patterns match now, in place of as many as policies count.

    A pool stays as it was written where the list lacks some of the nodes that it had, or has none that it gets.
    """
    if nodes is None:
        return before, after
    doubtful = [lack.pool for lack in lacks(before, nodes)]
    as_written = {pool.name for pool in doubtful}, {pool.nodes.name_pattern for pool in doubtful}
    names = [node.name for node in nodes]

    def judged(plan: Plan) -> Plan:
        pools = (
            pool if pool.name in as_written[0] or pool.nodes.name_pattern in as_written[1] else _resolved(pool, names)
            for pool in plan.pools
        )
        return replace(plan, pools=tuple(pools))

    return judged(before), judged(after)


def _resolved(pool: Pool, listed: Sequence[str]) -> Pool:
    rollout = pool.rollout
    if rollout is not None:
        rollout = rollout._replace(left=rollout.left._replace(nodes=_named(rollout.left.nodes, listed)))
    return pool._replace(nodes=_named(pool.nodes, listed), rollout=rollout)


def _named(nodes: Nodes, listed: Sequence[str]) -> Nodes:
    pattern = None if nodes.names else find_pattern(nodes.name_pattern)
    matching = tuple(name for name in listed if pattern is not None and pattern.matches(name))
    names = tuple(name for name in matching if name not in nodes.moved)
    return replace(nodes, names=names, count=len(names)) if matching else nodes


def names_by_pattern(plan: Plan, listed: Sequence[Node]) -> Mapping[str, frozenset[str]]:
    """The names that patterns match, of pools and of what nodes keep, where they are known."""
    pools = (pool.nodes for pool in plan.pools)
    found = {nodes.name_pattern: frozenset(nodes.names) for nodes in pools if nodes.name_pattern and nodes.names}
    if any(lacks(plan, listed)):
        return found
    for _, kept in plan.retained_nodes:
        if (pattern := find_pattern(kept.nodes.name_pattern)) is not None:
            found.setdefault(pattern.text, frozenset(node.name for node in listed if pattern.matches(node.name)))
    return found
