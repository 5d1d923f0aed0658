"""The platform that the admission tests judge pods on."""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuplan.compiler.backends import scheduling
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, priority_class, tenant

POLICIES = (
    pool("shared", "timeSlicing: {replicas: 4}"),
    pool("split", "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}"),
    pool("whole"),
    priority_class("research", 100),
    priority_class("training", 500),
    priority_class("production", 1000),
    tenant(
        "research",
        "pool: shared, guaranteed: 8",
        "pool: split, unit: 2g.20gb, guaranteed: 8",
        "pool: split, unit: 3g.40gb, guaranteed: 4",
        more="priorityClasses: [research, training], allow: {unitsPerContainer: 4}",
    ),
    tenant("serving", "pool: whole, guaranteed: 16"),
    tenant("web"),
)


@cache
def platform(scheduler: str = "kubernetes") -> Plan:
    return a_platform(*POLICIES, scheduler=scheduler)


def policy(name: str, plan: Plan) -> Any:
    manifests = scheduling.render(plan)
    return next(
        manifest.body for manifest in manifests if (manifest.kind, manifest.name) == ("ValidatingAdmissionPolicy", name)
    )


def parameters_of(tenant: str, plan: Plan) -> dict[str, str]:
    """The parameters of the tenant's namespace of the same name."""
    found = next(item for item in plan.tenants if item.name == tenant)
    return dict(parameters(found, tenant, plan.scheduler))
