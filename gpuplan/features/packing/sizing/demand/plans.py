"""The demand that a platform states itself: what its tenants are granted, or what their workloads run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction as Ratio
from math import floor
from operator import attrgetter

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, Severity
from gpuplan.compiler.planning.plan import (
    Amount,
    Fraction as Fractions,
    Isolation,
    Plan,
    Pool,
    Quota,
    Tenant,
    Unit,
    UnitKey,
    Workload,
)
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.features.packing.rules import DEMAND_ASSUMED
from gpuplan.features.packing.sizing.needs import Basis, Need


def from_plan(
    plan: Plan, pools: Collection[str] = (), basis: Basis = Basis.GUARANTEED
) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
    """The needs of all tenants in the pools named, or in all: pods with what a unit of today has.

    What lies within the guarantee of a parent is counted once: a parent has what is left of its own. A quota of whole
    GPUs is counted in pods as large as those of its workloads, the rest in pods of one GPU; a quota of fractions
    likewise. Pods get the GPU model that they have.
    """
    chosen = [(tenant, quota) for tenant, quota in _quotas(plan) if not pools or quota.pool.name in pools]
    if basis is Basis.WORKLOADS:
        work = [item for item in plan.workloads if not pools or item.pool.name in pools]
        needs = tuple(_of_workloads(plan, work))
    else:
        needs = tuple(need for tenant, quota in chosen for need in _of_quota(plan, tenant, quota, basis))
    used = [(need.today, need.at) for need in needs if need.today]
    return needs, tuple(_assumed(plan, used, chosen if basis is not Basis.WORKLOADS else ()))


def _quotas(plan: Plan) -> Iterator[tuple[Tenant, Quota]]:
    """Each tenant's quotas, the first on each unit; a second one is a finding of its own."""
    for tenant in plan.tenants:
        first: dict[UnitKey, Quota] = {}
        for quota in tenant.quotas:
            first.setdefault(quota.key, quota)
        yield from ((tenant, quota) for quota in first.values())


# --- Quotas ------------------------------------------------------------------------------------------------------


def _of_quota(plan: Plan, tenant: Tenant, quota: Quota, basis: Basis) -> Iterator[Need]:
    left = Ratio(plan.tree.left_over(tenant, quota.key))
    if basis is Basis.LIMIT:
        left += _beyond_guarantee(plan, tenant, quota)
    # such a quota does not say how large pods are: they take several GPUs, or parts of one
    if quota.unit.isolation is Isolation.WHOLE_GPU or isinstance(quota.pool.part_with(quota.unit).sharing, Fractions):
        for item in _work_on(plan, tenant, quota.key):
            each = Ratio(item.amount_per_pod)
            pods = min(item.most_pods, floor(left / each)) if each else 0
            left -= pods * each
            if pods:
                yield _need_of_pods(item, pods)
    whole, part = divmod(left, 1)
    if whole:
        yield _need_of_units(tenant.name, quota.at, quota.pool, quota.unit, int(whole))
    if part:
        yield _need_of_units(tenant.name, quota.at, quota.pool, quota.unit, 1, part)


def _beyond_guarantee(plan: Plan, tenant: Tenant, quota: Quota) -> Ratio:
    """Return the units that it may use above its guarantee. A limit within another one adds nothing to it."""
    is_within = any(plan.tree.find_quota(above, quota.key) for above in plan.tree.above(tenant))
    if is_within:
        return Ratio(0)
    most: Amount = quota.unit.capacity if quota.limit is None else min(quota.limit, quota.unit.capacity)
    return max(Ratio(most) - Ratio(quota.guaranteed), Ratio(0))


def _work_on(plan: Plan, tenant: Tenant, key: UnitKey) -> list[Workload]:
    return [item for item in plan.workloads if item.tenant.name == tenant.name and item.key == key]


# --- Workloads ---------------------------------------------------------------------------------------------------


def _of_workloads(plan: Plan, work: list[Workload]) -> Iterator[Need]:
    """The pods that can run at once: services first, then what waits for them."""
    left: dict[tuple[str, UnitKey], Ratio] = {}
    for item in sorted(work, key=attrgetter("ends")):
        bounds = [
            (above.name, item.key)
            for above in plan.tree.path(item.tenant)
            if (quota := plan.tree.find_quota(above, item.key)) and quota.limit is not None
        ]
        for name, key in bounds:
            tenant = plan.tree.find(name)
            quota = plan.tree.find_quota(tenant, key) if tenant else None
            left.setdefault((name, key), Ratio(quota.limit or 0) if quota else Ratio(0))
        each = Ratio(item.amount_per_pod)
        pods = min([item.most_pods, *(floor(left[bound] / each) for bound in bounds if each)])
        for bound in bounds:
            left[bound] -= pods * each
        if pods > 0:
            yield _need_of_pods(item, pods)


def _need_of_pods(work: Workload, pods: int) -> Need:
    """Partitions of one pod are counted one by one: a process uses one of them (CUDA does not join MIG devices)."""
    pool, unit = work.pool, work.unit
    if work.fraction:
        need = _need_of_units(work.tenant.name, work.at, pool, unit, pods, Ratio(work.fraction.portion))
        if work.fraction.memory_mib is not None:
            need = replace(need, memory_mib=work.fraction.memory_mib)
    elif unit.isolation is Isolation.WHOLE_GPU:
        need = replace(_need_of_units(work.tenant.name, work.at, pool, unit, pods), gpus=work.spec.count)
    else:
        need = _need_of_units(work.tenant.name, work.at, pool, unit, pods * work.spec.count)
    return replace(need, name=work.name)


# --- Units -------------------------------------------------------------------------------------------------------


def _need_of_units(team: str, at: Origin, pool: Pool, unit: Unit, pods: int, part: Ratio = Ratio(1)) -> Need:
    """Pods that have a unit each, or a part of one."""
    is_whole = unit.isolation is Isolation.WHOLE_GPU
    return Need(
        at=at,
        team=team,
        name=unit.name,
        pods=pods,
        memory_mib=floor((unit.memory_mib or 0) * part),
        compute=compute_share(pool, unit) * part,
        gpus=1 if is_whole else 0,
        isolation=unit.isolation,
        models=(pool.gpu.id,),
        engines=_engines(pool, unit),
        today=(pool.name, unit.name),
    )


def compute_share(pool: Pool, unit: Unit) -> Ratio:
    """The part of a GPU's compute that a unit has when all others are busy."""
    profile = pool.gpu.find_profile(pool.gpu.current_name(unit.name))
    if profile is None or not pool.gpu.compute_slices:
        return unit.gpu_weight
    shares = pool.part_with(unit).shares_of(unit)
    return Ratio(profile.compute_slices, pool.gpu.compute_slices) / max(shares.number if shares else 1, 1)


def _engines(pool: Pool, unit: Unit) -> Mapping[str, int]:
    """Those of a profile that somebody chose for them."""
    profile = pool.gpu.find_profile(pool.gpu.current_name(unit.name))
    if profile is None or not profile.is_media:
        return {}
    return {name: number for name, number in profile.engines.items() if number}


# --- What is not said --------------------------------------------------------------------------------------------


def _assumed(
    plan: Plan, used: list[tuple[UnitKey, Origin | None]], quotas: Collection[tuple[Tenant, Quota]]
) -> Iterator[Diagnostic]:
    told: set[UnitKey] = set()
    for key, at in used:
        pool = plan.find_pool(key[0])
        unit = pool.find_unit(key[1]) if pool else None
        if pool is None or unit is None or at is None or unit.memory_mib is not None or key in told:
            continue
        told.add(key)
        finding = Finding(
            at,
            f"memory of unit `{unit.name}` of pool `{pool.name}` is not known",
            label="counted by its part of the compute alone",
            notes=(f"the catalog has no usable memory for it on {pool.gpu.id}",),
            help="give the demand as a `Demand` document, with `memory` for each pod",
        )
        yield DEMAND_ASSUMED.report(finding)
    for tenant, quota in quotas:
        if isinstance(quota.pool.part_with(quota.unit).sharing, Fractions):
            yield from _undivided(plan, tenant, quota)


def _undivided(plan: Plan, tenant: Tenant, quota: Quota) -> Iterator[Diagnostic]:
    """A quota of fractions says how many GPUs, and nothing of how large pods are."""
    left = Ratio(plan.tree.left_over(tenant, quota.key))
    taken = sum((item.most_pods * Ratio(item.amount_per_pod) for item in _work_on(plan, tenant, quota.key)), Ratio(0))
    if taken >= left:
        return
    rest = float(left - taken)
    finding = Finding(
        quota.at,
        f"nobody says how large the pods of tenant `{tenant.name}` on pool `{quota.pool.name}` are",
        label=f"{rest:g} of its GPUs are counted as pods of a GPU each",
        notes=(f"each such pod is counted with {gpu_memory_mib(quota.pool.gpu):,} MiB",),
        help="add its `Workload`s with their `fraction`, or give the demand as a `Demand` document",
        severity=Severity.NOTE,
    )
    yield DEMAND_ASSUMED.report(finding)
