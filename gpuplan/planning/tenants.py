"""Resolve tenants: their grants on units of pools, and what each namespace may use of them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from gpuplan.diagnostics import Finding, Origin
from gpuplan.planning.context import Context, closest
from gpuplan.planning.plan import Amount, Cap, Member, Pool, PriorityClass, Quota, Tenant, Unit
from gpuplan.planning.rules import UNIT_NEEDED, UNKNOWN_UNIT
from gpuplan.policy import models


def resolve_tenant(
    context: Context,
    at: Origin,
    tenant: models.Tenant,
    pools: Mapping[str, Pool],
    classes: Mapping[str, PriorityClass],
    cap: Cap,
) -> Tenant:
    """The tenant with those grants and classes that exist; each that does not is a finding."""
    spec = tenant.spec
    named = (
        context.refer("PriorityClass", name, at / "priorityClasses" / index, classes)
        for index, name in enumerate(spec.priority_classes)
    )
    quotas = (
        _quota(context, at / "quotas" / index, quota, spec.namespaces, pools, cap)
        for index, quota in enumerate(spec.quotas)
    )
    return Tenant(
        at=at,
        name=tenant.metadata.name,
        namespaces=tuple(spec.namespaces),
        parent=spec.parent,
        priority_classes=tuple(found for found in named if found),
        workload_types=tuple(spec.workload_types),
        quotas=tuple(found for found in quotas if found),
        surplus_weight=amount(spec.surplus.weight),
        surplus_rank=spec.surplus.rank,
        protect_preempt=spec.protect.preempt,
        protect_reclaim=spec.protect.reclaim,
        members=tuple(
            Member(at / "members" / index, member.group, member.role) for index, member in enumerate(spec.members)
        ),
        pod_security=spec.allow.pod_security,
        units_per_container=spec.allow.units_per_container,
    )


def amount(number: float) -> Amount:
    """A whole number as an int, any other exactly as it was written."""
    return int(number) if number == int(number) else Decimal(str(number))


def _quota(
    context: Context, at: Origin, quota: models.Quota, namespaces: list[str], pools: Mapping[str, Pool], cap: Cap
) -> Quota | None:
    pool = context.refer("Pool", quota.pool, at / "pool", pools)
    unit = pool and _unit(context, at, quota, pool)
    if pool is None or unit is None:
        return None
    guaranteed = amount(quota.guaranteed)
    limit = _limit(quota.limit, guaranteed)
    split = {name: amount(number) for name, number in quota.split.items()}
    capped = limit if cap is Cap.LIMIT else guaranteed
    return Quota(
        at=at,
        pool=pool,
        unit=unit,
        guaranteed=guaranteed,
        limit=limit,
        lendable=guaranteed if quota.lendable is None else amount(quota.lendable),
        split=split,
        caps={name: split.get(name, 0) if split else capped for name in namespaces},
    )


def _limit(limit: float | str | None, guaranteed: Amount) -> Amount | None:
    if limit is None:
        return guaranteed
    return None if isinstance(limit, str) else amount(limit)


def _unit(context: Context, at: Origin, quota: models.Quota, pool: Pool) -> Unit | None:
    offered = ", ".join(f"`{unit.name}`" for unit in pool.units)
    if quota.unit is None:
        if len(pool.units) == 1:
            return pool.units[0]
        finding = Finding(
            at,
            f"quota on pool `{pool.name}` needs a unit",
            label="which unit is counted",
            notes=(f"pool `{pool.name}` hands out {offered or 'nothing'}",),
            help=f"add `unit: {pool.units[0].name}`" if pool.units else "correct the pool's layout first",
        )
        # A pool that hands out nothing has a layout that is reported already.
        return context.report(UNIT_NEEDED, finding) if pool.units else None
    unit = pool.find_unit(quota.unit)
    if unit is None and pool.units:
        close = closest(quota.unit, [unit.name for unit in pool.units]) or pool.units[0].name
        context.report(
            UNKNOWN_UNIT,
            Finding(
                at / "unit",
                f"pool `{pool.name}` does not hand out `{quota.unit}`",
                label=f"did you mean `{close}`",
                notes=(f"pool `{pool.name}` hands out {offered}",),
                help=f"write `unit: {close}`",
            ),
        )
    return unit
