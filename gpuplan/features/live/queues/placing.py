"""The pools that work of namespaces can run in, by what its pods select and tolerate and what the nodes have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.dump import Dump, Item, units_in
from gpuplan.features.live.places import Body, Node, asked, node_of, obstacles, placed_by, pods_of
from gpuplan.features.live.queues.model import Matching


class Asking(NamedTuple):
    """An object whose pods ask for units of a resource, and where these can run.

    ``pools`` are those that have a node for them. Without any, ``node`` is a node for them that is in no pool.
    """

    work: Item
    resource: str
    units: int
    pools: tuple[str, ...]
    node: Item | None


class Placing:
    """The places of the work of a dump, by namespace."""

    def __init__(self, dump: Dump, plan: Plan) -> None:
        self.dump, matching = dump, Matching(dump, plan)
        self._pool_of = {node.name: pool.name for pool in plan.pools for node in matching.nodes_of(pool)}
        self._nodes = [*map(node_of, dump.of_kind("", "Node"))]
        self._known = {unit.resource for pool in plan.pools for unit in pool.units}
        self._fitting: dict[str, list[Node]] = {}
        """The nodes that take pods, by what places them: most pods of a cluster are placed alike."""

    @cached_property
    def by_namespace(self) -> Mapping[str, list[Asking]]:
        found: dict[str, list[Asking]] = {}
        for work in self.dump.objects if self._nodes else ():
            phase = text(inside(work.body, "status").get("phase"))
            if work.namespace and phase not in ("Succeeded", "Failed"):
                found.setdefault(work.namespace, []).extend(self._asking(work))
        return found

    def units_by_pool(self, namespace: str, resource: str) -> Mapping[str, int]:
        """Return how many units of a resource work of a namespace asks for that runs in one pool alone."""
        by_pods: Counter[str] = Counter()
        by_others: Counter[str] = Counter()
        for asking in self.by_namespace.get(namespace, ()):
            if asking.resource == resource and len(asking.pools) == 1:
                (by_pods if asking.work.kind == "Pod" else by_others)[asking.pools[0]] += asking.units
        return by_pods | by_others

    def _asking(self, work: Item) -> Iterator[Asking]:
        number = next((units_in(n) for field in _NUMBERS if (n := inside(work.body, "spec").get(field)) is not None), 1)
        for marks, pod in pods_of(work):
            units = {key: n for key, n in asked(pod).items() if key in self._known or _GPU.match(key)}
            nodes = self._nodes_for(pod, marks) if units else ()
            pools = dict.fromkeys(self._pool_of[node.name] for node in nodes if node.name in self._pool_of)
            for resource, amount in units.items() if nodes else ():
                yield Asking(work, resource, max(number, 1) * amount, tuple(pools), None if pools else nodes[0].item)

    def _nodes_for(self, pod: Body, marks: Mapping[str, str]) -> Sequence[Node]:
        key = placed_by(pod, marks)
        if key not in self._fitting:
            self._fitting[key] = [node for node in self._nodes if not any(obstacles(node, pod, marks))]
        return self._fitting[key]


_NUMBERS: Final = ("replicas", "parallelism")
_GPU: Final = regex(r"nvidia\.com/(gpu|mig-)")
