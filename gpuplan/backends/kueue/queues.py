"""Cohorts, ClusterQueues and LocalQueues: who may use how much, and who gets it back from whom.

The tree of tenants is a tree of cohorts. Below one root, for whoever has idle units may lend them to anybody, each
parent has a cohort and each tenant with namespaces a queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.kueue.flavors import API_VERSION
from gpuplan.backends.kueue.quotas import (
    NOTHING,
    UNBOUNDED,
    Cells,
    free_cells,
    own_cells,
    resource_groups,
    rest_cells,
    shared_cells,
)
from gpuplan.manifests import quantity
from gpuplan.planning.evictions import evicts_within
from gpuplan.planning.kueue import DEFAULT_QUEUE, ROOT_COHORT, counted_resource
from gpuplan.planning.plan import Plan, Tenant
from gpuplan.planning.tree import Tree


def cohorts(plan: Plan) -> Iterator[tuple[Tenant | None, dict[str, Any]]]:
    """The root with what is nobody's, of no tenant, and a cohort for each parent."""
    yield None, _cohort(ROOT_COHORT, None, free_cells(plan), None)
    for tenant in plan.tenants:
        if plan.tree.is_divided(tenant):
            yield tenant, _cohort(tenant.name, _above(plan.tree, tenant), shared_cells(plan.tree, tenant), tenant)


def _cohort(name: str, parent: str | None, cells: Cells, tenant: Tenant | None) -> dict[str, Any]:
    """Limits need a parent (`validateLimit` in `pkg/webhooks/clusterqueue_webhook.go` of Kueue); the root has none."""
    spec: dict[str, Any] = {}
    if parent is not None:
        spec["parentName"] = parent
    groups = resource_groups(cells, UNBOUNDED)
    if groups:
        spec["resourceGroups"] = groups
    if tenant is not None:
        spec |= _fair_sharing(tenant)
    return {"apiVersion": API_VERSION, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def cluster_queues(plan: Plan) -> Iterator[tuple[Tenant, dict[str, Any]]]:
    """A queue for each tenant that may run something that is counted."""
    tree = plan.tree
    for tenant in filter(_has_queue, plan.tenants):
        if tree.is_divided(tenant):
            yield tenant, _cluster_queue(tenant, tenant.name, rest_cells(tree, tenant), {})
        else:
            cells = own_cells(tree, tenant)
            yield tenant, _cluster_queue(tenant, _above(tree, tenant), cells, _fair_sharing(tenant))


def _cluster_queue(tenant: Tenant, cohort: str, cells: Cells, sharing: dict[str, Any]) -> dict[str, Any]:
    """The queue, open to the tenant's namespaces alone: anybody may make a LocalQueue that names it.

    A tenant's own idle units come first, wherever they are, then those of others, and evictions last: so it is with
    both fields of `flavorFungibility` at `TryNextFlavor`, and borrowing preferred to preemption by default. Whoever
    is within its guarantee takes it back from any borrower. A borrower evicts others only for its fair share, so that
    there is no `borrowWithinCohort`, which does not go with fair sharing.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": tenant.name},
        "spec": {
            "cohortName": cohort,
            "queueingStrategy": "BestEffortFIFO",
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(tenant.spec.namespaces)}
                ]
            },
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {
                "reclaimWithinCohort": "Any",
                "withinClusterQueue": "LowerPriority" if evicts_within(tenant) else "Never",
            },
            **sharing,
            "resourceGroups": resource_groups(cells, NOTHING),
        },
    }


def local_queues(plan: Plan) -> Iterator[tuple[Tenant, dict[str, Any]]]:
    """The queue of each namespace whose tenant has one; which ClusterQueue it names can never be changed."""
    for tenant in plan.tenants:
        for namespace in tenant.spec.namespaces if _has_queue(tenant) else ():
            yield (
                tenant,
                {
                    "apiVersion": API_VERSION,
                    "kind": "LocalQueue",
                    "metadata": {"name": DEFAULT_QUEUE, "namespace": namespace},
                    "spec": {"clusterQueue": tenant.name},
                },
            )


def _has_queue(tenant: Tenant) -> bool:
    return bool(tenant.spec.namespaces) and any(counted_resource(quota.pool, quota.unit) for quota in tenant.quotas)


def _above(tree: Tree, tenant: Tenant) -> str:
    parent = tree.find(tenant.parent)
    return parent.name if parent else ROOT_COHORT


def _fair_sharing(tenant: Tenant) -> dict[str, Any]:
    """Absent means a weight of 1. A parent's is its cohort's: its own pods share with its children as equals."""
    weight = tenant.surplus_weight
    return {} if weight == 1 else {"fairSharing": {"weight": quantity(weight)}}
