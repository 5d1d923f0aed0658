"""Platforms with Kueue, and what is rendered of them."""

from __future__ import annotations

from typing import Any

from gpuplan.compiler.backends import kueue, scheduling
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.planning.plan import Plan
from tests import platforms
from tests.platforms import a_platform, document, pool

POOLS = (
    pool("shared", "timeSlicing: {replicas: 4}", nodes="count: 1, gpusPerNode: 8")
    + pool("split", "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}")
    + pool("whole", nodes="count: 1, gpusPerNode: 8")
)
"""`shared` hands out 32 shares, `split` 32 of 2g.20gb and 16 of 3g.40gb, `whole` 8 GPUs."""


def platform(*documents: str, pools: str = POOLS) -> Plan:
    return a_platform(pools, *documents, scheduler="kueue")


def tenant(name: str, spec: str) -> str:
    return document("Tenant", name, spec)


def team(name: str, *quotas: str, more: str = "") -> str:
    """A tenant with a namespace of its name."""
    return platforms.tenant(name, *quotas, more=more.removeprefix(", "))


def manifests(plan: Plan) -> list[Manifest]:
    return [item for item in kueue.render(plan) if isinstance(item, Manifest)]


def policy(plan: Plan) -> Manifest:
    """The admission policy on what Kueue makes of work."""
    (found,) = [item for item in scheduling.render(plan) if item.name == "gpuplan-queues"]
    return found


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
