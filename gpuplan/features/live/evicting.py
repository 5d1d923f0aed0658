"""Find out which priority classes evict others, and which may be evicted, by what queues of Kueue do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from gpuplan.compiler.base.plain import inside, mapping, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.features.live.dump import Dump

_KUEUE: Final = "kueue.x-k8s.io"
_MOST_CLASSES: Final = 5
"""With four ways for each: more than a thousand ways at once are not tried."""


class _Queue(NamedTuple):
    """The values of the classes that work of a queue may name, and whether one evicts another there."""

    values: Mapping[str, int]
    evicts: bool


def differing(dump: Dump, values: Mapping[str, int]) -> Mapping[str, Mapping[str, Any]]:
    """What has to be said of which class, so that each queue does what it does; ``values`` are those of the classes.

    A ClusterQueue says only whether any work in it evicts other work (`withinClusterQueue`): as little as will do is
    said, and nothing where no classes would do.
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
