"""A cluster at one moment: as the dump shows it, or with folders of `out/` applied over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import helm_values
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.bodies import merged
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Plan, Stage
from gpuplan.features.live.drifting.model import Platform
from gpuplan.features.live.drifting.nodes import home_of
from gpuplan.features.live.dump import Dump, units_in
from gpuplan.features.live.places import Body, Node, node_of, taints_of


class Operand(NamedTuple):
    """A program on nodes that reads the part of a ConfigMap which a label of the node names, else its default."""

    section: str
    label: str


PLUGIN: Final = Operand("devicePlugin", DEVICE_PLUGIN_CONFIG_LABEL)
MIG: Final = Operand("migManager", MIG_CONFIG_LABEL)
OPERANDS: Final = (PLUGIN, MIG)


class World(Value, eq=False):
    """``settings`` are those of the operator, by the names of a ClusterPolicy's `spec`."""

    objects: Mapping[Identity, Body]
    nodes: tuple[Node, ...]
    settings: Body

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Identity, Body]]:
        return ((key, body) for key, body in self.objects.items() if (key.group, key.kind) == (group, kind))

    def config_map(self, operand: Operand) -> Mapping[str, object] | None:
        """Return the data of the ConfigMap that an operand reads, each file read; None if the dump lacks it."""
        return self._config_maps[operand]

    @cached_property
    def _config_maps(self) -> Mapping[Operand, Mapping[str, object] | None]:
        found: dict[Operand, Mapping[str, object] | None] = {}
        for operand in OPERANDS:
            name = text(inside(self.settings, operand.section, "config").get("name"))
            bodies = (body for key, body in self.of_kind("", "ConfigMap") if key.name == name)
            data = next((inside(body, "data") for body in bodies), None)
            found[operand] = data and {key: next(iter(read_text(text(file))), None) for key, file in data.items()}
        return found


class Worlds(NamedTuple):
    """A cluster before and after the first sync, and between, in each order of the operator's folder and labels."""

    before: World
    operator_first: World
    labels_first: World
    after: World


def worlds(plan: Plan, dump: Dump, platform: Platform) -> Worlds:
    """Apply what is written over what a dump shows: mappings are merged, and lists are replaced."""
    live = {item.identity: item.body for item in dump.objects}
    first, rest = {**live}, {**live}
    written = platform.shown_by(dump)
    for identity, body in written.items():
        over = merged(live.get(identity, {}), body)
        (first if platform.objects[identity].folder == Stage.GPU_OPERATOR.value else rest)[identity] = over
    before = _settings(plan, dump)
    values = helm_values(plan)
    after = merged(
        before, {section: values.get(section, {}) for section in ("mig", *(one.section for one in OPERANDS))}
    )
    old = tuple(node_of(item, home_of(plan, item)) for item in dump.of_kind("", "Node"))
    new = tuple(map(_synced, old))
    everything = {**rest, **{key: body for key, body in first.items() if body is not live.get(key)}}
    return Worlds(
        World(live, old, before), World(first, old, after), World(rest, new, before), World(everything, new, after)
    )


def _settings(plan: Plan, dump: Dump) -> Body:
    """Return the `spec` of the ClusterPolicy that the operator obeys; the name of MIG's own file is the usual one."""
    found = dump.of_kind("nvidia.com", "ClusterPolicy")
    named = plan.cluster.gpu_operator.cluster_policy
    policy = next((item for item in found if item.name == named), next(iter(found), None))
    return inside(policy.body, "spec") if policy else {}


def _synced(node: Node) -> Node:
    """Return a node as its pool has it: labelled, tainted, and with the pool's units."""
    pool = node.pool
    if pool is None:
        return node
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in pool.taints]
    more = [taint for taint in taints if not any(_is_same(taint, there) for there in taints_of(node.item))]
    named = {unit.resource: unit.per_node for unit in pool.units if unit.resource}
    # Parts of GPUs are no resource: the plugin goes on publishing the GPUs that the scheduler divides.
    units = named if len(named) == len(pool.units) else node.units
    return node._replace(labels={**node.labels, **pool.labels}, taints=(*node.taints, *more), units=units)


def _is_same(taint: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all((taint.get(field) or "") == (other.get(field) or "") for field in ("key", "value", "effect"))


# --- What a node reads -------------------------------------------------------------------------------------------

ABSENT_FILE: Final = "no such file"


def file_of(world: World, node: Node, operand: Operand) -> object:
    """Return what an operand reads for a node: a document, None without any, or `ABSENT_FILE`.

    The device plugin's config-manager takes the label's file, else the default one, else none
    (`cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin); a file that is not there ends it. The entries of
    mig-parted are in one file.
    """
    data = world.config_map(operand)
    name = node.labels.get(operand.label) or text(inside(world.settings, operand.section, "config").get("default"))
    if data is None or not name:
        return None
    if operand is MIG:
        return inside(mapping(data.get("config.yaml")), "mig-configs").get(name, ABSENT_FILE)
    if name not in data:
        return ABSENT_FILE
    return mapping(data[name])


def strategy_of(world: World, node: Node) -> str:
    """Return how MIG devices of a node are called: the operator says it for all nodes, else the plugin's file."""
    file = file_of(world, node, PLUGIN)
    stated = text(inside(world.settings, "mig").get("strategy"))
    return stated or text(inside(mapping(file), "flags").get("migStrategy"))


def shares(file: object) -> Mapping[str, tuple[int, bool]]:
    """Return how many shares a file of the device plugin makes of a resource, and whether it renames them."""
    sharing = inside(mapping(file), "sharing")
    method = mapping(sharing.get("mps") or sharing.get("timeSlicing"))
    return {
        text(resource.get("name")): (units_in(resource.get("replicas")), method.get("renameByDefault") is True)
        for resource in map(mapping, sequence(method.get("resources")))
        if units_in(resource.get("replicas")) > 1
    }
