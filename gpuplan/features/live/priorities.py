"""Read priority classes, and how queues of Kueue say which of them evict others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.plain import inside, mapping, parts_with, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.checks.priorities import SYSTEM_PREFIX
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.schedulers.kai import KAI, OWN_CLASSES, PREEMPTIBILITY_LABEL
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report

_GROUP: Final = "scheduling.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"


def read(dump: Dump) -> Found:
    """Return all but those that come with Kubernetes, OpenShift or KAI-Scheduler, whether anybody may use them or not.

    Kueue has classes of its own, which gpuplan writes beside each PriorityClass.
    """
    reader = _Reader(dump)
    drafts: dict[str, Draft] = {}
    unsaid: list[Diagnostic] = []
    for item in dump.of_kind(_GROUP, "PriorityClass"):
        value = _value(item)
        if value is None or reader.is_others(item):
            continue
        lost = [*reader.unsaid(item)]
        remarks = tuple(f"{item.finding.message}; {item.finding.help}" for item in lost)
        drafts[item.name] = Draft("PriorityClass", item.name, reader.spec(item, value), (item.source,), remarks)
        unsaid += lost
    for item in dump.of_kind(_KUEUE, "WorkloadPriorityClass"):
        value = _value(item)
        if value is None or item.name.startswith(SYSTEM_PREFIX):
            continue
        if item.name not in drafts:
            drafts[item.name] = Draft("PriorityClass", item.name, reader.spec(item, value), (item.source,))
        elif drafts[item.name].spec["value"] != value:
            known = drafts[item.name].spec["value"]
            unsaid.append(report("two-values-of-a-class", item.at / "value", item=item, value=known))
    values = {name: draft.spec["value"] for name, draft in drafts.items()}
    more = _preemption_of(dump, values) if reader.has_kueue else {}
    said = (replace(drafts[name], spec={**drafts[name].spec, **more.get(name, {})}) for name in sorted(drafts))
    return Found(tuple(said), tuple(unsaid))


class _Reader:
    """The meaning of priority classes for the cluster's scheduler."""

    def __init__(self, dump: Dump) -> None:
        self.has_kueue = bool(dump.of_kind(_KUEUE, "ClusterQueue", "WorkloadPriorityClass"))
        self._has_kai = bool(dump.of_kind("scheduling.run.ai", "Queue") or dump.of_kind("kai.scheduler", *_KAI_KINDS))
        self._bound = KAI.preemptible_below if self._has_kai else RUNAI.preemptible_below
        self._counts_values = self._has_kai or any("requestedNamespace" in item.data for item in dump.others)
        self._labelled = dict(_labelled(dump)) if self._has_kai else {}

    def is_others(self, priority_class: Item) -> bool:
        """Whether Kubernetes, OpenShift or KAI-Scheduler's chart brings it along."""
        is_of_chart = self._has_kai and OWN_CLASSES.get(priority_class.name) == priority_class.body.get("value")
        return is_of_chart or priority_class.name.startswith((SYSTEM_PREFIX, "openshift-"))

    def spec(self, priority_class: Item, value: int) -> dict[str, Any]:
        """With Kueue no class preempts by itself, whatever its policy says of its work."""
        never = priority_class.body.get("preemptionPolicy") == "Never" and not self.has_kueue
        description = text(priority_class.body.get("description"))
        # Work may be evicted by a label of that work, or else by the number of its class.
        by_number = not self._counts_values or value < (self._bound or 0)
        fields = {
            "value": value,
            "preemptible": None if self._labelled.get(priority_class.name, by_number) else False,
            "preempts": False if never else None,
            "default": True if priority_class.body.get("globalDefault") is True else None,
            "description": description or None,
        }
        return {field: found for field, found in fields.items() if found is not None}

    def unsaid(self, priority_class: Item) -> Iterator[Diagnostic]:
        if self.has_kueue and priority_class.body.get("preemptionPolicy") != "Never":
            field = "preemptionPolicy" if "preemptionPolicy" in priority_class.body else "value"
            yield report("preempting-class", priority_class.at / field, item=priority_class)


def _labelled(dump: Dump) -> Iterator[tuple[str, bool]]:
    """Classes of work that says by KAI-Scheduler's label whether it is preemptible."""
    for item in dump.objects:
        names = [text(part.get("priorityClassName")) for _, part in parts_with(item.body, "priorityClassName")]
        for _, labels in parts_with(item.body, PREEMPTIBILITY_LABEL):
            for name in names:
                yield name, text(labels.get(PREEMPTIBILITY_LABEL)) == _PREEMPTIBLE


_PREEMPTIBLE: Final = "preemptible"
_KAI_KINDS: Final = ("Config", "SchedulingShard")


def _value(priority_class: Item) -> int | None:
    """None of an object that is no class."""
    value = priority_class.body.get("value", 0)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and priority_class.name else None


_MOST_CLASSES: Final = 5
"""With four ways for each: more than a thousand ways at once are not tried."""


class _Queue(NamedTuple):
    """The values of the classes that work of a queue may name, and whether one evicts another there."""

    values: Mapping[str, int]
    evicts: bool


def _preemption_of(dump: Dump, values: Mapping[str, int]) -> Mapping[str, Mapping[str, Any]]:
    """Return fields by class with which each queue evicts as it does now; ``values`` are those of the classes.

    A ClusterQueue says only whether any work in it evicts other work (`withinClusterQueue`). As few fields as possible
    are returned, and none if no fields fit.
    """
    queues = [*_queues(dump, values)]
    names = sorted({name for queue in queues for name in queue.values})
    if len(names) > _MOST_CLASSES:
        return {name: {"preempts": False} for name in names} if not any(queue.evicts for queue in queues) else {}
    ways = sorted(product(_WAYS, repeat=len(names)), key=lambda way: sum(map(len, way)))
    fitting = (dict(zip(names, way, strict=True)) for way in ways)
    return next((way for way in fitting if all(_evicts(queue, way) == queue.evicts for queue in queues)), {})


_WAYS: Final[tuple[Mapping[str, bool], ...]] = (
    {},
    {"preempts": False},
    {"preemptible": False},
    {"preemptible": False, "preempts": False},
)


def _evicts(queue: _Queue, way: Mapping[str, Mapping[str, bool]]) -> bool:
    """As `gpuplan.compiler.planning.preemption.evicts_within` has it."""
    evicting = [value for name, value in queue.values.items() if way[name].get("preempts", True)]
    evictable = [value for name, value in queue.values.items() if way[name].get("preemptible", True)]
    return bool(evicting and evictable) and max(evicting) > min(evictable)


def _queues(dump: Dump, values: Mapping[str, int]) -> Iterator[_Queue]:
    """Where gpuplan's parameters do not say it, work may name any class."""
    namespaces: dict[str, list[str]] = {}
    for item in dump.of_kind(_KUEUE, "LocalQueue"):
        namespaces.setdefault(text(inside(item.body, "spec").get("clusterQueue")), []).append(item.namespace)
    for item in dump.of_kind(_KUEUE, "ClusterQueue"):
        named = [
            text(mapping(found.body.get("data")).get("priorityClasses")).split()
            for namespace in namespaces.get(item.name, ())
            if (found := dump.find("", "ConfigMap", f"grants-{namespace}", SYSTEM_NAMESPACE))
        ]
        names = named[0] if named else [*values]
        policy = text(inside(item.body, "spec", "preemption").get("withinClusterQueue"))
        yield _Queue({name: values[name] for name in names if name in values}, policy not in ("", "Never"))
