"""What a plan asks of its scheduler that not every one keeps: where it does, and where a scheduler would lose it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.schedulers import Support
from gpuplan.compiler.checks.caps import (
    cap_field,
    cap_of,
    each_quota,
    envelopes,
    grants_by_unit,
    shared_caps,
    shortfalls,
)
from gpuplan.compiler.checks.wording import add, number
from gpuplan.compiler.planning.amounts import amount_text, capacity
from gpuplan.compiler.planning.dra import dynamic_pools
from gpuplan.compiler.planning.fallbacks import chain, fits_topology
from gpuplan.compiler.planning.grants import counted_with, is_kept
from gpuplan.compiler.planning.plan import (
    Counted,
    Fraction,
    Mig,
    Plan,
    Pool,
    PriorityClass,
    Quota,
    Tenant,
    Unit,
    UnitKey,
    Workload,
)
from gpuplan.compiler.planning.pods import defaults_of
from gpuplan.compiler.planning.preemption import Condition, Eviction, evictions, pairs_within
from gpuplan.compiler.planning.projects import ranks, seconds, times_of
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.policy.models import Allocation, Cap, Inference, Training


class Use(NamedTuple):
    """A place in the policy, and what it asks for there."""

    at: Origin
    text: str


Uses = Iterator[Use]
FindUses = Callable[[Plan], Iterable[Use]]


def uses(plan: Plan, concept: str) -> tuple[Use, ...]:
    """The places where the plan asks for a concept of the capability matrix."""
    return tuple(USES[concept](plan))


def losses(plan: Plan, concept: str, scheduler: SchedulerTraits) -> tuple[Use, ...]:
    """The places where a scheduler would not do what the plan says of a concept of the capability matrix.

    A scheduler that keeps something only in part may keep all that a plan asks: where all caps fit into the pool,
    every guarantee holds on plain Kubernetes.
    """
    kept = scheduler.capability(concept)
    if kept.support is Support.EXACT:
        return ()
    find = PLACES[kept.lost] if kept.lost else USES[concept]
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


def _tenants(find: Callable[[Tenant], Uses], among: Callable[[Plan], Container[str]] | None = None) -> FindUses:
    """What each tenant asks for; only if its name is ``among`` these, who are looked for where there is a choice."""

    def found(plan: Plan) -> Uses:
        asked = [(tenant.name, use) for tenant in plan.tenants for use in find(tenant)]
        names = among(plan) if among and asked else ()
        return (use for name, use in asked if among is None or name in names)

    return found


def _namespaces(tenant: Tenant) -> Uses:
    if len(tenant.spec.namespaces) > 1 and tenant.quotas:
        yield Use((tenant.at / "namespaces").key, f"`{tenant.name}` has {len(tenant.spec.namespaces)} namespaces")


def _parent(tenant: Tenant) -> Uses:
    if tenant.parent is not None:
        yield Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`")


def _weight(tenant: Tenant) -> Uses:
    if tenant.surplus_weight != 1:
        yield Use(tenant.at / "surplus" / "weight", f"`{tenant.name}` has weight {number(tenant.surplus_weight)}")


def _rank(tenant: Tenant) -> Uses:
    if tenant.spec.surplus.rank != 0:
        yield Use(tenant.at / "surplus" / "rank", f"`{tenant.name}` has rank {tenant.spec.surplus.rank}")


def _protections(tenant: Tenant) -> Uses:
    yield from _preempt_protection(tenant)
    yield from _reclaim_protection(tenant)


def _preempt_protection(tenant: Tenant) -> Uses:
    if tenant.spec.protect.preempt is not None:
        yield Use(tenant.at / "protect" / "preempt", f"`{tenant.name}`: {tenant.spec.protect.preempt}")


def _reclaim_protection(tenant: Tenant) -> Uses:
    if tenant.spec.protect.reclaim is not None:
        yield Use(tenant.at / "protect" / "reclaim", f"`{tenant.name}`: {tenant.spec.protect.reclaim}")


def _labelled(tenant: Tenant) -> Uses:
    if tenant.spec.labelled_namespaces and tenant.quotas:
        yield Use(tenant.at / "labelledNamespaces", f"`{tenant.name}` has namespaces by their label")


def _labelled_claims(plan: Plan) -> Uses:
    for tenant in plan.tenants:
        if any(quota.unit.device_class and quota.labelled_cap is None for quota in tenant.quotas):
            yield from _labelled(tenant)


def _container_defaults(tenant: Tenant) -> Uses:
    for found in defaults_of(tenant).values():
        if found.stated:
            yield Use(found.at.key, f"`{tenant.name}` gives containers {found.counted.value} that say nothing of it")


def _time_limits(tenant: Tenant) -> Uses:
    for at, time in times_of(tenant):
        yield Use(at, f"`{tenant.name}`: {time}")


def _class_access(tenant: Tenant) -> Uses:
    if tenant.priority_classes:
        names = listing([found.name for found in tenant.priority_classes])
        yield Use((tenant.at / "priorityClasses").key, f"`{tenant.name}` may name {names}")


def _order(tenant: Tenant) -> Uses:
    """Where some of the tenant's pods may go before others."""
    if len({found.spec.value for found in tenant.priority_classes}) > 1:
        yield from _class_access(tenant)


def _several_pools(tenant: Tenant) -> Uses:
    names = sorted({quota.pool.name for quota in tenant.quotas})
    if len(names) > 1:
        yield Use((tenant.at / "quotas").key, f"`{tenant.name}` has quotas on {listing(names)}")


def _undivided(plan: Plan) -> Uses:
    """Tenants whose namespaces are meant to share a quota; a `split` says what each has, which any scheduler keeps."""
    for tenant, quota in each_quota(plan):
        several = len(tenant.spec.namespaces)
        if several > 1 and not quota.split and cap_of(plan, quota) != 0:
            yield Use(quota.at, f"`{tenant.name}` shares `{quota.unit.name}` among {several} namespaces")


def _exceeded_parents(plan: Plan) -> Uses:
    """Parents' quotas of which more may be used.

    A parent that has namespaces uses its cap itself. Where the children's guarantees alone are too much, or parents
    form a circle, that is reported for itself.
    """
    for envelope in envelopes(plan):
        parent, quota, children = envelope
        bound = cap_of(plan, quota)
        is_in_circle = any(above.parent == parent.name for above in plan.tree.above(parent))
        if bound is None or is_in_circle or envelope.promised > quota.guaranteed:
            continue
        own = [bound] if parent.has_work else []
        caps = [*own, *(cap_of(plan, part) for _, part in children)]
        known = add([cap for cap in caps if cap is not None])
        if None in caps or known > bound:
            who = "it and its children" if own else "its children"
            most = "no bound" if None in caps else number(known)
            text = f"`{parent.name}` has {number(bound)} `{quota.unit.name}`, {who} {most}"
            yield Use(quota.at / cap_field(plan), text)


def _below_departments(plan: Plan) -> Uses:
    """Tenants whose parent has a parent itself."""
    for tenant in plan.tenants:
        if len(plan.tree.path(tenant)) > 2:
            yield Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`, which has a parent itself")


def _borrowers(plan: Plan) -> frozenset[str]:
    """The tenants that, themselves or below them, may borrow a contended unit."""
    keys = contended(plan)
    return frozenset(
        above.name
        for tenant, quota in each_quota(plan)
        if quota.key in keys and quota.may_borrow
        for above in plan.tree.path(tenant)
    )


def _concerned(plan: Plan) -> frozenset[str]:
    """The tenants that have a quota on a contended unit."""
    keys = contended(plan)
    return frozenset(tenant.name for tenant, quota in each_quota(plan) if quota.key in keys)


def _ordered(plan: Plan) -> frozenset[str]:
    return frozenset(tenant.name for tenant in plan.tenants for _ in _order(tenant))


def _unequal(plan: Plan) -> frozenset[str]:
    """The tenants in pools whose tenants do not all ask for the same protection, of both kinds."""
    asked: dict[str, set[int]] = {}
    for tenant, quota in each_quota(plan):
        times = (tenant.spec.protect.preempt, tenant.spec.protect.reclaim)
        asked.setdefault(quota.pool.name, set()).update(seconds(time or "") for time in times)
    return frozenset(tenant.name for tenant, quota in each_quota(plan) if len(asked[quota.pool.name]) > 1)


def _of_one_rank(plan: Plan) -> frozenset[str]:
    """The tenants whose ranks have one name with another."""
    names = ranks(plan.tenants)
    shared = {rank for rank, name in names.items() if list(names.values()).count(name) > 1}
    return frozenset(tenant.name for tenant in plan.tenants if tenant.spec.surplus.rank in shared)


def _queued_protections(plan: Plan) -> Uses:
    """Protections that a queue ignores: among its own pods where some go before others, of borrowed units in any."""
    yield from _tenants(_preempt_protection, _ordered)(plan)
    yield from _tenants(_reclaim_protection, _borrowers)(plan)


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(find: Callable[[Tenant, Quota], Uses]) -> FindUses:
    return lambda plan: (use for tenant, quota in each_quota(plan) for use in find(tenant, quota))


def _class_limits(tenant: Tenant, quota: Quota) -> Uses:
    for name, limit in quota.class_limits.items():
        most = f"at most {number(limit)} `{quota.unit.name}` of `{quota.pool.name}`"
        yield Use(quota.at / "classLimits" / name, f"pods of `{name}` of `{tenant.name}` use {most}")


def _unscoped_classes(plan: Plan) -> Uses:
    for tenant, quota in each_quota(plan):
        for use, name in zip(_class_limits(tenant, quota), quota.class_limits, strict=True):
            if not is_kept(quota, plan.cluster.cap):
                yield use
            elif others := counted_with(tenant, quota, name, plan.cluster.cap):
                pools = listing(list(dict.fromkeys(other.pool.name for other in others)))
                yield use._replace(text=f"{use.text}, counted with those of {pools}")


def _guarantee(tenant: Tenant, quota: Quota) -> Uses:
    if quota.guaranteed > 0:
        text = f"`{tenant.name}` is guaranteed {number(quota.guaranteed)} `{quota.unit.name}` of `{quota.pool.name}`"
        yield Use(quota.at / "guaranteed", text)


def _limit(tenant: Tenant, quota: Quota) -> Uses:
    if quota.may_borrow:
        most = "any number of" if quota.limit is None else number(quota.limit)
        text = f"`{tenant.name}` may use {most} `{quota.unit.name}`, and {number(quota.guaranteed)} are guaranteed"
        yield Use(quota.at / "limit", text)


def _compute(tenant: Tenant, quota: Quota) -> Uses:
    """What a quota says itself; of what follows from units the pool speaks."""
    for found in quota.compute:
        if not found.is_derived and found.counted is not Counted.PODS:
            amount = f"{amount_text(found.counted, found.guaranteed)} {found.counted.value}"
            yield Use(found.at, f"`{tenant.name}` has {amount} of `{quota.pool.name}`")


def _all_compute(plan: Plan) -> Uses:
    yield from _quotas(_compute)(plan)
    for pool in plan.pools:
        if any(found.is_derived for _, quota in each_quota(plan) if quota.pool is pool for found in quota.compute):
            yield Use(pool.at / "followUnits", f"CPU and memory follow the units of `{pool.name}`")


def _pooled_compute(plan: Plan) -> Uses:
    """CPU and memory of several pools that one cap counts together, and those that others may take first."""
    for counted in (Counted.CPU, Counted.MEMORY):
        yield from _in_several_pools(plan, counted)
        yield from _taken_compute(plan, counted)


def _pooled_pods(plan: Plan) -> Uses:
    return _in_several_pools(plan, Counted.PODS)


def _in_several_pools(plan: Plan, counted: Counted) -> Uses:
    for tenant in plan.tenants:
        pools = dict.fromkeys(quota.pool.name for quota in tenant.quotas if quota.find_compute(counted))
        if len(pools) > 1:
            text = f"`{tenant.name}` has {counted.value} of {listing(list(pools))}"
            yield Use((tenant.at / "quotas").key, text)


def _taken_compute(plan: Plan, counted: Counted) -> Uses:
    """Guarantees in pools of which tenants may together use more than there is; they fit by themselves (GPU449)."""
    for pool in plan.pools:
        there = capacity(pool, counted)
        held = [
            (tenant, found)
            for tenant, quota in each_quota(plan)
            if quota.pool is pool and tenant.has_work and (found := quota.find_compute(counted))
        ]
        caps = [max(found.caps.values(), key=lambda cap: cap or 0, default=0) for _, found in held]
        most = sum(cap or 0 for cap in caps)
        fits = there is not None and sum(found.guaranteed for _, found in held) <= there
        if there is not None and fits and len(held) > 1 and (None in caps or most > there):
            for tenant, found in held:
                if found.guaranteed:
                    amount = f"{amount_text(counted, found.guaranteed)} {counted.value}"
                    yield Use(found.at, f"`{tenant.name}` is guaranteed {amount} of `{pool.name}`")


def _pods(tenant: Tenant, quota: Quota) -> Uses:
    if quota.spec.pods is not None:
        yield Use(quota.at / "pods", f"`{tenant.name}` may have {quota.spec.pods} pods in `{quota.pool.name}`")


def _lending_bound(tenant: Tenant, quota: Quota) -> Uses:
    if quota.lendable < quota.guaranteed:
        text = f"`{tenant.name}` lends {number(quota.lendable)} of {number(quota.guaranteed)}"
        yield Use(quota.at / "lendable", text)


def _several_units(tenant: Tenant, *, with_surplus: bool = False) -> Uses:
    """Units of one pool; or only those of which a ResourceQuota lets the tenant have more than is guaranteed."""
    by_pool: dict[str, list[Quota]] = {}
    for quota in tenant.quotas:
        by_pool.setdefault(quota.pool.name, []).append(quota)
    for pool, quotas in by_pool.items():
        names = [quota.unit.name for quota in quotas]
        if len(set(names)) > 1 and (
            not with_surplus or not tenant.has_work or any(quota.may_borrow for quota in quotas)
        ):
            yield Use(quotas[0].at, f"`{tenant.name}` has {listing(names)} of `{pool}`")


def _mixed_units(plan: Plan) -> Uses:
    """Units that one number counts together, and no ResourceQuota by itself."""
    by_itself = plan.cluster.cap is not Cap.QUEUE
    yield from _tenants(partial(_several_units, with_surplus=by_itself))(plan)


def _shared_caps(plan: Plan) -> Uses:
    """Pools of one tenant that a ResourceQuota cannot tell apart."""
    for tenant, resource, quotas in shared_caps(plan):
        names = listing([quota.pool.name for quota in quotas])
        yield Use(quotas[1].at / "pool", f"`{resource}` is what `{tenant.name}` has of {names}")


def _short_guarantees(plan: Plan) -> Uses:
    """Guarantees for which the others' caps leave no room."""
    for grants in grants_by_unit(plan).values():
        for short in shortfalls(grants, grants[0].quota.unit.capacity):
            yield from _guarantee(short.grant.tenant, short.grant.quota)


def _limits_not_given(plan: Plan) -> Uses:
    """Limits that are no cap, or whose units nobody gives back."""
    lost = None if plan.cluster.cap is Cap.GUARANTEED else contended(plan)
    for tenant, quota in each_quota(plan):
        if lost is None or quota.key in lost:
            yield from _limit(tenant, quota)


def _lent_without_bound(plan: Plan) -> Uses:
    """Bounds on what is lent of contended units that somebody else may borrow."""
    bounded = [(tenant, quota) for tenant, quota in each_quota(plan) if quota.lendable < quota.guaranteed]
    keys = contended(plan) if bounded else ()
    borrowers: dict[UnitKey, set[str]] = {key: set() for key in keys}
    for tenant, quota in each_quota(plan) if keys else ():
        if tenant.has_work and quota.may_borrow and quota.key in borrowers:
            borrowers[quota.key].add(tenant.name)
    for tenant, quota in bounded:
        if borrowers.get(quota.key, set()) - {tenant.name}:
            yield from _lending_bound(tenant, quota)


# --- Priorities --------------------------------------------------------------------------------------------------


class Ladder:
    """Classes by value, lowest first; what is above one of them is found without a look at all the others."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = sorted(classes, key=lambda found: found.spec.value)
        self._values = [found.spec.value for found in self._classes]
        self._names = [found.name for found in self._classes]

    def above(self, value: int) -> Sequence[PriorityClass]:
        return self._classes[bisect_right(self._values, value) :]

    def names_above(self, value: int) -> Sequence[str]:
        return self._names[bisect_right(self._values, value) :]

    def names_below(self, value: int) -> Sequence[str]:
        return self._names[: bisect_left(self._values, value)]


def _classes(find: Callable[[PriorityClass], Uses]) -> FindUses:
    return lambda plan: (use for found in plan.priority_classes for use in find(found))


def _calm_class(found: PriorityClass) -> Uses:
    if not found.spec.preempts:
        yield Use(found.at / "preempts", f"pods of `{found.name}` evict nobody")


def _safe_class(found: PriorityClass) -> Uses:
    if not found.spec.preemptible:
        yield Use(found.at / "preemptible", f"pods of `{found.name}` are not to be evicted")


def _evictions_across_tenants(plan: Plan) -> Uses:
    """Classes by which pods of one tenant evict those of another for what is contended."""
    keys = contended(plan) | _contended_nodes(plan)
    victims: dict[str, set[str]] = {}
    for eviction in evictions(plan) if keys else ():
        if (eviction.pool, eviction.unit) in keys and _is_contended(eviction) and eviction.mechanism.is_across_tenants:
            users: dict[str | None, set[str]] = {}
            for party in eviction.evictors:
                users.setdefault(party.priority_class, set()).add(party.tenant)
            for name, tenants in users.items():
                others = {party.tenant for party in eviction.victims if tenants - {party.tenant}}
                victims.setdefault(name or "", set()).update(others)
    for found in plan.priority_classes:
        if names := victims.get(found.name):
            yield Use(found.at / "preempts", f"pods with `{found.name}` evict lower ones of {listing(sorted(names))}")


def _contended_nodes(plan: Plan) -> frozenset[UnitKey]:
    """CPU and memory of pools that say what their nodes have: of others nobody can tell."""
    return frozenset(
        (pool.name, counted.value) for pool in plan.pools for counted in Counted if capacity(pool, counted) is not None
    )


def _is_contended(eviction: Eviction) -> bool:
    return eviction.counted is None or Condition.POOL_FULL in eviction.when


def _evictable(plan: Plan) -> Uses:
    """Classes that are not to be evicted, below others that evict."""
    ladder = Ladder(found for found in plan.priority_classes if found.spec.preempts)
    for found in plan.priority_classes:
        evictors = () if found.spec.preemptible else ladder.names_above(found.spec.value)
        if evictors:
            yield Use(found.at / "preemptible", f"pods of `{found.name}` are evicted by those of {listing(evictors)}")


def _evictable_in_queues(plan: Plan) -> Uses:
    """Classes that are not to be evicted, but are by higher ones of a tenant's own or where the tenant borrows.

    A queue evicts for all of its classes or for none.
    """
    borrowers, lent = _borrowers(plan), dict[str, list[str]]()
    evictors: dict[str, set[str]] = {}
    for tenant in plan.tenants:
        for found in tenant.priority_classes if tenant.name in borrowers else ():
            lent.setdefault(found.name, []).append(tenant.name)
        for higher, lower in pairs_within(plan.scheduler, tenant):
            evictors.setdefault(lower.name, set()).add(higher.name)
    for found in plan.priority_classes:
        at = found.at / "preemptible"
        if found.name in evictors and not found.spec.preemptible:
            yield Use(at, f"pods of `{found.name}` are evicted by those of {listing(sorted(evictors[found.name]))}")
        if found.name in lent and not found.spec.preemptible:
            yield Use(at, f"pods of `{found.name}` give back what {listing(lent[found.name])} borrowed")


def calm_evictors(plan: Plan) -> Iterator[tuple[Tenant, PriorityClass, list[str]]]:
    """The classes of each tenant that are to evict nobody, and do: with the names of those whose pods go."""
    for tenant in plan.tenants:
        below: dict[str, list[str]] = {}
        is_asked = any(not found.spec.preempts for found in tenant.priority_classes)
        may_run = is_asked and any(cap != 0 for quota in tenant.quotas for cap in quota.caps.values())
        for higher, lower in pairs_within(plan.scheduler, tenant) if may_run else ():
            if not higher.spec.preempts:
                below.setdefault(higher.name, []).append(lower.name)
        yield from ((tenant, found, below[found.name]) for found in tenant.priority_classes if found.name in below)


def evicting_all_the_same(plan: Plan) -> Iterator[tuple[PriorityClass, list[str]]]:
    """The same of all tenants together, with the names sorted."""
    victims: dict[str, set[str]] = {}
    for _, found, below in calm_evictors(plan):
        victims.setdefault(found.name, set()).update(below)
    return ((found, sorted(victims[found.name])) for found in plan.priority_classes if found.name in victims)


def _evicting_all_the_same(plan: Plan) -> Uses:
    for found, below in evicting_all_the_same(plan):
        yield Use(found.at / "preempts", f"pods of `{found.name}` evict those of {listing(below)}")


# --- Pools -------------------------------------------------------------------------------------------------------


def _pools(find: Callable[[Pool], Uses]) -> FindUses:
    return lambda plan: (use for pool in plan.pools for use in find(pool))


def _parts(find: Callable[[Pool], Uses]) -> FindUses:
    """What the pools ask for, each as a rollout divides it."""
    return lambda plan: (use for pool in plan.parts for use in find(pool))


def _whole_gpus(pool: Pool) -> Uses:
    if pool.find_unit("gpu"):
        yield Use(pool.sharing.at.key, f"pool `{pool.name}`")


def _mig(pool: Pool) -> Uses:
    if isinstance(pool.sharing, Mig):
        yield Use(pool.sharing.at.key, f"pool `{pool.name}`")


def _shares(pool: Pool) -> Uses:
    if pool.shares:
        yield Use(pool.shares.at.key, f"pool `{pool.name}`")


def _fractions(pool: Pool) -> Uses:
    if isinstance(pool.sharing, Fraction):
        yield Use(pool.sharing.at.key, f"pool `{pool.name}`")


def _topology(pool: Pool) -> Uses:
    if pool.spec.topology:
        yield Use((pool.at / "topology").key, f"pool `{pool.name}` knows {listing(pool.spec.topology)}")


def _placement(pool: Pool) -> Uses:
    if pool.spec.placement is not None:
        yield Use(pool.at / "placement", f"pool `{pool.name}`: {pool.spec.placement}")


def _fallback(plan: Plan) -> Uses:
    for pool in plan.pools:
        if len(chain(plan, pool)) > 1:
            yield Use(pool.at / "fallback", f"work of pool `{pool.name}` may go to `{pool.spec.fallback}`")


def _unlike_topologies(plan: Plan) -> Uses:
    """Fallbacks with a Topology from pools without one, or the other way round, and work whose level is missing."""
    for pool in plan.pools:
        fallback = next(iter(chain(plan, pool)[1:]), None)
        if fallback and bool(pool.spec.topology) != bool(fallback.spec.topology):
            knows, not_ = (pool, fallback) if pool.spec.topology else (fallback, pool)
            levels = listing(knows.spec.topology)
            yield Use(pool.at / "fallback", f"pool `{knows.name}` knows {levels}, and `{not_.name}` nothing of it")
        elif fallback:
            work = [found for found in plan.workloads if _misses_level(plan, found, pool, fallback)]
            for level in dict.fromkeys(found.closeness.level for found in work if found.closeness):
                names = listing([found.name for found in work if found.closeness and found.closeness.level == level])
                yield Use(pool.at / "fallback", f"{names} asks for `{level}`, which `{fallback.name}` has not")


def _misses_level(plan: Plan, workload: Workload, pool: Pool, fallback: Pool) -> bool:
    return workload.pool is pool and not fits_topology(plan, workload, fallback)


def _claims(pool: Pool) -> Uses:
    if pool.spec.allocation is Allocation.DRA:
        yield Use(pool.at / "allocation", f"pool `{pool.name}`")


def _on_demand(plan: Plan) -> Uses:
    for part in dynamic_pools(plan):
        yield Use(part.sharing.at.key, f"pool `{part.name}`")


def _unequal_devices(pool: Pool) -> Uses:
    """Devices that are claimed, and not worth the same."""
    for use in _claims(pool) if len({unit.gpu_weight for unit in pool.units}) > 1 else ():
        yield use._replace(text=f"{listing([unit.name for unit in pool.units])} of pool `{pool.name}`")


# KAI-Scheduler reads a MIG resource's size from its name; what it cannot read costs nothing
# (`pkg/scheduler/api/common_info/resources/mig.go`).
_KAI_COUNTS = regex(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb")


def uncounted_profiles(pool: Pool) -> tuple[Unit, ...]:
    """The units of a partitioned pool that KAI-Scheduler counts as nothing."""
    if not isinstance(pool.sharing, Mig) or pool.sharing.time_slicing:
        return ()
    named = [(unit, unit.resource) for unit in pool.units if unit.resource and "/mig-" in unit.resource]
    return tuple(unit for unit, resource in named if not _KAI_COUNTS.fullmatch(resource))


def _uncounted_mig(pool: Pool) -> Uses:
    """Partitions without a size in their name, and whole GPUs beside partitioned ones."""
    if isinstance(pool.sharing, Mig):
        lost = [unit.name for unit in uncounted_profiles(pool)]
        lost += ["gpu"] if pool.find_unit("gpu") else []
        if lost:
            yield Use(pool.sharing.layout_at, f"{listing(lost)} of pool `{pool.name}`")


# --- Workloads ---------------------------------------------------------------------------------------------------


def _workloads(find: Callable[[Workload], Uses]) -> FindUses:
    return lambda plan: (use for workload in plan.workloads for use in find(workload))


def _fraction_range(workload: Workload) -> Uses:
    fraction = workload.fraction
    if fraction and fraction.least < fraction.most:
        least, most = number(fraction.least), number(fraction.most)
        yield Use(fraction.at, f"`{workload.name}` has {least} to {most} of a GPU")


def _fraction_memory(workload: Workload) -> Uses:
    fraction = workload.fraction
    if fraction and fraction.memory_mib is not None:
        yield Use(fraction.at / "memory", f"`{workload.name}` has {fraction.memory_mib} MiB of a GPU")


def _level(workload: Workload) -> Uses:
    found = workload.closeness
    if found and workload.topology:
        how = "must" if found.is_required else "should"
        yield Use(found.at, f"pods of `{workload.name}` {how} be in one `{found.level}`")


def _deadline(workload: Workload) -> Uses:
    if workload.time_limit:
        at, time = workload.time_limit
        yield Use(at, f"`{workload.name}` may take {time}")


def _gang(workload: Workload) -> Uses:
    match workload.work:
        case Training(pods=pods) if workload.gang and workload.gang > 1:
            yield Use(workload.gang_at, f"`{workload.name}` needs {workload.gang} of {pods} pods at once")
        case Inference(pods_per_replica=pods) if pods > 1:
            yield Use(workload.gang_at, f"each replica of `{workload.name}` needs {pods} pods at once")


def _partial_gang(workload: Workload) -> Uses:
    """A gang that is not all pods of its workload."""
    match workload.work:
        case Training(pods=pods) if workload.gang and workload.gang < pods:
            yield from _gang(workload)


def _autoscaler(workload: Workload) -> Uses:
    match workload.work:
        case Inference(autoscaling=scaling) if scaling:
            at = workload.work_at / "autoscaling"
            what = "replicas" if workload.is_grouped else "pods"
            yield Use(at.key, f"`{workload.name}` has {scaling.min_replicas} to {scaling.max_replicas} {what}")


USES: Mapping[str, FindUses] = {
    "namespaces": _tenants(_namespaces),
    "labelled-namespaces": _tenants(_labelled),
    "parent": _tenants(_parent),
    "pool": _tenants(_several_pools),
    "unit": _tenants(_several_units),
    "guaranteed": _quotas(_guarantee),
    "limit": _quotas(_limit),
    "class-limits": _quotas(_class_limits),
    "lendable": _quotas(_lending_bound),
    "compute": _all_compute,
    "pods": _quotas(_pods),
    "container-defaults": _tenants(_container_defaults),
    "time-limits": _tenants(_time_limits),
    "surplus-weight": _tenants(_weight),
    "surplus-rank": _tenants(_rank),
    "protect": _tenants(_protections),
    "priority": _tenants(_order),
    "preemptible": _classes(_safe_class),
    "preempts": _classes(_calm_class),
    "class-access": _tenants(_class_access),
    "whole-gpus": _parts(_whole_gpus),
    "mig": _parts(_mig),
    "shares": _parts(_shares),
    "fraction": _parts(_fractions),
    "fraction-range": _workloads(_fraction_range),
    "fraction-memory": _workloads(_fraction_memory),
    "deadline": _workloads(_deadline),
    "gang": _workloads(_gang),
    "topology": _pools(_topology),
    "topology-level": _workloads(_level),
    "placement": _pools(_placement),
    "fallback": _fallback,
    "autoscaling": _workloads(_autoscaler),
    "dra": _pools(_claims),
    "dynamic-mig": _on_demand,
}
"""How each concept of the capability matrix is found, by its id."""

PLACES: Mapping[str, FindUses] = {
    "undivided": _undivided,
    "exceeded-parents": _exceeded_parents,
    "shared-caps": _shared_caps,
    "short-guarantees": _short_guarantees,
    "limits-not-given": _limits_not_given,
    "labelled-claims": _labelled_claims,
    "unscoped-classes": _unscoped_classes,
    "lent-without-bound": _lent_without_bound,
    "pooled-compute": _pooled_compute,
    "pooled-pods": _pooled_pods,
    "contended-weights": _tenants(_weight, _borrowers),
    "contended-ranks": _tenants(_rank, _borrowers),
    "contended-protections": _tenants(_protections, _concerned),
    "evictions-across-tenants": _evictions_across_tenants,
    "evictable": _evictable,
    "queued-protections": _queued_protections,
    "evictable-in-queues": _evictable_in_queues,
    "evicting-all-the-same": _evicting_all_the_same,
    "partial-gangs": _workloads(_partial_gang),
    "mixed-units": _mixed_units,
    "uncounted-mig": _parts(_uncounted_mig),
    "unequal-devices": _pools(_unequal_devices),
    "unlike-topologies": _unlike_topologies,
    "below-departments": _below_departments,
    "unnamed-ranks": _tenants(_rank, _of_one_rank),
    "unequal-protections": _tenants(_protections, _unequal),
}
"""Where less is lost than what is asked for, by the name that the capability matrix gives it (`lost`)."""
