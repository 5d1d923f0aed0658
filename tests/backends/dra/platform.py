"""A platform whose GPUs are claimed: two pools of A100, one of H100, and two tenants."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.backends import dra, namespaces
from gpuplan.planning.plan import Plan
from tests.plans import CLUSTER, a_plan

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: parts}
spec:
  gpu: A100-80GB
  allocation: dra
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mixed}
spec:
  gpu: A100-80GB
  allocation: dra
  nodes: {count: 1, gpusPerNode: 2}
  sharing: {mig: {devices: [{gpus: [0], instances: {2g.20gb: 3}}, {gpus: [1], enabled: false}]}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: H100-80GB
  allocation: dra
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [research]
  quotas:
    - {pool: parts, unit: 2g.20gb, guaranteed: 8}
    - {pool: mixed, unit: 2g.20gb, guaranteed: 1}
    - {pool: mixed, unit: gpu, guaranteed: 1}
    - {pool: whole, guaranteed: 0}
  allow: {unitsPerContainer: 2}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: serving}
spec:
  namespaces: [serving]
  quotas:
    - {pool: whole, guaranteed: 4, limit: none}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: web}
spec:
  namespaces: [web]
"""

SMALL, LARGE, A100, H100 = (
    "gpuplan-a100-80gb-2g.20gb",
    "gpuplan-a100-80gb-3g.40gb",
    "gpuplan-a100-80gb-gpu",
    "gpuplan-h100-80gb-gpu",
)


@cache
def platform(scheduler: str = "kubernetes") -> Plan:
    return a_plan(f"{CLUSTER}  scheduler: {{kind: {scheduler}}}\n---\n{POLICIES}")


def device_classes() -> dict[str, Any]:
    """The expression of each class."""
    found = {}
    for manifest in dra.render(platform()):
        if manifest.kind == "DeviceClass":
            (selector,) = manifest.body["spec"]["selectors"]
            found[manifest.name] = selector["cel"]["expression"]
    return found


def templates() -> list[tuple[str, str]]:
    """The namespace and name of each template."""
    rendered = dra.render(platform())
    return [(str(item.namespace), item.name) for item in rendered if item.kind == "ResourceClaimTemplate"]


def hard(namespace: str) -> Any:
    """What the namespace's ResourceQuota says."""
    (quota,) = (
        manifest.body["spec"]["hard"]
        for manifest in namespaces.render(platform())
        if (manifest.kind, manifest.namespace) == ("ResourceQuota", namespace)
    )
    return quota
