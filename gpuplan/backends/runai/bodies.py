"""The bodies of requests to Run:ai, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction as Ratio
from typing import Any

from gpuplan.planning.plan import POOL_LABEL, Plan, Pool, Tenant
from gpuplan.planning.projects import Department, Grant, Project, minimum_run_time


def node_pool(plan: Plan, pool: Pool) -> dict[str, Any]:
    """The nodes with the pool's label (`NodepoolCreateFields` of the client)."""
    body: dict[str, Any] = {"name": pool.name, "labelKey": POOL_LABEL, "labelValue": pool.name}
    scheduling: dict[str, Any] = {}
    if pool.spec.placement is not None:
        scheduling["placementStrategy"] = {"cpu": pool.spec.placement.value, "gpu": pool.spec.placement.value}
    if duration := minimum_run_time(plan, pool):
        scheduling["minGuaranteedRuntime"] = duration
    if scheduling:
        body["schedulingConfiguration"] = scheduling
    return body


def department(item: Department, ranks: Mapping[int, str]) -> dict[str, Any]:
    """What a tenant has together with all that are part of it (`DepartmentCreationRequest`)."""
    return {"name": item.tenant.name, "resources": _resources(item.tenant, item.grants, ranks)}


def project(item: Project, ranks: Mapping[int, str]) -> dict[str, Any]:
    """What a namespace has (`ProjectCreationRequest`); pools in the order in which the policy names them."""
    return {
        "name": item.namespace,
        "requestedNamespace": item.namespace,
        "defaultNodePools": list(dict.fromkeys(quota.pool.name for quota in item.tenant.quotas)),
        "resources": _resources(item.tenant, item.grants, ranks),
    }


def policy(item: Project) -> dict[str, Any]:
    """What workloads may ask for (`TrainingPolicyOverwriteRequestV2`); empty where the tenant says nothing of it.

    Fractions are of one GPU, so that nothing is to be bounded where there is nothing else.
    """
    most = item.tenant.spec.allow.units_per_container
    if most is None or not any(quota.unit.resource for quota in item.tenant.quotas):
        return {}
    rules = {"compute": {"gpuDevicesRequest": {"max": most}}}
    return {"meta": {"name": item.namespace, "scope": "project"}, "policy": {"rules": rules}}


def _resources(tenant: Tenant, grants: Mapping[str, Grant], ranks: Mapping[int, str]) -> list[dict[str, Any]]:
    """Every pool is named: Run:ai lets a project use what is idle in those that it is told nothing about."""
    return [
        {"nodePool": {"name": pool}, "gpu": _gpu(tenant, grant), "rank": ranks[tenant.spec.surplus.rank]}
        for pool, grant in grants.items()
    ]


def _gpu(tenant: Tenant, grant: Grant) -> dict[str, Any]:
    """Who has no weight gets no surplus, and so no more than its guarantee."""
    weight = tenant.surplus_weight
    if weight == 0:
        return {"deserved": _number(grant.deserved), "limit": _number(grant.deserved)}
    limit = None if grant.limit is None else _number(grant.limit)
    return {"deserved": _number(grant.deserved), "limit": limit, "overQuotaWeight": _number(Ratio(weight))}


def _number(amount: Ratio) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)
