"""Find where a plan asks for what not every scheduler keeps, and where a scheduler would lose it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import grouped
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
from gpuplan.compiler.planning.preemption import Condition, evictions, pairs_within
from gpuplan.compiler.planning.projects import ranks, seconds, times_of
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.policy.models import Allocation, Cap, Inference, Training


class Use(NamedTuple):
    """A place in the policy, and what it asks for there."""

    at: Origin
    text: str


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


def _of_tenants(
    find: Callable[[Tenant], Iterable[Use]], among: Callable[[Plan], Container[str]] | None = None
) -> FindUses:
    """Find what each tenant asks for. Names ``among`` which a tenant counts are looked for if there is a use."""

    def find_uses(plan: Plan) -> Iterable[Use]:
        asked = [(tenant.name, use) for tenant in plan.tenants for use in find(tenant)]
        names = among(plan) if among and asked else ()
        return (use for name, use in asked if among is None or name in names)

    return find_uses


def _weight(tenant: Tenant) -> Iterable[Use]:
    at, text = tenant.at / "surplus" / "weight", f"`{tenant.name}` has weight {number(tenant.surplus_weight)}"
    return [Use(at, text)] if tenant.surplus_weight != 1 else []


def _rank(tenant: Tenant) -> Iterable[Use]:
    at, rank = tenant.at / "surplus" / "rank", tenant.spec.surplus.rank
    return [Use(at, f"`{tenant.name}` has rank {rank}")] if rank != 0 else []


def _protections(tenant: Tenant, fields: Sequence[str] = ("preempt", "reclaim")) -> Iterable[Use]:
    times = {"preempt": tenant.spec.protect.preempt, "reclaim": tenant.spec.protect.reclaim}
    asked = ((field, times[field]) for field in fields)
    return [Use(tenant.at / "protect" / field, f"`{tenant.name}`: {time}") for field, time in asked if time is not None]


def _labelled(tenant: Tenant) -> Iterable[Use]:
    text = f"`{tenant.name}` has namespaces by their label"
    is_asked = tenant.spec.labelled_namespaces and tenant.quotas
    return [Use(tenant.at / "labelledNamespaces", text)] if is_asked else []


def _class_access(tenant: Tenant) -> Iterable[Use]:
    names = [priority.name for priority in tenant.priority_classes]
    at = (tenant.at / "priorityClasses").key
    return [Use(at, f"`{tenant.name}` may name {listing(names)}")] if names else []


def _has_order(tenant: Tenant) -> bool:
    """Whether some of the tenant's pods may go before others."""
    return len({priority.spec.value for priority in tenant.priority_classes}) > 1


def _several_pools(tenant: Tenant) -> Iterable[Use]:
    names = sorted({quota.pool.name for quota in tenant.quotas})
    text = f"`{tenant.name}` has quotas on {listing(names)}"
    return [Use((tenant.at / "quotas").key, text)] if len(names) > 1 else []


def _undivided(plan: Plan) -> Iterator[Use]:
    """Yield the quotas that namespaces are meant to share. A `split` says what each has, which any scheduler keeps."""
    for tenant, quota in each_quota(plan):
        several = len(tenant.spec.namespaces)
        if several > 1 and not quota.split and cap_of(plan, quota) != 0:
            yield Use(quota.at, f"`{tenant.name}` shares `{quota.unit.name}` among {several} namespaces")


def _exceeded_parents(plan: Plan) -> Iterator[Use]:
    """Yield the quotas of parents of which more may be used.

    A parent that has namespaces uses its cap itself. Guarantees of children that are too much alone are reported for
    themselves, and so are circles of parents.
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


def _borrowers(plan: Plan) -> frozenset[str]:
    """Return the tenants that may borrow a contended unit, themselves or below them."""
    keys = contended(plan)
    return frozenset(
        above.name
        for tenant, quota in each_quota(plan)
        if quota.key in keys and quota.may_borrow
        for above in plan.tree.path(tenant)
    )


def _concerned(plan: Plan) -> frozenset[str]:
    """Return the tenants that have a quota on a contended unit."""
    keys = contended(plan)
    return frozenset(tenant.name for tenant, quota in each_quota(plan) if quota.key in keys)


def _unequal(plan: Plan) -> frozenset[str]:
    """Return the tenants in pools whose tenants do not all ask for the same protection, of both kinds."""
    asked: dict[str, set[int]] = {}
    for tenant, quota in each_quota(plan):
        times = (tenant.spec.protect.preempt, tenant.spec.protect.reclaim)
        asked.setdefault(quota.pool.name, set()).update(seconds(time or "") for time in times)
    return frozenset(tenant.name for tenant, quota in each_quota(plan) if len(asked[quota.pool.name]) > 1)


def _of_one_rank(plan: Plan) -> frozenset[str]:
    """Return the tenants whose ranks have one name with another."""
    names = ranks(plan.tenants)
    shared = {rank for rank, name in names.items() if list(names.values()).count(name) > 1}
    return frozenset(tenant.name for tenant in plan.tenants if tenant.spec.surplus.rank in shared)


def _queued_protections(plan: Plan) -> Iterable[Use]:
    """Yield the protections that a queue ignores.

    Those are of its own pods if some go before others, and of borrowed units in any case.
    """
    yield from _of_tenants(partial(_protections, fields=("preempt",)), _ordered)(plan)
    yield from _of_tenants(partial(_protections, fields=("reclaim",)), _borrowers)(plan)


def _ordered(plan: Plan) -> frozenset[str]:
    return frozenset(tenant.name for tenant in plan.tenants if _has_order(tenant))


# --- Quotas ------------------------------------------------------------------------------------------------------


def _of_quotas(find: Callable[[Tenant, Quota], Iterable[Use]]) -> FindUses:
    return lambda plan: (use for tenant, quota in each_quota(plan) for use in find(tenant, quota))


def _class_limits(tenant: Tenant, quota: Quota) -> Iterator[Use]:
    for name, limit in quota.class_limits.items():
        most = f"at most {number(limit)} `{quota.unit.name}` of `{quota.pool.name}`"
        yield Use(quota.at / "classLimits" / name, f"pods of `{name}` of `{tenant.name}` use {most}")


def _unscoped_classes(plan: Plan) -> Iterator[Use]:
    for tenant, quota in each_quota(plan):
        for use, name in zip(_class_limits(tenant, quota), quota.class_limits, strict=True):
            if not is_kept(quota, plan.cluster.cap):
                yield use
            elif others := counted_with(tenant, quota, name, plan.cluster.cap):
                pools = listing(list(dict.fromkeys(other.pool.name for other in others)))
                yield use._replace(text=f"{use.text}, counted with those of {pools}")


def _guarantee(tenant: Tenant, quota: Quota) -> Iterator[Use]:
    if quota.guaranteed > 0:
        text = f"`{tenant.name}` is guaranteed {number(quota.guaranteed)} `{quota.unit.name}` of `{quota.pool.name}`"
        yield Use(quota.at / "guaranteed", text)


def _limit(tenant: Tenant, quota: Quota) -> Iterator[Use]:
    if quota.may_borrow:
        most = "any number of" if quota.limit is None else number(quota.limit)
        text = f"`{tenant.name}` may use {most} `{quota.unit.name}`, and {number(quota.guaranteed)} are guaranteed"
        yield Use(quota.at / "limit", text)


def _compute(plan: Plan) -> Iterable[Use]:
    """Yield what quotas say of CPU and memory themselves, and the pools of whose units it follows."""
    for tenant, quota in each_quota(plan):
        for compute in quota.compute:
            if not compute.is_derived and compute.counted is not Counted.PODS:
                amount = f"{amount_text(compute.counted, compute.guaranteed)} {compute.counted.value}"
                yield Use(compute.at, f"`{tenant.name}` has {amount} of `{quota.pool.name}`")
    derived = {quota.pool.name for _, quota in each_quota(plan) if any(part.is_derived for part in quota.compute)}
    for pool in plan.pools:
        if pool.name in derived:
            yield Use(pool.at / "followUnits", f"CPU and memory follow the units of `{pool.name}`")


def _pooled_compute(plan: Plan) -> Iterable[Use]:
    """Yield CPU and memory of several pools that one cap counts together, and those that others may take first."""
    for counted in (Counted.CPU, Counted.MEMORY):
        yield from _in_several_pools(plan, counted)
        yield from _taken_compute(plan, counted)


def _in_several_pools(plan: Plan, counted: Counted) -> Iterator[Use]:
    for tenant in plan.tenants:
        pools = dict.fromkeys(quota.pool.name for quota in tenant.quotas if quota.find_compute(counted))
        if len(pools) > 1:
            text = f"`{tenant.name}` has {counted.value} of {listing(list(pools))}"
            yield Use((tenant.at / "quotas").key, text)


def _taken_compute(plan: Plan, counted: Counted) -> Iterator[Use]:
    """Yield guarantees that fit (GPU449), of pools of which tenants may together use more than there is."""
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


def _lending_bound(tenant: Tenant, quota: Quota) -> Iterator[Use]:
    if quota.lendable < quota.guaranteed:
        text = f"`{tenant.name}` lends {number(quota.lendable)} of {number(quota.guaranteed)}"
        yield Use(quota.at / "lendable", text)


def _several_units(tenant: Tenant, *, with_surplus: bool = False) -> Iterator[Use]:
    """Yield pools with several units, or those of which a ResourceQuota allows more than is guaranteed."""
    for pool, quotas in grouped((quota.pool.name, quota) for quota in tenant.quotas).items():
        names = [quota.unit.name for quota in quotas]
        if len(set(names)) > 1 and (
            not with_surplus or not tenant.has_work or any(quota.may_borrow for quota in quotas)
        ):
            yield Use(quotas[0].at, f"`{tenant.name}` has {listing(names)} of `{pool}`")


def _short_guarantees(plan: Plan) -> Iterator[Use]:
    """Yield the guarantees that the caps of others leave too little for."""
    for grants in grants_by_unit(plan).values():
        for short in shortfalls(grants, grants[0].quota.unit.capacity):
            yield from _guarantee(short.grant.tenant, short.grant.quota)


def _limits_not_given(plan: Plan) -> Iterator[Use]:
    """Yield the limits that are no cap, or whose units nobody gives back."""
    is_capped = plan.cluster.cap is Cap.GUARANTEED
    lost = () if is_capped else contended(plan)
    for tenant, quota in each_quota(plan):
        for use in _limit(tenant, quota) if is_capped or quota.key in lost else ():
            most = f"`{tenant.name}` may use {number(quota.guaranteed)} `{quota.unit.name}`, whatever its limit"
            yield use._replace(text=most) if is_capped else use


def _lent_without_bound(plan: Plan) -> Iterator[Use]:
    """Yield bounds on what is lent of contended units that somebody else may borrow."""
    bounded = [(tenant, quota) for tenant, quota in each_quota(plan) if quota.lendable < quota.guaranteed]
    keys = contended(plan) if bounded else ()
    borrowers: dict[UnitKey, set[str]] = {key: set() for key in keys}
    for tenant, quota in each_quota(plan) if keys else ():
        if tenant.has_work and quota.may_borrow and quota.key in borrowers:
            borrowers[quota.key].add(tenant.name)
    for tenant, quota in bounded:
        if borrowers.get(quota.key, set()) - {tenant.name}:
            yield from _lending_bound(tenant, quota)


# --- Priority classes --------------------------------------------------------------------------------------------


class Ladder:
    """The classes by value, the lowest first, so that those above a value are found without a look at all."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = sorted(classes, key=lambda each: each.spec.value)
        self._values = [each.spec.value for each in self._classes]
        self._names = [each.name for each in self._classes]

    def above(self, value: int) -> Sequence[PriorityClass]:
        return self._classes[bisect_right(self._values, value) :]

    def names_above(self, value: int) -> Sequence[str]:
        return self._names[bisect_right(self._values, value) :]

    def names_below(self, value: int) -> Sequence[str]:
        return self._names[: bisect_left(self._values, value)]


def _evictions_across_tenants(plan: Plan) -> Iterator[Use]:
    """Yield the classes by which pods of one tenant evict those of another for what is contended."""
    # Of pools that do not say what their nodes have nobody can tell.
    keys = contended(plan) | frozenset(
        (pool.name, counted.value) for pool in plan.pools for counted in Counted if capacity(pool, counted) is not None
    )
    victims: dict[str, set[str]] = {}
    for eviction in evictions(plan) if keys else ():
        is_contended = eviction.counted is None or Condition.POOL_FULL in eviction.when
        if (eviction.pool, eviction.unit) in keys and is_contended and eviction.mechanism.is_across_tenants:
            users = grouped((party.priority_class, party.tenant) for party in eviction.evictors)
            for name, tenants in users.items():
                others = {party.tenant for party in eviction.victims if {*tenants} - {party.tenant}}
                victims.setdefault(name or "", set()).update(others)
    for found in plan.priority_classes:
        if names := victims.get(found.name):
            yield Use(found.at / "preempts", f"pods with `{found.name}` evict lower ones of {listing(sorted(names))}")


def _evictable(plan: Plan) -> Iterator[Use]:
    """Yield the classes that are not to be evicted, below others that evict."""
    ladder = Ladder(found for found in plan.priority_classes if found.spec.preempts)
    for found in plan.priority_classes:
        evictors = () if found.spec.preemptible else ladder.names_above(found.spec.value)
        if evictors:
            yield Use(found.at / "preemptible", f"pods of `{found.name}` are evicted by those of {listing(evictors)}")


def _evictable_in_queues(plan: Plan) -> Iterator[Use]:
    """Yield the classes that are not to be evicted, and are by higher ones of a tenant or if the tenant borrows.

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


def calm_evictors(plan: Plan) -> Iterator[tuple[Tenant, PriorityClass, Sequence[str]]]:
    """Yield each tenant's classes that are to evict nobody, and do, with the names of those whose pods go."""
    for tenant in plan.tenants:
        is_asked = any(not found.spec.preempts for found in tenant.priority_classes)
        may_run = is_asked and any(cap != 0 for quota in tenant.quotas for cap in quota.caps.values())
        pairs = pairs_within(plan.scheduler, tenant) if may_run else ()
        below = grouped((higher.name, lower.name) for higher, lower in pairs if not higher.spec.preempts)
        yield from ((tenant, found, below[found.name]) for found in tenant.priority_classes if found.name in below)


def evicting_all_the_same(plan: Plan) -> Iterator[tuple[PriorityClass, list[str]]]:
    """Yield the classes that are to evict nobody and do, with the sorted names of those whose pods go."""
    victims: dict[str, set[str]] = {}
    for _, found, below in calm_evictors(plan):
        victims.setdefault(found.name, set()).update(below)
    return ((found, sorted(victims[found.name])) for found in plan.priority_classes if found.name in victims)


# --- Pools -------------------------------------------------------------------------------------------------------


def _shared(is_meant: Callable[[Pool], object]) -> FindUses:
    """Find pools by how they are shared, each part of a pool as a rollout divides it."""
    return lambda plan: (Use(pool.sharing.at.key, f"pool `{pool.name}`") for pool in plan.parts if is_meant(pool))


def _unlike_topologies(plan: Plan) -> Iterator[Use]:
    """Yield fallbacks that have a Topology if their pool has none, or none if it has one, or that miss a level."""
    for pool in plan.pools:
        fallback = next(iter(chain(plan, pool)[1:]), None)
        if fallback and bool(pool.spec.topology) != bool(fallback.spec.topology):
            knows, not_ = (pool, fallback) if pool.spec.topology else (fallback, pool)
            levels = listing(knows.spec.topology)
            yield Use(pool.at / "fallback", f"pool `{knows.name}` knows {levels}, and `{not_.name}` nothing of it")
        elif fallback:
            work = [each for each in plan.workloads if each.pool is pool and not fits_topology(plan, each, fallback)]
            for level in dict.fromkeys(found.closeness.level for found in work if found.closeness):
                names = listing([found.name for found in work if found.closeness and found.closeness.level == level])
                yield Use(pool.at / "fallback", f"{names} asks for `{level}`, which `{fallback.name}` has not")


def _claims(pool: Pool) -> Iterable[Use]:
    is_claimed = pool.spec.allocation is Allocation.DRA
    return [Use(pool.at / "allocation", f"pool `{pool.name}`")] if is_claimed else []


# KAI-Scheduler reads a MIG resource's size from its name; what it cannot read costs nothing
# (`pkg/scheduler/api/common_info/resources/mig.go`).
_KAI_COUNTS = regex(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb")


def uncounted_profiles(pool: Pool) -> tuple[Unit, ...]:
    """Return the units of a partitioned pool that KAI-Scheduler counts as nothing."""
    if not isinstance(pool.sharing, Mig) or pool.sharing.time_slicing:
        return ()
    named = [(unit, unit.resource) for unit in pool.units if unit.resource and "/mig-" in unit.resource]
    return tuple(unit for unit, resource in named if not _KAI_COUNTS.fullmatch(resource))


def _uncounted_mig(plan: Plan) -> Iterable[Use]:
    """Yield pools of partitions without a size in their name, and of whole GPUs beside partitioned ones."""
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            lost = [unit.name for unit in uncounted_profiles(pool)] + (["gpu"] if pool.find_unit("gpu") else [])
            if lost:
                yield Use(pool.sharing.layout_at, f"{listing(lost)} of pool `{pool.name}`")


# --- Workloads ---------------------------------------------------------------------------------------------------


def _of_workloads(find: Callable[[Workload], Iterable[Use]]) -> FindUses:
    return lambda plan: (use for workload in plan.workloads for use in find(workload))


def _fraction_range(workload: Workload) -> Iterator[Use]:
    fraction = workload.fraction
    if fraction and fraction.least < fraction.most:
        least, most = number(fraction.least), number(fraction.most)
        yield Use(fraction.at, f"`{workload.name}` has {least} to {most} of a GPU")


def _fraction_memory(workload: Workload) -> Iterator[Use]:
    fraction = workload.fraction
    if fraction and fraction.memory_mib is not None:
        yield Use(fraction.at / "memory", f"`{workload.name}` has {fraction.memory_mib} MiB of a GPU")


def _level(workload: Workload) -> Iterator[Use]:
    found = workload.closeness
    if found and workload.topology:
        how = "must" if found.is_required else "should"
        yield Use(found.at, f"pods of `{workload.name}` {how} be in one `{found.level}`")


def _gang(workload: Workload) -> Iterator[Use]:
    match workload.work:
        case Training(pods=pods) if workload.gang and workload.gang > 1:
            yield Use(workload.gang_at, f"`{workload.name}` needs {workload.gang} of {pods} pods at once")
        case Inference(pods_per_replica=pods) if pods > 1:
            yield Use(workload.gang_at, f"each replica of `{workload.name}` needs {pods} pods at once")


def _is_partial_gang(workload: Workload) -> bool:
    """Whether a gang is not all pods of its workload."""
    return isinstance(workload.work, Training) and 0 < (workload.gang or 0) < workload.work.pods


def _autoscaler(workload: Workload) -> Iterator[Use]:
    match workload.work:
        case Inference(autoscaling=scaling) if scaling:
            at = workload.work_at / "autoscaling"
            what = "replicas" if workload.is_grouped else "pods"
            yield Use(at.key, f"`{workload.name}` has {scaling.min_replicas} to {scaling.max_replicas} {what}")


USES: Mapping[str, FindUses] = {
    "namespaces": lambda plan: (
        Use((tenant.at / "namespaces").key, f"`{tenant.name}` has {len(tenant.spec.namespaces)} namespaces")
        for tenant in plan.tenants
        if len(tenant.spec.namespaces) > 1 and tenant.quotas
    ),
    "labelled-namespaces": _of_tenants(_labelled),
    "parent": lambda plan: (
        Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`")
        for tenant in plan.tenants
        if tenant.parent is not None
    ),
    "pool": _of_tenants(_several_pools),
    "unit": _of_tenants(_several_units),
    "guaranteed": _of_quotas(_guarantee),
    "limit": _of_quotas(_limit),
    "class-limits": _of_quotas(_class_limits),
    "lendable": _of_quotas(_lending_bound),
    "compute": _compute,
    "pods": lambda plan: (
        Use(quota.at / "pods", f"`{tenant.name}` may have {quota.spec.pods} pods in `{quota.pool.name}`")
        for tenant, quota in each_quota(plan)
        if quota.spec.pods is not None
    ),
    "container-defaults": lambda plan: (
        Use(stated.at.key, f"`{tenant.name}` gives containers {stated.counted.value} that say nothing of it")
        for tenant in plan.tenants
        for stated in defaults_of(tenant).values()
        if stated.stated
    ),
    "time-limits": lambda plan: (
        Use(at, f"`{tenant.name}`: {time}") for tenant in plan.tenants for at, time in times_of(tenant)
    ),
    "surplus-weight": _of_tenants(_weight),
    "surplus-rank": _of_tenants(_rank),
    "protect": _of_tenants(_protections),
    "priority": lambda plan: (use for tenant in plan.tenants if _has_order(tenant) for use in _class_access(tenant)),
    "preemptible": lambda plan: (
        Use(priority.at / "preemptible", f"pods of `{priority.name}` are not to be evicted")
        for priority in plan.priority_classes
        if not priority.spec.preemptible
    ),
    "preempts": lambda plan: (
        Use(priority.at / "preempts", f"pods of `{priority.name}` evict nobody")
        for priority in plan.priority_classes
        if not priority.spec.preempts
    ),
    "class-access": _of_tenants(_class_access),
    "whole-gpus": _shared(lambda pool: pool.find_unit("gpu")),
    "mig": _shared(lambda pool: isinstance(pool.sharing, Mig)),
    "shares": lambda plan: (Use(pool.shares.at.key, f"pool `{pool.name}`") for pool in plan.parts if pool.shares),
    "fraction": _shared(lambda pool: isinstance(pool.sharing, Fraction)),
    "fraction-range": _of_workloads(_fraction_range),
    "fraction-memory": _of_workloads(_fraction_memory),
    "deadline": lambda plan: (
        Use(workload.time_limit[0], f"`{workload.name}` may take {workload.time_limit[1]}")
        for workload in plan.workloads
        if workload.time_limit
    ),
    "gang": _of_workloads(_gang),
    "topology": lambda plan: (
        Use((pool.at / "topology").key, f"pool `{pool.name}` knows {listing(pool.spec.topology)}")
        for pool in plan.pools
        if pool.spec.topology
    ),
    "topology-level": _of_workloads(_level),
    "placement": lambda plan: (
        Use(pool.at / "placement", f"pool `{pool.name}`: {pool.spec.placement}")
        for pool in plan.pools
        if pool.spec.placement is not None
    ),
    "fallback": lambda plan: (
        Use(pool.at / "fallback", f"work of pool `{pool.name}` may go to `{pool.spec.fallback}`")
        for pool in plan.pools
        if len(chain(plan, pool)) > 1
    ),
    "autoscaling": _of_workloads(_autoscaler),
    "dra": lambda plan: (use for pool in plan.pools for use in _claims(pool)),
    "dynamic-mig": lambda plan: (Use(part.sharing.at.key, f"pool `{part.name}`") for part in dynamic_pools(plan)),
}
"""The way to find each concept of the capability matrix, by its id."""

PLACES: Mapping[str, FindUses] = {
    "undivided": _undivided,
    "exceeded-parents": _exceeded_parents,
    "shared-caps": lambda plan: (
        Use(
            quotas[1].at / "pool",
            f"`{resource}` is what `{tenant.name}` has of {listing([quota.pool.name for quota in quotas])}",
        )
        for tenant, resource, quotas in shared_caps(plan)
    ),
    "short-guarantees": _short_guarantees,
    "limits-not-given": _limits_not_given,
    "labelled-claims": lambda plan: (
        use
        for tenant in plan.tenants
        if any(quota.unit.device_class and quota.labelled_cap is None for quota in tenant.quotas)
        for use in _labelled(tenant)
    ),
    "unscoped-classes": _unscoped_classes,
    "lent-without-bound": _lent_without_bound,
    "pooled-compute": _pooled_compute,
    "pooled-pods": lambda plan: _in_several_pools(plan, Counted.PODS),
    "contended-weights": _of_tenants(_weight, _borrowers),
    "contended-ranks": _of_tenants(_rank, _borrowers),
    "contended-protections": _of_tenants(_protections, _concerned),
    "evictions-across-tenants": _evictions_across_tenants,
    "evictable": _evictable,
    "queued-protections": _queued_protections,
    "evictable-in-queues": _evictable_in_queues,
    "evicting-all-the-same": lambda plan: (
        Use(priority.at / "preempts", f"pods of `{priority.name}` evict those of {listing(below)}")
        for priority, below in evicting_all_the_same(plan)
    ),
    "partial-gangs": lambda plan: (
        use for workload in plan.workloads if _is_partial_gang(workload) for use in _gang(workload)
    ),
    "mixed-units": lambda plan: (
        use for tenant in plan.tenants for use in _several_units(tenant, with_surplus=plan.cluster.cap is not Cap.QUEUE)
    ),
    "uncounted-mig": _uncounted_mig,
    "unequal-devices": lambda plan: (
        use._replace(text=f"{listing([unit.name for unit in pool.units])} of pool `{pool.name}`")
        for pool in plan.pools
        if len({unit.gpu_weight for unit in pool.units}) > 1
        for use in _claims(pool)
    ),
    "unlike-topologies": _unlike_topologies,
    "below-departments": lambda plan: (
        Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`, which has a parent itself")
        for tenant in plan.tenants
        if len(plan.tree.path(tenant)) > 2
    ),
    "unnamed-ranks": _of_tenants(_rank, _of_one_rank),
    "unequal-protections": _of_tenants(_protections, _unequal),
}
"""The places where less is lost than what is asked for, by the name that the capability matrix gives it (`lost`)."""
