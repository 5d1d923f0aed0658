"""Who may use RDMA: the tenants whose pods may lock memory and ask for network resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.plan import Plan, Tenant
from gpuplan.compiler.planning.subjects import every
from gpuplan.compiler.policy.models import PodSecurity

RDMA_LABEL: Final = "gpuplan.dev/rdma"
"""On the namespaces of such tenants: their level of Pod Security is `privileged`, and an admission policy of gpuplan's
chooses them by it. It comes and goes with the level in one request, and the policy is on every cluster: so pods are
never held to nothing. No role of a tenant may change a Namespace."""


def is_held_by_rules(tenant: Tenant) -> bool:
    """Whether the rules of an admission policy stand in for the tenant's level of Pod Security."""
    return bool(tenant.spec.allow.rdma) and tenant.spec.allow.pod_security is PodSecurity.BASELINE


def network_resources(plan: Plan) -> tuple[str, ...]:
    """All that some tenant may ask for, and so no other one, sorted."""
    return tuple(sorted({resource for tenant in plan.tenants for resource in tenant.spec.allow.rdma}))


def whose_network(plan: Plan) -> tuple[Subject, ...]:
    """What objects are about that follow from what other tenants may ask for; nothing where none may."""
    return every(Tenant) if network_resources(plan) else ()


def places_of(plan: Plan, resource: str) -> Iterator[Origin]:
    """Where tenants are granted a network resource."""
    for tenant in plan.tenants:
        for index, listed in enumerate(tenant.spec.allow.rdma):
            if listed == resource:
                yield tenant.at / "allow" / "rdma" / index
