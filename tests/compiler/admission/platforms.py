"""Every combination of a scheduler and ways to share that yields admission policies of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.platforms import a_platform, pool, priority_class, tenant

_CLASSES = (priority_class("research", 100), priority_class("production", 1000), priority_class("spot", -5))
_TENANTS = (
    tenant(
        "research",
        "pool: whole, guaranteed: 8",
        "pool: split, unit: 2g.20gb, guaranteed: 4",
        more="priorityClasses: [research, spot], allow: {unitsPerContainer: 2}",
    ),
    tenant("web"),
)
_FRACTIONS = tenant("parts", "pool: parts, guaranteed: 4", more="priorityClasses: [research]")
_SPLIT = "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}"
_POOLS = (pool("whole"), pool("split", _SPLIT))
_CLAIMED = (pool("whole", "exclusive: {}", "allocation: dra"), pool("split", _SPLIT, "allocation: dra"))

_TOLD = ", kueue: {frameworks: [JobSet, MPIJob, PyTorchJob, RayService, TrainJob]}"

SETTINGS = (*SCHEDULERS, "kubernetes, claims", "kueue, claims", "kueue, frameworks", "kai, counted")


@cache
def platform(setting: str) -> Plan:
    """The plan of one of the settings."""
    scheduler, _, more = setting.partition(", ")
    pools = _CLAIMED if more == "claims" else _POOLS
    counted = (
        (tenant("counted", "pool: whole, guaranteed: 4, cpu: 16", more="allow: {unitsPerContainer: 2}"),)
        if more == "counted"
        else ()
    )
    parts = (pool("parts", "fraction: {}"), _FRACTIONS) if SCHEDULERS[scheduler].supports("fraction") else ()
    return a_platform(
        *pools, *_CLASSES, *_TENANTS, *counted, *parts, scheduler=f"{scheduler}{_TOLD if more == 'frameworks' else ''}"
    )


@cache
def grants_of(setting: str, tenant_name: str) -> Mapping[str, str]:
    """The parameters of the policies in a tenant's namespace."""
    plan = platform(setting)
    found = next(item for item in plan.tenants if item.name == tenant_name)
    return parameters(found, found.spec.namespaces[0], plan.scheduler)
