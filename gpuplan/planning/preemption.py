"""Who can evict whom: the relation between tenants and their priority classes on each unit of each pool.

Each scheduler has its own answer, and none is written in one place. What is here was read in:

- kube-scheduler: `pkg/scheduler/framework/plugins/defaultpreemption` of kubernetes/kubernetes. It knows no tenants.
- Kueue 0.19: `pkg/scheduler/preemption`, `fair_strategy.go` with `FairSharingPreemptWithinNominal`, on by default since
  0.17; and `SatisfiesPreemptionPolicy` in its `common`.
- KAI-Scheduler 0.17: `pkg/scheduler/actions/{preempt,reclaim}`, `plugins/proportion/reclaimable` and its `strategies`,
  `plugins/minruntime/resolver.go`.
- Run:ai 3.0: its documentation; its scheduler is the one that KAI-Scheduler was made from
  (https://docs.nvidia.com/run-ai/self-hosted/documentation/platform-management/runai-scheduler).

Pods of tenants alone are looked at. Those of the system evict whomever they like. And KAI-Scheduler and Run:ai may move
any preemptible pod of a pool to another node of it, which ends and starts it, to make room (`actions/consolidation`);
not where KAI-Scheduler spreads pods (`setDefaultActions` in `pkg/apis/kai/v1/schedulingshard_types.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import assert_never

from gpuplan.planning.plan import Plan, Pool, PriorityClass, Quota, Tenant, Unit
from gpuplan.planning.projects import minimum_run_time
from gpuplan.planning.schedulers import Evicts, Protects, SchedulerTraits
from gpuplan.policy.models import Allocation, PriorityClassSpec
from gpuplan.values import NamedTuple


class Mechanism(StrEnum):
    """Why a pod must go."""

    PRIORITY = "priority"
    """A pod of a higher class needs its place, whoever's it is."""

    QUEUE = "queue"
    """A pod of a higher class of the same tenant needs its place."""

    RECLAIM = "reclaim"
    """Another tenant takes back what it is guaranteed."""

    FAIR_SHARE = "fair-share"
    """Another tenant gets its share of what nobody has a guarantee on, or does not use."""

    @property
    def is_within_tenants(self) -> bool:
        return self in (Mechanism.PRIORITY, Mechanism.QUEUE)

    @property
    def is_across_tenants(self) -> bool:
        return self is not Mechanism.QUEUE


class Condition(StrEnum):
    """What must be so before anything is evicted; in the scheduler's view, when the pod does not fit otherwise."""

    POOL_FULL = "pool-full"
    """The pool has no room: tenants may together use more than it has."""

    NODE_FULL = "node-full"
    """No node has room for all that the pod asks for, though the pool has: everything that tenants may use fits."""

    QUEUE_FULL = "queue-full"
    """The tenant has no room left, or the pool."""

    VICTIM_OVER_GUARANTEE = "victim-over-guarantee"
    """The victim's tenant, or what it is part of and the evictor is not, uses more than its guarantee."""

    EVICTOR_WITHIN_GUARANTEE = "evictor-within-guarantee"
    """With the new pod, the evictor's tenant uses no more than its guarantee."""

    VICTIM_OVER_FAIR_SHARE = "victim-over-fair-share"
    """The victim's tenant has more of the surplus than its weight gives it."""

    EVICTOR_WITHIN_FAIR_SHARE = "evictor-within-fair-share"
    """With the new pod, the evictor's tenant has no more of the surplus than its weight gives it."""

    QUOTA_HAS_ROOM = "quota-has-room"
    """The ResourceQuota of the evictor's namespace has room for the new pod: else it refuses the pod, whoever is there.

    It counts pods that wait, too, so that who is at its limit makes no room among its own pods.
    """

    QUOTA_HAS_ROOM_OR_JOB = "quota-has-room-or-job"
    """The same, or what makes the pod waits in place of it, as a Job does: its pods come once the victims have gone."""


class Party(NamedTuple):
    """The pods of a tenant with one priority class; None for a tenant that may name none."""

    tenant: str
    priority_class: str | None


class Eviction(NamedTuple):
    """A way in which pods are evicted: any of ``evictors`` for any of ``victims``, if all of ``when`` is so.

    Parties of one tenant evict each other by some mechanisms only, those of two by others (`Mechanism`); who may evict
    nobody but others of its own tenant stands beside others like it.
    ``min_run_time`` is how long a victim has run at least, None where that does not matter. KAI-Scheduler
    protects none beyond those that a group needs (`reclaimFilterFn`, `preemptFilterFn` in `plugins/minruntime`).
    """

    pool: str
    unit: str
    mechanism: Mechanism
    evictors: tuple[Party, ...]
    victims: tuple[Party, ...]
    when: tuple[Condition, ...]
    min_run_time: str | None = None

    def holds(self, evictor: Party, victim: Party) -> bool:
        """Whether the one may evict the other in this way."""
        is_possible = (
            self.mechanism.is_within_tenants if evictor.tenant == victim.tenant else self.mechanism.is_across_tenants
        )
        return is_possible and evictor in self.evictors and victim in self.victims


def evictions(plan: Plan) -> tuple[Eviction, ...]:
    """Every way that there is, pools and units in their order."""
    return tuple(eviction for pool in plan.pools for unit in pool.units for eviction in _evictions_of(plan, pool, unit))


def _evictions_of(plan: Plan, pool: Pool, unit: Unit) -> Iterator[Eviction]:
    """Nothing where devices are claimed and kube-scheduler is by itself: it evicts nobody for a claim.

    What a pod would give back is left out when it looks for victims (`PreFilterExtensions` of the plugin
    `dynamicresources` is nil).
    """
    actors = tuple(_actors(plan, pool, unit))
    place = pool.name, unit.name
    match plan.scheduler.evicts:
        case Evicts.BY_PRIORITY:
            if pool.spec.allocation is Allocation.DEVICE_PLUGIN:
                when = _fullness(unit, actors), *_in_quota(plan.scheduler, unit, actors)
                yield from _by_priority(plan.scheduler, place, actors, when)
        case Evicts.BY_QUEUE | Evicts.BY_SHARE:
            when = Condition.QUEUE_FULL, *_in_quota(plan.scheduler, unit, actors)
            yield from _within(plan.scheduler, place, actors, when)
            yield from _across(plan.scheduler, place, actors)
        case unknown:
            assert_never(unknown)


# --- Which class evicts which ------------------------------------------------------------------------------------

# Three questions decide it, and a scheduler answers each by itself: whose pods evict at all, whose may be evicted, and
# whether the one has the higher value.


def may_evict(scheduler: SchedulerTraits, tenant: Tenant, higher: PriorityClassSpec, lower: PriorityClassSpec) -> bool:
    """Whether a tenant's pods of one class evict its own of another, or anyone's where priority alone counts."""
    return lower.value < higher.value and evicts(scheduler, tenant, higher) and may_be_evicted(scheduler, lower)


def evicts(scheduler: SchedulerTraits, tenant: Tenant, rank: PriorityClassSpec) -> bool:
    """Whether a tenant's pods of a class evict any below them.

    Schedulers that evict by share read the values alone, whatever the class says about preempting
    (`buildFilterFuncForPreempt` in `pkg/scheduler/actions/preempt/preempt.go` of KAI-Scheduler).
    """
    match scheduler.evicts:
        case Evicts.BY_PRIORITY:
            return rank.preempts
        case Evicts.BY_QUEUE:
            return evicts_within(tenant)
        case Evicts.BY_SHARE:
            return True
        case unknown:
            assert_never(unknown)


def may_be_evicted(scheduler: SchedulerTraits, rank: PriorityClassSpec) -> bool:
    """Whether pods of a class go for anybody; nothing in a PriorityClass protects them."""
    return rank.preemptible or not scheduler.evicts_preemptible_alone


def evicts_within(tenant: Tenant) -> bool:
    """Whether one of a tenant's classes may evict another: a queue of Kueue has one answer for all of them."""
    evicting = [found.spec.value for found in tenant.priority_classes if found.spec.preempts]
    evictable = [found.spec.value for found in tenant.priority_classes if found.spec.preemptible]
    return bool(evicting and evictable) and max(evicting) > min(evictable)


def pairs_within(scheduler: SchedulerTraits, tenant: Tenant) -> Iterator[tuple[PriorityClass, PriorityClass]]:
    """The classes of a tenant that evict others of it, each with one that it evicts."""
    victims = [found for found in tenant.priority_classes if may_be_evicted(scheduler, found.spec)]
    for higher in tenant.priority_classes if victims else ():
        if evicts(scheduler, tenant, higher.spec):
            yield from ((higher, lower) for lower in victims if lower.spec.value < higher.spec.value)


def preemptibility(found: PriorityClass) -> str:
    """Whether pods of a class may be evicted, as KAI-Scheduler's label says it."""
    return "preemptible" if found.spec.preemptible else "non-preemptible"


def misread(plan: Plan) -> tuple[PriorityClass, ...]:
    """The classes of which the scheduler takes work that does not say otherwise for the opposite of preemptible."""
    bound = plan.scheduler.preemptible_below
    if bound is None:
        return ()
    return tuple(found for found in plan.priority_classes if found.spec.preemptible != (found.spec.value < bound))


# --- Who there is ------------------------------------------------------------------------------------------------


class _Actor(NamedTuple):
    """A party with what decides its lot, and how long it runs before its own tenant, or another one, may evict it."""

    party: Party
    tenant: Tenant
    quota: Quota
    rank: PriorityClassSpec
    has_guarantee: bool
    preempt_after: str | None
    reclaim_after: str | None


def _actors(plan: Plan, pool: Pool, unit: Unit) -> Iterator[_Actor]:
    """The parties that may use the unit at all, tenants in their order and the highest class first."""
    default = next((found.spec for found in plan.priority_classes if found.spec.default), _WITHOUT_CLASS)
    of_pool = minimum_run_time(plan, pool) if plan.scheduler.protects is Protects.EACH_POOL else None
    tree, key = plan.tree, (pool.name, unit.name)
    for tenant, quota in tree.holders(key):
        if all(cap == 0 for cap in quota.caps.values()):
            continue
        holders = (tree.find_quota(above, key) for above in tree.path(tenant))
        has_guarantee = any(holder.guaranteed > 0 for holder in holders if holder)
        classes = sorted(tenant.priority_classes, key=lambda found: (-found.spec.value, found.name))
        run_times = _run_times(plan, tenant, of_pool)
        for found in classes or (None,):
            party = Party(tenant.name, found.name if found else None)
            yield _Actor(party, tenant, quota, found.spec if found else default, has_guarantee, *run_times)


_WITHOUT_CLASS = PriorityClassSpec.model_construct(value=0)
"""Pods without a class have the default one; without that, the value 0, as the API server gives it."""


def _run_times(plan: Plan, tenant: Tenant, of_pool: str | None) -> tuple[str | None, str | None]:
    match plan.scheduler.protects:
        case Protects.NOBODY | Protects.EACH_POOL:
            return of_pool, of_pool
        case Protects.EACH_TENANT:
            # A tenant's own time, or that of the nearest that it is part of; so it is in the shards that gpuplan writes
            # (`resolveReclaimMinRuntimeQueue` in `resolver.go`, by `reclaimResolveMethod: queue`).
            stated = [above.spec.protect for above in plan.tree.path(tenant)]
            return (
                next((protect.preempt for protect in stated if protect.preempt is not None), None),
                next((protect.reclaim for protect in stated if protect.reclaim is not None), None),
            )
        case unknown:
            assert_never(unknown)


def _parties(actors: Iterable[_Actor]) -> tuple[Party, ...]:
    return tuple(actor.party for actor in actors)


def _in_quota(scheduler: SchedulerTraits, unit: Unit, actors: Iterable[_Actor]) -> tuple[Condition, ...]:
    """What a ResourceQuota adds; there is none on parts of GPUs, nor where the queue alone is the cap.

    Who takes back a guarantee needs no more than it: no quota is below that.
    """
    counts = unit.resource is not None or unit.device_class is not None
    if not counts or all(cap is None for actor in actors for cap in actor.quota.caps.values()):
        return ()
    waits_as_job = scheduler.evicts is Evicts.BY_QUEUE
    return (Condition.QUOTA_HAS_ROOM_OR_JOB if waits_as_job else Condition.QUOTA_HAS_ROOM,)


# --- By priority alone -------------------------------------------------------------------------------------------


def _fullness(unit: Unit, actors: Sequence[_Actor]) -> Condition:
    """Whether tenants may together use more than there is."""
    quotas = {actor.tenant.name: actor.quota for actor in actors}
    caps = [cap for quota in quotas.values() for cap in quota.caps.values()]
    known = [cap for cap in caps if cap is not None]
    fits = len(known) == len(caps) and sum(known, start=0) <= unit.capacity
    return Condition.NODE_FULL if fits else Condition.POOL_FULL


def _by_priority(
    scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor], when: tuple[Condition, ...]
) -> Iterator[Eviction]:
    """A lower value goes for a higher one whose class preempts, and nothing in a PriorityClass protects it."""
    evicting = [actor for actor in actors if evicts(scheduler, actor.tenant, actor.rank)]
    for value in _values(actors):
        evictors = [actor for actor in evicting if actor.rank.value > value]
        victims = [actor for actor in actors if actor.rank.value == value]
        if evictors:
            yield Eviction(*place, Mechanism.PRIORITY, _parties(evictors), _parties(victims), when)


def _values(actors: Iterable[_Actor]) -> list[int]:
    """The values of their classes, highest first."""
    return sorted({actor.rank.value for actor in actors}, reverse=True)


# --- By queues and shares ----------------------------------------------------------------------------------------


def _within(
    scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor], when: tuple[Condition, ...]
) -> Iterator[Eviction]:
    """The classes of each tenant, each below those of a higher value; tenants with the same classes together.

    Kueue's policies are those that gpuplan writes into every ClusterQueue, with fair sharing; the pods' own classes
    preempt nobody there.
    """
    found: dict[object, tuple[list[Party], list[Party], str | None]] = {}
    for _, of_tenant in groupby(actors, key=lambda actor: actor.tenant.name):
        own = list(of_tenant)
        evictors = [actor for actor in own if evicts(scheduler, actor.tenant, actor.rank)]
        victims = [actor for actor in own if may_be_evicted(scheduler, actor.rank)]
        for value in _values(victims):
            above = [actor.party for actor in evictors if actor.rank.value > value]
            below = [actor.party for actor in victims if actor.rank.value == value]
            if above:
                time = own[0].preempt_after
                classes = tuple(party.priority_class for party in above), tuple(party.priority_class for party in below)
                alike = found.setdefault((classes, time), ([], [], time))
                alike[0].extend(above)
                alike[1].extend(below)
    for above, below, time in found.values():
        yield Eviction(*place, Mechanism.QUEUE, tuple(above), tuple(below), when, time)


def _across(scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor]) -> Iterator[Eviction]:
    """Tenants and other tenants by what is borrowed, without regard to priority.

    Where only what is preemptible goes, other work stays within the guarantee, and gets from others only what makes
    that up. Who finds nobody but itself on the other side is left out.
    """
    borrowers = [actor for actor in actors if may_be_evicted(scheduler, actor.rank) and actor.quota.may_borrow]
    sharing = [actor for actor in borrowers if actor.tenant.surplus_weight > 0 or scheduler.leaves_preemption_to_queues]
    guaranteed = [actor for actor in actors if actor.has_guarantee]
    for mechanism, those, when in (
        (Mechanism.RECLAIM, guaranteed, (Condition.VICTIM_OVER_GUARANTEE, Condition.EVICTOR_WITHIN_GUARANTEE)),
        (Mechanism.FAIR_SHARE, sharing, (Condition.VICTIM_OVER_FAIR_SHARE, Condition.EVICTOR_WITHIN_FAIR_SHARE)),
    ):
        for time in dict.fromkeys(actor.reclaim_after for actor in borrowers):
            protected = [actor for actor in borrowers if actor.reclaim_after == time]
            evictors, victims = _facing(those, protected), _facing(protected, those)
            if evictors and victims:
                yield Eviction(*place, mechanism, evictors, victims, when, time)


def _facing(actors: Sequence[_Actor], others: Sequence[_Actor]) -> tuple[Party, ...]:
    """Those of the one side that find another tenant on the other."""
    names = {actor.tenant.name for actor in others}
    return _parties(actor for actor in actors if len(names) > 1 or (names and actor.tenant.name not in names))
