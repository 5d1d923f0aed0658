"""Read what the objects of schedulers say of nodes: their flavor or their shard, topology and placement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from gpuplan.adoption.dump import Dump, Item
from gpuplan.checks.handwritten.reading import inside, mapping, sequence, text, value_at
from gpuplan.planning.plan import Counted
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.policy.models import Placement
from gpuplan.values import Value

KUEUE: Final = "kueue.x-k8s.io"
KAI: Final = "kai.scheduler"
KAI_QUEUES: Final = "scheduling.run.ai"


class Scheduling(Value):
    """What schedulers know of a node: all nodes of a pool have the same.

    ``flavor`` is the ResourceFlavor of Kueue and ``shard`` the node pool of KAI-Scheduler that it belongs to, each
    empty where there is none. ``topology`` and ``placement`` are those of `PoolSpec`; ``sources`` the objects that say
    all that.
    """

    flavor: str = ""
    shard: str = ""
    topology: tuple[str, ...] = ()
    placement: str = ""
    sources: tuple[str, ...] = ()


class Schedulings(Value, eq=False):
    """What the objects of schedulers in a dump say of nodes."""

    dump: Dump

    def of(self, labels: Mapping[str, str]) -> Scheduling:
        """What they say of a node with these labels.

        A flavor may be of nodes of several pools; its name can stay (`names.resourceFlavor`) where it is of one.
        """
        flavor, shard = self.flavor_of(labels), _shard_of(self.dump, labels)
        topology = _topology_of(self.dump, flavor, shard, labels)
        found = [item for item in (flavor, shard, topology) if item]
        return Scheduling(
            flavor.name if flavor else "",
            labels.get(NODE_POOL_LABEL, "") if shard else "",
            _levels(topology) if topology else (),
            _placement(shard) if shard else "",
            tuple(item.source for item in found),
        )

    # --- Kueue

    def flavor_of(self, labels: Mapping[str, str]) -> Item | None:
        """The flavor that counts the GPUs of a node with these labels: of several the one that says most of it."""
        found = [item for item in self._flavors if node_labels(item).items() <= labels.items()]
        return min(found, key=lambda item: (-len(node_labels(item)), item.name), default=None)

    @cached_property
    def _flavors(self) -> Sequence[Item]:
        """Those that count more than every node has; and those that nobody counts by, if they choose nodes."""
        counted: dict[str, bool] = {}
        for name, resource in self._cells():
            counted[name] = counted.get(name, False) or resource not in NODE_RESOURCES
        flavors = self.dump.of_kind(KUEUE, "ResourceFlavor")
        return [item for item in flavors if counted.get(item.name, bool(node_labels(item)))]

    def _cells(self) -> Iterator[tuple[str, str]]:
        for item in self.dump.of_kind(KUEUE, "ClusterQueue", "Cohort"):
            for group in sequence(value_at(item.body, ("spec", "resourceGroups"))):
                for flavor in map(mapping, sequence(mapping(group).get("flavors"))):
                    for resource in sequence(flavor.get("resources")):
                        yield text(flavor.get("name")), text(mapping(resource).get("name"))


def node_labels(flavor: Item) -> Mapping[str, str]:
    """The labels of the nodes that a flavor is of; none where it is of all."""
    found = inside(flavor.body, "spec", "nodeLabels")
    return {key: value for key, value in found.items() if isinstance(value, str)}


NODE_RESOURCES: Final = frozenset((*(item.value for item in Counted), "ephemeral-storage"))
"""What every node has."""


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


def _shard_of(dump: Dump, labels: Mapping[str, str]) -> Item | None:
    """The shard of a node: that of its label. Whoever has none is of the shard without a value.

    (`GetLabelSelector` in `pkg/scheduler/conf/scheduler_conf.go` of KAI-Scheduler 0.17.)
    """
    shards = dump.of_kind(KAI, "SchedulingShard")
    wanted = labels.get(NODE_POOL_LABEL, "")
    return next((item for item in shards if text(inside(item.body, "spec").get("partitionLabelValue")) == wanted), None)


def _placement(shard: Item) -> str:
    found = text(inside(shard.body, "spec", "placementStrategy").get("gpu"))
    return found if found in (item.value for item in Placement) else ""


# --- Topology ----------------------------------------------------------------------------------------------------


def _topology_of(dump: Dump, flavor: Item | None, shard: Item | None, labels: Mapping[str, str]) -> Item | None:
    """The Topology that a flavor names, that of a shard, or without either the only one whose labels the node has."""
    if flavor is not None:
        return dump.find(KUEUE, "Topology", text(inside(flavor.body, "spec").get("topologyName")))
    if shard is not None and labels.get(NODE_POOL_LABEL):
        return dump.find(KAI, "Topology", shard.name)
    found = [item for item in dump.of_kind(KAI, "Topology") if _levels(item) and {*_levels(item)} <= labels.keys()]
    return found[0] if len(found) == 1 else None


def _levels(topology: Item) -> tuple[str, ...]:
    levels = sequence(value_at(topology.body, ("spec", "levels")))
    return tuple(name for level in levels if (name := text(mapping(level).get("nodeLabel"))))
