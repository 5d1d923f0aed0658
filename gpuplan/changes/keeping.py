"""Nodes that go from one pool to another, and whether they keep what the one gave them until the other's rule is there.

Each pool's rule is a folder of its own, and nothing orders two folders. A document `Retained` has the earlier rule stay
beside that of the pool which lets its nodes go, in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.changes.meanwhile import is_label_gone_between
from gpuplan.changes.nodes import Transition, departures, find_pattern, has_node, moves, transitions
from gpuplan.changes.step import Step
from gpuplan.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.planning.node_patterns import find_common_name, find_other_name
from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Nodes, Plan, Pool, RetainedNodes
from gpuplan.values import NamedTuple

_HELD = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
"""The labels that say what a node hands out."""


class LettingGo(NamedTuple):
    """Nodes of a pool, or of a part of one, that must keep its labels until those of the pools ``to`` are there.

    ``names`` is empty where the pool has its nodes by a pattern: all that it matches may be meant.
    """

    was: Pool
    to: tuple[Pool, ...]
    names: tuple[str, ...]

    @property
    def labels(self) -> dict[str, str]:
        """What they keep. One by which claims are served goes at once where no pool that takes them has it."""
        is_served = any(DRA_PLUGIN_LABEL in pool.labels for pool in self.to)
        return {key: value for key, value in self.was.labels.items() if is_served or key != DRA_PLUGIN_LABEL}


def letting_go(step: Step) -> Iterator[LettingGo]:
    """All nodes that one order of syncs leaves without labels, by the part of a pool that they leave."""
    found: dict[tuple[str, int], LettingGo] = {}
    for old, moved in handed_over(step):
        if hangs_on_order(step, moved):
            number = [part is moved.before for part in old.parts].index(True)
            known = found.get((old.name, number), LettingGo(moved.before, (), ()))
            names = () if moved.before.nodes.name_pattern else tuple(sorted({*known.names, *moved.nodes.names}))
            found[old.name, number] = known._replace(to=(*known.to, moved.after), names=names)
    yield from found.values()


def handed_over(step: Step) -> Iterator[tuple[Pool, Transition]]:
    """The nodes that have another pool afterwards, or their pool another name: each with the pool that they had."""
    return ((old, moved) for old, moved in moved_nodes(step) if old.name != moved.after.name)


def moved_nodes(step: Step) -> Iterator[tuple[Pool, Transition]]:
    """All nodes that have a pool before and after, with the one before."""
    for old, new in step.pools:
        if old is not None:
            found = [*(transitions(old, new) if new is not None else ())]
            found += (moved for leaving in departures(step, old, new) for moved in moves(old, leaving))
            yield from ((old, moved) for moved in found)


def hangs_on_order(step: Step, moved: Transition) -> bool:
    """Whether nodes that another pool takes are without labels in one order of two syncs, and would not do without."""
    is_same = moved.before.name == moved.after.name
    return not is_same and is_label_gone_between(step, moved.before, moved.after) and not _is_kept(step.after, moved)


def is_needed(step: Step, kept: RetainedNodes) -> bool:
    """Whether a document keeps the labels of nodes that another pool takes in this very step."""
    return any(
        _keeps(kept, moved.before)
        and is_label_gone_between(step, moved.before, moved.after)
        and _has_some(kept.nodes, moved)
        for _, moved in handed_over(step)
    )


def _has_some(nodes: Nodes, moved: Transition) -> bool:
    """Whether some of the nodes are among these; of what only patterns say, one that may match both is enough."""
    if moved.nodes.names:
        return any(has_node(nodes, name) for name in moved.nodes.names)
    if nodes.names:
        return any(has_node(moved.before.nodes, name) for name in nodes.names)
    one, other = find_pattern(nodes.name_pattern), find_pattern(moved.before.nodes.name_pattern)
    return one is not None and other is not None and find_common_name(one, other) is not None


# --- What keeps them ---------------------------------------------------------------------------------------------


def _is_kept(after: Plan, moved: Transition) -> bool:
    """Whether documents of the pool's own folder keep the labels of all these nodes."""
    kept = [item.nodes for _, item in after.retained_nodes if _keeps(item, moved.before)]
    if moved.nodes.names:
        return all(any(has_node(nodes, name) for nodes in kept) for name in moved.nodes.names)
    return _covers(kept, moved.before.nodes)


def _keeps(item: RetainedNodes, was: Pool) -> bool:
    labels = item.spec.labels
    return item.spec.pool == was.name and all(labels.get(key) == was.labels.get(key) for key in _HELD)


def _covers(kept: Sequence[Nodes], nodes: Nodes) -> bool:
    """Whether each node that a pattern matches is kept."""
    pattern = find_pattern(nodes.name_pattern)
    whole = [item for item in kept if not item.names and set(item.moved) <= set(nodes.moved)]
    if any(item.name_pattern == nodes.name_pattern for item in whole):
        return True
    patterns = tuple(found for item in whole if (found := find_pattern(item.name_pattern)) is not None)
    return bool(patterns) and pattern is not None and find_other_name(pattern, patterns) is None
