"""How Kueue counts, in a tree of cohorts and queues: `pkg/cache/scheduler/resource_node.go` of Kueue 0.19."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpuplan.compiler.manifests import Manifest
from tests.compiler.backends.kueue.webhook import number

Key = tuple[str, str]
"""A flavor and a resource."""


@dataclass
class Cell:
    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


@dataclass
class Node:
    """A cohort or a queue."""

    name: str
    cells: dict[Key, Cell]
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    usage: dict[Key, int] = field(default_factory=dict)

    def subtree(self, key: Key) -> int:
        """What the node and all below it have, without what those keep to themselves (`accumulateFromChild`)."""
        below = sum(child.subtree(key) - child.local(key) for child in self.children)
        return self.cells.get(key, Cell()).nominal + below

    def local(self, key: Key) -> int:
        """What the node never lends (`localQuota`)."""
        lending = self.cells.get(key, Cell()).lending
        return 0 if lending is None else max(0, self.subtree(key) - lending)

    def available(self, key: Key) -> int:
        """What is left for the node to use (`available`)."""
        used, local, whole = self.usage.get(key, 0), self.local(key), self.subtree(key)
        if self.parent is None:
            return whole - used
        above = self.parent.available(key)
        borrowing = self.cells.get(key, Cell()).borrowing
        if borrowing is not None:
            above = min(above, whole - local - max(0, used - local) + borrowing)
        return max(0, local - used) + above

    def potential(self, key: Key) -> int:
        """What the node can use while nobody else uses anything (`potentialAvailable`)."""
        if self.parent is None:
            return self.subtree(key)
        most = self.local(key) + self.parent.potential(key)
        borrowing = self.cells.get(key, Cell()).borrowing
        return most if borrowing is None else min(most, self.subtree(key) + borrowing)

    def use(self, key: Key, amount: int) -> None:
        """Count a workload, in what is above too where the node does not keep that much to itself (`addUsage`)."""
        idle = max(0, self.local(key) - self.usage.get(key, 0))
        self.usage[key] = self.usage.get(key, 0) + amount
        if self.parent is not None and amount > idle:
            self.parent.use(key, amount - idle)


@dataclass(frozen=True)
class Tree:
    """All nodes; queues by the name of their tenant. A queue admits only what it has a cell for."""

    cohorts: dict[str, Node]
    queues: dict[str, Node]

    @property
    def nodes(self) -> list[Node]:
        return [*self.cohorts.values(), *self.queues.values()]


def a_tree(manifests: Iterable[Manifest]) -> Tree:
    bodies = [
        (item.kind, item.name, item.body["spec"]) for item in manifests if item.kind in ("Cohort", "ClusterQueue")
    ]
    nodes = {(kind, name): Node(name, _cells(spec)) for kind, name, spec in bodies}
    for kind, name, spec in bodies:
        above = spec.get("parentName") if kind == "Cohort" else spec["cohortName"]
        if above is not None:
            node = nodes[kind, name]
            node.parent = nodes["Cohort", above]
            node.parent.children.append(node)
    return Tree(
        {name: node for (kind, name), node in nodes.items() if kind == "Cohort"},
        {name: node for (kind, name), node in nodes.items() if kind == "ClusterQueue"},
    )


def _cells(spec: dict[str, object]) -> dict[Key, Cell]:
    found: dict[Key, Cell] = {}
    groups: list[dict[str, list[dict[str, list[dict[str, str]]]]]] = spec.get("resourceGroups", [])  # type: ignore[assignment]  # of YAML
    for group in groups:
        for flavor in group["flavors"]:
            for quota in flavor["resources"]:
                numbers = [
                    int(number(quota[key])) if key in quota else None for key in ("borrowingLimit", "lendingLimit")
                ]
                found[str(flavor["name"]), quota["name"]] = Cell(int(number(quota["nominalQuota"])), *numbers)
    return found
