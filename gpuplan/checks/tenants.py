"""Checks on tenants: their namespaces, their parents, what one of their containers may ask for (GPU406-419)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.grants import refuses_more_than_one
from gpuplan.planning.plan import Plan, Quota, Tenant
from gpuplan.wording import listing


@check("GPU406", "tenant-without-namespace")
def tenant_without_namespace(plan: Plan) -> Iterator[Finding]:
    """A tenant has neither namespaces nor children.

    ## Why
    Pods run in namespaces: without one nobody can use what the tenant is granted, and its guarantees keep units from
    everybody else. Only a tenant that others name as their parent can do without.

    ## Instead
    Add `namespaces`, or remove the tenant.
    """
    if plan.broken.tenants:
        return  # one of them may be a child
    for tenant in plan.tenants:
        if not tenant.spec.namespaces and not plan.tree.is_divided(tenant):
            yield Finding(
                name_of(tenant.at),
                f"tenant `{tenant.name}` has no namespace",
                label="and no tenant names it as its parent",
                notes=("its quotas cannot be used by any pod",) if tenant.quotas else (),
                help=f"add `namespaces: [{tenant.name}]`, or remove the tenant",
            )


@check("GPU407", "namespace-in-two-tenants")
def namespace_in_two_tenants(plan: Plan) -> Iterator[Finding]:
    """Two tenants have the same namespace.

    ## Why
    A pod belongs to the tenant of its namespace. With two, both tenants' admission rules and quotas hold at once, so
    that neither can use what it was granted.

    ## Instead
    Give each tenant its own namespace. Tenants that belong together can have a common `parent`.
    """
    owners: dict[str, tuple[Tenant, int]] = {}
    for tenant in plan.tenants:
        for index, namespace in enumerate(tenant.spec.namespaces):
            owner, first = owners.setdefault(namespace, (tenant, index))
            if owner is not tenant:
                yield Finding(
                    tenant.at / "namespaces" / index,
                    f"namespace `{namespace}` belongs to tenants `{owner.name}` and `{tenant.name}`",
                    label=f"claimed by `{tenant.name}`",
                    related=(Label(owner.at / "namespaces" / first, f"claimed by `{owner.name}`"),),
                    help="remove it from one of them",
                )


@check("GPU408", "namespace-twice")
def namespace_twice(plan: Plan) -> Iterator[Finding]:
    """A tenant lists a namespace twice.

    ## Why
    One of the two was meant to be another name, or nothing. A second Namespace object of one name cannot be applied.

    ## Instead
    Remove or correct one of them.
    """
    for tenant in plan.tenants:
        if len(set(tenant.spec.namespaces)) == len(tenant.spec.namespaces):
            continue
        first_of: dict[str, int] = {}
        for index, namespace in enumerate(tenant.spec.namespaces):
            first = first_of.setdefault(namespace, index)
            if first != index:
                yield Finding(
                    tenant.at / "namespaces" / index,
                    f"tenant `{tenant.name}` lists namespace `{namespace}` twice",
                    label="again",
                    related=(Label(tenant.at / "namespaces" / first, "first listed here"),),
                    help="remove one of them",
                )


@check("GPU410", "parent-cycle")
def parent_cycle(plan: Plan) -> Iterator[Finding]:
    """Tenants are each other's parents.

    ## Why
    A tree of tenants has a top. In a circle nobody holds what the others divide; Kueue switches off every queue of
    cohorts that form one, without an error.

    ## Instead
    Remove `parent` from the tenant that is meant to be the top.
    """
    parent_of = {tenant.name: tenant.parent for tenant in plan.tenants}
    by_name = {tenant.name: tenant for tenant in plan.tenants}
    done: set[str] = set()
    for start in parent_of:
        trail: list[str] = []
        name: str | None = start
        while name is not None and name in parent_of and name not in done:
            done.add(name)
            trail.append(name)
            name = parent_of[name]
        if name in trail:
            yield _cycle([by_name[member] for member in trail[trail.index(name) :]])


def _cycle(members: list[Tenant]) -> Finding:
    first = members.index(min(members, key=lambda tenant: tenant.name))
    top, *others = [*members[first:], *members[:first]]
    route = " -> ".join(f"`{tenant.name}`" for tenant in (top, *others, top))
    return Finding(
        top.at / "parent",
        f"parents of `{top.name}` form a circle: {route}" if others else f"tenant `{top.name}` is its own parent",
        label="leads back to itself",
        related=tuple(Label(tenant.at / "parent", f"parent of `{tenant.name}`") for tenant in others[:4]),
        help=f"remove `parent` from {listing([tenant.name for tenant in members]) if others else 'the tenant'}"
        f"{', whichever is the top' if others else ''}",
    )


@check("GPU419", "container-limit-out-of-reach", Severity.WARNING)
def container_limit_out_of_reach(plan: Plan) -> Iterator[Finding]:
    """A tenant's containers may ask for more units than any of its pools gives to one.

    ## Why
    A container runs on one node, so that it gets at most what one node has. Pools of shares refuse containers that ask
    for more than one, because two shares may be of the same GPU. A pod that asks for more passes admission and fails or
    waits.

    ## Instead
    Lower `unitsPerContainer`.
    """
    for tenant in plan.tenants:
        wanted = tenant.spec.allow.units_per_container
        if wanted is not None and tenant.quotas:
            quota = max(tenant.quotas, key=_most_per_container)
            most = _most_per_container(quota)
            if wanted > most:
                yield Finding(
                    tenant.at / "allow" / "unitsPerContainer",
                    f"no pool of tenant `{tenant.name}` gives one container {wanted} units",
                    label=f"{most} at most",
                    related=(Label(quota.at / "pool", f"pool `{quota.pool.name}`: {most} `{quota.unit.name}`"),),
                    help=f"write `unitsPerContainer: {most}`",
                )


def _most_per_container(quota: Quota) -> int:
    return 1 if refuses_more_than_one(quota.pool, quota.unit) else quota.unit.per_node
