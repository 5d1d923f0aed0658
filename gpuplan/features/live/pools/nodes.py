"""The nodes of a dump that have NVIDIA GPUs, their models, and what says which pool they are in and what they get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

from gpuplan.compiler.backends.partitions import is_kept
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu, Profile, find_board, load
from gpuplan.compiler.planning.discovered import (
    COMPUTE_MAJOR_LABEL,
    COMPUTE_MINOR_LABEL,
    COUNT_LABEL,
    GPU_PRESENT_LABEL,
    GPU_RESOURCE,
    MEMORY_LABEL,
    MIG_RESOURCES,
    PASSING_TAINTS,
    PRODUCT_LABEL,
    REPLICAS_LABEL,
    SHARING_LABEL,
    bare_product,
    is_of_mig_devices,
    shown_product,
    unshared_product,
)
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, POOL_LABEL
from gpuplan.compiler.planning.pools import ROLLOUT_SUFFIX
from gpuplan.compiler.policy.models import Effect
from gpuplan.features.live.dump import Dump, Item, texts_of


@cache
def _products() -> Mapping[str, str]:
    return {product.label: gpu.id for gpu in load().all() for product in gpu.products}


def find_by_product(label: str, described: Iterable[Gpu] = ()) -> Gpu | None:
    """Return the model of a product label; ``described`` are those of the platform's documents."""
    product = bare_product(label)
    found = (gpu for gpu in described if any(known.label == product for known in gpu.products))
    return next(found, None) or load().find(_products().get(product, ""))


def find_by_pci(devices: Iterable[str]) -> Gpu | None:
    """Return the one model of the catalog that has all these ids, as `lspci -nn` prints them."""
    wanted = set(devices)
    found = [gpu for gpu in load().all() if wanted and wanted <= {device.spelt for device in gpu.pci}]
    return found[0] if len(found) == 1 else None


def profile_of_product(label: str, gpu: Gpu) -> Profile | None:
    """Return the profile of the MIG devices that the label counts; None where it counts whole GPUs."""
    product, shown = bare_product(label), unshared_product(label)
    return next((profile for profile in gpu.profiles if shown_product(product, profile=profile.name) == shown), None)


# --- What NFD found ----------------------------------------------------------------------------------------------

_NFD: Final = "nfd.k8s-sigs.io"
_NODE_OF_FEATURE: Final = "nfd.node.kubernetes.io/node-name"
_LABEL: Final = regex(r"feature\.node\.kubernetes\.io/pci-(?:[0-9a-f]{4}_)?10de_([0-9a-f]{4})(?:_[0-9a-f_]*)?\.present")
"""Where NFD was told to name devices by more than class and vendor (`deviceLabelFields` of its source `pci`)."""
_ID: Final = regex(r"[0-9a-f]{4}")


def devices_by_node(dump: Dump) -> Mapping[str, frozenset[str]]:
    """Return the PCI ids of NVIDIA's graphics boards by node, of NFD's own objects."""
    by_node: dict[str, frozenset[str]] = {}
    for item in dump.of_kind(_NFD, "NodeFeature"):
        node = item.labels.get(_NODE_OF_FEATURE, item.name)
        parts = inside(item.body, "spec", "features", "instances", "pci.device")
        elements = [inside(mapping(element), "attributes") for element in sequence(parts.get("elements"))]
        boards = [found for found in elements if text(found.get("class")).startswith("03")]
        ids = [text(board.get("device")) for board in boards if board.get("vendor") == "10de"]
        by_node[node] = frozenset(f"10de:{device}" for device in ids if _ID.fullmatch(device))
    return by_node


def devices_of_labels(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(f"10de:{match[1]}" for label in labels if (match := _LABEL.fullmatch(label)))


# --- Models that the catalog lacks -------------------------------------------------------------------------------


def gpu_name(product: str) -> str:
    """Return a name for a model that a platform describes itself."""
    short = re.sub(r"^nvidia-", "", product.lower())
    return re.sub(r"[^a-z0-9]+", "-", short).strip("-")[:40].strip("-") or "gpu"


def described(
    labels: Mapping[str, str], products: Iterable[str], devices: Iterable[str]
) -> Iterator[tuple[str, object]]:
    """Yield the fields of a `Gpu`, as far as a node with whole GPUs says them, or else a table of boards."""
    known = next(filter(None, map(find_board, sorted(set(products)))), {})
    memory = labels.get(MEMORY_LABEL, "")
    if memory.isdigit() or "memory" in known:
        yield "memoryMiB", int(memory) if memory.isdigit() else known["memory"]
    major, minor = (labels.get(label, "") for label in (COMPUTE_MAJOR_LABEL, COMPUTE_MINOR_LABEL))
    if compute := f"{major}.{minor}" if major.isdigit() and minor.isdigit() else known.get("compute", ""):
        yield "computeCapability", compute
    yield "products", sorted(set(products))
    if found := sorted(set(devices)) or known.get("pci"):
        yield "pci", found


Taint = tuple[str, str, str]
"""Key, effect and value."""


class Machine(Value):
    """A node. ``published`` are NVIDIA's resources that it has for pods; nothing of an object without a status.

    ``is_partial`` says that the object is what somebody applies to the node, and not the node. ``room`` is the CPU and
    the memory that it has for pods.
    """

    at: Origin
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    published: Mapping[str, int]
    devices: frozenset[str]
    source: str
    is_partial: bool = False
    is_ready: bool = True
    room: Mapping[str, str] = {}

    @property
    def is_spot(self) -> bool:
        """Whether whoever makes it may take it away, as its labels say."""
        return any(self.labels.get(key, "").lower() == value for key, value in _SPOT.items())

    @property
    def product(self) -> str:
        return self.labels.get(PRODUCT_LABEL, "")

    @property
    def pool(self) -> str:
        return self.labels.get(POOL_LABEL, "")

    @property
    def counted(self) -> int:
        """The number in the label: of GPUs, or of MIG devices that are published as GPUs."""
        count = self.labels.get(COUNT_LABEL, "")
        return int(count) if count.isdigit() and len(count) < _DIGITS else 0

    @property
    def shared(self) -> dict[str, Any]:
        """The sharing of its GPUs as a policy has it, by the labels of GPU Feature Discovery; empty without sharing."""
        replicas = self.labels.get(REPLICAS_LABEL, "")
        # Releases of GPU Feature Discovery without a label of the way know no MPS.
        kind = {"time-slicing": "timeSlicing", "mps": "mps"}.get(self.labels.get(SHARING_LABEL, "time-slicing"))
        is_number = replicas.isdigit() and len(replicas) < _DIGITS and int(replicas) > 1
        if kind is None or not is_number or is_of_mig_devices(self.product):
            return {}
        rename = {} if unshared_product(self.product) == self.product else {"rename": False}
        return {kind: {"replicas": int(replicas), **rename}}

    @property
    def has_mig_devices(self) -> bool:
        """Whether it publishes MIG devices under names of their own."""
        return any(name.startswith(MIG_RESOURCES) for name in self.published)

    @property
    def has_gpus(self) -> bool:
        marks = (PRODUCT_LABEL, POOL_LABEL, MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
        is_present = self.labels.get(GPU_PRESENT_LABEL) == "true"
        return is_present or bool(self.published or self.devices) or any(self.labels.get(mark) for mark in marks)


_SPOT: Final = {
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "spot",
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""The labels of spot nodes, with small letters in their values."""
_DIGITS: Final = 5
_GPUS: Final = f"{GPU_RESOURCE}."


class Machines(NamedTuple):
    """The nodes with GPUs by name, and what Git applies to some of them."""

    live: Mapping[str, Machine]
    applied: Mapping[str, Machine]


def read_machines(dump: Dump) -> Machines:
    """Return the nodes with GPUs; of a node that is there twice the first."""
    live: dict[str, Machine] = {}
    applied: dict[str, Machine] = {}
    devices = devices_by_node(dump)
    for item in dump.of_kind("", "Node"):
        status = inside(item.body, "status")
        resources = mapping(status.get("allocatable")) or mapping(status.get("capacity"))
        ours = [key for key in resources if key == GPU_RESOURCE or key.startswith((_GPUS, MIG_RESOURCES))]
        counts = {key: str(resources[key]) for key in ours}
        machine = Machine(
            at=item.at,
            name=item.name,
            labels=item.labels,
            taints=tuple(sorted(read_taints(inside(item.body, "spec").get("taints")))),
            published={key: int(n) for key, n in counts.items() if n.isdigit() and len(n) < _DIGITS and int(n)},
            devices=devices.get(item.name) or devices_of_labels(item.labels),
            source=item.source,
            is_partial="status" not in item.body,
            is_ready=not any(_is_down(condition) for condition in map(mapping, sequence(status.get("conditions")))),
            room={key: str(resources[key]) for key in ("cpu", "memory") if key in resources},
        )
        if machine.has_gpus and machine.name:
            (applied if machine.is_partial else live).setdefault(machine.name, machine)
    return Machines(dict(sorted(live.items())), dict(sorted(applied.items())))


def _is_down(condition: Mapping[str, object]) -> bool:
    return condition.get("type") == "Ready" and condition.get("status") != "True"


def read_taints(written: object) -> tuple[Taint, ...]:
    """Return the taints of a node, or of an object that says which ones nodes are to have."""
    effects, parts = {effect.value for effect in Effect}, map(mapping, sequence(written))
    taints = [(text(part.get("key")), text(part.get("effect")), text(part.get("value"))) for part in parts]
    return tuple(
        (key, effect, value)
        for key, effect, value in taints
        if key and effect in effects and not key.startswith(PASSING_TAINTS)
    )


Labels = Mapping[str, str]


class Part(Value):
    """Nodes that get the same: all of a pool, or those that a rollout has moved or left.

    ``names`` are those that it lists; ``except_names`` those that the pattern matches and that are not meant. ``count``
    is 0 where it does not say how many there are. ``devices`` are PCI ids that it asks for.
    """

    at: Origin
    source: str
    labels: Labels
    taints: tuple[Taint, ...] = ()
    names: tuple[str, ...] = ()
    pattern: str = ""
    except_names: tuple[str, ...] = ()
    selector: Labels = {}  # noqa: RUF012 - never changed
    count: int = 0
    gpus_per_node: int = 0
    gpu: str = ""
    devices: frozenset[str] = frozenset()

    @property
    def asks_for_boards(self) -> bool:
        return bool(self.devices)

    def has(self, machine: Machine) -> bool:
        """Whether a node is one of them."""
        if self.names:
            return machine.name in self.names
        if machine.name in self.except_names:
            return False
        compiled = _compiled(self.pattern) if self.pattern else None
        is_selected = bool(self.selector) and self.selector.items() <= machine.labels.items()
        return is_selected or (compiled is not None and compiled.fullmatch(machine.name) is not None)


class Claim(Value):
    """A pool that something writes for: its ``parts``, of which a rollout has two, the nodes that are moved last."""

    pool: str
    parts: tuple[Part, ...]

    @property
    def first(self) -> Part:
        return self.parts[0]


class Kept(NamedTuple):
    """Labels that nodes keep which a pool has let go."""

    name: str
    part: Part


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of RE2, where Python can read it, too."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def read_claims(dump: Dump, machines: Machines) -> tuple[tuple[Claim, ...], tuple[Kept, ...]]:
    """One claim for each pool; a table says most, then come rules, then what Git applies to nodes."""
    claims: list[Claim] = []
    kept: list[Kept] = []
    for item in (found for group in _RULE_GROUPS for found in dump.of_kind(group, "NodeFeatureRule")):
        rules = [*_rules(item)]
        if is_kept(item.name):
            kept += [Kept(name, part) for name, part in rules]
            continue
        parts = sorted(rules, key=lambda rule: rule[0].endswith(ROLLOUT_SUFFIX))
        for pool in dict.fromkeys(part.labels[POOL_LABEL] for _, part in parts if POOL_LABEL in part.labels):
            own = [(name, part) for name, part in parts if part.labels.get(POOL_LABEL) == pool]
            left = [] if not own[0][0].endswith(ROLLOUT_SUFFIX) else [Part(own[0][1].at, own[0][1].source, {})]
            claims.append(Claim(pool, (*left, *(part for _, part in own[:2]))))

    found: dict[str, Claim] = {}
    for claim in (*_of_tables(dump), *claims, *_of_nodes(machines.applied.values())):
        found.setdefault(claim.pool, claim)
    return tuple(found[name] for name in sorted(found)), tuple(kept)


# --- Rules -------------------------------------------------------------------------------------------------------

_RULE_GROUPS: Final = ("nfd.k8s-sigs.io", "nfd.openshift.io")
_ANCHORS: Final = ("^(?:", ")$")


def _rules(obj: Item) -> Iterator[tuple[str, Part]]:
    for index, written in enumerate(sequence(inside(obj.body, "spec").get("rules"))):
        rule = mapping(written)
        part = Part(
            at=obj.at / "spec" / "rules" / index,
            source=obj.source,
            labels=texts_of(rule.get("labels")),
            taints=read_taints(rule.get("taints")),
        )
        features = [mapping(feature) for feature in sequence(rule.get("matchFeatures"))]
        choices = [mapping(choice) for choice in sequence(rule.get("matchAny"))]
        features += [mapping(part) for choice in choices for part in sequence(choice.get("matchFeatures"))]
        for feature in features:
            part = _narrowed(part, feature)
        yield text(rule.get("name")), part


def _narrowed(part: Part, feature: Mapping[str, object]) -> Part:
    """Return the part with what one term says of its nodes."""
    expressions = inside(feature, "matchExpressions")
    if feature.get("feature") == "pci.device":
        vendor, model = (
            next(iter(_names(inside(expressions, f"subsystem_{field}").get("value"))), "")
            for field in ("vendor", "device")
        )
        behind = f"/{vendor}:{model}" if vendor and model else ""  # as `lspci -nn` prints ids
        ids = _names(inside(expressions, "device").get("value"))
        return replace(part, devices=part.devices | {f"10de:{device}{behind}" for device in ids})
    name = inside(expressions, "nodename")
    values = _names(name.get("value"))
    match name.get("op"):
        case "In":
            return replace(part, names=values)
        case "NotIn":
            return replace(part, except_names=values)
        case "InRegexp" if values:
            return replace(part, pattern=values[0].removeprefix(_ANCHORS[0]).removesuffix(_ANCHORS[1]))
        case _:
            return part


# --- Tables ------------------------------------------------------------------------------------------------------


def _of_tables(dump: Dump) -> Iterator[Claim]:
    rows: dict[str, list[Part]] = {}
    for document in dump.others:
        for index, written in enumerate(sequence(mapping(document.data).get("nodeGroups"))):
            row = mapping(written)
            if pool := text(row.get("pool")):
                part = Part(
                    at=document.origin / "nodeGroups" / index,
                    source=f"table of node groups ({document.file.path})",
                    labels=texts_of(row.get("labels")),
                    taints=read_taints(row.get("taints")),
                    names=_names(row.get("names")),
                    pattern=text(row.get("namePattern")),
                    except_names=_names(row.get("exceptNames")),
                    selector=texts_of(row.get("selector")),
                    count=_number(row.get("nodes")),
                    gpus_per_node=_number(row.get("gpusPerNode")),
                    gpu=text(row.get("gpu")),
                )
                rows.setdefault(pool, []).append(part)
    for pool, parts in rows.items():
        yield Claim(pool, tuple(parts[:2]))


# --- Nodes -------------------------------------------------------------------------------------------------------


def _of_nodes(machines: Iterable[Machine]) -> Iterator[Claim]:
    """Yield the claims of nodes that Git applies, by the pool in their label."""
    pools: dict[str, dict[tuple[tuple[str, str], ...], list[Machine]]] = {}
    for machine in machines:
        if machine.pool:
            marks = tuple(sorted(machine.labels.items()))
            pools.setdefault(machine.pool, {}).setdefault(marks, []).append(machine)
    for pool, groups in pools.items():
        firsts = [(found[0], tuple(machine.name for machine in found)) for found in groups.values()]
        parts = [Part(first.at, first.source, first.labels, first.taints, names) for first, names in firsts]
        yield Claim(pool, tuple(sorted(parts, key=lambda part: _is_moved(pool, part)))[:2])


def _is_moved(pool: str, part: Part) -> bool:
    key = part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
    return key.endswith(ROLLOUT_SUFFIX) or (key != pool and not part.labels.get(MIG_CONFIG_LABEL))


# --- Any shape ---------------------------------------------------------------------------------------------------


def _names(value: object) -> tuple[str, ...]:
    return tuple(part for part in sequence(value) if isinstance(part, str))


def _number(value: Any) -> int:  # noqa: ANN401 - plain data
    return value if isinstance(value, int) and value > 0 else 0
