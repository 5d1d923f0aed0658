"""What nodes are labelled with and publish: before the first sync, after it, and between.

The operator's folder and what labels nodes are synced in any order, and nobody may ever set the labels of a managed
node pool. So a node is in one of four states: the operator's files are old or new, and so are the node's labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import yaml

from tests.laws.adoption.state import Body, State, inside, labels
from tests.laws.orders.publishing import GPU, Geometry, counts, divided, publish
from tests.laws.orders.rules import labels_of, matches

MIG: Final = "nvidia.com/mig.config"
PLUGIN: Final = "nvidia.com/device-plugin.config"
POOL: Final = "gpuplan.dev/pool"
NODE_POOL: Final = "kai.scheduler/node-pool"
PREFIX: Final = "nvidia.com/"

_DEVICES: Final = {
    "NVIDIA-A100-SXM4-40GB": "0x20B010DE",
    "NVIDIA-A100-SXM4-80GB": "0x20B210DE",
    "NVIDIA-H100-80GB-HBM3": "0x233010DE",
    "NVIDIA-L4": "0x27B810DE",
    "NVIDIA-L40S": "0x26B910DE",
    "Tesla-T4": "0x1EB810DE",
    "NVIDIA-A10G": "0x223710DE",
    "NVIDIA-RTX-A6000": "0x223010DE",
}
"""Device and vendor as mig-parted writes them, by the product in the label of GPU Feature Discovery (pci.ids)."""


class BrokenError(Exception):
    """The device plugin of a node does not start."""


@dataclass(frozen=True)
class Operator:
    """What shares and divides GPUs: the GPU Operator, or the device plugin by its own chart."""

    is_there: bool
    entries: Mapping[str, Sequence[Body]]
    default_entry: str
    file: str
    """The name of the device plugin's ConfigMap; empty where it has none."""
    configs: Mapping[str, Body] | None
    """None where the ConfigMap is not in the dump."""
    default_key: str
    strategy: str
    fallbacks: Sequence[str] = ("empty",)

    def config(self, found: Mapping[str, str]) -> Body | None:
        """The file of a node with these labels; None where it cannot be known.

        (`updateConfigName` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin v0.17.1.)
        """
        if not self.file:
            return {}
        if self.configs is None:
            return None
        key = found.get(PLUGIN) or self.default_key
        if key:
            if key not in self.configs:
                raise BrokenError(f"the ConfigMap {self.file} has no key {key}")
            return self.configs[key]
        for way in self.fallbacks:
            if way == "empty":
                return {}
            if way == "named" and "default" in self.configs:
                return self.configs["default"]
            if way == "single" and len(self.configs) == 1:
                return next(iter(self.configs.values()))
        raise BrokenError(f"the ConfigMap {self.file} has no default")


def operator_of(state: State) -> Operator:
    """Read it from the ClusterPolicy, or from the DaemonSet of the device plugin's chart."""
    policy = min((body for _, _, body in state.of("ClusterPolicy")), key=_age, default=None)
    if policy is None:
        return _chart(state)
    namespace = inside(policy, "status", "namespace") or None
    manager, plugin = inside(policy, "spec", "migManager", "config"), inside(policy, "spec", "devicePlugin", "config")
    file = manager.get("name") or "default-mig-parted-config"
    text = next((data["config.yaml"] for data in _data(state, file, namespace) if "config.yaml" in data), None)
    return Operator(
        is_there=True,
        entries=yaml.safe_load(text)["mig-configs"] if text else {},
        default_entry=manager.get("default") or "",
        file=plugin.get("name") or "",
        configs=_configs(state, plugin.get("name") or "", namespace),
        default_key=plugin.get("default") or "",
        strategy=inside(policy, "spec", "mig", "strategy") or "single",
    )


def _age(policy: Body) -> str:
    return str(inside(policy, "metadata", "creationTimestamp") or "")


def _data(state: State, name: str, namespace: str | None) -> Iterator[Mapping[str, str]]:
    for found, title, body in state.of("ConfigMap"):
        if title == name and namespace in (None, found):
            yield body.get("data") or {}


def _configs(state: State, name: str, namespace: str | None) -> Mapping[str, Body] | None:
    for data in _data(state, name, namespace):
        return {key: yaml.safe_load(text) or {} for key, text in data.items()}
    return None


def _chart(state: State) -> Operator:
    for namespace, _, body in state.of("DaemonSet"):
        pod = inside(body, "spec", "template", "spec")
        containers = [*pod.get("containers", ()), *pod.get("initContainers", ())]
        if any("k8s-device-plugin" in container.get("image", "") for container in containers):
            variables = {
                entry["name"]: entry.get("value", "") for container in containers for entry in container.get("env", ())
            }
            volumes = [volume["configMap"]["name"] for volume in pod.get("volumes", ()) if "configMap" in volume]
            file = volumes[0] if volumes else ""
            ways = [way for way in variables.get("FALLBACK_STRATEGIES", "").split(",") if way]
            default, strategy = variables.get("DEFAULT_CONFIG", ""), variables.get("MIG_STRATEGY", "none")
            return Operator(False, {}, "", file, _configs(state, file, namespace), default, strategy, ways)
    return Operator(False, {}, "", "", {}, "", "none")


@dataclass(frozen=True)
class Node:
    """A node at one time."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Body, ...]
    published: Mapping[str, int]


@dataclass(frozen=True)
class Way:
    """A node on its way through the first sync."""

    before: Node
    after: Node
    """When all is synced, and whoever labels nodes has done so."""
    states: Mapping[tuple[bool, bool], Mapping[str, int] | str]
    """What it publishes where the operator's files are new, and its labels; a text says why it publishes nothing."""
    is_repartitioned: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The node, its pool and its group: a report may speak of any."""
        found = [self.before.name, self.after.labels.get(POOL, "")]
        found += [value for key, value in self.before.labels.items() if key.endswith(_GROUPS)]
        return tuple(dict.fromkeys(filter(None, found)))


_GROUPS: Final = ("nodegroup", "nodepool", "agentpool")


def nodes_before(state: State) -> dict[str, Node]:
    return {
        name: Node(
            name,
            labels(body),
            tuple(inside(body, "spec").get("taints") or ()),
            {
                key: int(value)
                for key, value in inside(body, "status", "allocatable").items()
                if key.startswith(PREFIX) and int(value)
            },
        )
        for _, name, body in state.of("Node")
    }


def ways(before: State, after: State, table: Sequence[Body]) -> dict[str, Way]:
    """``table`` are the groups of nodes that somebody else labels, as `node-groups.yaml` lists them."""
    old, new = operator_of(before), operator_of(after)
    if not old.is_there:
        # Nothing installs the operator: a ClusterPolicy is then of a kind that the cluster does not know.
        new = _chart(after)
    return {name: _way(node, old, new, after, table) for name, node in nodes_before(before).items()}


def _way(node: Node, old: Operator, new: Operator, after: State, table: Sequence[Body]) -> Way:
    found, taints = _labelled(node, after, table)
    start = _geometry_before(node, old)
    states: dict[tuple[bool, bool], Mapping[str, int] | str] = {}
    geometries = set()
    for is_new, is_labelled in product((False, True), repeat=2):
        operator, marks = (new if is_new else old), (found if is_labelled else node.labels)
        geometry = _geometry(operator, marks, start, node)
        geometries.add(tuple(sorted(geometry, key=repr)))
        states[is_new, is_labelled] = _published(operator, marks, geometry, node)
    states[False, False] = node.published
    last = states[True, True]
    done = Node(node.name, found, tuple(taints), last if isinstance(last, Mapping) else {})
    return Way(node, done, states, len(geometries) > 1)


def modelled(state: State) -> dict[str, tuple[Mapping[str, int], Mapping[str, int] | str]]:
    """What each node publishes, and what it would by the files of the operator alone."""
    operator = operator_of(state)
    return {
        name: (node.published, _published(operator, node.labels, _geometry_before(node, operator), node))
        for name, node in nodes_before(state).items()
    }


def _labelled(node: Node, after: State, table: Sequence[Body]) -> tuple[dict[str, str], list[Body]]:
    """Labels and taints of a node when rules, objects and whoever follows the table have done their work."""
    rules = {name: body for _, name, body in after.of("NodeFeatureRule")}
    found, taints, device = dict(node.labels), [*node.taints], device_of(node)[2:6].lower()
    if _gpus(node):
        found |= labels_of(rules, node.name, device)
        matching = [rule for body in rules.values() for rule in body["spec"]["rules"]]
        taints += [taint for rule in matching if matches(rule, node.name, device) for taint in rule.get("taints", ())]
    for row in table:
        if _is_in(row, node):
            found |= row["labels"]
            taints += row.get("taints") or ()
    written = labels(after.find("Node", node.name))
    found |= {key: value for key, value in written.items() if node.labels.get(key) != value}
    kept = [taint for index, taint in enumerate(taints) if taint not in taints[:index]]
    return found, kept


def _is_in(row: Body, node: Node) -> bool:
    if selector := row.get("selector"):
        return all(node.labels.get(key) == value for key, value in selector.items()) and bool(_gpus(node))
    pattern = row.get("namePattern")
    return node.name in row.get("names", ()) or (pattern is not None and bool(re.fullmatch(pattern, node.name)))


def device_of(node: Node) -> str:
    """The id of its GPUs as mig-parted writes it, or nothing."""
    product = node.labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    return _DEVICES.get(re.sub(r"-MIG-.*$", "", product), "")


def _gpus(node: Node, operator: Operator | None = None) -> int:
    """Where all GPUs are divided alike under `single`, the count in the label is of instances.

    (`internal/lm/resource.go` of NVIDIA/k8s-device-plugin v0.17.1.)
    """
    count = int(node.labels.get("nvidia.com/gpu.count") or 0)
    profile = node.labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED").rpartition("-MIG-")
    if count and profile[1]:
        entry = operator.entries.get(node.labels.get(MIG, ""), ()) if operator else ()
        made = [int((item.get("mig-devices") or {}).get(profile[2], 0)) for item in entry]
        return count // max([1, *made])
    return count or int(any(key.startswith(PREFIX) for key in node.published))


def _geometry_before(node: Node, operator: Operator) -> Geometry:
    """By the entry of its label, or by what the node publishes where that cannot be."""
    entry, gpus = node.labels.get(MIG, ""), _gpus(node, operator)
    is_done = node.labels.get(f"{MIG}.state", "success") == "success"
    if entry in operator.entries and is_done:
        return divided(operator.entries[entry], gpus, device_of(node) or "unknown")
    profiles = {
        key.removeprefix(f"{PREFIX}mig-"): count
        for key, count in node.published.items()
        if key.startswith(f"{PREFIX}mig-")
    }
    if not profiles or not gpus:
        return (None,) * gpus
    wholes = node.published.get(GPU, 0) // int(node.labels.get("nvidia.com/gpu.replicas") or 1)
    parted = max(gpus - wholes, 1)
    each = [tuple((name, count // parted) for name, count in sorted(profiles.items()))] * parted
    each[0] = tuple((name, count // parted + count % parted) for name, count in sorted(profiles.items()))
    return (*each, *(None,) * wholes)


def _geometry(operator: Operator, marks: Mapping[str, str], start: Geometry, node: Node) -> Geometry:
    """The MIG manager does what its file has for the label, and leaves GPUs alone where it has no such entry.

    (`deployments/container/reconfigure-mig.sh` of NVIDIA/mig-parted v0.12.1 asserts first that the entry is there.)
    Instances that a board does not know are not made, and those from before are gone (`pkg/mig/config/config.go`).
    """
    is_capable = node.labels.get("nvidia.com/mig.capable") == "true"
    if not operator.is_there or not is_capable:
        return start
    entry = marks.get(MIG) or operator.default_entry
    if entry not in operator.entries:
        return start
    found = divided(operator.entries[entry], len(start), device_of(node) or "unknown")
    return tuple(gpu and tuple(part for part in gpu if _is_of_board(part[0], node)) for gpu in found)


def _is_of_board(profile: str, node: Node) -> bool:
    """The memory of an instance is a share of its board's; boards that are not in the table know all."""
    size = _GIB.get(device_of(node))
    slices, _, memory = profile.partition("+")[0].partition("g.")
    return size is None or (memory in {f"{size * part // 8}gb" for part in (1, 2, 4, 8)} and slices.isdecimal())


_GIB: Final = {"0x20B010DE": 40, "0x20B210DE": 80, "0x233010DE": 80}


def _published(operator: Operator, marks: Mapping[str, str], geometry: Geometry, node: Node) -> Mapping[str, int] | str:
    if not _gpus(node):
        return node.published
    try:
        config = operator.config(marks)
    except BrokenError as error:
        return str(error)
    if config is None or (not operator.is_there and not operator.file):
        return node.published
    found: Mapping[str, Any] = counts(publish(geometry, config, operator.strategy))
    return {key: count for key, count in found.items() if count}
