"""What pods of a priority class may use of what their tenant may use, where a ResourceQuota caps it."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.planning.plan import Amount, Quota, Tenant
from gpuplan.compiler.planning.projects import portion
from gpuplan.compiler.policy.models import Cap


def is_kept(quota: Quota, cap: Cap) -> bool:
    """Whether a ResourceQuota can bound a class: it counts pods by what their containers ask for.

    Claims have no class, and a fraction is no resource. Where queues cap there is none: it would refuse some pods of
    work that a queue has let in as a whole.
    """
    return cap is not Cap.QUEUE and quota.unit.resource is not None and not quota.unit.device_class


def class_cap(tenant: Tenant, quota: Quota, namespace: str, priority_class: str) -> Amount | None:
    """What pods of a class may use of a quota in a namespace: of what is divided, the same part; at most the cap."""
    limit, cap = quota.class_limits.get(priority_class), quota.caps[namespace]
    if limit is None:
        return cap
    part = portion(quota, tenant.spec.namespaces, namespace, limit) if quota.split else limit
    return part if cap is None else min(part, cap)


def class_caps(tenant: Tenant, namespace: str, cap: Cap) -> Mapping[str, Mapping[str, int]]:
    """By class and by resource, where some quota says something of the class.

    A ResourceQuota knows no nodes: quotas on one resource add up. Where one of them has no bound there is none, and
    ``counted_with`` says which these are.
    """
    kept = [quota for quota in tenant.quotas if is_kept(quota, cap)]
    found: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys(name for quota in kept for name in quota.class_limits):
        for resource in dict.fromkeys(quota.unit.resource for quota in kept if name in quota.class_limits):
            parts = [class_cap(tenant, quota, namespace, name) for quota in kept if quota.unit.resource == resource]
            known = [part for part in parts if part is not None]
            if resource is not None and len(known) == len(parts):
                found.setdefault(name, {})[resource] = int(sum(known))
    return found


def counted_with(tenant: Tenant, quota: Quota, priority_class: str, cap: Cap) -> tuple[Quota, ...]:
    """The quotas in other pools of which a ResourceQuota for the class counts the same resource: it knows no nodes."""
    return tuple(
        other
        for other in tenant.quotas
        if other.pool is not quota.pool
        and other.unit.resource == quota.unit.resource
        and is_kept(other, cap)
        and any(
            quota.caps[namespace] != 0 and class_cap(tenant, other, namespace, priority_class) != 0
            for namespace in tenant.spec.namespaces
        )
    )
