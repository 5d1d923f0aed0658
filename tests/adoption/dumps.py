"""Dumps of clusters as they are right after a sync, made of what gpuplan writes, to be changed by tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.manifests import Manifest
from gpuplan.pipeline.loading import load
from gpuplan.pipeline.rendering import artifacts
from gpuplan.planning.plan import Plan

REPOSITORY = Path(__file__).parents[2]

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
