"""The part of a plan that somebody asks for, by pools and tenants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing, renaming
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import (
    Amount,
    Layout,
    Mig,
    OwnGpu,
    Plan,
    Pool,
    PriorityClass,
    Retained,
    Tenant,
    UnitKey,
    Workload,
)
from gpuplan.compiler.planning.preemption import Eviction, Party, evictions
from gpuplan.compiler.planning.tree import Tree


class Selection(Value, eq=False):
    """A cluster's plan, and what of it is shown.

    What is counted is counted in the ``plan``: what is free of a unit is so whichever tenants are shown. ``tenants``
    have those of their quotas that are shown.
    """

    plan: Plan
    pools: tuple[Pool, ...]
    layouts: tuple[Layout, ...]
    tenants: tuple[Tenant, ...]
    workloads: tuple[Workload, ...]
    priority_classes: tuple[PriorityClass, ...]
    gpus: tuple[OwnGpu, ...]
    retained: tuple[Retained, ...]
    has_all_tenants: bool = True

    @property
    def guaranteed(self) -> Mapping[UnitKey, Amount]:
        """The sum of guarantees of shown tenants on each unit of shown pools."""
        if self.has_all_tenants:
            pools = {pool.name for pool in self.pools}
            return {total.key: total.guaranteed for total in self.plan.totals if total.pool.name in pools}
        found: dict[UnitKey, Amount] = {}
        for _, quota in Tree(self.tenants).outermost:
            found[quota.key] = found.get(quota.key, 0) + quota.guaranteed
        return found

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """Those in the pools that are shown. Where tenants are chosen, a party of theirs is on one of the two sides."""
        pools, tenants = {pool.name for pool in self.pools}, {tenant.name for tenant in self.tenants}
        own = tuple(eviction for eviction in evictions(self.plan) if eviction.pool in pools)
        if self.has_all_tenants:
            return own
        parts: list[Eviction] = []
        for eviction in own:
            evictors, victims = _of(eviction.evictors, tenants), _of(eviction.victims, tenants)
            if evictors == eviction.evictors and victims == eviction.victims:
                parts.append(eviction)
            elif eviction.mechanism.is_across_tenants:
                others = tuple(party for party in eviction.evictors if party not in evictors)
                parts += _possible(eviction._replace(evictors=evictors))
                parts += _possible(eviction._replace(evictors=others, victims=victims))
            else:
                parts += _possible(eviction._replace(evictors=evictors, victims=victims))
        return tuple(parts)


def selection_of(plan: Plan | Selection) -> Selection:
    """Return a plan as a selection of all of it. A selection stays as it is."""
    if isinstance(plan, Selection):
        return plan
    return Selection(
        plan,
        plan.pools,
        plan.mig_layouts,
        plan.tenants,
        plan.workloads,
        plan.priority_classes,
        plan.gpus,
        plan.retained,
    )


def select(plans: Sequence[Plan], pools: Sequence[str] = (), tenants: Sequence[str] = ()) -> tuple[Selection, ...]:
    """Return the parts of each plan that belong to pools and tenants of these names, which may be shell patterns.

    Of a pool that is its tenants' quotas there, and the workloads that may run there; of a tenant those that are part
    of it, their quotas and workloads, and the pools of these. Of both it is what belongs to both. Clusters that have
    none of them are left out. Trouble when a name is that of nothing in any plan.
    """
    if not pools and not tenants:
        return tuple(map(selection_of, plans))
    _know("pool", pools, {pool.name for plan in plans for pool in plan.pools})
    _know("tenant", tenants, {tenant.name for plan in plans for tenant in plan.tenants})
    found = [_select(plan, pools, tenants) for plan in plans]
    if found and not any(part.pools or part.tenants for part in found):
        people, places = listing(tenants, last="or"), listing(pools, last="or")
        raise GpuplanError(f"tenant {people} has nothing in pool {places}", "ask for one of the two")
    return tuple(part for part in found if part.pools or part.tenants)


def _know(kind: str, patterns: Sequence[str], known: set[str]) -> None:
    for pattern in patterns:
        if any(fnmatchcase(name, pattern) for name in known):
            continue
        near = renaming(pattern, known)
        names = f"the {kind}s are {listing(sorted(known))}" if known else f"no cluster that is shown has a {kind}"
        raise GpuplanError(f"no {kind} `{pattern}`", f"did you mean `{near}`?" if near else names)


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _select(plan: Plan, pools: Sequence[str], tenants: Sequence[str]) -> Selection:
    wanted = [pool for pool in plan.pools if not pools or _is_one_of(pool.name, pools)]
    names = {pool.name for pool in wanted}
    people = [
        tenant
        for tenant in plan.tenants
        if not tenants or any(_is_one_of(above.name, tenants) for above in plan.tree.path(tenant))
    ]
    with_quotas = [
        tenant._replace(quotas=tuple(quota for quota in tenant.quotas if quota.pool.name in names)) for tenant in people
    ]
    own = {tenant.name for tenant in people}
    workloads = [
        workload
        for workload in plan.workloads
        if workload.tenant.name in own and any(pool.name in names for pool in reach(plan, workload))
    ]
    busy = {workload.tenant.name for workload in workloads}
    shown = [tenant for tenant in with_quotas if not pools or tenant.quotas or tenant.name in busy]
    if tenants:
        used = {quota.pool.name for tenant in shown for quota in tenant.quotas}
        used |= {pool.name for workload in workloads for pool in reach(plan, workload)}
        wanted = [pool for pool in wanted if pool.name in used]
    sharings = [part.sharing for pool in wanted for part in pool.parts]
    layouts = {sharing.layout.config_name for sharing in sharings if isinstance(sharing, Mig)}
    classes = {priority.name for tenant in shown for priority in tenant.priority_classes}
    classes |= {workload.priority_class.name for workload in workloads if workload.priority_class}
    return Selection(
        plan,
        tuple(wanted),
        tuple(layout for layout in plan.mig_layouts if layout.config_name in layouts),
        tuple(shown),
        tuple(workloads),
        tuple(priority for priority in plan.priority_classes if priority.name in classes),
        tuple(gpu for gpu in plan.gpus if any(pool.gpu.id == gpu.gpu.id for pool in wanted)),
        (),
        has_all_tenants=not tenants,
    )


def _of(parties: Iterable[Party], tenants: set[str]) -> tuple[Party, ...]:
    return tuple(party for party in parties if party.tenant in tenants)


def _possible(eviction: Eviction) -> Iterator[Eviction]:
    """Yield the eviction if somebody in it can still evict somebody."""
    if any(eviction.holds(evictor, victim) for evictor in eviction.evictors for victim in eviction.victims):
        yield eviction
