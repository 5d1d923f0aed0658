"""The evictions between tenants and their classes, on units, CPU and memory of each pool.

Each scheduler has its own answer, and none is written in one place. What is here was read in:

- kube-scheduler: `pkg/scheduler/framework/plugins/defaultpreemption` of kubernetes/kubernetes. It knows no tenants. As
  many of a node's lower pods go, whoever placed them, as let the new one pass every filter (`SelectVictimsOnNode`):
  that of CPU and memory as well as that of GPUs (`fitsRequest` in `plugins/noderesources/fit.go`).
- Kueue 0.19: `pkg/scheduler/preemption/preemption.go`, with `FairSharingPreemptWithinNominal`, on by default since
  0.17; and `SatisfiesPreemptionPolicy` in its `common`. Work goes that uses what the other lacks quota of in the flavor
  (`flavorResourcesNeedPreemption`, `WorkloadUsesResources`), and so for CPU and memory where queues count them.
- KAI-Scheduler 0.17: `pkg/scheduler/actions/{preempt,reclaim}`, `plugins/proportion/reclaimable` and its `strategies`,
  `plugins/minruntime/resolver.go`. It makes room for all that a pod asks for, with or without quotas of it. Whoever
  reclaims is within its quota of GPUs, CPU and memory, and its victims' queue is above its own of any of them; from
  0.16.3 on it is passed over if it is above that of nothing that the pod asks for, and below one (`filter_victims.go`).
- Run:ai 3.0: its documentation; its scheduler is the one that KAI-Scheduler was made from
  (https://docs.nvidia.com/run-ai/self-hosted/documentation/platform-management/runai-scheduler).

Pods of tenants alone are looked at. Those of the system evict whomever they like. And KAI-Scheduler and Run:ai may move
any preemptible pod of a pool to another node of it, which ends and starts it, to make room (`actions/consolidation`);
not where KAI-Scheduler spreads pods (`setDefaultActions` in `pkg/apis/kai/v1/schedulingshard_types.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final, assert_never

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.amounts import capacity, compute_cap
from gpuplan.compiler.planning.grants import is_closed
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Pool, PriorityClass, Quota, Tenant, Unit, Workload
from gpuplan.compiler.planning.projects import minimum_run_time
from gpuplan.compiler.planning.schedulers import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.planning.tree import Tree
from gpuplan.compiler.policy.models import Allocation, PriorityClassSpec


class Mechanism(StrEnum):
    """The mechanism by which a pod is evicted."""

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
    """A condition of an eviction, in the scheduler's view, when the pod does not fit otherwise."""

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

    BY_KUBE_SCHEDULER = "by-kube-scheduler"
    """kube-scheduler places the pod, as it may where it asks for no GPUs, though the cluster has another scheduler."""


class Party(NamedTuple):
    """The pods of a tenant with one priority class; None for a tenant that may name none."""

    tenant: str
    priority_class: str | None


class Eviction(NamedTuple):
    """A way in which pods are evicted: any of ``evictors`` for any of ``victims``, if all of ``when`` is so.

    ``unit`` is what the pod lacks: a unit of the pool, or what is `Counted` of its nodes.
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

    @property
    def counted(self) -> Counted | None:
        """The resource of nodes that the pod lacks, or None if it lacks a unit."""
        return next((counted for counted in Counted if counted.value == self.unit), None)

    def holds(self, evictor: Party, victim: Party) -> bool:
        """Whether the one may evict the other in this way."""
        is_possible = (
            self.mechanism.is_within_tenants if evictor.tenant == victim.tenant else self.mechanism.is_across_tenants
        )
        return is_possible and evictor in self.evictors and victim in self.victims


def evictions(plan: Plan) -> tuple[Eviction, ...]:
    """Return every way of evicting: by pool, with units first and then resources of nodes."""
    found: list[Eviction] = []
    for pool in plan.pools:
        for unit in pool.units:
            found += _for_unit(plan, pool, unit)
        for counted in counted_in(plan):
            found += _for_nodes(plan, pool, counted)
    return tuple(found)


def counted_in(plan: Plan) -> tuple[Counted, ...]:
    """Return the resources of nodes that pods compete for: CPU and memory, and what queues count beside them."""
    return tuple(item for item in Counted if item is not Counted.PODS or item in _in_queues(plan))


def _for_unit(plan: Plan, pool: Pool, unit: Unit) -> Iterator[Eviction]:
    """Yield the evictions for a unit. kube-scheduler alone evicts nobody for a claim.

    What a pod would give back is left out when it looks for victims (`PreFilterExtensions` of the plugin
    `dynamicresources` is nil).
    """
    actors = tuple(_actors(plan, pool, unit))
    place = pool.name, unit.name
    match plan.scheduler.evicts:
        case Evicts.BY_PRIORITY:
            if pool.spec.allocation is Allocation.DEVICE_PLUGIN:
                when = _fullness(unit.capacity, actors), *_in_quota(plan.scheduler, unit, actors)
                yield from _by_priority(place, actors, when)
        case Evicts.BY_QUEUE | Evicts.BY_SHARE:
            when = Condition.QUEUE_FULL, *_in_quota(plan.scheduler, unit, actors)
            yield from _within(plan.scheduler, place, actors, when)
            yield from _across(plan.scheduler, place, actors)
        case unknown:
            assert_never(unknown)


def _for_nodes(plan: Plan, pool: Pool, counted: Counted) -> Iterator[Eviction]:
    """Yield the evictions for CPU or memory, which all pods ask for, also those without GPUs.

    Pods that kube-scheduler places evict by class, but with Kueue, where classes preempt nobody; there queues evict for
    what they count. Queues of the others place their pods themselves, and evict for whatever a node lacks.
    """
    place = pool.name, counted.value
    match plan.scheduler.evicts:
        case Evicts.BY_PRIORITY:
            comers = tuple(_comers(plan, pool, counted))
            is_counted = any(cap is not None for actor in comers for cap in actor.caps)
            quota = (Condition.QUOTA_HAS_ROOM,) if is_counted else ()
            yield from _by_priority(place, comers, (_fullness_of_nodes(plan, pool, counted, comers), *quota))
        case Evicts.BY_QUEUE:
            yield from _by_queues(plan, pool, counted)
        case Evicts.BY_SHARE:
            yield from _by_queues(plan, pool, counted)
            when = Condition.POOL_FULL, Condition.BY_KUBE_SCHEDULER
            yield from _by_priority(place, tuple(_comers(plan, pool, counted)), when)
        case unknown:
            assert_never(unknown)


def _by_queues(plan: Plan, pool: Pool, counted: Counted) -> Iterator[Eviction]:
    place, actors = (pool.name, counted.value), tuple(_queued(plan, pool, counted))
    yield from _within(plan.scheduler, place, actors, (Condition.QUEUE_FULL,))
    yield from _across(plan.scheduler, place, actors)


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
    return evict_each_other(tenant.priority_classes)


def evict_each_other(classes: Iterable[PriorityClass]) -> bool:
    """Whether one of some classes may evict another."""
    known = [*classes]
    evicting = [found.spec.value for found in known if found.spec.preempts]
    evictable = [found.spec.value for found in known if found.spec.preemptible]
    return bool(evicting and evictable) and max(evicting) > min(evictable)


def pairs_within(scheduler: SchedulerTraits, tenant: Tenant) -> Iterator[tuple[PriorityClass, PriorityClass]]:
    """Yield the classes of a tenant that evict others of it, each with one that it evicts."""
    victims = [found for found in tenant.priority_classes if may_be_evicted(scheduler, found.spec)]
    for higher in tenant.priority_classes if victims else ():
        if evicts(scheduler, tenant, higher.spec):
            yield from ((higher, lower) for lower in victims if lower.spec.value < higher.spec.value)


def standing_together(scheduler: SchedulerTraits, workloads: Sequence[Workload]) -> Iterator[Sequence[Workload]]:
    """Yield workloads that must fit at once: those that none of them evicts (`may_evict`), and the others by class."""
    highest: dict[str, PriorityClass] = {}
    for workload in workloads:
        rank, name = workload.priority_class, workload.tenant.name
        if rank is not None and (name not in highest or rank.spec.value > highest[name].spec.value):
            highest[name] = rank
    standing: list[Workload] = []
    lower: dict[tuple[str, str], list[Workload]] = {}
    for workload in workloads:
        tenant, rank = workload.tenant, workload.priority_class
        if rank is not None and may_evict(scheduler, tenant, highest[tenant.name].spec, rank.spec):
            lower.setdefault((tenant.name, rank.name), []).append(workload)
        else:
            standing.append(workload)
    yield from filter(None, (standing, *lower.values()))


def preemptibility(priority: PriorityClass) -> str:
    """Return the value of KAI-Scheduler's label for pods of a class."""
    return "preemptible" if priority.spec.preemptible else "non-preemptible"


def misread(plan: Plan) -> tuple[PriorityClass, ...]:
    """Return the classes whose preemptibility the scheduler gets wrong if work has no label."""
    bound = plan.scheduler.preemptible_below
    if bound is None:
        return ()
    return tuple(found for found in plan.priority_classes if found.spec.preemptible != (found.spec.value < bound))


# --- Who there is ------------------------------------------------------------------------------------------------


class _Actor(NamedTuple):
    """A party with what decides its lot, and how long it runs before its own tenant, or another one, may evict it.

    ``caps`` are what a ResourceQuota in each of its namespaces allows, None where it does not bound it.
    """

    party: Party
    tenant: Tenant
    rank: PriorityClassSpec
    caps: tuple[Amount | None, ...]
    may_borrow: bool
    has_guarantee: bool
    preempt_after: str | None
    reclaim_after: str | None


class _Holding(NamedTuple):
    """A tenant's bounds on a resource."""

    tenant: Tenant
    caps: tuple[Amount | None, ...]
    may_borrow: bool = False
    has_guarantee: bool = False


def _actors(plan: Plan, pool: Pool, unit: Unit) -> Iterator[_Actor]:
    """Yield the parties that may use the unit, by tenant with the highest class first."""
    tree, key = plan.tree, (pool.name, unit.name)
    for tenant, quota in tree.holders(key):
        if quota.is_granted:
            holders = (tree.find_quota(above, key) for above in tree.path(tenant))
            has_guarantee = any(holder.guaranteed > 0 for holder in holders if holder)
            # Nothing bounds its pods in namespaces that are the tenant's by their label.
            caps = (*quota.caps.values(), *((None,) if quota.labelled_cap is None else ()))
            holding = _Holding(tenant, caps, quota.may_borrow, has_guarantee)
            yield from _parties_of(plan, pool, holding)


def _parties_of(plan: Plan, pool: Pool, holding: _Holding) -> Iterator[_Actor]:
    tenant = holding.tenant
    default = next((found.spec for found in plan.priority_classes if found.spec.default), _WITHOUT_CLASS)
    of_pool = minimum_run_time(plan, pool) if plan.scheduler.protects is Protects.EACH_POOL else None
    run_times = _run_times(plan, tenant, of_pool)
    for found in sorted(tenant.priority_classes, key=lambda rank: (-rank.spec.value, rank.name)) or (None,):
        party = Party(tenant.name, found.name if found else None)
        yield _Actor(party, tenant, found.spec if found else default, *holding[1:], *run_times)


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
    """Return the condition that a ResourceQuota adds. Fractions have none, nor units that a queue alone caps.

    Who takes back a guarantee needs no more than it: no quota is below that.
    """
    if unit.asked_as is None or all(cap is None for actor in actors for cap in actor.caps):
        return ()
    waits_as_job = scheduler.evicts is Evicts.BY_QUEUE
    return (Condition.QUOTA_HAS_ROOM_OR_JOB if waits_as_job else Condition.QUOTA_HAS_ROOM,)


# --- CPU and memory ----------------------------------------------------------------------------------------------


def _comers(plan: Plan, pool: Pool, counted: Counted) -> Iterator[_Actor]:
    """Yield the parties whose pods may be on the pool's nodes, with GPUs or without.

    Where nothing keeps pods off, these are all. Those of no tenant come there, too, and are in no such table.
    """
    tenants = plan.tree.granted_by_pool.get(pool.name, ()) if is_closed(plan, pool) else plan.tenants
    for tenant in tenants:
        caps = [compute_cap(tenant.quotas, namespace, counted) for namespace in tenant.spec.namespaces]
        is_counted = caps and not plan.scheduler.counts_tenants
        yield from _parties_of(plan, pool, _Holding(tenant, tuple(caps) if is_counted else (None,)))


def _fullness_of_nodes(plan: Plan, pool: Pool, counted: Counted, comers: Sequence[_Actor]) -> Condition:
    there = capacity(pool, counted)
    return Condition.POOL_FULL if there is None or not is_closed(plan, pool) else _fullness(there, comers)


def _in_queues(plan: Plan) -> Mapping[Counted, Tree]:
    """Return the trees of what queues evict for if a quota counts it, whatever nodes have."""
    return plan.compute_trees if plan.scheduler.evicts is Evicts.BY_QUEUE else {}


def _queued(plan: Plan, pool: Pool, counted: Counted) -> Iterator[_Actor]:
    """Yield the parties whose work queues count in the pool.

    A queue of Kueue that says nothing of CPU has more of it than there is, and lends none: nobody goes for it. One of
    KAI-Scheduler is then within its quota of it, whatever it uses.
    """
    is_by_share = plan.scheduler.evicts is Evicts.BY_SHARE
    for tenant in plan.tenants:
        quotas = [quota for quota in tenant.quotas if quota.pool.name == pool.name and quota.is_granted]
        own = _quotas_on(plan, tenant, pool, counted)
        above = [quota for holder in plan.tree.above(tenant) for quota in _quotas_on(plan, holder, pool, counted)]
        is_bounded = bool(own or above)
        if quotas and (is_bounded or is_by_share):
            lent = [*quotas, *_quotas_on(plan, tenant, pool, *_OF_NODES)] if is_by_share else own
            may_borrow = any(quota.may_borrow for quota in lent) or not (own or is_by_share)
            has_guarantee = not is_bounded or any(quota.guaranteed > 0 for quota in (*own, *above))
            yield from _parties_of(plan, pool, _Holding(tenant, (), may_borrow, has_guarantee))


_OF_NODES: Final = (Counted.CPU, Counted.MEMORY)


def _quotas_on(plan: Plan, tenant: Tenant, pool: Pool, *counted: Counted) -> list[Quota]:
    """Return a tenant's quotas in the pool that count some of these, in their numbers."""
    trees = (plan.compute_trees[item] for item in counted if item in plan.compute_trees)
    views = (tree.find(tenant.name) for tree in trees)
    return [quota for view in views if view for quota in view.quotas if quota.pool.name == pool.name]


# --- By priority alone -------------------------------------------------------------------------------------------


def _fullness(capacity_: Amount, actors: Sequence[_Actor]) -> Condition:
    """Whether tenants may together use more than there is."""
    caps = [cap for of_tenant in {actor.tenant.name: actor.caps for actor in actors}.values() for cap in of_tenant]
    known = [cap for cap in caps if cap is not None]
    fits = len(known) == len(caps) and sum(known, start=0) <= capacity_
    return Condition.NODE_FULL if fits else Condition.POOL_FULL


def _by_priority(place: tuple[str, str], actors: Sequence[_Actor], when: tuple[Condition, ...]) -> Iterator[Eviction]:
    """Yield evictions of lower values by higher ones whose class preempts. Nothing in a PriorityClass protects pods."""
    evicting = [actor for actor in actors if actor.rank.preempts]
    for value in _values(actors):
        evictors = [actor for actor in evicting if actor.rank.value > value]
        victims = [actor for actor in actors if actor.rank.value == value]
        if evictors:
            yield Eviction(*place, Mechanism.PRIORITY, _parties(evictors), _parties(victims), when)


def _values(actors: Iterable[_Actor]) -> list[int]:
    """Return the values of their classes, highest first."""
    return sorted({actor.rank.value for actor in actors}, reverse=True)


# --- By queues and shares ----------------------------------------------------------------------------------------


def _within(
    scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor], when: tuple[Condition, ...]
) -> Iterator[Eviction]:
    """Yield evictions among the classes of each tenant. Tenants with the same classes stand together.

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
    """Yield evictions between tenants by what is borrowed, without regard to priority.

    Where only what is preemptible goes, other work stays within the guarantee, and gets from others only what makes
    that up. Who finds nobody but itself on the other side is left out.
    """
    borrowers = [actor for actor in actors if may_be_evicted(scheduler, actor.rank) and actor.may_borrow]
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
