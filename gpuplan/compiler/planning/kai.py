"""KAI-Scheduler's queues: one for each tenant in each pool, counted in what KAI-Scheduler takes for a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.amounts import ComputeShare, bounded_sum, shares_in_pool
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.policy.models import Allocation


class Queue(NamedTuple):
    """A tenant's queue in one pool. ``parent`` is the queue that it is part of, empty where there is none.

    ``quota`` is what is guaranteed to it and what is part of it, in GPUs; ``limit`` is None where unbounded.
    ``depth`` counts the queues above. ``takes_work`` is false where others are part of it: only leaves take work.
    ``compute`` are millicores of CPU and bytes of memory, where the tenant has a quota of them in the pool; queues know
    nothing else of nodes.
    """

    name: str
    parent: str
    depth: int
    tenant: Tenant
    pool: Pool
    quota: Ratio
    limit: Ratio | None
    takes_work: bool
    compute: Mapping[Counted, ComputeShare]


def queue_of(tenant: Tenant, pool: str) -> str:
    """Return the queue that a tenant's work in a pool names in a label."""
    return tenant.spec.names.queues.get(pool) or queue_name(tenant.name, pool)


def queue_name(tenant: str, pool: str) -> str:
    """Return the default name of a queue."""
    return f"{tenant}-{pool}"


def queues(plan: Plan) -> tuple[Queue, ...]:
    """Return all queues by pool, each after its parent, or none if the scheduler has no queues by pool.

    A tenant that others are part of has a queue for all of them. Where it has namespaces of its own it has a second one
    below, for its own work, with what its guarantee leaves when theirs are taken off.
    """
    if not plan.scheduler.has_queues_by_pool:
        return ()
    held: dict[str, dict[str, list[Quota]]] = {pool.name: {} for pool in plan.pools}
    for name, quotas in plan.tree.together.items():
        for quota in quotas:
            held[quota.pool.name].setdefault(name, []).append(quota)
    return tuple(queue for pool in plan.pools for queue in _queues(plan, pool, held[pool.name]))


def weight(pool: Pool, unit: Unit) -> Ratio:
    """Return the cost of one unit in GPUs. Claimed devices are counted one by one, whatever their size.

    (`countGPUDevicesFromClaim` in `pkg/common/resources/dra.go` there.)
    """
    return Ratio(1) if pool.spec.allocation is Allocation.DRA else unit.gpu_weight


def _queues(plan: Plan, pool: Pool, held: Mapping[str, Sequence[Quota]]) -> Iterator[Queue]:
    """Yield the queues of one pool. ``held`` has the quotas of each tenant and of all below it, upper tenants first."""
    tree = plan.tree
    wholes: dict[str, Queue] = {}
    for tenant in filter(None, map(tree.find, held)):
        own = [quota for quota in tenant.quotas if quota.pool.name == pool.name]
        above = wholes.get(tenant.parent or "")
        name, depth = queue_of(tenant, pool.name), above.depth + 1 if above else 0
        is_divided = any(child.name in held for child in tree.children(tenant))
        works_itself = bool(tenant.has_work and own)
        whole = Queue(
            # No name of a tenant, a pool or a queue has a dot, so that no other queue is called so.
            name=f"{name}.all" if is_divided and works_itself else name,
            parent=above.name if above else "",
            depth=depth,
            tenant=tenant,
            pool=pool,
            quota=_gpus((quota, quota.guaranteed) for quota in held[tenant.name]),
            # A tenant without a quota bounds nobody: those below it have limits of their own.
            limit=_limit(held[tenant.name]) if own else None,
            takes_work=not is_divided,
            compute=shares_in_pool(plan, tenant, pool),
        )
        wholes[tenant.name] = whole
        yield whole
        if is_divided and works_itself:
            rest = _gpus((quota, tree.left_over(tenant, quota.key)) for quota in own)
            compute = shares_in_pool(plan, tenant, pool, is_rest=True)
            yield Queue(name, whole.name, depth + 1, tenant, pool, rest, _limit(own), takes_work=True, compute=compute)


def _gpus(amounts: Iterable[tuple[Quota, Amount]]) -> Ratio:
    return sum((weight(quota.pool, quota.unit) * Ratio(amount) for quota, amount in amounts), Ratio(0))


def _limit(quotas: Sequence[Quota]) -> Ratio | None:
    """Return the sum of limits in GPUs, or None if one of them is unbounded."""
    limits = [None if quota.limit is None else _gpus([(quota, quota.limit)]) for quota in quotas]
    return bounded_sum(limits, Ratio(0))
