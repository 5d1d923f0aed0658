"""Resolve tenants: their grants on units of pools, and what each namespace may use of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, assert_never

from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog import parse_profile
from gpuplan.compiler.documents import TOO_LARGE
from gpuplan.compiler.planning.amounts import compute_of
from gpuplan.compiler.planning.context import Context
from gpuplan.compiler.planning.plan import Amount, Mig, Pool, Quota, Tenant, Unit, with_places
from gpuplan.compiler.planning.pools import has_unclear_units
from gpuplan.compiler.planning.rules import UNIT_NEEDED, UNKNOWN_UNIT
from gpuplan.compiler.planning.schedulers import caps_in_queue, traits_of
from gpuplan.compiler.policy import models


def resolve_tenant(context: Context, at: Origin, tenant: models.Tenant) -> Tenant:
    """Return the tenant with the quotas and classes that exist. Each unknown name is a finding."""
    spec = tenant.spec
    named = (
        context.refer("PriorityClass", name, origin, context.classes)
        for origin, name in with_places(at / "priorityClasses", spec.priority_classes)
    )
    quotas = (_quota(context, origin, quota, spec) for origin, quota in with_places(at / "quotas", spec.quotas))
    return Tenant(
        at=at,
        name=tenant.metadata.name,
        spec=spec,
        parent=spec.parent,
        priority_classes=tuple(found for found in named if found),
        quotas=tuple(found for found in quotas if found),
        surplus_weight=amount(spec.surplus.weight),
    )


MOST_LEVELS: Final = 64
"""The most levels of tenants. It bounds walks from each tenant to the top."""


def limit_depth(context: Context, tenants: dict[str, Tenant]) -> None:
    """Take the parent off the tenants where a tree, or a circle, gets too deep; each of them is a finding."""
    levels: dict[str, int] = {}
    for start in list(tenants.values()):
        trail: dict[str, Tenant] = {}
        tenant: Tenant | None = start
        while tenant is not None and tenant.name not in levels and tenant.name not in trail:
            trail[tenant.name] = tenant
            tenant = tenants.get(tenant.parent or "")
        level = levels.get(tenant.name, 0) if tenant is not None else 0
        for below in reversed(trail.values()):
            level += 1
            if level > MOST_LEVELS:
                message = f"tenant `{below.name}` is below {MOST_LEVELS} others"
                finding = Finding(below.at / "parent", message, label="the limit is here", help="remove `parent`")
                context.report(TOO_LARGE, finding)
                tenants[below.name] = below._replace(parent=None)
                level = 1
            levels[below.name] = level


def amount(number: float) -> Amount:
    """Return a whole number as an int, and any other exactly as it was written."""
    return int(number) if number == int(number) else Decimal(str(number))


def _quota(context: Context, at: Origin, quota: models.Quota, tenant: models.TenantSpec) -> Quota | None:
    pool = context.refer("Pool", quota.pool, at / "pool", context.pools)
    unit = resolve_unit(context, at, quota.unit, pool, "quota") if pool else None
    if pool is None or unit is None:
        return None
    guaranteed = amount(quota.guaranteed)
    limit = guaranteed if quota.limit is None else None if isinstance(quota.limit, str) else amount(quota.limit)
    split = {name: amount(number) for name, number in quota.split.items()}
    capped = _capped(context, unit, guaranteed, limit)
    found = Quota(
        at=at,
        spec=quota,
        pool=pool,
        unit=unit,
        guaranteed=guaranteed,
        limit=limit,
        lendable=guaranteed if quota.lendable is None else amount(quota.lendable),
        split=split,
        class_limits={name: amount(number) for name, number in quota.class_limits.items()},
        caps={name: split.get(name, 0) if split else capped for name in tenant.namespaces},
        labelled_cap=None if tenant.labelled_namespaces and not split and limit != 0 else 0,
    )
    return found._replace(compute=tuple(compute_of(found, context.cap)))


def _capped(context: Context, unit: Unit, guaranteed: Amount, limit: Amount | None) -> Amount | None:
    """Return the cap of a ResourceQuota, or None without one. If queues cap it refuses only what nobody may have."""
    match context.cap:
        case models.Cap.LIMIT:
            return limit
        case models.Cap.GUARANTEED:
            return guaranteed
        case models.Cap.QUEUE:
            is_in_queue = caps_in_queue(context.cap, traits_of(context.scheduler.kind), unit.device_class)
            return None if is_in_queue and limit != 0 else limit
        case unknown:
            assert_never(unknown)


def resolve_unit(context: Context, at: Origin, name: str | None, pool: Pool, asked_by: str) -> Unit | None:
    """Return the unit that a quota or a workload at ``at`` names, or the only one of its pool.

    It is None without a finding if a mistake elsewhere hides what the pool hands out.
    """
    if has_unclear_units(pool):
        return None
    return _only_unit(context, at, pool, asked_by) if name is None else _named_unit(context, at, name, pool)


def _only_unit(context: Context, at: Origin, pool: Pool, asked_by: str) -> Unit | None:
    """Return the unit of a pool that hands out only one.

    A rollout changes nothing of that: what names no unit means that of the pool's `sharing`.
    """
    units = pool.parts[0].units
    if len(units) > 1:
        finding = Finding(
            at,
            f"{asked_by} on pool `{pool.name}` needs a unit",
            label="which unit is counted",
            notes=(_offer(pool),),
            help=f"add `unit:` with one of {listing([unit.name for unit in units], None, 'or')}",
        )
        context.report(UNIT_NEEDED, finding)
        return None
    return pool.find_unit(units[0].name) if units else None


def _named_unit(context: Context, at: Origin, name: str, pool: Pool) -> Unit | None:
    unit = pool.find_unit(name)
    if unit is None and pool.units:
        meant = _meant_unit(name, pool)
        way_out = f"count a unit that pool `{pool.name}` hands out, in numbers of its own, or name another pool"
        if isinstance(pool.sharing, Mig) and pool.gpu.find_profile(name):
            way_out = f"add `{name}` to the layout of pool `{pool.name}`, or count another unit, in numbers of its own"
        elif len(pool.units) == 1:
            way_out = f"write `unit: {pool.units[0].name}`, and numbers of that unit; or name another pool"
        finding = Finding(
            at / "unit",
            f"pool `{pool.name}` does not hand out `{name}`",
            label=f"did you mean `{meant}`" if meant else "not handed out here",
            notes=(_offer(pool), *_large_enough(name, pool)),
            help=f"write `unit: {meant}`" if meant else way_out,
        )
        context.report(UNKNOWN_UNIT, finding)
    return unit


def _meant_unit(name: str, pool: Pool) -> str | None:
    """Return the unit that was probably meant, by its resource, the end of the resource, or a similar spelling.

    What is the name of a unit is no misspelling of another one, though pods ask for both by one resource.
    """
    if parsed := parse_profile(name):
        slices = [item for unit in pool.units if (item := pool.gpu.find_profile(unit.name))]
        same = [item.name for item in slices if item.compute_slices == parsed.compute_slices]
        return same[0] if len(same) == 1 and slices[1:] and not pool.gpu.find_profile(name) else None
    if name in _WITHOUT_PROFILE:
        return None
    ends = f"/{name}", f"-{name}"
    by_resource = (unit.name for unit in pool.units if unit.resource and f"/{unit.resource}".endswith(ends))
    if found := next(by_resource, None):
        return found
    names = [unit.name for unit in pool.units]
    if close := misspelling(name, names):
        return close
    # The numbers of a profile in a name that is none: `1g10`, `mig-1g.10g`.
    numbers = re.fullmatch(r"(?:mig-)?([0-9]+)g?\W*([0-9]+)\W*g?i?b?", name.lower())
    return next((unit for unit in names if numbers and unit == f"{numbers[1]}g.{numbers[2]}gb"), None)


_WITHOUT_PROFILE = ("gpu", "shared", "fraction")


def _large_enough(name: str, pool: Pool) -> Iterator[str]:
    """Yield a note with the smallest unit that has as much memory as a profile that the pool does not hand out."""
    profile = pool.gpu.find_profile(name)
    wanted = profile.memory_mib if profile else None
    larger = [unit for unit in pool.units if wanted and unit.memory_mib is not None and unit.memory_mib >= wanted]
    if larger:
        smallest = min(larger, key=lambda unit: unit.memory_mib or 0)
        yield f"the smallest of them with the memory of `{name}` is `{smallest.name}`"


def _offer(pool: Pool) -> str:
    return f"pool `{pool.name}` hands out {', '.join(f'`{unit.name}`' for unit in pool.units)}"
