"""Checks on tenants: their namespaces and parents, and what is for those (GPU406-419, GPU426-432)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.checks.caps import cap_field, cap_of, each_quota
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import add, name_of, number, repeats, total_text, units
from gpuplan.compiler.planning.classes import counted_with, is_kept
from gpuplan.compiler.planning.containers import defaults_of
from gpuplan.compiler.planning.grants import has_admission_policies, refuses_more_than_one
from gpuplan.compiler.planning.plan import Amount, Plan, Quota, Tenant
from gpuplan.compiler.planning.projects import seconds, times_of
from gpuplan.compiler.planning.tree import circles


@check("GPU406", "tenant-without-namespace")
def tenant_without_namespace(plan: Plan) -> Iterator[Finding]:
    """A tenant has neither namespaces nor children.

    ## Why
    Pods run in namespaces: without one nobody can use what the tenant is granted, and its guarantees keep units from
    everybody else. Only a tenant that others name as their parent can do without.

    ## Instead
    Add `namespaces`, or remove the tenant.
    """
    for tenant in plan.tenants if not plan.broken.tenants else ():  # else one of those may be a child
        if not tenant.has_work and not plan.tree.is_divided(tenant):
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
    named = (
        (tenant, namespace, index) for tenant in plan.tenants for index, namespace in enumerate(tenant.spec.namespaces)
    )
    for (tenant, namespace, index), (owner, _, first) in repeats(named, itemgetter(1)):
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
        at = tenant.at / "namespaces"
        for (again, namespace), (first, _) in repeats(enumerate(tenant.spec.namespaces), itemgetter(1)):
            yield Finding(
                at / again,
                f"tenant `{tenant.name}` lists namespace `{namespace}` twice",
                label="again",
                related=(Label(at / first, "first listed here"),),
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
    by_name = {tenant.name: tenant for tenant in plan.tenants}
    for names in circles({tenant.name: tenant.parent for tenant in plan.tenants if tenant.parent}):
        top, *others = [by_name[name] for name in names]
        route = " -> ".join(f"`{name}`" for name in (*names, top.name))
        yield Finding(
            top.at / "parent",
            f"parents of `{top.name}` form a circle: {route}" if others else f"tenant `{top.name}` is its own parent",
            label="leads back to itself",
            related=tuple(Label(tenant.at / "parent", f"parent of `{tenant.name}`") for tenant in others[:4]),
            help=f"remove `parent` from {listing(names)}, whichever is the top"
            if others
            else "remove `parent` from the tenant",
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


# --- Parts of namespaces -----------------------------------------------------------------------------------------


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


@check("GPU428", "limit-for-no-class")
def limit_for_no_class(plan: Plan) -> Iterator[Finding]:
    """A quota has a limit for a priority class that the tenant's pods may not name.

    ## Why
    Pods with GPUs name one of their tenant's `priorityClasses`. A limit for another class bounds nobody, and the class
    that was meant has none.

    ## Instead
    Name one of the tenant's classes.
    """
    for tenant, quota in each_quota(plan):
        names = [priority.name for priority in tenant.priority_classes]
        for name in quota.class_limits:
            if name not in names and name not in plan.broken.priority_classes:
                yield Finding(
                    (quota.at / "classLimits" / name).key,
                    f"priority class `{name}` is not one of tenant `{tenant.name}`",
                    label="bounds nobody",
                    related=(Label((tenant.at / "priorityClasses").key, f"`{tenant.name}` has these"),),
                    notes=(f"its classes: {listing(names, 8)}",) if names else (),
                    help=f"write one of its classes, or add `{name}` to `priorityClasses`",
                )


@check("GPU429", "class-limit-out-of-reach", Severity.WARNING)
def class_limit_out_of_reach(plan: Plan) -> Iterator[Finding]:
    """A priority class may use as many units as its tenant may use anyway.

    ## Why
    The limit of the quota holds for pods of all classes, or its guarantee where the cluster says `cap: guaranteed`. A
    limit for one of them that is as high bounds nothing.

    ## Instead
    Lower it, or leave it out.
    """
    for tenant, quota in each_quota(plan):
        bound = cap_of(plan, quota)
        field = "guaranteed" if quota.spec.limit is None else cap_field(plan)
        for name, limit in quota.class_limits.items():
            if bound is not None and limit >= bound:
                yield Finding(
                    quota.at / "classLimits" / name,
                    f"pods of `{name}` may use {number(limit)} {units(quota)}, and tenant `{tenant.name}` "
                    f"{number(bound)}",
                    label="bounds nothing",
                    related=(Label(quota.at / field, f"{number(bound)} at most"),),
                    help=f"write less than {number(bound)}, or leave it out",
                )


@check("GPU432", "class-limits-below-guaranteed")
def class_limits_below_guaranteed(plan: Plan) -> Iterator[Finding]:
    """Every class that a tenant's pods may name has a limit, and all together are lower than the guarantee.

    ## Why
    Pods with GPUs name one of their tenant's `priorityClasses`. With a limit for each, no more is used than their sum.
    The rest of the guarantee is kept free for the tenant and can never be used.

    ## Instead
    Raise a limit, leave one out, or lower the guarantee.
    """
    for tenant, quota in each_quota(plan) if has_admission_policies(plan.cluster) else ():
        limits, named = quota.class_limits, [priority.name for priority in tenant.priority_classes]
        total = add(list(limits.values()))
        if (
            named
            and limits.keys() == set(named)
            and total < quota.guaranteed
            and _holds_all(plan, tenant, quota)
            and not plan.broken.priority_classes
        ):
            held = number(quota.guaranteed)
            yield Finding(
                (quota.at / "classLimits").key,
                f"pods of all classes of tenant `{tenant.name}` may use {number(total)} {units(quota)}, and {held} are "
                "guaranteed",
                label=f"{number(quota.guaranteed - total)} would stay idle for ever",
                related=(Label(quota.at / "guaranteed", f"{held} guaranteed"),),
                notes=(f"{total_text(list(limits.items()))} of {held}",),
                help=f"raise them to {held} together, or leave one out",
            )


def _holds_all(plan: Plan, tenant: Tenant, quota: Quota) -> bool:
    """Whether limits for a tenant's classes hold for all that uses a quota, in this pool and in all its namespaces."""
    cap = plan.cluster.cap
    return (
        is_kept(quota, cap)
        and bool(tenant.spec.namespaces)
        and not tenant.spec.labelled_namespaces
        and not plan.tree.is_divided(tenant)
        and not any(counted_with(tenant, quota, name, cap) for name in quota.class_limits)
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
    yield from _uneven(plan, lambda part, cap: f"{number(part - cap)} more than it may use" if part > cap else "")


@check("GPU414", "split-below-cap", Severity.WARNING)
def split_below_cap(plan: Plan) -> Iterator[Finding]:
    """The parts of a `split` add up to less than the quota allows.

    ## Why
    Each namespace gets a ResourceQuota with its part, and namespaces that are not named get 0. What is left over can be
    used in none of them.

    ## Instead
    Raise a part, or lower the quota to what is used.
    """
    yield from _uneven(plan, lambda part, cap: f"{number(cap - part)} can be used nowhere" if part < cap else "")


def _uneven(plan: Plan, fault: Callable[[Amount, Amount], str]) -> Iterator[Finding]:
    """Find divided quotas whose parts do not add up to the cap. A part of a foreign namespace is no part.

    That is reported for itself.
    """
    for tenant, quota in each_quota(plan):
        if not quota.split:
            continue
        names, cap, part = tenant.spec.namespaces, cap_of(plan, quota), add(list(quota.split.values()))
        if cap is not None and quota.split.keys() <= set(names) and (label := fault(part, cap)):
            left_out = [name for name in names if name not in quota.split]
            yield Finding(
                quota.at / "split",
                f"split of {units(quota)} adds up to {number(part)}, but tenant `{tenant.name}` has {number(cap)}",
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
    for tenant, quota in each_quota(plan) if not plan.scheduler.counts_tenants else ():
        names, cap = tenant.spec.namespaces, cap_of(plan, quota)
        if len(names) > 1 and not quota.split and cap and quota.unit.asked_as and len(set(names)) == len(names):
            share, rest = divmod(int(cap), len(names))
            even = ", ".join(f"{name}: {share + (index < rest)}" for index, name in enumerate(names))
            sum_text = f"{len(names)} x {number(cap)} = {number(len(names) * cap)}"
            yield Finding(
                quota.at,
                f"cap of {number(cap)} {units(quota)} holds in each of {len(names)} namespaces of tenant "
                f"`{tenant.name}`, not in all together",
                label="not divided",
                related=(Label((tenant.at / "namespaces").key, f"{len(names)} namespaces"),),
                notes=(f"a ResourceQuota counts one namespace: together they may use {sum_text}",),
                help=f"add `split: {{{even}}}`",
            )


@check("GPU430", "labelled-namespaces-unguarded")
def labelled_namespaces_unguarded(plan: Plan) -> Iterator[Finding]:
    """A tenant has namespaces by their label, on a cluster without the admission policies that would hold there.

    ## Why
    gpuplan writes nothing into these namespaces: neither a ResourceQuota, nor a level of Pod Security. What keeps their
    pods to the tenant's pools is a ValidatingAdmissionPolicy, which Kubernetes has since 1.30.

    ## Instead
    List the namespaces, or upgrade the cluster.
    """
    for tenant in plan.tenants if not has_admission_policies(plan.cluster) else ():
        if tenant.spec.labelled_namespaces:
            yield Finding(
                tenant.at / "labelledNamespaces",
                f"nothing holds pods of tenant `{tenant.name}` in namespaces that are not listed",
                label="by their label alone",
                related=(Label(plan.cluster.at / "kubernetes", "admission policies came with 1.30"),),
                help="list them in `namespaces`, or upgrade the cluster to 1.30 or later",
            )


@check("GPU431", "split-without-labelled")
def split_without_labelled(plan: Plan) -> Iterator[Finding]:
    """A quota is divided among the namespaces that are listed, and the tenant has others by their label.

    ## Why
    A `split` gives what it does not name nothing: pods in the other namespaces get none of these units.

    ## Instead
    Leave the `split` out, or make the other namespaces those of another tenant with this one as its `parent`.
    """
    for tenant, quota in each_quota(plan):
        if tenant.spec.labelled_namespaces and quota.split:
            yield Finding(
                (quota.at / "split").key,
                f"namespaces of tenant `{tenant.name}` that are not listed get no {units(quota)}",
                label="divided among those that are",
                related=(Label(tenant.at / "labelledNamespaces", "it has others"),),
                help="remove `split`, or give the others to a tenant of their own",
            )


# --- Time --------------------------------------------------------------------------------------------------------


@check("GPU426", "time-limit-of-nothing")
def time_limit_of_nothing(plan: Plan) -> Iterator[Finding]:
    """A limit on the time of a tenant's work is no time at all, or one that no work reaches.

    ## Why
    Run:ai's API takes no limit below a second. Work ends at its time limit in any case: a limit on idle time that is
    as long ends nothing earlier
    (https://docs.run.ai/latest/platform-admin/aiinitiatives/org/scheduling-rules).

    ## Instead
    Write an idle time that is shorter than `run`, or leave one of them out.
    """
    for tenant in plan.tenants:
        times = dict(times_of(tenant))
        for at, time in times.items():
            run = Origin(at.source, (*at.path[:-1], "run"))
            if seconds(time) == 0:
                yield Finding(
                    at,
                    f"work of tenant `{tenant.name}` has no time: `{time}`",
                    label="must be a second or more",
                    help="leave it out, or write how long it may take, such as `1h`",
                )
            elif at != run and run in times and seconds(time) >= seconds(times[run]):
                yield Finding(
                    at,
                    f"work of tenant `{tenant.name}` ends after {times[run]}, and may be idle for {time}",
                    label="never reached",
                    related=(Label(run, f"ends it after {times[run]}"),),
                    help=f"write less than `{times[run]}`, or leave it out",
                    severity=Severity.WARNING,
                )


# --- What is for namespaces --------------------------------------------------------------------------------------


@check("GPU427", "defaults-for-no-namespace", Severity.WARNING)
def defaults_for_no_namespace(plan: Plan) -> Iterator[Finding]:
    """A tenant says what containers have by default, and lists no namespaces.

    ## Why
    A LimitRange is written into a namespace. Those of tenants that are part of this one are theirs, and what is said
    here does not hold for them; into those that are the tenant's by their label nothing is written.

    ## Instead
    Write `containers` into the tenants that list namespaces, or let whoever makes the others make a LimitRange in each.
    """
    for tenant in plan.tenants:
        stated = [at for found in defaults_of(tenant).values() for at in found.stated]
        if stated and not tenant.spec.namespaces and (tenant.has_work or plan.tree.is_divided(tenant)):
            children = [child.name for child in plan.tree.children(tenant)]
            yield Finding(
                (tenant.at / "containers").key,
                f"tenant `{tenant.name}` says what containers have, and lists no namespaces",
                label="holds nowhere",
                notes=(f"part of it: {listing(children)}",) if children else (),
                help="list namespaces, or write it into the tenants that have some",
            )
