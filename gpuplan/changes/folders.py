"""Which folders of a cluster's output apply a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.planning.grants import gpu_resources
from gpuplan.planning.plan import NodeLabels, Plan, Pool, SchedulerKind, Stage, Tenant

OPERATOR = Stage.GPU_OPERATOR.value
SCHEDULING = Stage.SCHEDULING.value
NAMESPACES = Stage.NAMESPACES.value
MONITORING = Stage.MONITORING.value
WORKLOADS = Stage.WORKLOADS.value


def of_nodes(plan: Plan, *pools: Pool) -> tuple[str, ...]:
    """What labels and taints the pools' nodes; where others do that, the table for them."""
    if plan.cluster.node_labels is NodeLabels.EXTERNAL:
        return (Stage.PARTITIONS.value,)
    return tuple(f"{Stage.PARTITIONS}/{pool.name}" for pool in pools)


def of_capacity(before: Plan, after: Plan, *pools: str) -> tuple[str, ...]:
    """What counts the units of the pools: the scheduler's objects, and the quotas on them."""
    return ordered(
        name for plan in (before, after) for name in (*_scheduling(plan, pools), *_quotas(before, after, plan, pools))
    )


def of_tenant(plan: Plan, tenant: Tenant) -> tuple[str, ...]:
    """What holds a tenant to what it may do."""
    pools = tuple(quota.pool.name for quota in tenant.quotas)
    return ordered((*(f"{NAMESPACES}/{name}" for name in tenant.namespaces), *_scheduling(plan, pools)))


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Each once, sorted; a folder within another that is there is left out."""
    found = sorted(set(names))
    return tuple(name for name in found if not any(name.startswith(f"{other}/") for other in found))


def _scheduling(plan: Plan, pools: Iterable[str]) -> Iterator[str]:
    match plan.cluster.scheduler.kind:
        case SchedulerKind.KUBERNETES:
            pass
        case SchedulerKind.KUEUE | SchedulerKind.RUNAI:
            yield SCHEDULING
        case SchedulerKind.KAI:
            yield SCHEDULING
            yield from (f"{Stage.QUEUES}/{pool}" for pool in pools)


def _quotas(before: Plan, after: Plan, plan: Plan, pools: Iterable[str]) -> Iterator[str]:
    """Every quota names every resource of the cluster, if only to grant none of it."""
    if gpu_resources(before) != gpu_resources(after):
        yield NAMESPACES
    named = set(pools)
    for tenant in plan.tenants:
        if any(quota.pool.name in named for quota in tenant.quotas):
            yield from (f"{NAMESPACES}/{name}" for name in tenant.namespaces)


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
        or cluster.node_labels is NodeLabels.EXTERNAL
    )


def lists_taints(plan: Plan) -> bool:
    """Whether the order of taints shows: of tolerations, which is that of the policy."""
    return plan.cluster.scheduler.kind is SchedulerKind.KUEUE or bool(plan.workloads)
