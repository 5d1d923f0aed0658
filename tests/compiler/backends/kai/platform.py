"""The platform that the tests of KAI-Scheduler's objects build: a department of two tenants, and one by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.compiler.backends import kai
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, priority_class, tenant

POLICIES = (
    pool(
        "a100-mig",
        "mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}",
        "placement: binpack",
        nodes="count: 2, gpusPerNode: 8, names: [a, b]",
    ),
    pool(
        "h100",
        "fraction: {}",
        "placement: spread",
        "topology: [example.com/rack, kubernetes.io/hostname]",
        gpu="H100-80GB",
        nodes="count: 2, gpusPerNode: 8, names: [c, d]",
    ),
    priority_class("guaranteed", 125, "preemptible: false"),
    priority_class("spot", 50, "preempts: false"),
    tenant("science", namespaces="", more="surplus: {weight: 3}"),
    tenant(
        "physics",
        "pool: a100-mig, unit: 2g.20gb, guaranteed: 4, limit: 8",
        "pool: h100, guaranteed: 1.5, limit: none",
        namespaces="physics, physics-batch",
        more="parent: science, priorityClasses: [guaranteed, spot], surplus: {weight: 2.5, rank: 10}, "
        "protect: {preempt: 10m, reclaim: 1h30m}",
    ),
    tenant("serving", "pool: h100, guaranteed: 4"),
)


@cache
def platform(kubernetes: str = "1.34") -> Plan:
    return a_platform(*POLICIES, scheduler="kai", kubernetes=kubernetes)


@cache
def manifests() -> tuple[Manifest, ...]:
    return tuple(kai.objects(platform()))


def body(kind: str, name: str) -> Any:
    return next(found.body for found in manifests() if (found.kind, found.name) == (kind, name))
