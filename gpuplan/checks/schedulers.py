"""Checks on what the cluster's scheduler cannot keep (GPU510-519)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpuplan.checks.caps import Key, ancestors, cap_field, cap_of, envelopes, grants_by_unit, key_of
from gpuplan.checks.registry import Check, check
from gpuplan.checks.wording import add, number, severity_of_loss
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.grants import has_admission_policies
from gpuplan.planning.plan import Amount, Cap, Fraction, Mig, Mps, Plan, Pool, Quota, SchedulerKind, Tenant, TimeSlicing
from gpuplan.wording import listing

NAMES = {
    SchedulerKind.KUBERNETES: "plain Kubernetes",
    SchedulerKind.KUEUE: "Kueue",
    SchedulerKind.KAI: "KAI-Scheduler",
    SchedulerKind.RUNAI: "Run:ai",
}
_UNWRITTEN = {
    SchedulerKind.KAI: "SchedulingShards and Queues",
    SchedulerKind.RUNAI: "node pools, departments and projects",
}

# Read in the APIs of Kueue 0.19 and KAI-Scheduler 0.17, and in Run:ai's REST API.
_NO_WEIGHT = frozenset((SchedulerKind.KUBERNETES,))
_NO_RANK = frozenset((SchedulerKind.KUBERNETES, SchedulerKind.KUEUE))
_NO_LENDING_BOUND = frozenset((SchedulerKind.KUBERNETES, SchedulerKind.KAI, SchedulerKind.RUNAI))
_NO_MINIMUM_RUN_TIME = frozenset((SchedulerKind.KUBERNETES, SchedulerKind.KUEUE))

# KAI-Scheduler reads a MIG resource's size from its name; what it cannot read costs nothing
# (`pkg/scheduler/api/common_info/resources/mig.go`).
_KAI_COUNTS = re.compile(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb").fullmatch

_Place = tuple[str, Origin]


@check("GPU510", "queues-not-written", Severity.NOTE)
def queues_not_written(plan: Plan) -> Iterator[Finding]:
    """This release writes no queue objects for the cluster's scheduler.

    ## Why
    What is written for the cluster is what plain Kubernetes knows: priority classes, a ResourceQuota in each namespace
    with the tenant's caps, and the admission rules that keep a tenant to its own pools, units and classes. Guarantees,
    lending, surplus, run-time protection and the tree of tenants need the scheduler's own objects.

    ## Instead
    Write the scheduler's objects by hand into `overlays/<cluster>/kustomize/scheduling/`; the quotas in the policy are
    checked all the same. With `onLoss: refuse` this is an error.
    """
    kind = plan.cluster.scheduler.kind
    unwritten = _UNWRITTEN.get(kind)
    if unwritten is None:
        return
    yield Finding(
        _kind_of(plan),
        f"no queue objects are written for {NAMES[kind]}",
        label="caps and admission rules only",
        notes=(
            f"written: PriorityClasses, ResourceQuotas that cap each quota's `{cap_field(plan)}`, admission rules",
            f"not written: {unwritten}; nothing keeps guarantees, lending, surplus, `protect` or `parent`",
        ),
        help=f"write them by hand in overlays/{plan.cluster.name}/kustomize/scheduling/",
        severity=severity_of_loss(plan, Severity.NOTE),
    )


@check("GPU511", "parent-does-not-bound", Severity.NOTE)
def parent_does_not_bound(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a tenant's children may together use more than their parent.

    ## Why
    A ResourceQuota counts one namespace, and nothing counts namespaces together. The parent's numbers are checked
    against the pool's capacity, but in the cluster only the children's caps hold.

    ## Instead
    Lower the children's caps until they fit into the parent's, or use a scheduler with a tree of queues.
    """
    if plan.cluster.scheduler.kind is not SchedulerKind.KUBERNETES:
        return
    found = [
        (f"`{parent.name}` has {number(bound)} `{quota.unit.name}`, {used}", quota.at / cap_field(plan))
        for parent, quota, bound, used in _exceeded_parents(plan)
    ]
    if found:
        yield _loss(plan, "bounds of parents", found, "a ResourceQuota counts one namespace, not the tenants below one")


def _exceeded_parents(plan: Plan) -> Iterator[tuple[Tenant, Quota, Amount, str]]:
    """Parents' quotas with their cap, and what may be used of it where that is more.

    A parent that has namespaces uses its cap itself. Where the children's guarantees alone are too much, or parents
    form a circle, that is reported for itself.
    """
    tenants = {tenant.name: tenant for tenant in plan.tenants}
    for envelope in envelopes(plan):
        if any(above.parent == envelope.tenant.name for above in ancestors(envelope.tenant, tenants)):
            continue
        bound = cap_of(plan, envelope.quota)
        own = [bound] if envelope.tenant.namespaces else []
        caps = [*own, *(cap_of(plan, quota) for _, quota in envelope.children)]
        known = [cap for cap in caps if cap is not None]
        exceeds = len(known) < len(caps) or (bound is not None and add(known) > bound)
        if bound is not None and exceeds and envelope.promised <= envelope.quota.guaranteed:
            who = "it and its children" if own else "its children"
            used = number(add(known)) if len(known) == len(caps) else "no bound"
            yield envelope.tenant, envelope.quota, bound, f"{who} {used}"


@check("GPU512", "limit-not-allowed", Severity.NOTE)
def limit_not_allowed(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes with `cap: guaranteed`, tenants cannot use more than their guarantee.

    ## Why
    A ResourceQuota has one number. With the guarantee as the cap, all guarantees hold, and nobody can use what others
    leave idle, whatever `limit` says.

    ## Instead
    Accept it, or write `cap: limit`: then tenants may use more, and guarantees hold as far as the caps fit.
    """
    scheduler = plan.cluster.scheduler
    if scheduler.kind is not SchedulerKind.KUBERNETES or scheduler.cap is not Cap.GUARANTEED:
        return
    found = [
        (f"`{tenant.name}` gets {number(quota.guaranteed)} of {_limit(quota)} `{quota.unit.name}`", quota.at / "limit")
        for tenant in plan.tenants
        for quota in tenant.quotas
        if quota.limit is None or quota.limit > quota.guaranteed
    ]
    if found:
        yield _loss(plan, "`limit` above `guaranteed`", found, "the cluster caps at `guaranteed`", place="cap")


def _limit(quota: Quota) -> str:
    return "any number of" if quota.limit is None else number(quota.limit)


@check("GPU513", "lendable-not-kept", Severity.NOTE)
def lendable_not_kept(plan: Plan) -> Iterator[Finding]:
    """Tenants bound what others may borrow of their guarantee, and the scheduler cannot.

    ## Why
    Only Kueue has a lending limit. KAI-Scheduler and Run:ai lend out whatever is idle and reclaim it later. On plain
    Kubernetes whoever comes first has it, unless all caps fit into the pool: then nobody can borrow, and this check is
    silent.

    ## Instead
    Leave `lendable` out where it cannot be kept, or lower the others' limits until the caps fit into the pool.
    """
    kind = plan.cluster.scheduler.kind
    if kind not in _NO_LENDING_BOUND:
        return
    bounded = [
        (tenant, quota) for tenant in plan.tenants for quota in tenant.quotas if quota.lendable < quota.guaranteed
    ]
    if bounded and kind is SchedulerKind.KUBERNETES:
        contended = _contended(plan)
        bounded = [(tenant, quota) for tenant, quota in bounded if key_of(quota) in contended]
    found = [
        (f"`{tenant.name}` lends {number(quota.lendable)} of {number(quota.guaranteed)}", quota.at / "lendable")
        for tenant, quota in bounded
    ]
    if found:
        yield _loss(plan, "`lendable`", found, f"{NAMES[kind]} has no bound on what is lent")


def _contended(plan: Plan) -> frozenset[Key]:
    """The units that tenants may together use more of than there are."""
    capacity = {(pool.name, unit.name): unit.capacity for pool in plan.pools for unit in pool.units}
    return frozenset(
        key
        for key, grants in grants_by_unit(plan).items()
        if any(grant.cap is None for grant in grants) or add([grant.cap or 0 for grant in grants]) > capacity[key]
    )


@check("GPU514", "surplus-not-divided", Severity.NOTE)
def surplus_not_divided(plan: Plan) -> Iterator[Finding]:
    """Tenants have a weight or a rank in the surplus, and the scheduler knows none.

    ## Why
    On plain Kubernetes idle units go to whoever comes first. Kueue shares by weight but has no order of ranks among
    tenants.

    ## Instead
    Leave `surplus` at its defaults where it cannot be kept, or use KAI-Scheduler or Run:ai, which know both.
    """
    kind = plan.cluster.scheduler.kind
    if kind in _NO_WEIGHT:
        weights = [
            (f"`{tenant.name}` has weight {number(tenant.surplus_weight)}", tenant.at / "surplus" / "weight")
            for tenant in plan.tenants
            if tenant.surplus_weight != 1
        ]
        if weights:
            yield _loss(plan, "`surplus.weight`", weights, f"{NAMES[kind]} serves whoever comes first")
    if kind in _NO_RANK:
        ranks = [
            (f"`{tenant.name}` has rank {tenant.surplus_rank}", tenant.at / "surplus" / "rank")
            for tenant in plan.tenants
            if tenant.surplus_rank != 0
        ]
        if ranks:
            yield _loss(plan, "`surplus.rank`", ranks, f"{NAMES[kind]} has no order among tenants")


@check("GPU515", "protection-not-kept", Severity.NOTE)
def protection_not_kept(plan: Plan) -> Iterator[Finding]:
    """Tenants ask for a minimum run time before eviction, and the scheduler knows none.

    ## Why
    kube-scheduler and Kueue evict a pod as soon as a more urgent one needs its place, after a minute as after a day.
    KAI-Scheduler and Run:ai can wait.

    ## Instead
    Leave `protect` out where it cannot be kept; let long runs write checkpoints, or give them a higher priority class.
    """
    kind = plan.cluster.scheduler.kind
    if kind not in _NO_MINIMUM_RUN_TIME:
        return
    found = [
        (f"`{tenant.name}`: {duration}", tenant.at / "protect" / field)
        for tenant in plan.tenants
        for field, duration in (("preempt", tenant.protect_preempt), ("reclaim", tenant.protect_reclaim))
        if duration is not None
    ]
    if found:
        yield _loss(plan, "`protect`", found, f"{NAMES[kind]} knows no minimum run time")


def _loss(plan: Plan, what: str, found: Sequence[_Place], why: str, place: str = "kind") -> Finding:
    """One finding for all that is lost in one way: it is the cluster that loses it, and a fleet has many tenants."""
    scheduler = plan.cluster.scheduler
    more = f"{len(found) - 3} more like these" if len(found) > 3 else ""
    return Finding(
        scheduler.at / place,
        f"{NAMES[scheduler.kind]} does not keep {what}",
        label=why,
        related=tuple(Label(at, text) for text, at in found[:3]),
        notes=(more,) if more else (),
        severity=severity_of_loss(plan, Severity.NOTE),
    )


def _kind_of(plan: Plan) -> Origin:
    return plan.cluster.scheduler.at / "kind"


# --- What cannot be counted at all -------------------------------------------------------------------------------


@check("GPU516", "unit-unknown-to-scheduler")
def unit_unknown_to_scheduler(plan: Plan) -> Iterator[Finding]:
    """A pool hands out a unit that the cluster's scheduler cannot count.

    ## Why
    Fractions of a GPU are an idea of KAI-Scheduler and Run:ai: to Kubernetes and Kueue a pool of fractions has nothing
    to hand out and nothing to cap. KAI-Scheduler in turn does not count the device plugin's shares, and reads the size
    of a MIG device from its name: profiles with an attribute, such as `1g.10gb+me`, cost nothing there, so that
    a tenant may take all of them.

    ## Instead
    On plain Kubernetes and Kueue, share by time-slicing, MPS or MIG. With KAI-Scheduler, use `fraction` for shares and
    MIG profiles without attributes.
    """
    kind = plan.cluster.scheduler.kind
    for pool in plan.pools:
        if isinstance(pool.sharing, Fraction):
            if kind in (SchedulerKind.KUBERNETES, SchedulerKind.KUEUE):
                yield _fraction_without_scheduler(plan, pool)
        elif kind is SchedulerKind.KAI:
            yield from _not_counted_by_kai(plan, pool)


def _fraction_without_scheduler(plan: Plan, pool: Pool) -> Finding:
    return Finding(
        pool.sharing.at.key,
        f"{NAMES[plan.cluster.scheduler.kind]} cannot hand out fractions of pool `{pool.name}`",
        label="needs KAI-Scheduler or Run:ai",
        related=(_scheduler_label(plan),),
        notes=("a fraction is an annotation that only those schedulers read; no resource stands for it",),
        help="write `timeSlicing: {replicas: 4}` or another kind of sharing, or change the cluster's scheduler",
    )


def _not_counted_by_kai(plan: Plan, pool: Pool) -> Iterator[Finding]:
    sharing = pool.sharing
    slicing = sharing.time_slicing if isinstance(sharing, Mig) else sharing
    if isinstance(slicing, TimeSlicing | Mps):
        yield Finding(
            slicing.at.key,
            f"KAI-Scheduler does not count the shares of pool `{pool.name}`",
            label="shares of the device plugin",
            related=(_scheduler_label(plan),),
            notes=("it counts `nvidia.com/gpu` and `nvidia.com/mig-*`, and divides GPUs itself",),
            help="write `sharing: {fraction: {}}`; a share of one in four is then `gpu-fraction: 0.25`",
        )
    elif isinstance(sharing, Mig):
        odd = [unit for unit in pool.units if unit.name != "gpu" and unit.resource and _is_uncounted(unit.resource)]
        if odd:
            yield Finding(
                sharing.layout_at,
                f"KAI-Scheduler counts {listing([unit.name for unit in odd])} of pool `{pool.name}` as nothing",
                label=f"`{odd[0].resource}` has no size in its name",
                related=(_scheduler_label(plan),),
                notes=("it reads names of the form `nvidia.com/mig-2g.20gb`; a quota does not count others",),
                help="use profiles without an attribute",
            )


def _is_uncounted(resource: str) -> bool:
    return resource.startswith("nvidia.com/mig-") and not _KAI_COUNTS(resource)


def _scheduler_label(plan: Plan) -> Label:
    return Label(_kind_of(plan), f"this cluster has {NAMES[plan.cluster.scheduler.kind]}")


# --- The tree of tenants -----------------------------------------------------------------------------------------


@check("GPU518", "tenant-tree-too-deep")
def tenant_tree_too_deep(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Run:ai, a tenant's parent has a parent itself.

    ## Why
    Run:ai has two levels: projects, and the departments that they belong to. A department cannot be part of another.

    ## Instead
    Name the top tenant as the parent of all of them.
    """
    if plan.cluster.scheduler.kind is not SchedulerKind.RUNAI:
        return
    tenants = {tenant.name: tenant for tenant in plan.tenants}
    for tenant in plan.tenants:
        above = list(ancestors(tenant, tenants))
        if len(above) > 1:
            route = " -> ".join(f"`{name}`" for name in (tenant.name, *(item.name for item in above)))
            yield Finding(
                tenant.at / "parent",
                f"tenant `{tenant.name}` is on level {len(above) + 1} of 2",
                label=f"`{above[0].name}` has a parent itself",
                related=(Label(above[0].at / "parent", f"`{above[1].name}`"), _scheduler_label(plan)),
                notes=(f"{route}; Run:ai has departments and projects",),
                help=f"write `parent: {above[-1].name}`",
            )


@check("GPU519", "no-admission-policies", Severity.WARNING)
def no_admission_policies(plan: Plan) -> Iterator[Finding]:
    """The cluster is too old for the admission policies that keep tenants to their own pools and classes.

    ## Why
    ValidatingAdmissionPolicy is part of Kubernetes since 1.30. On an older cluster only ResourceQuotas are written.
    They count resource names, so that a tenant may use its units in any pool that hands them out, under any priority
    class, and reach GPUs around the device plugin.

    ## Instead
    Upgrade the cluster, or enforce the same rules with an admission webhook. With `onLoss: refuse` this is an error.
    """
    if plan.tenants and not has_admission_policies(plan.cluster):
        yield Finding(
            plan.cluster.at / "kubernetes",
            f"Kubernetes {plan.cluster.kubernetes} cannot keep tenants to their own pools and priority classes",
            label="admission policies came with 1.30",
            notes=("written for tenants: Namespaces, ResourceQuotas and RoleBindings",),
            help="upgrade the cluster to 1.30 or later",
            severity=severity_of_loss(plan, Severity.WARNING),
        )


CHECKS: tuple[Check, ...] = (
    queues_not_written,
    parent_does_not_bound,
    limit_not_allowed,
    lendable_not_kept,
    surplus_not_divided,
    protection_not_kept,
    unit_unknown_to_scheduler,
    tenant_tree_too_deep,
    no_admission_policies,
)
