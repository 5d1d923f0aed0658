"""Dumps of clusters as they are right after a sync, made of what gpuplan writes, to be changed by tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.compiler.base.diagnostics import Origin, SourceFile, WholeFile
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.loading import load
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.live.drifting import Comparison, compare_with
from gpuplan.features.live.dump import Dump, Item

REPOSITORY = Path(__file__).parents[3]

Body = dict[str, Any]


@cache
def example(cluster: str) -> Plan:
    """A cluster of the example platform."""
    [plan] = load(REPOSITORY, (cluster,)).plans
    return plan


def synced(plan: Plan) -> list[Body]:
    """What is applied for a cluster, as plain data that a test may change."""
    found = [item for _, item in artifacts(plan) if isinstance(item, Manifest) and item.hook is None]
    bodies: list[Body] = json.loads(json.dumps([item.body for item in found]))
    return bodies


def nodes(plan: Plan) -> list[Body]:
    """The nodes that the pools of a plan count, as what labels them and the device plugin have left them."""
    return [_node(part, name) for part in plan.parts for name in names_of(part)]


def names_of(part: Pool) -> tuple[str, ...]:
    pattern = part.nodes.name_pattern or f"gpu-{part.name}-[0-9]+"
    return part.nodes.names or tuple(pattern.replace("[0-9]+", str(n + 1)) for n in range(part.nodes.count))


def _node(part: Pool, name: str) -> Body:
    units = {unit.resource or "nvidia.com/gpu": str(unit.per_node) for unit in part.units if not unit.device_class}
    published = {"cpu": "64", "pods": "250", **units}
    product = {"nvidia.com/gpu.product": part.gpu.products[0].label}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**part.nodes.selector, **product, **part.labels}},
        "spec": {"taints": [{"key": t.key, "value": t.value, "effect": t.effect.value} for t in part.taints]},
        "status": {"capacity": published, "allocatable": dict(published)},
    }


def dump_of(bodies: Sequence[Mapping[str, Any]], *, alone: bool = False) -> Dump:
    """A list of objects as it is read, or each by itself."""
    at = Origin(WholeFile(SourceFile("live.json", "")))
    return Dump(tuple(Item(at if alone else at / "items" / index, body) for index, body in enumerate(bodies)))


def compared(bodies: Sequence[Body], cluster: str = "prod") -> Comparison:
    """What these objects, and no others, are beside what is written for a cluster of the example."""
    return compare_with(example(cluster), dump_of(bodies))


def listed(bodies: Sequence[Mapping[str, Any]], name: str = "live.json") -> dict[str, bytes]:
    """As `kubectl get -o json` prints them."""
    return {name: json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}).encode()}


def find(bodies: Sequence[Body], kind: str, name: str, namespace: str = "") -> Body:
    [found] = [
        body
        for body in bodies
        if (body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", "")) == (kind, name, namespace)
    ]
    return found
