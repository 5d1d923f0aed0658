"""The pools of a plan that nodes and flavors belong to, and the queues that its rules refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning import node_patterns
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import HOST_LABEL, POOL_LABEL, Plan, Pool
from gpuplan.features.components import QUEUE_CHECKS
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports

_PRODUCT = "nvidia.com/gpu.product"


class Matching(Value, eq=False):
    """The nodes of a dump by the pools of the plan that was made of them."""

    dump: Dump
    plan: Plan

    def pools_of(self, labels: Mapping[str, str]) -> Sequence[Pool]:
        """The pools that have nodes with these labels, in their order."""
        return [pool for pool in self.plan.pools if self._has(pool, labels)]

    def nodes_of(self, pool: Pool) -> Sequence[Item]:
        """The nodes of a pool that the dump has."""
        return self._nodes.get(pool.name, ())

    def _has(self, pool: Pool, labels: Mapping[str, str]) -> bool:
        if labels.items() <= {**pool.nodes.selector, **pool.labels}.items():
            return True
        if nodes := self.nodes_of(pool):
            return any(labels.items() <= node.labels.items() for node in nodes)
        known = {**pool.nodes.selector, **pool.labels}
        products = [product.label for product in pool.gpu.products]
        hosts = pool.nodes.names
        return all(
            known.get(key) == value or (key == _PRODUCT and value in products) or (key == HOST_LABEL and value in hosts)
            for key, value in labels.items()
        )

    @cached_property
    def _nodes(self) -> Mapping[str, Sequence[Item]]:
        found: dict[str, list[Item]] = {}
        for node in self.dump.of_kind("", "Node"):
            if pool := next(self._places(node), None):
                found.setdefault(pool.name, []).append(node)
        return found

    def _places(self, node: Item) -> Iterator[Pool]:
        """The pool of a node by its name, else by its label, else by what chooses nodes."""
        yield from (pool for pool in self.plan.pools if node.name in pool.nodes.names)
        yield from (pool for pool in self.plan.pools if node.labels.get(POOL_LABEL) == pool.name)
        yield from (pool for pool in self.plan.pools if _chooses(pool, node))


def _chooses(pool: Pool, node: Item) -> bool:
    nodes = pool.nodes
    if nodes.name_pattern is not None:
        pattern = node_patterns.parse(nodes.name_pattern)
        if isinstance(pattern, node_patterns.Unreadable) or not pattern.matches(node.name):
            return False
    elif not nodes.selector:
        return False
    return nodes.selector.items() <= node.labels.items()


_GROUPS: Final = frozenset(("kueue.x-k8s.io", "scheduling.run.ai"))


def tell_faults(dump: Dump, plan: Plan, reports: Reports) -> None:
    """Report queues that admit nothing, are refused, or refer to nothing."""
    items = [item for item in dump.objects if item.group in _GROUPS]
    files = HandFiles(objects=tuple(Object(item.at, item.body, item.file, "") for item in items), plan=plan)
    for check in QUEUE_CHECKS:
        for diagnostic in check.run(files):
            at = diagnostic.finding.at
            of = next(
                (
                    item
                    for item in items
                    if (at.source is item.at.source and at.path[: len(item.at.path)] == item.at.path)
                ),
                None,
            )
            if of is not None:
                reports.add(diagnostic, of.identity)
