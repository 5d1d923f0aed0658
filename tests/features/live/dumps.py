"""Dumps of clusters as they are right after a sync, made of what gpuplan writes, to be changed by tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.base.diagnostics import Origin, SourceFile, WholeFile
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.loading import load
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Mig, Plan, Pool
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
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**part.nodes.selector, **discovered(part), **part.labels}},
        "spec": {"taints": [{"key": t.key, "value": t.value, "effect": t.effect.value} for t in part.taints]},
        "status": {"capacity": published, "allocatable": dict(published)},
    }


def discovered(part: Pool) -> dict[str, str]:
    """The labels of GPU Feature Discovery and of the operator, by what the pool's document says of sharing.

    (`baseLabeler` in `internal/lm/resource.go` of NVIDIA/k8s-device-plugin v0.20.0, `gpuStateLabels` in
    `controllers/state_manager.go` of NVIDIA/gpu-operator v26.7.0.)
    """
    product, sharing = part.gpu.products[0].label, part.spec.sharing
    if sharing.dynamic_mig:
        return {"nvidia.com/gpu.product": product}
    found = _shared_as("nvidia.com/gpu", product, sharing.time_slicing or sharing.mps, is_mps=bool(sharing.mps))
    if isinstance(part.sharing, Mig):
        found = {**_shared_as("nvidia.com/gpu", product, None), "nvidia.com/gpu.replicas": "0"}
        sliced = part.sharing.spec.time_slicing
        for profile in {name for entry in part.sharing.layout.entries for name in entry.instances}:
            is_single = part.sharing.spec.strategy == "single"
            resource = "nvidia.com/gpu" if is_single else f"nvidia.com/mig-{profile.replace('+', '.')}"
            found |= _shared_as(resource, f"{product}-MIG-{profile.replace('+', '')}", sliced, profile)
    operands = ("device-plugin", "gpu-feature-discovery", "container-toolkit", "dcgm-exporter", "operator-validator")
    return {**found, **{f"nvidia.com/gpu.deploy.{name}": "true" for name in operands}, "nvidia.com/gpu.present": "true"}


def _shared_as(resource: str, product: str, how: Any, profile: str = "", *, is_mps: bool = False) -> dict[str, str]:
    replicas = how.replicas if how else 1
    shares = replicas.get(profile, 1) if isinstance(replicas, dict) else replicas
    is_shared = shares > 1
    strategy = "none" if not is_shared else "mps" if is_mps else "time-slicing"
    return {
        f"{resource}.product": f"{product}-SHARED" if is_shared and not how.rename else product,
        f"{resource}.replicas": str(shares),
        f"{resource}.sharing-strategy": strategy,
    }


def running(plan: Plan) -> list[Body]:
    """A whole cluster right after a sync: what is applied, its nodes, the GPU Operator, and Kueue as it is set up."""
    bodies = [body for body in synced(plan) if body["kind"] != "Node"]
    partial = {body["metadata"]["name"]: body["metadata"] for body in synced(plan) if body["kind"] == "Node"}
    for body in nodes(plan):
        metadata = body["metadata"]
        bodies.append(body)
        metadata |= {"annotations": partial.get(metadata["name"], {}).get("annotations", {})}
    operator = plan.cluster.gpu_operator
    policy = next((body for body in bodies if body["kind"] == "ClusterPolicy"), None)
    if policy is None:
        policy = an_object("nvidia.com/v1", "ClusterPolicy", operator.cluster_policy, spec={})
        bodies.append(policy)
    policy["status"] = {"state": "ready", "namespace": operator.namespace}
    labels = {"helm.sh/chart": f"gpu-operator-{operator.version}", "app.kubernetes.io/version": operator.version}
    deployment = an_object("apps/v1", "Deployment", "gpu-operator", operator.namespace, spec={})
    deployment["metadata"]["labels"] = labels
    bodies.append(deployment)
    if plan.cluster.scheduler.kind == "kueue":
        bodies.append(kueues_configuration(KINDS))
    return bodies


KINDS = (
    "batch/job",
    "deployment",
    "jobset.x-k8s.io/jobset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "statefulset",
    "trainer.kubeflow.org/trainjob",
)
"""Names of kinds of work in Kueue's Configuration."""


def kueues_configuration(frameworks: Sequence[str], **rest: Any) -> Body:
    body = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": list(frameworks)},
        **rest,
    }
    found = an_object("v1", "ConfigMap", "kueue-manager-config", "kueue-system")
    return {**found, "data": {"controller_manager_config.yaml": yaml.safe_dump(body)}}


def an_object(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


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
