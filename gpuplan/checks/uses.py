"""Where a plan asks its scheduler for something that not every scheduler keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gpuplan.checks.wording import number
from gpuplan.diagnostics import Origin
from gpuplan.planning.plan import Fraction, FractionRequest, Mig, Mps, Plan, Pool, Quota, Sharing, Tenant, TimeSlicing
from gpuplan.policy.models import Allocation, Inference, Training
from gpuplan.wording import listing


class Use(NamedTuple):
    """A place in the policy, and what it asks for there."""

    at: Origin
    text: str


FindUses = Callable[[Plan], Iterator[Use]]


def uses(plan: Plan, concept: str) -> tuple[Use, ...]:
    """The places where the plan asks for a concept of the capability matrix."""
    return tuple(USES[concept](plan))


# --- Tenants -----------------------------------------------------------------------------------------------------


def namespaces(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if len(tenant.spec.namespaces) > 1 and tenant.quotas:
            yield Use((tenant.at / "namespaces").key, f"`{tenant.name}` has {len(tenant.spec.namespaces)} namespaces")


def parents(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if tenant.parent is not None:
            yield Use(tenant.at / "parent", f"`{tenant.name}` is part of `{tenant.parent}`")


def weights(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if tenant.surplus_weight != 1:
            yield weight(tenant)


def weight(tenant: Tenant) -> Use:
    return Use(tenant.at / "surplus" / "weight", f"`{tenant.name}` has weight {number(tenant.surplus_weight)}")


def ranks(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if tenant.spec.surplus.rank != 0:
            yield rank(tenant)


def rank(tenant: Tenant) -> Use:
    return Use(tenant.at / "surplus" / "rank", f"`{tenant.name}` has rank {tenant.spec.surplus.rank}")


def protections(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        yield from preempt_protection(tenant)
        yield from reclaim_protection(tenant)


def preempt_protection(tenant: Tenant) -> Iterator[Use]:
    if tenant.spec.protect.preempt is not None:
        yield Use(tenant.at / "protect" / "preempt", f"`{tenant.name}`: {tenant.spec.protect.preempt}")


def reclaim_protection(tenant: Tenant) -> Iterator[Use]:
    if tenant.spec.protect.reclaim is not None:
        yield Use(tenant.at / "protect" / "reclaim", f"`{tenant.name}`: {tenant.spec.protect.reclaim}")


def priorities(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if has_order(tenant):
            yield _classes(tenant)


def has_order(tenant: Tenant) -> bool:
    """Whether some of the tenant's pods may go before others."""
    return len({found.spec.value for found in tenant.priority_classes}) > 1


def calm_classes(plan: Plan) -> Iterator[Use]:
    for found in plan.priority_classes:
        if not found.spec.preempts:
            yield Use(found.at / "preempts", f"pods of `{found.name}` evict nobody")


def class_access(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        if tenant.priority_classes:
            yield _classes(tenant)


def _classes(tenant: Tenant) -> Use:
    names = listing([found.name for found in tenant.priority_classes])
    return Use((tenant.at / "priorityClasses").key, f"`{tenant.name}` may name {names}")


def safe_classes(plan: Plan) -> Iterator[Use]:
    for found in plan.priority_classes:
        if not found.spec.preemptible:
            yield Use(found.at / "preemptible", f"pods of `{found.name}` are not to be evicted")


# --- Quotas ------------------------------------------------------------------------------------------------------


def pools_of_tenants(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        names = sorted({quota.pool.name for quota in tenant.quotas})
        if len(names) > 1:
            yield Use((tenant.at / "quotas").key, f"`{tenant.name}` has quotas on {listing(names)}")


def units_of_tenants(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        for quotas in several_units(tenant):
            yield units(tenant, quotas)


def units(tenant: Tenant, quotas: list[Quota]) -> Use:
    names = listing([quota.unit.name for quota in quotas])
    return Use(quotas[0].at, f"`{tenant.name}` has {names} of `{quotas[0].pool.name}`")


def several_units(tenant: Tenant) -> Iterator[list[Quota]]:
    """The tenant's quotas on each pool of which it has several units."""
    by_pool: dict[str, list[Quota]] = {}
    for quota in tenant.quotas:
        by_pool.setdefault(quota.pool.name, []).append(quota)
    for quotas in by_pool.values():
        if len({quota.unit.name for quota in quotas}) > 1:
            yield quotas


def guarantees(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        for quota in tenant.quotas:
            if quota.guaranteed > 0:
                yield guarantee(tenant, quota)


def guarantee(tenant: Tenant, quota: Quota) -> Use:
    text = f"`{tenant.name}` is guaranteed {number(quota.guaranteed)} `{quota.unit.name}` of `{quota.pool.name}`"
    return Use(quota.at / "guaranteed", text)


def limits(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        for quota in tenant.quotas:
            if quota.may_borrow:
                yield limit(tenant, quota)


def limit(tenant: Tenant, quota: Quota) -> Use:
    most = "any number of" if quota.limit is None else number(quota.limit)
    text = f"`{tenant.name}` may use {most} `{quota.unit.name}`, and {number(quota.guaranteed)} are guaranteed"
    return Use(quota.at / "limit", text)


def lending_bounds(plan: Plan) -> Iterator[Use]:
    for tenant in plan.tenants:
        for quota in tenant.quotas:
            if quota.lendable < quota.guaranteed:
                yield lending_bound(tenant, quota)


def lending_bound(tenant: Tenant, quota: Quota) -> Use:
    text = f"`{tenant.name}` lends {number(quota.lendable)} of {number(quota.guaranteed)}"
    return Use(quota.at / "lendable", text)


# --- Pools -------------------------------------------------------------------------------------------------------


def whole_gpus(plan: Plan) -> Iterator[Use]:
    for pool in plan.parts:
        if pool.find_unit("gpu"):
            yield _sharing(pool, pool.sharing)


def mig(plan: Plan) -> Iterator[Use]:
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            yield _sharing(pool, pool.sharing)


def shares(plan: Plan) -> Iterator[Use]:
    for pool in plan.parts:
        slicing = pool.sharing.time_slicing if isinstance(pool.sharing, Mig) else pool.sharing
        if isinstance(slicing, TimeSlicing | Mps):
            yield _sharing(pool, slicing)


def fractions(plan: Plan) -> Iterator[Use]:
    for pool in plan.parts:
        if isinstance(pool.sharing, Fraction):
            yield _sharing(pool, pool.sharing)


def _sharing(pool: Pool, sharing: Sharing) -> Use:
    return Use(sharing.at.key, f"pool `{pool.name}`")


def topologies(plan: Plan) -> Iterator[Use]:
    for pool in plan.pools:
        if pool.spec.topology:
            yield Use((pool.at / "topology").key, f"pool `{pool.name}` knows {listing(pool.spec.topology)}")


def placements(plan: Plan) -> Iterator[Use]:
    for pool in plan.pools:
        if pool.spec.placement is not None:
            yield Use(pool.at / "placement", f"pool `{pool.name}`: {pool.spec.placement}")


def claims(plan: Plan) -> Iterator[Use]:
    for pool in plan.pools:
        if pool.spec.allocation is Allocation.DRA:
            yield Use(pool.at / "allocation", f"pool `{pool.name}`")


# --- Workloads ---------------------------------------------------------------------------------------------------


def fraction_ranges(plan: Plan) -> Iterator[Use]:
    for workload in plan.workloads:
        match workload.fraction:
            case FractionRequest(at=at, least=least, most=most) if least < most:
                yield Use(at, f"`{workload.name}` has {number(least)} to {number(most)} of a GPU")


def gangs(plan: Plan) -> Iterator[Use]:
    for workload in plan.workloads:
        match workload.work:
            case Training(gang=int() as gang, pods=pods) if gang > 1:
                yield Use(workload.work_at / "gang", f"`{workload.name}` needs {gang} of {pods} pods at once")


def autoscalers(plan: Plan) -> Iterator[Use]:
    for workload in plan.workloads:
        match workload.work:
            case Inference(autoscaling=scaling) if scaling:
                most = scaling.max_replicas
                at = workload.work_at / "autoscaling"
                yield Use(at.key, f"`{workload.name}` has {scaling.min_replicas} to {most} pods")


USES: Mapping[str, FindUses] = {
    "namespaces": namespaces,
    "parent": parents,
    "pool": pools_of_tenants,
    "unit": units_of_tenants,
    "guaranteed": guarantees,
    "limit": limits,
    "lendable": lending_bounds,
    "surplus-weight": weights,
    "surplus-rank": ranks,
    "protect": protections,
    "priority": priorities,
    "preemptible": safe_classes,
    "preempts": calm_classes,
    "class-access": class_access,
    "whole-gpus": whole_gpus,
    "mig": mig,
    "shares": shares,
    "fraction": fractions,
    "fraction-range": fraction_ranges,
    "gang": gangs,
    "topology": topologies,
    "placement": placements,
    "autoscaling": autoscalers,
    "dra": claims,
}
"""How each concept of the capability matrix is found, by its id."""
