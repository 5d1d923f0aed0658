"""Which folders of a cluster's output apply a change."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.planning.grants import gpu_resources
from gpuplan.planning.plan import NodeLabels, Plan, Pool, SchedulerKind, Stage, Tenant

OPERATOR = Stage.GPU_OPERATOR.value
SCHEDULING = Stage.SCHEDULING.value
NAMESPACES = Stage.NAMESPACES.value
MONITORING = Stage.MONITORING.value
WORKLOADS = Stage.WORKLOADS.value


def of_nodes(plan: Plan, *pools: Pool) -> tuple[str, ...]:
    """What labels and taints the pools' nodes; where others do that, the table for them."""
    if plan.cluster.spec.node_labels is NodeLabels.EXTERNAL:
        return (Stage.PARTITIONS.value,)
    return tuple(f"{Stage.PARTITIONS}/{pool.name}" for pool in pools)


def of_guards(plan: Plan) -> tuple[str, ...]:
    """What guards the sync of nodes, from the operator's namespace."""
    if plan.cluster.argocd is None or plan.cluster.spec.node_labels is NodeLabels.EXTERNAL:
        return ()
    return of_nodes(plan, *(pool for pool in plan.pools if pool.spec.disruption.guard is not None))


def is_synced_apart(plan: Plan, pool: Pool) -> bool:
    """Whether something labels the pool's nodes that is synced by itself, when the pool may be disturbed."""
    match plan.cluster.spec.node_labels:
        case NodeLabels.NFD:
            return delivered(plan) is not None and bool(pool.nodes.names or pool.nodes.name_pattern)
        case NodeLabels.NODE:
            return delivered(plan) is not None and bool(pool.nodes.names)
        case NodeLabels.EXTERNAL:
            return False


def of_queues(plan: Plan, *pools: str) -> tuple[str, ...]:
    """What the scheduler knows the pools by, and what it counts of them."""
    match plan.cluster.scheduler.kind:
        case SchedulerKind.KUBERNETES:
            return ()
        case SchedulerKind.KUEUE | SchedulerKind.RUNAI:
            return (SCHEDULING,)
        case SchedulerKind.KAI:
            return (SCHEDULING, *(f"{Stage.QUEUES}/{pool}" for pool in pools))


def of_grants(plan: Plan, *pools: str) -> tuple[str, ...]:
    """What holds the tenants with quotas on the pools to what they may ask for."""
    named = frozenset(pools)
    tenants = (tenant for tenant in plan.tenants if any(quota.pool.name in named for quota in tenant.quotas))
    return tuple(name for tenant in tenants for name in of_namespaces(tenant))


def of_resources(before: Plan, after: Plan) -> tuple[str, ...]:
    """Where resources come and go in the cluster: every quota names every one, if only to grant none of it."""
    return (NAMESPACES,) if gpu_resources(before) != gpu_resources(after) else ()


def of_namespaces(tenant: Tenant) -> tuple[str, ...]:
    return tuple(f"{NAMESPACES}/{name}" for name in tenant.spec.namespaces)


def of_tenant(plan: Plan, tenant: Tenant) -> tuple[str, ...]:
    """What says what a tenant may have, and who goes before it."""
    return ordered((*of_namespaces(tenant), *of_queues(plan, *(quota.pool.name for quota in tenant.quotas))))


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, sorted; a folder within another that is there is left out."""
    found = sorted(set(names))
    return tuple(name for name in found if not any(name.startswith(f"{other}/") for other in found))


def of_workloads(plan: Plan, pool: Pool) -> tuple[str, ...]:
    """Where work of a pool is."""
    return ordered(f"{WORKLOADS}/{item.namespace}" for item in plan.workloads if item.pool.name == pool.name)


def delivered(plan: Plan) -> str | None:
    """The folder, beside the cluster's, of what syncs it; None where nothing does."""
    if plan.cluster.argocd is not None:
        return "argocd"
    return "flux" if plan.cluster.flux is not None else None


def counts_nodes(plan: Plan) -> bool:
    """Whether a number of nodes is written anywhere: in quotas of what is left, in recording rules, or in the table."""
    cluster = plan.cluster
    return (
        cluster.scheduler.kind is SchedulerKind.KUEUE
        or cluster.monitoring is not None
        or cluster.spec.node_labels is NodeLabels.EXTERNAL
    )


def lists_taints(plan: Plan) -> bool:
    """Whether the order of taints shows: of tolerations, which is that of the policy."""
    return plan.cluster.scheduler.kind is SchedulerKind.KUEUE or bool(plan.workloads)
