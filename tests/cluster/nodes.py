"""Fake GPU nodes: what a cluster's hardware, Node Feature Discovery and the device plugin would make of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpuplan.catalog import load
from tests.cluster.api import Api
from tests.cluster.parsers import published, rule_labels

_ROOM = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "1Ti", "pods": "250"}
"""So much of all else that only GPUs are short."""


def make_nodes(api: Api, pools: list[Mapping[str, Any]]) -> None:
    """The nodes of all pools, as they join: with their hardware's labels, ready, and without GPUs yet."""
    for pool in pools:
        for name in names(pool):
            api.create(_node(name, pool))
            # Admission has marked it as not ready, which a controller that is not there takes back.
            api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            api.patch(f"/api/v1/nodes/{name}/status", {"status": _status(_ROOM)})


def publish(api: Api, pools: list[Mapping[str, Any]], out: Path) -> None:
    """Bring the nodes to what a cluster's folder of out/ makes of them: labels, taints and GPUs."""
    rules = [body for path in sorted(out.glob("partitions/*/nodefeaturerule-*.yaml")) for body in [_load(path)]]
    groups = _node_groups(out)
    for pool in pools:
        for name in names(pool):
            labels, taints = rule_labels(rules, name) if rules else groups.get(pool["name"], ({}, []))
            path = f"/api/v1/nodes/{name}"
            if labels or taints:
                api.patch(path, {"metadata": {"labels": labels}, "spec": {"taints": taints}})
            found = api.get(path)["metadata"]["labels"]
            gpus = published(out, found, pool["nodes"]["gpus_per_node"])
            quantities = {resource: str(count) for resource, count in gpus.items()}
            api.patch(f"{path}/status", {"status": _status(_ROOM | quantities)})


def names(pool: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a pool's nodes: those in its policy, or as many as it has made of its pattern."""
    nodes = pool["nodes"]
    return tuple(nodes["names"]) or tuple(_made(nodes["name_pattern"], nodes["count"]))


def _made(pattern: str, count: int) -> Iterator[str]:
    for number in range(1, count + 1):
        name = pattern.replace("[0-9]+", str(number))
        assert re.fullmatch(pattern, name), f"no name can be made of the pattern {pattern}"
        yield name


def _node(name: str, pool: Mapping[str, Any]) -> dict[str, Any]:
    """Labels: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery/README.md."""
    gpu = load().get(pool["gpu"])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "feature.node.kubernetes.io/pci-10de.present": "true",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": gpu.products[0].label,
                "nvidia.com/gpu.count": str(pool["nodes"]["gpus_per_node"]),
                "nvidia.com/gpu.memory": str(gpu.memory_mib),
                "nvidia.com/gpu.family": gpu.architecture.lower(),
                "nvidia.com/mig.capable": str(gpu.supports_mig).lower(),
            },
        },
    }


def _status(capacity: Mapping[str, str]) -> dict[str, Any]:
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is played by the tests"}
        ],
    }


def _node_groups(out: Path) -> dict[str, tuple[dict[str, str], list[dict[str, str]]]]:
    """What whoever makes the nodes is told to set, by pool, on clusters where gpuplan labels no nodes."""
    path = out / "partitions" / "node-groups.yaml"
    groups = _load(path)["nodeGroups"] if path.exists() else ()
    return {group["pool"]: (group["labels"], group["taints"]) for group in groups}


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
