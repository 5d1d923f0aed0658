"""Checks on how quotas are divided among namespaces (GPU412-415)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.checks.caps import cap_field, cap_of, each_quota
from gpuplan.checks.registry import check
from gpuplan.checks.wording import add, number, total_text
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.plan import Amount, Plan, Quota, Tenant
from gpuplan.wording import listing


@check("GPU412", "split-names-foreign-namespace")
def split_names_foreign_namespace(plan: Plan) -> Iterator[Finding]:
    """A quota's `split` names a namespace that the tenant does not have.

    ## Why
    The part would go to nobody, and the namespace that was meant gets nothing: with a `split`, namespaces that it does
    not name have a cap of 0.

    ## Instead
    Name one of the tenant's namespaces.
    """
    for tenant, quota in each_quota(plan):
        for namespace in quota.split:
            if namespace not in tenant.spec.namespaces:
                yield Finding(
                    (quota.at / "split" / namespace).key,
                    f"namespace `{namespace}` is not one of tenant `{tenant.name}`",
                    label="gets a part that nobody can use",
                    related=(Label((tenant.at / "namespaces").key, f"`{tenant.name}` has these"),),
                    notes=(f"its namespaces: {listing(tenant.spec.namespaces, 8)}",) if tenant.spec.namespaces else (),
                    help="write one of the tenant's namespaces, or add this one to `namespaces`",
                )


@check("GPU413", "split-over-cap")
def split_over_cap(plan: Plan) -> Iterator[Finding]:
    """The parts of a `split` add up to more than the quota allows.

    ## Why
    Each namespace gets a ResourceQuota with its part, and nothing counts them together. Parts above the cap let the
    tenant use more than it was granted.

    ## Instead
    Lower the parts, or raise the limit. Which of a quota's numbers is the cap is the cluster's `scheduler.cap`.
    """
    for tenant, quota, cap, part in _splits(plan):
        if part > cap:
            yield _uneven(plan, tenant, quota, cap, part, f"{number(part - cap)} more than it may use")


@check("GPU414", "split-below-cap", Severity.WARNING)
def split_below_cap(plan: Plan) -> Iterator[Finding]:
    """The parts of a `split` add up to less than the quota allows.

    ## Why
    Each namespace gets a ResourceQuota with its part, and namespaces that are not named get 0. What is left over can be
    used in none of them.

    ## Instead
    Raise a part, or lower the quota to what is used.
    """
    for tenant, quota, cap, part in _splits(plan):
        if part < cap:
            yield _uneven(plan, tenant, quota, cap, part, f"{number(cap - part)} can be used nowhere")


def _splits(plan: Plan) -> Iterator[tuple[Tenant, Quota, Amount, Amount]]:
    """The divided quotas, with their cap and the sum of the tenant's own parts."""
    for tenant, quota in each_quota(plan):
        cap = cap_of(plan, quota) if quota.split else None
        # A part of a foreign namespace is reported for itself.
        if cap is not None and all(name in tenant.spec.namespaces for name in quota.split):
            yield tenant, quota, cap, add(list(quota.split.values()))


def _uneven(plan: Plan, tenant: Tenant, quota: Quota, cap: Amount, part: Amount, label: str) -> Finding:
    left_out = [name for name in tenant.spec.namespaces if name not in quota.split]
    return Finding(
        quota.at / "split",
        f"split of `{quota.unit.name}` of pool `{quota.pool.name}` adds up to {number(part)}, "
        f"but tenant `{tenant.name}` has {number(cap)}",
        label=label,
        related=(Label(quota.at / cap_field(plan), f"the cap on this cluster: {number(cap)}"),),
        notes=(
            f"{total_text(list(quota.split.items()))} of {number(cap)}",
            *((f"{listing(left_out)} not named: 0",) if left_out else ()),
        ),
        help=f"divide {number(cap)} among the namespaces",
    )


@check("GPU415", "split-missing")
def split_missing(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a tenant with several namespaces does not say how its quota is divided among them.

    ## Why
    A ResourceQuota counts one namespace. With the whole cap in each of three namespaces the tenant may use three times
    what it was granted, at the cost of the others' guarantees.

    ## Instead
    Add a `split`, or give the tenant one namespace. Kueue and KAI-Scheduler count a tenant's namespaces together.
    """
    if plan.scheduler.counts_tenants:
        return
    for tenant, quota in each_quota(plan):
        names, cap = tenant.spec.namespaces, cap_of(plan, quota)
        if len(names) > 1 and not quota.split and cap and quota.unit.asked_as and len(set(names)) == len(names):
            sum_text = f"{len(names)} x {number(cap)} = {number(len(names) * cap)}"
            yield Finding(
                quota.at,
                f"cap of {number(cap)} `{quota.unit.name}` of pool `{quota.pool.name}` holds in each of "
                f"{len(names)} namespaces of tenant `{tenant.name}`, not in all together",
                label="not divided",
                related=(Label((tenant.at / "namespaces").key, f"{len(names)} namespaces"),),
                notes=(f"a ResourceQuota counts one namespace: together they may use {sum_text}",),
                help=f"add `split: {_even_split(names, cap)}`",
            )


def _even_split(names: Sequence[str], cap: Amount) -> str:
    share, rest = divmod(int(cap), len(names))
    return "{" + ", ".join(f"{name}: {share + (index < rest)}" for index, name in enumerate(names)) + "}"
