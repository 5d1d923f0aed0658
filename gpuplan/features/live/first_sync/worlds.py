"""A cluster at one moment: as the dump shows it, or with folders of `out/` applied over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import helm_values
from gpuplan.compiler.backends.workloads.bodies import FRACTION as PART_OF_GPU, GPU_MEMORY
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.operators import is_tolerated
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.bodies import merged
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Plan, Pool, Stage
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, SCHEDULER_NAME
from gpuplan.features.live.drifting.model import Platform
from gpuplan.features.live.drifting.nodes import home_of
from gpuplan.features.live.dump import Dump, Item, texts_of, units_in

Body = Mapping[str, Any]
_RESOURCES: Final = "nvidia.com/"


class Node(NamedTuple):
    """A node: what it is labelled with, keeps pods off by, and hands out of extended resources."""

    item: Item
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    units: Mapping[str, int]
    pool: Pool | None

    @property
    def name(self) -> str:
        return self.item.name


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
    old = tuple(_node(plan, item) for item in dump.of_kind("", "Node"))
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


def _node(plan: Plan, item: Item) -> Node:
    allocatable = inside(item.body, "status", "allocatable")
    units = {key: units_in(value) for key, value in allocatable.items() if key.startswith(_RESOURCES)}
    taints = tuple(map(mapping, sequence(inside(item.body, "spec").get("taints"))))
    return Node(item, texts_of(item.labels), taints, units, home_of(plan, item))


def _synced(node: Node) -> Node:
    """Return a node as its pool has it: labelled, tainted, and with the pool's units."""
    pool = node.pool
    if pool is None:
        return node
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in pool.taints]
    more = [taint for taint in taints if not any(_is_same(taint, there) for there in node.taints)]
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


# --- Where a pod may run -----------------------------------------------------------------------------------------


class Obstacle(NamedTuple):
    """A reason why a node takes no pod: what is on the node and in the pod, and what helps."""

    reason: str
    help: str


def obstacles(node: Node, pod: Body, marks: Mapping[str, str]) -> Iterator[Obstacle]:
    """Yield why a node takes no pod of a `spec`: its shard, labels, taints and units; ``marks`` are labels and
    annotations of the pod.

    A shard of KAI-Scheduler has the nodes of its pods' node pool, and one without a name the nodes without
    (`addNodePoolLabel` in `pkg/podgrouper/pod_controller.go` of KAI-Scheduler).
    """
    shard, own = node.labels.get(NODE_POOL_LABEL, ""), marks.get(NODE_POOL_LABEL, "")
    if pod.get("schedulerName") == SCHEDULER_NAME and shard != own:
        has = f"`{node.name}` has the label `{NODE_POOL_LABEL}: {shard}`" if shard else f"`{node.name}` is in no shard"
        yield Obstacle(f"{has}, and its pods have {f'`{own}`' if own else 'none'}", _NAME_THE_SHARD)
    for key, value in mapping(pod.get("nodeSelector")).items():
        if node.labels.get(key) != value:
            yield Obstacle(f"its pods select `{key}: {value}`; {_label_of(node, key)}", _KEEP_THE_LABEL)
    required = inside(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = [mapping(term) for term in sequence(required.get("nodeSelectorTerms"))]
    if terms and not any(_meets(node, term) for term in terms):
        parts = (mapping(part) for term in terms for part in sequence(term.get("matchExpressions")))
        keys = dict.fromkeys(text(part.get("key")) for part in parts)
        has = "; ".join(_label_of(node, key) for key in keys) or f"`{node.name}` has another name"
        yield Obstacle(f"the affinity of its pods does not match: {has}", _KEEP_THE_LABEL)
    tolerations = sequence(pod.get("tolerations"))
    for taint in node.taints:
        key, value, effect = (text(taint.get(field)) for field in ("key", "value", "effect"))
        if not is_tolerated(tolerations, key, value, effect):
            reason = f"`{node.name}` has the taint `{key}={value}:{effect}`, which its pods do not tolerate"
            yield Obstacle(reason, _TOLERATE_IT)
    for resource, number in needed(pod, marks).items():
        if (there := node.units.get(resource, 0)) < number:
            reason = f"a pod asks for {number} `{resource}`, and `{node.name}` hands out {there or 'none'}"
            yield Obstacle(reason, _KEEP_THE_SHARING)


_NAME_THE_SHARD: Final = "write that label into its pods in one step with the first sync: before it, such pods wait"
_KEEP_THE_LABEL: Final = "keep the label that it selects, or change its pods first: select `gpuplan.dev/pool`"
_TOLERATE_IT: Final = "tolerate the taint in its pods before the first sync, or remove it from `taints` of the Pool"
_KEEP_THE_SHARING: Final = "write the sharing of these nodes into the Pool: `gpuplan explain Pool.spec.sharing`"


def _label_of(node: Node, key: str) -> str:
    return f"`{node.name}` has `{key}: {node.labels[key]}`" if key in node.labels else f"`{node.name}` has no `{key}`"


def _meets(node: Node, term: Mapping[str, Any]) -> bool:
    by_name = {"matchExpressions": term.get("matchFields") or ()}
    return (
        matches({"matchExpressions": term.get("matchExpressions") or ()}, node.labels) is not False
        and matches(by_name, {"metadata.name": node.name}) is not False
    )


def needed(pod: Body, marks: Mapping[str, str]) -> Mapping[str, int]:
    """Return the units that a node hands out which takes a pod: a part of a GPU needs a GPU."""
    is_part = not {PART_OF_GPU, GPU_MEMORY}.isdisjoint(marks)
    return {GPU_RESOURCE: 1, **asked(pod)} if is_part else asked(pod)


def asked(pod: Body) -> Mapping[str, int]:
    """Return the units of NVIDIA's resources that one pod asks for."""
    found: dict[str, int] = {}
    for container in map(mapping, sequence(pod.get("containers"))):
        for resource, amount in inside(container, "resources", "limits").items():
            if resource.startswith(_RESOURCES):
                found[resource] = found.get(resource, 0) + units_in(amount)
    return {resource: number for resource, number in found.items() if number}
