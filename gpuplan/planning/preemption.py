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
any preemptible pod of a pool to another node of it, which ends and starts it, to make room (`actions/consolidation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import assert_never

from gpuplan.planning.evictions import evicts, may_be_evicted
from gpuplan.planning.plan import Plan, Pool, Quota, Tenant, Unit
from gpuplan.planning.projects import minimum_run_time
from gpuplan.planning.schedulers import Evicts, Protects, SchedulerTraits
from gpuplan.policy.models import Allocation
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


class Party(NamedTuple):
    """The pods of a tenant with one priority class; None for a tenant that may name none."""

    tenant: str
    priority_class: str | None


class Eviction(NamedTuple):
    """A way in which pods are evicted: any of ``evictors`` for any of ``victims``, if all of ``when`` is so.

    Parties of one tenant evict each other by some mechanisms only, those of two by others (`Mechanism`); who may evict
    nobody but others of its own tenant stands beside others like it.
    ``min_run_time`` is how long a victim has run at least, None where that does not matter.
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
                yield from _by_priority(plan.scheduler, place, actors, _fullness(unit, actors))
        case Evicts.BY_QUEUE | Evicts.BY_SHARE:
            yield from _by_queues(plan.scheduler, place, actors, _protection(plan, pool))
        case unknown:
            assert_never(unknown)


# --- Who there is ------------------------------------------------------------------------------------------------


class _Actor(NamedTuple):
    """A party with what decides its lot."""

    party: Party
    tenant: Tenant
    quota: Quota
    value: int
    preemptible: bool
    preempts: bool
    has_guarantee: bool


def _actors(plan: Plan, pool: Pool, unit: Unit) -> Iterator[_Actor]:
    """The parties that may use the unit at all, tenants in their order and the highest class first."""
    default = next((found for found in plan.priority_classes if found.spec.default), None)
    tree, key = plan.tree, (pool.name, unit.name)
    for tenant, quota in tree.holders(key):
        if all(cap == 0 for cap in quota.caps.values()):
            continue
        holders = (tree.find_quota(above, key) for above in tree.path(tenant))
        has_guarantee = any(holder.guaranteed > 0 for holder in holders if holder)
        classes = sorted(tenant.priority_classes, key=lambda found: (-found.spec.value, found.name))
        for found in classes or (None,):
            # Pods without a class have the default one; without that, the value 0, as the API server gives it.
            in_effect = found or default
            yield _Actor(
                party=Party(tenant.name, found.name if found else None),
                tenant=tenant,
                quota=quota,
                value=in_effect.spec.value if in_effect else 0,
                preemptible=in_effect is None or in_effect.spec.preemptible,
                preempts=in_effect is None or in_effect.spec.preempts,
                has_guarantee=has_guarantee,
            )


def _parties(actors: Iterable[_Actor]) -> tuple[Party, ...]:
    return tuple(actor.party for actor in actors)


# --- By priority alone -------------------------------------------------------------------------------------------


def _fullness(unit: Unit, actors: Sequence[_Actor]) -> Condition:
    """Whether tenants may together use more than there is."""
    quotas = {actor.tenant.name: actor.quota for actor in actors}
    caps = [cap for quota in quotas.values() for cap in quota.caps.values()]
    known = [cap for cap in caps if cap is not None]
    fits = len(known) == len(caps) and sum(known, start=0) <= unit.capacity
    return Condition.NODE_FULL if fits else Condition.POOL_FULL


def _by_priority(
    scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor], when: Condition
) -> Iterator[Eviction]:
    """A lower value goes for a higher one whose class preempts, and nothing in a PriorityClass protects it."""
    for value in _values(actors):
        evictors = [actor for actor in actors if actor.value > value and evicts(scheduler, actor.tenant, actor)]
        victims = [actor for actor in actors if actor.value == value]
        if evictors:
            yield Eviction(*place, Mechanism.PRIORITY, _parties(evictors), _parties(victims), (when,))


def _values(actors: Iterable[_Actor]) -> list[int]:
    """The values of their classes, highest first."""
    return sorted({actor.value for actor in actors}, reverse=True)


# --- By queues and shares ----------------------------------------------------------------------------------------


_WHEN = {
    Mechanism.RECLAIM: (Condition.VICTIM_OVER_GUARANTEE, Condition.EVICTOR_WITHIN_GUARANTEE),
    Mechanism.FAIR_SHARE: (Condition.VICTIM_OVER_FAIR_SHARE, Condition.EVICTOR_WITHIN_FAIR_SHARE),
}


def _within(
    place: tuple[str, str], tenants: Iterable[tuple[Sequence[_Actor], Sequence[_Actor], str | None]]
) -> Iterator[Eviction]:
    """The classes of each tenant, each below those of a higher value; tenants with the same classes together."""
    found: dict[tuple[tuple[str | None, ...], tuple[str | None, ...], str | None], tuple[list[Party], list[Party]]] = {}
    for evictors, victims, min_run_time in tenants:
        for value in _values(victims):
            above = [actor.party for actor in evictors if actor.value > value]
            below = [actor.party for actor in victims if actor.value == value]
            if above:
                key = _classes(above), _classes(below), min_run_time
                alike = found.setdefault(key, ([], []))
                alike[0].extend(above)
                alike[1].extend(below)
    for (_, _, min_run_time), (above, below) in found.items():
        when = (Condition.QUEUE_FULL,)
        yield Eviction(*place, Mechanism.QUEUE, tuple(above), tuple(below), when, min_run_time)


def _classes(parties: Iterable[Party]) -> tuple[str | None, ...]:
    return tuple(party.priority_class for party in parties)


def _by_tenant(actors: Iterable[_Actor]) -> list[list[_Actor]]:
    found: dict[str, list[_Actor]] = {}
    for actor in actors:
        found.setdefault(actor.tenant.name, []).append(actor)
    return list(found.values())


def _across(
    place: tuple[str, str],
    evictors: Sequence[_Actor],
    victims: Sequence[_Actor],
    mechanism: Mechanism,
    min_run_time: str | None,
) -> Iterator[Eviction]:
    """Tenants and other tenants; who finds nobody but itself on the other side is left out."""
    evictors, victims = _facing(evictors, victims), _facing(victims, evictors)
    if evictors and victims:
        yield Eviction(*place, mechanism, _parties(evictors), _parties(victims), _WHEN[mechanism], min_run_time)


def _facing(actors: Sequence[_Actor], others: Sequence[_Actor]) -> list[_Actor]:
    """Those of the one side that find another tenant on the other."""
    names = {actor.tenant.name for actor in others}
    return [actor for actor in actors if len(names) > 1 or (names and actor.tenant.name not in names)]


# --- How long pods run before they go ----------------------------------------------------------------------------


class _Protection(NamedTuple):
    """How long the work of each tenant runs before another pod may evict it: one of its own, or another tenant's."""

    preempt: Mapping[str, str | None]
    reclaim: Mapping[str, str | None]


def _protection(plan: Plan, pool: Pool) -> _Protection:
    match plan.scheduler.protects:
        case Protects.NOBODY:
            return _alike(plan, None)
        case Protects.EACH_POOL:
            return _alike(plan, minimum_run_time(plan, pool))
        case Protects.EACH_TENANT:
            # A tenant's own time, or that of the nearest that it is part of; so it is in the shards that gpuplan writes
            # (`resolveReclaimMinRuntimeQueue` in `resolver.go`, by `reclaimResolveMethod: queue`).
            paths = {tenant.name: plan.tree.path(tenant) for tenant in plan.tenants}
            return _Protection(
                {name: _first(tenant.spec.protect.preempt for tenant in path) for name, path in paths.items()},
                {name: _first(tenant.spec.protect.reclaim for tenant in path) for name, path in paths.items()},
            )
        case unknown:
            assert_never(unknown)


def _alike(plan: Plan, min_run_time: str | None) -> _Protection:
    same = dict.fromkeys([tenant.name for tenant in plan.tenants], min_run_time)
    return _Protection(same, same)


def _first(stated: Iterable[str | None]) -> str | None:
    return next((value for value in stated if value is not None), None)


def _by_queues(
    scheduler: SchedulerTraits, place: tuple[str, str], actors: Sequence[_Actor], protection: _Protection
) -> Iterator[Eviction]:
    """Within a tenant by priority, across tenants by what is borrowed, without regard to priority.

    Kueue's policies are those that gpuplan writes into every ClusterQueue, with fair sharing; the pods' own classes
    preempt nobody there. Where only what is preemptible goes, other work stays within the guarantee, and gets from
    others only what makes that up.
    """
    yield from _within(
        place,
        [
            (
                [actor for actor in own if evicts(scheduler, actor.tenant, actor)],
                [actor for actor in own if may_be_evicted(scheduler, actor)],
                protection.preempt[own[0].tenant.name],
            )
            for own in _by_tenant(actors)
        ],
    )
    borrowers = [actor for actor in actors if may_be_evicted(scheduler, actor) and actor.quota.may_borrow]
    sharing = [actor for actor in borrowers if actor.tenant.surplus_weight > 0 or scheduler.leaves_preemption_to_queues]
    guaranteed = [actor for actor in actors if actor.has_guarantee]
    for evictors, mechanism in ((guaranteed, Mechanism.RECLAIM), (sharing, Mechanism.FAIR_SHARE)):
        by_time: dict[str | None, list[_Actor]] = {}
        for victim in borrowers:
            by_time.setdefault(protection.reclaim[victim.tenant.name], []).append(victim)
        for min_run_time, victims in by_time.items():
            yield from _across(place, evictors, victims, mechanism, min_run_time)
