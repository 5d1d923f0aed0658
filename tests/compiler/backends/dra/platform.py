"""A platform whose GPUs are claimed: two pools of A100, one of H100, and two tenants."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.compiler.backends import dra, namespaces
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, tenant

POLICIES = (
    pool("parts", "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}", "allocation: dra"),
    pool(
        "mixed",
        "mig: {devices: [{gpus: [0], instances: {2g.20gb: 3}}, {gpus: [1], enabled: false}]}",
        "allocation: dra",
        nodes="count: 1, gpusPerNode: 2",
    ),
    pool("whole", "exclusive: {}", "allocation: dra", gpu="H100-80GB"),
    tenant(
        "research",
        "pool: parts, unit: 2g.20gb, guaranteed: 8",
        "pool: mixed, unit: 2g.20gb, guaranteed: 1",
        "pool: mixed, unit: gpu, guaranteed: 1",
        "pool: whole, guaranteed: 0",
        more="allow: {unitsPerContainer: 2}",
    ),
    tenant("serving", "pool: whole, guaranteed: 4, limit: none"),
    tenant("web"),
)

SMALL, LARGE, A100, H100 = (
    "gpuplan-a100-80gb-2g.20gb",
    "gpuplan-a100-80gb-3g.40gb",
    "gpuplan-a100-80gb-gpu",
    "gpuplan-h100-80gb-gpu",
)


@cache
def platform(scheduler: str = "kubernetes") -> Plan:
    return a_platform(*POLICIES, scheduler=scheduler)


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
