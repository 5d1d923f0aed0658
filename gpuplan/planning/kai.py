"""KAI-Scheduler's queues: one for each tenant in each pool, counted in what KAI-Scheduler takes for a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction as Ratio
from typing import Final, NamedTuple

from gpuplan.planning.plan import Allocation, Amount, Plan, Pool, Quota, Tenant, Unit

# https://github.com/kai-scheduler/KAI-Scheduler/blob/main/pkg/common/constants/constants.go
SCHEDULER_NAME: Final = "kai-scheduler"
QUEUE_LABEL: Final = "kai.scheduler/queue"
NODE_POOL_LABEL: Final = "kai.scheduler/node-pool"
PREEMPTIBILITY_LABEL: Final = "kai.scheduler/preemptibility"

PREEMPTIBLE_BELOW: Final = 100
"""Work of a priority class below this is preemptible, other work is not, unless a label says which.

(`CalculatePreemptibility` in `pkg/common/podgroup/preemptible.go` of KAI-Scheduler.)
"""

OWN_CLASSES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The priority classes that its chart creates (`docs/priority/README.md` there); work that names none gets one."""


class Queue(NamedTuple):
    """A tenant's queue in one pool. ``parent`` is the queue that it is part of, empty where there is none.

    ``quota`` is what is guaranteed to it and what is part of it, in GPUs; ``limit`` is None where unbounded.
    ``depth`` counts the queues above. ``takes_work`` is false where others are part of it: only leaves take work.
    """

    name: str
    parent: str
    depth: int
    tenant: Tenant
    pool: Pool
    quota: Ratio
    limit: Ratio | None
    takes_work: bool


def queue_name(tenant: str, pool: str) -> str:
    """The queue that a tenant's work in a pool names in the label `QUEUE_LABEL`."""
    return f"{tenant}-{pool}"


def queues(plan: Plan) -> tuple[Queue, ...]:
    """All queues, by pool; a queue comes after the one that it is part of.

    A tenant that others are part of has a queue for all of them. Where it has namespaces of its own it has a second one
    below, for its own work, with what its guarantee leaves when theirs are taken off.
    """
    tree = _Tree(plan)
    return tuple(queue for pool in plan.pools for queue in tree.queues(pool))


def weight(pool: Pool, unit: Unit) -> Ratio:
    """What one unit costs. Devices of DRA are counted one by one, whatever their size.

    (`countGPUDevicesFromClaim` in `pkg/common/resources/dra.go` there.)
    """
    return Ratio(1) if pool.spec.allocation is Allocation.DRA else unit.gpu_weight


class _Subtree(NamedTuple):
    """The queues of a tenant and of those below it, and what they have together of each unit."""

    queues: tuple[Queue, ...]
    guaranteed: Mapping[str, Ratio]
    limits: Mapping[str, Ratio | None]


class _Tree:
    """The tenants of a plan by their parent. Tenants in a circle hang from no root, and have no queues."""

    def __init__(self, plan: Plan) -> None:
        self.children: dict[str | None, list[Tenant]] = {}
        self.quotas: dict[tuple[str, str], list[Quota]] = {}
        for tenant in plan.tenants:
            self.children.setdefault(tenant.parent, []).append(tenant)
            for quota in tenant.quotas:
                self.quotas.setdefault((tenant.name, quota.pool.name), []).append(quota)

    def queues(self, pool: Pool) -> Iterator[Queue]:
        for root in self.children.get(None, ()):
            if subtree := self._subtree(root, pool, "", 0):
                yield from subtree.queues

    def _subtree(self, tenant: Tenant, pool: Pool, parent: str, depth: int) -> _Subtree | None:
        """None where neither the tenant nor anyone below it has a quota in the pool."""
        own = self.quotas.get((tenant.name, pool.name), ())
        name = queue_name(tenant.name, pool.name)
        works_itself = bool(tenant.spec.namespaces and own)
        # No name of a tenant or a pool has a dot, so that no other queue is called so.
        inner = f"{name}.all" if works_itself else name
        found = (self._subtree(child, pool, inner, depth + 1) for child in self.children.get(tenant.name, ()))
        below = [subtree for subtree in found if subtree]
        guaranteed = {held.unit.name: _gpus(held, held.guaranteed) for held in own}
        limits = {held.unit.name: None if held.limit is None else _gpus(held, held.limit) for held in own}
        if not below:
            if not own:
                return None
            quota, limit = _sum(guaranteed.values()), _bound(limits.values())
            leaf = Queue(name, parent, depth, tenant, pool, quota, limit, takes_work=True)
            return _Subtree((leaf,), guaranteed, limits)
        promised = _merge(subtree.guaranteed for subtree in below)
        allowed = _merge_limits(subtree.limits for subtree in below)
        whole = _Subtree((), promised | guaranteed, allowed | limits)
        # A tenant without a quota bounds nobody: those below it have limits of their own.
        limit = _bound(whole.limits.values()) if own else None
        quota = _sum(whole.guaranteed.values())
        queues = [Queue(inner, parent, depth, tenant, pool, quota, limit, takes_work=False)]
        if works_itself:
            rest = _sum(max(amount - promised.get(unit, Ratio(0)), Ratio(0)) for unit, amount in guaranteed.items())
            limit = _bound(limits.values())
            queues.append(Queue(name, inner, depth + 1, tenant, pool, rest, limit, takes_work=True))
        queues += (queue for subtree in below for queue in subtree.queues)
        return whole._replace(queues=tuple(queues))


def _gpus(quota: Quota, amount: Amount) -> Ratio:
    return weight(quota.pool, quota.unit) * Ratio(amount)


def _sum(amounts: Iterable[Ratio]) -> Ratio:
    return sum(amounts, Ratio(0))


def _bound(limits: Iterable[Ratio | None]) -> Ratio | None:
    """The sum of limits; None as soon as one of them is unbounded."""
    total = Ratio(0)
    for limit in limits:
        if limit is None:
            return None
        total += limit
    return total


def _merge(parts: Iterable[Mapping[str, Ratio]]) -> dict[str, Ratio]:
    merged: dict[str, Ratio] = {}
    for part in parts:
        for unit, amount in part.items():
            merged[unit] = merged.get(unit, Ratio(0)) + amount
    return merged


def _merge_limits(parts: Iterable[Mapping[str, Ratio | None]]) -> dict[str, Ratio | None]:
    merged: dict[str, Ratio | None] = {}
    for part in parts:
        for unit, amount in part.items():
            merged[unit] = _bound((merged.get(unit, Ratio(0)), amount))
    return merged
