"""Run:ai's view of a plan: departments, projects, and their GPUs of every pool.

A tenant that is part of none is a department, so that siblings share the surplus as siblings. A namespace is a project
of its tenant's department and has the namespace's own name, for a project has one namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from math import ceil

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.amounts import bounded_sum, portion_of
from gpuplan.compiler.planning.plan import Amount, Plan, Pool, Quota, Tenant


class Grant(NamedTuple):
    """GPUs of one pool; ``limit`` is None where unbounded."""

    deserved: Ratio
    limit: Ratio | None


class Department(NamedTuple):
    """A tenant that is part of none, with all that are part of it; ``grants`` are by pool, every pool."""

    tenant: Tenant
    grants: Mapping[str, Grant]


class Project(NamedTuple):
    """A namespace of a tenant; ``grants`` are by pool, every pool."""

    namespace: str
    tenant: Tenant
    department: str
    grants: Mapping[str, Grant]


def departments(plan: Plan) -> tuple[Department, ...]:
    """Return the departments in the order of tenants. Without a quota a tenant has what the tenants below it have."""
    found = []
    for tenant in plan.tree.roots:
        quotas = plan.tree.together[tenant.name]
        held = ((quota, _grant(quota, quota.guaranteed, quota.limit)) for quota in quotas)
        found.append(Department(tenant, _by_pool(plan, held)))
    return tuple(found)


def projects(plan: Plan) -> tuple[Project, ...]:
    """Return the projects in the order of tenants and of their namespaces.

    A namespace has its part of the guarantee that its tenant does not pass on to tenants below it.
    """
    found = []
    for tenant in plan.tenants:
        names, top = tenant.spec.namespaces, plan.tree.path(tenant)[-1].name
        for namespace in names:
            held = []
            for quota in tenant.quotas:
                guaranteed = portion(quota, names, namespace, plan.tree.left_over(tenant, quota.key))
                limit = None if quota.limit is None else portion(quota, names, namespace, quota.limit)
                held.append((quota, _grant(quota, guaranteed, limit)))
            found.append(Project(namespace, tenant, top, _by_pool(plan, held)))
    return tuple(found)


# --- Numbers -----------------------------------------------------------------------------------------------------


def _by_pool(plan: Plan, held: Iterable[tuple[Quota, Grant]]) -> Mapping[str, Grant]:
    """Return the sum of grants in each pool."""
    grants: dict[str, list[Grant]] = {pool.name: [] for pool in plan.pools}
    for quota, grant in held:
        grants.get(quota.pool.name, []).append(grant)
    return {
        pool: Grant(
            sum((grant.deserved for grant in several), Ratio(0)),
            bounded_sum([grant.limit for grant in several], Ratio(0)),
        )
        for pool, several in grants.items()
    }


def _grant(quota: Quota, guaranteed: Amount, limit: Amount | None) -> Grant:
    weight = quota.unit.gpu_weight
    return Grant(Ratio(guaranteed) * weight, None if limit is None else Ratio(limit) * weight)


def portion(quota: Quota, namespaces: Sequence[str], namespace: str, amount: Amount) -> Amount:
    """Return a namespace's part of an amount, as `split` says or else in equal parts.

    Units stay whole: those that remain go where the part that was cut off is largest, the first of equals first.
    """
    weights = {name: Ratio(quota.split.get(name, 0) if quota.split else 1) for name in namespaces}
    total = sum(weights.values(), Ratio(0))
    if len(namespaces) == 1 or not total:
        return amount if len(namespaces) == 1 else 0
    if quota.unit.asked_as is None:  # fractions, which are divided to the hundredth of a GPU
        return Decimal(portion_of(int(Ratio(amount) * 100), weights, total)[namespace]) / 100
    return portion_of(int(amount), weights, total)[namespace]


# --- Order and time ----------------------------------------------------------------------------------------------

RANKS = ("VeryLow", "Low", "MediumLow", "Medium", "MediumHigh", "High", "VeryHigh")
"""The ranks of a department or a project in a node pool, the last one served first."""

DEFAULT_RANK = RANKS.index("MediumLow")


def ranks(tenants: Iterable[Tenant]) -> Mapping[int, str]:
    """Return Run:ai's name for each rank of the policy. 0 is its default rank, and the order stays.

    Those that are too many have the last name on their side, so that some of the order is lost.
    """
    stated = {tenant.spec.surplus.rank for tenant in tenants}
    below = sorted((rank for rank in stated if rank < 0), reverse=True)
    above = sorted(rank for rank in stated if rank > 0)
    return {
        0: RANKS[DEFAULT_RANK],
        **{rank: RANKS[max(DEFAULT_RANK - step, 0)] for step, rank in enumerate(below, 1)},
        **{rank: RANKS[min(DEFAULT_RANK + step, len(RANKS) - 1)] for step, rank in enumerate(above, 1)},
    }


def minimum_run_time(plan: Plan, pool: Pool) -> str | None:
    """Return the longest protection that a tenant of the pool asks for.

    A node pool has one time for all and both kinds.
    """
    asked = [
        duration
        for tenant in plan.tenants
        if any(quota.pool.name == pool.name for quota in tenant.quotas)
        for duration in (tenant.spec.protect.preempt, tenant.spec.protect.reclaim)
        if duration is not None
    ]
    return _spell(max(map(seconds, asked))) if asked else None


def times_of(tenant: Tenant) -> Iterator[tuple[Origin, str]]:
    """Yield each limit on the time of a tenant's work, with its place."""
    workspaces, trainings = tenant.spec.time_limits.workspaces, tenant.spec.time_limits.trainings
    times = {
        ("workspaces", "run"): workspaces.run,
        ("workspaces", "idle"): workspaces.idle,
        ("workspaces", "preemptibleIdle"): workspaces.preemptible_idle,
        ("trainings", "run"): trainings.run,
        ("trainings", "idle"): trainings.idle,
    }
    for (work, field), time in times.items():
        if time is not None:
            yield tenant.at / "timeLimits" / work / field, time


def seconds(duration: str) -> int:
    """Return the seconds of a duration of the policy language, such as ``1h30m``."""
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", duration))


_SECONDS = {"s": 1, "m": 60, "h": 3600}


def _spell(length: int) -> str:
    """Return days, hours and minutes. A part of a minute counts as one."""
    hours, minutes = divmod(ceil(length / 60), 60)
    days, hours = divmod(hours, 24)
    return "".join(f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if number) or "0m"
