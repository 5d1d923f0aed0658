"""Fake GPU nodes: what a cluster's hardware, Node Feature Discovery and the device plugin would make of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.catalog import load
from tests.cluster.api import Api
from tests.cluster.parsers import published, rule_labels

POOL_LABEL = "gpuplan.dev/pool"

ROOM = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "1Ti", "pods": "250"}
"""So much of all else that only GPUs are short."""


def make_nodes(api: Api, pools: Sequence[Mapping[str, Any]]) -> None:
    """The nodes of all pools, as they join: with their hardware's labels, ready, and without GPUs yet."""
    for pool in pools:
        for name in names(pool):
            api.create(_node(name, pool))
            # Admission has marked it as not ready, which a controller that is not there takes back.
            api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            api.patch(f"/api/v1/nodes/{name}/status", {"status": status(ROOM)})


def publish(api: Api, plan: Mapping[str, Any], out: Path, rules: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Bring the nodes to what a cluster's folder of out/ makes of them: labels, taints and GPUs.

    Where Node Feature Discovery labels them it has ``rules``, or else those of the folder.
    """
    if rules is None:
        rules = [_load(path) for path in sorted(out.glob("partitions/*/nodefeaturerule-*.yaml"))]
    for pool in plan["pools"]:
        for name in names(pool):
            path = f"/api/v1/nodes/{name}"
            node = api.patch(path, labelling(plan["node_labels"], out, pool["name"], name, rules))
            gpus = published(out, node["metadata"]["labels"], pool["nodes"]["gpus_per_node"])
            ended = {
                resource: "0" for resource in node["status"]["capacity"] if is_of_gpus(resource)
            }  # as kubelets say
            quantities = ended | {resource: str(count) for resource, count in gpus.items()}
            kubelet = {"nodeInfo": {"kubeletVersion": f"v{plan['kubernetes']}.0"}}
            api.patch(f"{path}/status", {"status": status(ROOM | quantities) | kubelet})


def names(pool: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a pool's nodes: those in its policy, or as many as it has made of its pattern."""
    nodes = pool["nodes"]
    pattern = nodes["name_pattern"] or f"gpu-{pool['name']}-[0-9]+"
    return tuple(nodes["names"]) or tuple(_made(pattern, nodes["count"]))


def planned_units(plan: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """How many of each resource the plan says that a pool has, by the pool's name and the resource's."""
    found: Counter[tuple[str, str]] = Counter()
    for pool in plan["pools"]:
        for unit in pool["units"]:
            if unit["device_class"] is None:
                # Fractions have no resource of their own: the nodes publish the GPUs that are divided.
                found[pool["name"], unit["resource"] or "nvidia.com/gpu"] += unit["capacity"]
    return dict(found)


def published_units(api: Api) -> dict[tuple[str, str], int]:
    """How many of each resource of GPUs a pool's nodes publish, as the API server sees it."""
    found: Counter[tuple[str, str]] = Counter()
    for node in api.list("/api/v1/nodes"):
        pool = node["metadata"]["labels"].get(POOL_LABEL, "")
        for resource, count in node["status"]["allocatable"].items():
            if is_of_gpus(resource) and int(count):
                found[pool, resource] += int(count)
    return dict(found)


def granted_but_not_published(api: Api) -> set[str]:
    """Resources of GPUs that a quota grants or a workload asks for, more than none of them, and that no node has."""
    published = {resource for _, resource in published_units(api)}
    workloads = [*api.list("/apis/apps/v1/deployments"), *api.list("/apis/batch/v1/jobs")]
    containers = [container for body in workloads for container in body["spec"]["template"]["spec"]["containers"]]
    amounts = [quota["spec"]["hard"] for quota in api.list("/api/v1/resourcequotas")]
    amounts += [container.get("resources", {}).get("limits", {}) for container in containers]
    granted = {name.removeprefix("requests.") for amount in amounts for name, count in amount.items() if count != "0"}
    return {name for name in granted if is_of_gpus(name)} - published


def is_of_gpus(resource: str) -> bool:
    return resource.startswith("nvidia.com/")


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


def status(capacity: Mapping[str, str]) -> dict[str, Any]:
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is played by the tests"}
        ],
    }


def labelling(node_labels: str, out: Path, pool: str, name: str, rules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What Node Feature Discovery changes on a node, or whoever makes nodes as the table for them says."""
    match node_labels:
        case "nfd":
            labels, taints = rule_labels(rules, name)
            return {"metadata": {"labels": labels}, "spec": {"taints": taints}}
        case "external":
            group = _node_group(out, pool)
            return {"metadata": {"labels": group["labels"]}, "spec": {"taints": group["taints"]}}
        case "node":  # the labels are on the Node objects that are delivered
            return {"spec": {"taints": _node_group(out, pool)["taints"]}}
        case _:
            raise AssertionError(f"nothing is known of {node_labels}")


def _node_group(out: Path, pool: str) -> Mapping[str, Any]:
    groups = _load(out / "partitions" / "node-groups.yaml")["nodeGroups"]
    [found] = [group for group in groups if group["pool"] == pool]
    group: Mapping[str, Any] = found
    return group


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
