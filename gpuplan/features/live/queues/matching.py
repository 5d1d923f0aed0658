"""Find the pools of a plan that nodes, or what is said of nodes by labels, belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning import node_patterns
from gpuplan.compiler.planning.discovered import HOST_LABEL, PRODUCT_LABEL
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Pool
from gpuplan.features.live.dump import Dump, Item


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
            known.get(key) == value
            or (key == PRODUCT_LABEL and value in products)
            or (key == HOST_LABEL and value in hosts)
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
