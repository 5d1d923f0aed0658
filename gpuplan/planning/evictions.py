"""Which priority class evicts which: the one relation that reports, checks and losses are derived from.

Three questions decide it, and a scheduler answers each by itself: whose pods evict at all, whose may be evicted, and
whether the one has the higher value. What else must be so, a full pool or a quota that is exceeded, is in
`gpuplan.planning.preemption`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gpuplan.planning.plan import PriorityClass, Tenant
from gpuplan.planning.schedulers import Evicts, SchedulerTraits
from gpuplan.policy.models import PriorityClassSpec


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
