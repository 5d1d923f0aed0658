"""Platforms with Kueue, and what is rendered of them."""

from __future__ import annotations

from typing import Any

from gpuplan.backends import kueue
from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Plan
from tests.plans import a_cluster, a_plan

POOLS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {timeSlicing: {replicas: 4}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: split}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {exclusive: {}}
"""
"""`shared` hands out 32 shares, `split` 32 of 2g.20gb and 16 of 3g.40gb, `whole` 8 GPUs."""


def platform(*documents: str, pools: str = POOLS) -> Plan:
    return a_plan("---\n".join((a_cluster("kind: kueue"), pools, *documents)))


def document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def tenant(name: str, spec: str) -> str:
    return document("Tenant", name, spec)


def team(name: str, *quotas: str, more: str = "") -> str:
    """A tenant with a namespace of its name."""
    return tenant(name, f"namespaces: [{name}], quotas: [{', '.join(f'{{{quota}}}' for quota in quotas)}]{more}")


def manifests(plan: Plan) -> list[Manifest]:
    return [item for item in kueue.render(plan) if isinstance(item, Manifest)]


def files(plan: Plan) -> list[File]:
    return [item for item in kueue.render(plan) if isinstance(item, File)]


def found(plan: Plan, kind: str, name: str) -> Any:
    """The spec of an object."""
    (body,) = [item.body for item in manifests(plan) if (item.kind, item.name) == (kind, name)]
    return body["spec"]


def cells(plan: Plan, kind: str, name: str) -> dict[tuple[str, str], tuple[str | None, ...]]:
    """Nominal quota, borrowing and lending limit by flavor and resource, the resource without its prefix."""
    return {
        (flavor["name"], quota["name"].removeprefix("nvidia.com/")): tuple(
            quota.get(field) for field in ("nominalQuota", "borrowingLimit", "lendingLimit")
        )
        for group in found(plan, kind, name).get("resourceGroups", [])
        for flavor in group["flavors"]
        for quota in flavor["resources"]
    }
