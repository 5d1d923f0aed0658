"""Nodes that go from one pool to another, and whether they keep what the one gave them until the other's rule is there.

Each pool's rule is a folder of its own, and nothing orders two folders. A document `Retained` has the earlier rule stay
beside that of the pool which lets its nodes go, in the same folder.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.node_patterns import find_common_name, find_pattern, has_node
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Nodes, Pool, RetainedNodes
from gpuplan.features.changes.meanwhile import is_label_gone_between
from gpuplan.features.changes.nodes import Transition, departures, moves, transitions
from gpuplan.features.changes.orders import BadOrder, Hazard, bad_orders
from gpuplan.features.changes.step import Step

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
        """The labels that the nodes keep. The label that serves claims goes at once if no new pool has that label."""
        is_served = any(DRA_PLUGIN_LABEL in pool.labels for pool in self.to)
        return {key: value for key, value in self.was.labels.items() if is_served or key != DRA_PLUGIN_LABEL}


def letting_go(step: Step) -> Iterator[LettingGo]:
    """All nodes that one order of syncs leaves without labels, by the part of a pool that they leave."""
    found: dict[int, LettingGo] = {}
    for bad in without_labels(step):
        if bad.was is not None and bad.to is not None:
            known = found.get(id(bad.was), LettingGo(bad.was, (), ()))
            names = () if bad.was.nodes.name_pattern else tuple(sorted({*known.names, *bad.nodes.names}))
            found[id(bad.was)] = known._replace(to=(*known.to, bad.to), names=names)
    yield from found.values()


def without_labels(step: Step) -> Iterator[BadOrder]:
    """The orders that leave nodes without labels which they would not do without."""
    return (bad for bad in bad_orders(step) if bad.hazard in (Hazard.UNLABELLED, Hazard.UNSHARED))


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
    return any(bad.was is moved.before and bad.to is moved.after for bad in without_labels(step))


def is_needed(step: Step, kept: RetainedNodes) -> bool:
    """Whether a document keeps the labels of nodes that another pool takes in this very step."""
    return any(
        kept.spec.pool == moved.before.name
        and all(kept.spec.labels.get(key) == moved.before.labels.get(key) for key in _HELD)
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
