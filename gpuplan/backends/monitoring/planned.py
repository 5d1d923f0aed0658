"""Recording rules that hold the plan's own numbers: capacity of pools, grants of tenants, whose a namespace is."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.metrics import published
from gpuplan.backends.monitoring.rules import Group, Recording
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Amount, Plan, Pool, Quota, Tenant

_MOST_RULES = 1000
"""Of one object: its rules then stay well below the 1 MiB that a Prometheus' ConfigMap of rules may have."""


def pool_group(plan: Plan) -> Group:
    return Group("gpuplan-planned", tuple(rule for pool in plan.pools for rule in _pool_rules(pool)))


def tenant_groups(plan: Plan) -> Iterator[Group]:
    """As many groups as keep each object small."""
    rules = [rule for tenant in plan.tenants for rule in _tenant_rules(tenant)]
    for number, start in enumerate(range(0, len(rules), _MOST_RULES), start=1):
        suffix = f"-{number}" if number > 1 else ""
        yield Group(f"gpuplan-tenants{suffix}", tuple(rules[start : start + _MOST_RULES]))


def _pool_rules(pool: Pool) -> Iterator[Recording]:
    here = {"pool": pool.name}
    yield _constant(metrics.POOL_PLANNED_NODES, pool.nodes.count, **here)
    for resource in published(pool):
        yield _constant(metrics.POOL_PLANNED_UNITS, resource.capacity, **here, **resource.labels)
    for config in dict.fromkeys(part.labels.get(MIG_CONFIG_LABEL) for part in pool.parts if part.nodes.count):
        if config is not None:
            yield _constant(metrics.POOL_MIG_CONFIG, 1, mig_config=config, **here)


def _tenant_rules(tenant: Tenant) -> Iterator[Recording]:
    for namespace in tenant.spec.namespaces:
        yield _constant(metrics.NAMESPACE_TENANT, 1, namespace=namespace, tenant=tenant.name)
    for quota in tenant.quotas:
        labels = {"tenant": tenant.name, "pool": quota.pool.name, **_unit_labels(quota)}
        yield _constant(metrics.TENANT_GUARANTEED_UNITS, quota.guaranteed, **labels)
        if quota.limit is not None:
            yield _constant(metrics.TENANT_LIMIT_UNITS, quota.limit, **labels)


def _unit_labels(quota: Quota) -> dict[str, str]:
    """A grant is on a unit, also where several are published as one."""
    found = next((item for item in published(quota.pool) if quota.unit.name in item.units), None)
    return ({} if found is None else found.labels) | {"unit": quota.unit.name}


def _constant(record: str, amount: Amount, **labels: str) -> Recording:
    number = amount if isinstance(amount, int) else f"{amount:f}"
    return Recording(record, f"vector({number})", dict(sorted(labels.items())))
