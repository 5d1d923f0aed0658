"""What a scheduler, the plan's own or another, would lose of this very plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.catalog.schedulers import Support
from gpuplan.checks import uses
from gpuplan.checks.caps import (
    cap_field,
    cap_of,
    each_quota,
    envelopes,
    granted_together,
    grants_by_unit,
    is_bounded,
    shortfalls,
)
from gpuplan.checks.ladder import Ladder
from gpuplan.checks.uses import FindUses, Use
from gpuplan.checks.wording import add, number
from gpuplan.patterns import regex
from gpuplan.planning.evictions import pairs_within
from gpuplan.planning.plan import Amount, Mig, Plan, Pool, Quota, Tenant, Unit, UnitKey
from gpuplan.planning.preemption import Party, evictions
from gpuplan.planning.projects import ranks, seconds
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.policy.models import Allocation, Cap, Training
from gpuplan.wording import listing


def losses(plan: Plan, concept: str, scheduler: SchedulerTraits) -> tuple[Use, ...]:
    """The places where a scheduler would not do what the plan says of a concept of the capability matrix.

    A scheduler that keeps something only in part may keep all that a plan asks: where all caps fit into the pool,
    every guarantee holds on plain Kubernetes.
    """
    kept = scheduler.capability(concept)
    if kept.support is Support.EXACT:
        return ()
    find = PLACES[kept.lost] if kept.lost else uses.USES[concept]
    return tuple(find(plan if plan.scheduler is scheduler else plan.under(scheduler)))


def contended(plan: Plan) -> frozenset[UnitKey]:
    """The units of which tenants may together use more than there are.

    On others everybody finds what it may use, whoever came first: nothing has to be lent, weighed or taken back.
    """
    capacity = {(pool.name, unit.name): unit.capacity for pool in plan.pools for unit in pool.units}
    return frozenset(
        key
        for key, grants in grants_by_unit(plan).items()
        if len(grants) > 1
        and (any(grant.cap is None for grant in grants) or add([grant.cap or 0 for grant in grants]) > capacity[key])
    )


# --- Tenants -----------------------------------------------------------------------------------------------------


def _undivided(plan: Plan) -> Iterator[Use]:
    """Tenants whose namespaces are meant to share a quota; a `split` says what each has, which any scheduler keeps."""
    for tenant in plan.tenants:
        if len(tenant.spec.namespaces) > 1:
            for quota in tenant.quotas:
                if not quota.split and cap_of(plan, quota) != 0:
                    several = f"{len(tenant.spec.namespaces)} namespaces"
                    yield Use(quota.at, f"`{tenant.name}` shares `{quota.unit.name}` among {several}")


def _exceeded_parents(plan: Plan) -> Iterator[Use]:
    """Parents' quotas of which more may be used.

    A parent that has namespaces uses its cap itself. Where the children's guarantees alone are too much, or parents
    form a circle, that is reported for itself.
    """
    for envelope in envelopes(plan):
        if any(above.parent == envelope.tenant.name for above in plan.tree.above(envelope.tenant)):
            continue
        bound = cap_of(plan, envelope.quota)
        own = [bound] if envelope.tenant.spec.namespaces else []
        caps = [*own, *(cap_of(plan, quota) for _, quota in envelope.children)]
        known = [cap for cap in caps if cap is not None]
        exceeds = len(known) < len(caps) or (bound is not None and add(known) > bound)
        if bound is not None and exceeds and envelope.promised <= envelope.quota.guaranteed:
            used = add(known) if len(known) == len(caps) else None
            yield _exceeded(plan, envelope.tenant, envelope.quota, bound, used)


def _exceeded(plan: Plan, parent: Tenant, quota: Quota, bound: Amount, used: Amount | None) -> Use:
    who = "it and its children" if parent.spec.namespaces else "its children"
    most = "no bound" if used is None else number(used)
    text = f"`{parent.name}` has {number(bound)} `{quota.unit.name}`, {who} {most}"
    return Use(quota.at / cap_field(plan), text)


def _below_departments(plan: Plan) -> Iterator[Use]:
    """Tenants whose parent has a parent itself."""
    for tenant in plan.tenants:
        if len(plan.tree.path(tenant)) > 2:
            yield Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`, which has a parent itself")


def _contended_weights(plan: Plan) -> Iterator[Use]:
    found = [tenant for tenant in plan.tenants if tenant.surplus_weight != 1]
    for tenant in _borrowers(plan, found):
        yield uses.weight(tenant)


def _contended_ranks(plan: Plan) -> Iterator[Use]:
    found = [tenant for tenant in plan.tenants if tenant.spec.surplus.rank != 0]
    for tenant in _borrowers(plan, found):
        yield uses.rank(tenant)


def _borrowers(plan: Plan, tenants: list[Tenant]) -> Iterator[Tenant]:
    """Those of the tenants that, themselves or below them, may borrow a contended unit."""
    if not tenants:
        return
    keys = contended(plan)
    wanted = {
        above.name
        for tenant, quota in each_quota(plan)
        if quota.key in keys and quota.may_borrow
        for above in plan.tree.path(tenant)
    }
    for tenant in tenants:
        if tenant.name in wanted:
            yield tenant


def _contended_protections(plan: Plan) -> Iterator[Use]:
    """Protections of tenants whose pods may have to go for anybody's."""
    for tenant in _concerned(plan, [tenant for tenant in plan.tenants if _is_protected(tenant)]):
        yield from uses.preempt_protection(tenant)
        yield from uses.reclaim_protection(tenant)


def _queued_protections(plan: Plan) -> Iterator[Use]:
    """Protections that a queue ignores: among its own pods where some go before others, of borrowed units in any."""
    found = [tenant for tenant in plan.tenants if _is_protected(tenant)]
    for tenant in found:
        if uses.has_order(tenant):
            yield from uses.preempt_protection(tenant)
    for tenant in _borrowers(plan, found):
        yield from uses.reclaim_protection(tenant)


def _unequal_protections(plan: Plan) -> Iterator[Use]:
    """Protections in pools whose tenants do not all ask for the same, of both kinds."""
    asked: dict[str, set[int]] = {}
    for tenant in plan.tenants:
        times = {seconds(duration or "") for duration in (tenant.spec.protect.preempt, tenant.spec.protect.reclaim)}
        for quota in tenant.quotas:
            asked.setdefault(quota.pool.name, set()).update(times)
    unequal = {pool for pool, times in asked.items() if len(times) > 1}
    for tenant in plan.tenants:
        if any(quota.pool.name in unequal for quota in tenant.quotas):
            yield from uses.preempt_protection(tenant)
            yield from uses.reclaim_protection(tenant)


def _unnamed_ranks(plan: Plan) -> Iterator[Use]:
    """Ranks that have one name with another."""
    names = ranks(plan.tenants)
    shared = [rank for rank, name in names.items() if list(names.values()).count(name) > 1]
    for tenant in plan.tenants:
        if tenant.spec.surplus.rank in shared and tenant.spec.surplus.rank != 0:
            yield uses.rank(tenant)


def _is_protected(tenant: Tenant) -> bool:
    return tenant.spec.protect.preempt is not None or tenant.spec.protect.reclaim is not None


def _concerned(plan: Plan, tenants: list[Tenant]) -> Iterator[Tenant]:
    """Those of the tenants that have a quota on a contended unit."""
    keys = contended(plan) if tenants else frozenset()
    for tenant in tenants:
        if any(quota.key in keys for quota in tenant.quotas):
            yield tenant


# --- Quotas ------------------------------------------------------------------------------------------------------


def _shared_caps(plan: Plan) -> Iterator[Use]:
    """Pools of one tenant that a ResourceQuota cannot tell apart."""
    for tenant in plan.tenants:
        for resource, quotas in granted_together(tenant):
            if any(is_bounded(plan, quota) for quota in quotas):
                names = listing([quota.pool.name for quota in quotas])
                yield Use(quotas[1].at / "pool", f"`{resource}` is what `{tenant.name}` has of {names}")


def _mixed_units(plan: Plan) -> Iterator[Use]:
    """Units of one pool that one number counts together, and that no ResourceQuota keeps to their guarantees."""
    for tenant in plan.tenants:
        for quotas in uses.several_units(tenant):
            if not tenant.spec.namespaces or any(quota.may_borrow for quota in quotas):
                yield uses.units(tenant, quotas)


def _short_guarantees(plan: Plan) -> Iterator[Use]:
    """Guarantees for which the others' caps leave no room."""
    for grants in grants_by_unit(plan).values():
        for short in shortfalls(grants, grants[0].quota.unit.capacity):
            yield uses.guarantee(short.grant.tenant, short.grant.quota)


def _limits_not_given(plan: Plan) -> Iterator[Use]:
    """Limits that are no cap, or whose units nobody gives back."""
    if plan.cluster.scheduler.spec.cap is Cap.GUARANTEED:
        yield from uses.limits(plan)
        return
    keys = contended(plan)
    for tenant, quota in each_quota(plan):
        if quota.may_borrow and quota.key in keys:
            yield uses.limit(tenant, quota)


def _lent_without_bound(plan: Plan) -> Iterator[Use]:
    """Bounds on what is lent of contended units that somebody else may borrow."""
    bounded = [(tenant, quota) for tenant, quota in each_quota(plan) if quota.lendable < quota.guaranteed]
    if not bounded:
        return
    keys = contended(plan)
    borrowers: dict[UnitKey, set[str]] = {}
    for tenant, quota in each_quota(plan):
        if tenant.spec.namespaces and quota.may_borrow and quota.key in keys:
            borrowers.setdefault(quota.key, set()).add(tenant.name)
    for tenant, quota in bounded:
        if borrowers.get(quota.key, set()) - {tenant.name}:
            yield uses.lending_bound(tenant, quota)


# --- Priorities --------------------------------------------------------------------------------------------------


def _evictions_across_tenants(plan: Plan) -> Iterator[Use]:
    """Classes by which pods of one tenant evict those of another from units that are contended."""
    keys = contended(plan)
    victims: dict[str, set[str]] = {}
    for eviction in evictions(plan) if keys else ():
        if (eviction.pool, eviction.unit) in keys and eviction.mechanism.is_across_tenants:
            for name, users in _users(eviction.evictors).items():
                others = {party.tenant for party in eviction.victims if users - {party.tenant}}
                victims.setdefault(name, set()).update(others)
    for found in plan.priority_classes:
        if names := victims.get(found.name):
            yield Use(found.at / "preempts", f"pods with `{found.name}` evict lower ones of {listing(sorted(names))}")


def _users(parties: Iterable[Party]) -> Mapping[str, set[str]]:
    """The tenants of the parties, by the class that they name."""
    users: dict[str, set[str]] = {}
    for party in parties:
        if party.priority_class is not None:
            users.setdefault(party.priority_class, set()).add(party.tenant)
    return users


def _evictable(plan: Plan) -> Iterator[Use]:
    """Classes that are not to be evicted, below others that evict."""
    ladder = Ladder(found for found in plan.priority_classes if found.spec.preempts)
    for found in plan.priority_classes:
        evictors = () if found.spec.preemptible else ladder.names_above(found.spec.value)
        if evictors:
            yield Use(found.at / "preemptible", f"pods of `{found.name}` are evicted by those of {listing(evictors)}")


def _evictable_in_queues(plan: Plan) -> Iterator[Use]:
    """Classes that are not to be evicted, but are by higher ones of a tenant's own or where the tenant borrows.

    A queue evicts for all of its classes or for none.
    """
    borrowers = {tenant.name for tenant in _borrowers(plan, list(plan.tenants))}
    evictors: dict[str, set[str]] = {}
    for tenant in plan.tenants:
        for higher, lower in pairs_within(plan.scheduler, tenant):
            evictors.setdefault(lower.name, set()).add(higher.name)
    for found in plan.priority_classes:
        if found.spec.preemptible:
            continue
        if above := sorted(evictors.get(found.name, ())):
            yield Use(found.at / "preemptible", f"pods of `{found.name}` are evicted by those of {listing(above)}")
        lent = [
            tenant.name
            for tenant in plan.tenants
            if tenant.name in borrowers and found.name in [item.name for item in tenant.priority_classes]
        ]
        if lent:
            yield Use(found.at / "preemptible", f"pods of `{found.name}` give back what {listing(lent)} borrowed")


def _evicting_all_the_same(plan: Plan) -> Iterator[Use]:
    """Classes that are to evict nobody, in tenants whose work of theirs evicts some."""
    victims: dict[str, set[str]] = {}
    for tenant in plan.tenants:
        for higher, lower in pairs_within(plan.scheduler, tenant) if tenant.spec.namespaces and tenant.quotas else ():
            victims.setdefault(higher.name, set()).add(lower.name)
    for found in plan.priority_classes:
        if found.name in victims and not found.spec.preempts:
            below = listing(sorted(victims[found.name]))
            yield Use(found.at / "preempts", f"pods of `{found.name}` evict those of {below}")


# --- Pools and workloads -----------------------------------------------------------------------------------------

# KAI-Scheduler reads a MIG resource's size from its name; what it cannot read costs nothing
# (`pkg/scheduler/api/common_info/resources/mig.go`).
_KAI_COUNTS = regex(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb")


def uncounted_profiles(pool: Pool) -> tuple[Unit, ...]:
    """The units of a partitioned pool that KAI-Scheduler counts as nothing."""
    if not isinstance(pool.sharing, Mig) or pool.sharing.time_slicing:
        return ()
    named = [(unit, unit.resource) for unit in pool.units if unit.resource and "/mig-" in unit.resource]
    return tuple(unit for unit, resource in named if not _KAI_COUNTS.fullmatch(resource))


def _uncounted_mig(plan: Plan) -> Iterator[Use]:
    """Partitions without a size in their name, and whole GPUs beside partitioned ones."""
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            lost = [unit.name for unit in uncounted_profiles(pool)]
            lost += ["gpu"] if pool.find_unit("gpu") else []
            if lost:
                yield Use(pool.sharing.layout_at, f"{listing(lost)} of pool `{pool.name}`")


def _unequal_devices(plan: Plan) -> Iterator[Use]:
    """Pools whose claimed devices are not worth the same."""
    for pool in plan.pools:
        if pool.spec.allocation is Allocation.DRA and len({unit.gpu_weight for unit in pool.units}) > 1:
            names = listing([unit.name for unit in pool.units])
            yield Use(pool.at / "allocation", f"{names} of pool `{pool.name}`")


def _partial_gangs(plan: Plan) -> Iterator[Use]:
    """Gangs that are not all pods of their workload."""
    for workload in plan.workloads:
        match workload.work:
            case Training(gang=int() as gang, pods=pods) if 1 < gang < pods:
                yield Use(workload.work_at / "gang", f"`{workload.name}` needs {gang} of {pods} pods at once")


PLACES: Mapping[str, FindUses] = {
    "undivided": _undivided,
    "exceeded-parents": _exceeded_parents,
    "shared-caps": _shared_caps,
    "short-guarantees": _short_guarantees,
    "limits-not-given": _limits_not_given,
    "lent-without-bound": _lent_without_bound,
    "contended-weights": _contended_weights,
    "contended-ranks": _contended_ranks,
    "contended-protections": _contended_protections,
    "evictions-across-tenants": _evictions_across_tenants,
    "evictable": _evictable,
    "queued-protections": _queued_protections,
    "evictable-in-queues": _evictable_in_queues,
    "evicting-all-the-same": _evicting_all_the_same,
    "partial-gangs": _partial_gangs,
    "mixed-units": _mixed_units,
    "uncounted-mig": _uncounted_mig,
    "unequal-devices": _unequal_devices,
    "below-departments": _below_departments,
    "unnamed-ranks": _unnamed_ranks,
    "unequal-protections": _unequal_protections,
}
"""Where less is lost than what is asked for, by the name that the capability matrix gives it (`lost`)."""
