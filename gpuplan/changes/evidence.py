"""What the nodes of a cluster show: which of them patterns stand for, and which of them name an entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.changes.node_list import Node
from gpuplan.planning.node_patterns import NodePattern, parse
from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, POOL_LABEL, Nodes, Plan, Pool
from gpuplan.values import NamedTuple, Value

_WRITTEN = (POOL_LABEL, MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
"""Labels that nodes of every pool have: whoever has none of them is no node of ours, or was not labelled yet."""


class Lack(NamedTuple):
    """Nodes that a pool counts and a list does not have: their ``names``, where the policies say them."""

    pool: Pool
    nodes: int
    names: tuple[str, ...]


class Evidence(Value):
    """The nodes of a cluster, beside what its policies say of them."""

    plan: Plan
    nodes: Sequence[Node]

    @property
    def shows_labels(self) -> bool:
        """Whether any node has a label that we write; otherwise the list may be of another cluster."""
        return any(not node.labels.keys().isdisjoint(_WRITTEN) for node in self.nodes)

    @property
    def lacks(self) -> tuple[Lack, ...]:
        return tuple(lacks(self.plan, self.nodes))

    @property
    def is_whole(self) -> bool:
        """Whether what no node of the list names is named by none."""
        return self.shows_labels and not self.lacks

    def naming(self, label: str, value: str) -> tuple[str, ...] | None:
        """The nodes with this label; None where the list names none, and is no proof that there is none."""
        found = tuple(node.name for node in self.nodes if node.labels.get(label) == value)
        return found if found or self.is_whole else None


def lacks(plan: Plan, nodes: Sequence[Node]) -> Iterator[Lack]:
    """What a list lacks of what the policies count."""
    listed = {node.name: node.labels.get(POOL_LABEL) for node in nodes}
    for pool in plan.pools:
        names = tuple(sorted(name for part in pool.parts for name in part.nodes.names if name not in listed))
        if pool.nodes.names:
            missing = len(names)
        elif (pattern := _pattern(pool.nodes)) is not None:
            missing = max(len(names), pool.nodes.count - sum(map(pattern.matches, listed)))
        else:
            missing = max(len(names), pool.nodes.count - sum(label == pool.name for label in listed.values()))
        if missing > 0:
            yield Lack(pool, missing, names)


def resolved(before: Plan, after: Plan, nodes: Sequence[Node] | None) -> tuple[Plan, Plan]:
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
    if pool.rollout is None:
        return pool._replace(nodes=_named(pool.nodes, listed))
    rollout = pool.rollout
    left = rollout.left._replace(nodes=_named(rollout.left.nodes, listed))
    return pool._replace(nodes=_named(pool.nodes, listed), rollout=rollout._replace(left=left))


def _named(nodes: Nodes, listed: Sequence[str]) -> Nodes:
    pattern = None if nodes.names else _pattern(nodes)
    matching = tuple(name for name in listed if pattern is not None and pattern.matches(name))
    names = tuple(name for name in matching if name not in nodes.moved)
    return replace(nodes, names=names, count=len(names)) if matching else nodes


def _pattern(nodes: Nodes) -> NodePattern | None:
    found = parse(nodes.name_pattern) if nodes.name_pattern else None
    return found if isinstance(found, NodePattern) else None


def names_by_rule(plan: Plan) -> Mapping[str, frozenset[str]]:
    """The names that patterns stand for, where they are known, by the pool whose rule has the pattern."""
    parts = ((pool.name, pool.parts[0].nodes) for pool in plan.pools)
    return {name: frozenset(nodes.names) for name, nodes in parts if nodes.name_pattern and nodes.names}
