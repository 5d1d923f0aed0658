"""The nodes of a dump that have NVIDIA GPUs, as far as one can see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.discovered import (
    COUNT_LABEL,
    GPU_PRESENT_LABEL,
    GPU_RESOURCE,
    MIG_RESOURCES,
    PASSING_TAINTS,
    PRODUCT_LABEL,
)
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, POOL_LABEL
from gpuplan.compiler.policy.models import Effect
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.pools.boards import devices_by_node, devices_of_labels

Taint = tuple[str, str, str]
"""Key, effect and value."""


class Machine(Value):
    """A node. ``published`` are NVIDIA's resources that it has for pods; nothing of an object without a status.

    ``is_partial`` says that the object is what somebody applies to the node, and not the node.
    """

    at: Origin
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    published: Mapping[str, int]
    devices: frozenset[str]
    source: str
    is_partial: bool = False

    @property
    def product(self) -> str:
        return self.labels.get(PRODUCT_LABEL, "")

    @property
    def pool(self) -> str:
        return self.labels.get(POOL_LABEL, "")

    @property
    def counted(self) -> int:
        """What the label counts: GPUs, or MIG devices that are published as GPUs."""
        count = self.labels.get(COUNT_LABEL, "")
        return int(count) if count.isdigit() and len(count) < _DIGITS else 0

    @property
    def has_mig_devices(self) -> bool:
        """Whether it publishes MIG devices under names of their own."""
        return any(name.startswith(MIG_RESOURCES) for name in self.published)

    @property
    def has_gpus(self) -> bool:
        marks = (PRODUCT_LABEL, POOL_LABEL, MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
        is_present = self.labels.get(GPU_PRESENT_LABEL) == "true"
        return is_present or bool(self.published or self.devices) or any(self.labels.get(mark) for mark in marks)


_DIGITS: Final = 5


class Machines(NamedTuple):
    """The nodes with GPUs by name, and what Git applies to some of them."""

    live: Mapping[str, Machine]
    applied: Mapping[str, Machine]


def read_machines(dump: Dump) -> Machines:
    """Of a node that is there twice the first one counts."""
    live: dict[str, Machine] = {}
    applied: dict[str, Machine] = {}
    devices = devices_by_node(dump)
    for item in dump.of_kind("", "Node"):
        machine = _machine(item, devices.get(item.name, frozenset()))
        if machine.has_gpus and machine.name:
            (applied if machine.is_partial else live).setdefault(machine.name, machine)
    return Machines(dict(sorted(live.items())), dict(sorted(applied.items())))


def _machine(item: Item, devices: frozenset[str]) -> Machine:
    status = inside(item.body, "status")
    resources = mapping(status.get("allocatable")) or mapping(status.get("capacity"))
    return Machine(
        at=item.at,
        name=item.name,
        labels=item.labels,
        taints=tuple(sorted(_taints(inside(item.body, "spec").get("taints")))),
        published={key: count for key, value in resources.items() if (count := _count(key, value))},
        devices=devices or devices_of_labels(item.labels),
        source=item.source,
        is_partial="status" not in item.body,
    )


def _count(resource: str, value: object) -> int:
    is_ours = resource == GPU_RESOURCE or resource.startswith((f"{GPU_RESOURCE}.", MIG_RESOURCES))
    written = str(value)
    return int(written) if is_ours and written.isdigit() and len(written) < _DIGITS else 0


def _taints(written: object) -> Iterator[Taint]:
    effects = {effect.value for effect in Effect}
    for part in map(mapping, sequence(written)):
        key, effect = text(part.get("key")), text(part.get("effect"))
        if key and effect in effects and not key.startswith(PASSING_TAINTS):
            yield key, effect, text(part.get("value"))


def read_taints(written: object) -> tuple[Taint, ...]:
    """The taints of an object that says which ones nodes are to have."""
    return tuple(_taints(written))
