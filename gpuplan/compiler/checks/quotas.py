"""Checks on tenants' quotas, and on what holds tenants to them (GPU400-418, GPU435-436)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import ceil

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity
from gpuplan.compiler.base.wording import SHOWN, count, joined, listing
from gpuplan.compiler.checks.caps import (
    Grant,
    Shortfall,
    cap_field,
    cap_of,
    each_quota,
    envelopes,
    grants_by_unit,
    lower_limits,
    shared_caps,
    shortfalls,
)
from gpuplan.compiler.checks.overlays import dropped_units
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import add, crossing, name_of, number, repeats, severity_of_loss, total_text, units
from gpuplan.compiler.planning.grants import has_admission_policies
from gpuplan.compiler.planning.placement.placing import Refusal
from gpuplan.compiler.planning.plan import Amount, DynamicMig, Mig, Plan, Quota, Tenant, Total
from gpuplan.compiler.planning.schedulers import keepers
from gpuplan.compiler.policy.models import Cap, MigStrategy

# --- Sums --------------------------------------------------------------------------------------------------------


@check("GPU400", "guarantees-over-capacity")
def guarantees_over_capacity(plan: Plan) -> Iterator[Finding]:
    """The tenants' guarantees on a unit add up to more than the pool has.

    ## Why
    A guarantee that the hardware cannot keep is not one. No scheduler refuses it: Kueue admits beyond what is there,
    KAI-Scheduler says nothing, and the pods wait for ever. A child counts within its parent's quota on the same unit.

    ## Instead
    Lower a guarantee and let `limit` say how far the tenant may go beyond it, or add nodes to the pool.
    """
    for total in plan.totals:
        pool, unit, capacity = total.pool, total.unit, total.unit.capacity
        # Two quotas of a tenant on one unit are reported for themselves.
        first = {tenant.name: quota.guaranteed for tenant, quota in reversed(total.quotas)}
        is_over_by_duplicates = len(first) < len(total.quotas) and add(list(first.values())) <= capacity
        # A unit without capacity comes of a layout or of replicas that are reported for themselves.
        if total.free >= 0 or not unit.per_node or is_over_by_duplicates:
            continue
        tenant, quota = total.quotas[crossing([quota.guaranteed for _, quota in total.quotas], capacity)]
        listed = total_text([(tenant.name, quota.guaranteed) for tenant, quota in total.quotas])
        over = number(-total.free)
        if pool.rollout:
            size, more = Label(pool.rollout.at.key, f"leaves {capacity} `{unit.name}` for now"), "move fewer nodes"
        else:
            nodes = f"{count(pool.nodes.count, 'node')} of {unit.per_node} `{unit.name}`: {capacity}"
            size = Label(pool.nodes.at / "count", nodes)
            more = f"raise `nodes.count` of pool `{pool.name}` to {ceil(total.guaranteed / unit.per_node)}"
        yield Finding(
            quota.at / "guaranteed",
            f"guarantees on {units(total)} add up to {number(total.guaranteed)} of {capacity}",
            label=f"`{tenant.name}` makes it {over} too much",
            related=(size,),
            notes=(f"{listed} of {capacity}",),
            help=f"lower the guarantees by {over}, or {more}",
        )


@check("GPU401", "children-over-parent")
def children_over_parent(plan: Plan) -> Iterator[Finding]:
    """The guarantees of a tenant's children add up to more than its own.

    ## Why
    A parent that states a quota is an envelope: its guarantee is what its children divide among them, and the only part
    of it that counts against the pool's capacity. What the children promise beyond it is nobody's.

    ## Instead
    Raise the parent's guarantee, or lower those of the children.
    """
    for envelope in envelopes(plan):
        parent, bound, children = envelope.tenant.name, envelope.quota.guaranteed, envelope.children
        if envelope.promised > bound:
            tenant, quota = children[crossing([quota.guaranteed for _, quota in children], bound)]
            listed = total_text([(child.name, quota.guaranteed) for child, quota in children])
            held, total, over = number(bound), number(envelope.promised), number(envelope.promised - bound)
            yield Finding(
                quota.at / "guaranteed",
                f"children of `{parent}` have guarantees of {total} on {units(quota)}, {over} more than `{parent}` has",
                label=f"`{tenant.name}` makes it too much",
                related=(Label(envelope.quota.at / "guaranteed", f"`{parent}` has {held} to divide"),),
                notes=(f"{listed} of {held}",),
                help=f"lower them by {over}, or raise that of `{parent}` to {total}",
            )


@check("GPU418", "caps-over-capacity", Severity.WARNING)
def caps_over_capacity(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, tenants may together use so much of a pool that guarantees on it do not hold.

    ## Why
    Plain Kubernetes has caps and nothing else. As long as all caps fit into the pool, each tenant finds its units free
    when it wants them. Where they do not, whoever comes first has them, and nothing gives them back to the one that
    they were guaranteed to. A guarantee holds as far as the others leave room for it when they use all that they may.

    ## Instead
    Lower the limits, cap at the guarantees (`scheduler.cap: guaranteed` in the cluster), or use a scheduler that
    reclaims. With a cap at the guarantees, a tenant without one may use nothing. With `onLoss: refuse` this is an
    error.
    """
    if plan.scheduler.counts_tenants:
        return
    # Where partitions are made on demand, units take places from each other: GPU497 judges them together.
    promised = {
        total.key: total
        for total in plan.totals
        if total.free >= 0 and not any(isinstance(part.sharing, DynamicMig) for part in total.pool.parts)
    }
    for key, grants in grants_by_unit(plan).items():
        total = promised.get(key)
        short = tuple(shortfalls(grants, total.unit.capacity)) if total and len(grants) > 1 else ()
        if total and short:
            yield _caps_over_capacity(plan, total, grants, short)


def _caps_over_capacity(plan: Plan, total: Total, grants: list[Grant], short: Sequence[Shortfall]) -> Finding:
    capacity = total.unit.capacity
    unbounded = [grant for grant in grants if grant.cap is None]
    bounded = [(grant.tenant.name, grant.cap) for grant in grants if grant.cap is not None]
    if unbounded:
        at, effect = unbounded[0].quota.at, "have no bound"
        fact = f"{listing([grant.tenant.name for grant in unbounded])} may use all {capacity}"
    else:
        caps = [amount for _, amount in bounded]
        at, effect = grants[crossing(caps, capacity)].quota.at, f"add up to {number(add(caps))} of {capacity}"
        fact = f"caps: {total_text(bounded)} of {capacity}"
    names = listing([each.grant.tenant.name for each in short])
    if len(short) == sum(grant.quota.guaranteed > 0 for grant in grants):
        broken = "no guarantee on it holds"
    else:
        broken = f"the guarantees of {names} do not" if len(short) > 1 else f"the guarantee of {names} does not"
        broken += " hold"
    counts = [
        f"`{grant.tenant.name}` has {number(remaining)} of {number(grant.quota.guaranteed)}"
        for grant, remaining in short[:SHOWN]
    ]
    more = [f"{len(short) - SHOWN} more too little"] if len(short) > SHOWN else []
    return Finding(
        at / cap_field(plan),
        f"caps on {units(total)} {effect}: {broken}",
        label="more than there is",
        related=tuple(
            Label(
                each.grant.quota.at / "guaranteed", f"`{each.grant.tenant.name}` can count on {number(each.remaining)}"
            )
            for each in short[:SHOWN]
        ),
        notes=(
            fact,
            f"when all others use their caps: {joined([*counts, *more])}",
            "plain Kubernetes hands units out first come, first served, and takes none back for a guarantee",
        ),
        help=lower_limits(plan, [(grant.tenant, grant.quota) for grant in grants]),
        severity=severity_of_loss(plan, Severity.WARNING),
    )


# --- One quota ---------------------------------------------------------------------------------------------------


@check("GPU402", "limit-below-guaranteed")
def limit_below_guaranteed(plan: Plan) -> Iterator[Finding]:
    """A quota's limit is lower than its guarantee.

    ## Why
    The limit holds for all that a tenant uses, its guaranteed units included. The rest of the guarantee is kept free
    for it and can never be used.

    ## Instead
    Raise the limit, or leave it out: it is then as high as the guarantee.
    """
    for tenant, quota in each_quota(plan):
        if quota.limit is not None and quota.limit < quota.guaranteed:
            held = number(quota.guaranteed)
            yield Finding(
                quota.at / "limit",
                f"tenant `{tenant.name}` may use fewer {units(quota)} than guaranteed",
                label=f"{number(quota.limit)} at most",
                related=(Label(quota.at / "guaranteed", f"{held} guaranteed"),),
                notes=(f"{number(quota.guaranteed - quota.limit)} units would stay idle for ever",),
                help=f"write `limit: {held}` or more, or leave it out; or, if they are swapped, "
                f"`guaranteed: {number(quota.limit)}, limit: {held}`",
            )


@check("GPU403", "lendable-above-guaranteed")
def lendable_above_guaranteed(plan: Plan) -> Iterator[Finding]:
    """A quota lends out more than it has.

    ## Why
    Only guaranteed units can be lent. Kueue's webhook refuses a lending limit above the nominal quota.

    ## Instead
    Lower `lendable`, or leave it out: all guaranteed units may then be lent while they are idle.
    """
    for tenant, quota in each_quota(plan):
        if quota.lendable > quota.guaranteed:
            held = number(quota.guaranteed)
            yield Finding(
                quota.at / "lendable",
                f"tenant `{tenant.name}` lends more {units(quota)} than it has",
                label=f"{number(quota.lendable)} to lend",
                related=(Label(quota.at / "guaranteed", f"{held} guaranteed"),),
                help=f"write `lendable: {held}` or less, or leave it out",
            )


@check("GPU404", "part-of-a-unit")
def part_of_a_unit(plan: Plan) -> Iterator[Finding]:
    """A quota counts parts of a unit that is only handed out whole.

    ## Why
    Devices are whole numbers: a ResourceQuota takes `requests.nvidia.com/gpu: 500m`, and lets no pod have a GPU. Only
    the unit `fraction` can be divided; a share of a time-sliced GPU is a unit already, so that half a GPU of four
    replicas is two of them.

    ## Instead
    Write a whole number of units.
    """
    for tenant, quota in each_quota(plan):
        for path, amount in _amounts(quota):
            if isinstance(amount, Decimal) and quota.unit.asked_as:
                yield Finding(
                    quota.at / path,
                    f"{number(amount)} {units(quota)} is not a whole number of units",
                    label=f"a part of a unit for `{tenant.name}`",
                    notes=(f"pool `{quota.pool.name}` hands out `{quota.unit.name}` whole",),
                    help=f"write `{path[-1]}: {int(amount)}` or `{path[-1]}: {ceil(amount)}`",
                )


def _amounts(quota: Quota) -> Iterator[tuple[Path, Amount | None]]:
    """Yield the numbers that a quota writes. A number that was left out is the same object as the guarantee."""
    yield ("guaranteed",), quota.guaranteed
    if quota.limit is not quota.guaranteed:
        yield ("limit",), quota.limit
    if quota.lendable is not quota.guaranteed:
        yield ("lendable",), quota.lendable
    yield from ((("split", namespace), amount) for namespace, amount in quota.split.items())
    yield from ((("classLimits", name), amount) for name, amount in quota.class_limits.items())


@check("GPU405", "duplicate-quota")
def duplicate_quota(plan: Plan) -> Iterator[Finding]:
    """A tenant has two quotas on one unit of one pool.

    ## Why
    Whether they add up or replace each other, half of the readers would guess wrong; and one ResourceQuota cannot hold
    a resource twice.

    ## Instead
    Write one quota with the number that is meant.
    """
    for tenant in plan.tenants:
        for quota, first in repeats(tenant.quotas, lambda quota: quota.key):
            yield Finding(
                quota.at,
                f"tenant `{tenant.name}` has two quotas on {units(quota)}",
                label=f"a guarantee of {number(quota.guaranteed)}",
                related=(Label(first.at, f"a guarantee of {number(first.guaranteed)}"),),
                help="keep one of them, or write their sum, "
                f"`guaranteed: {number(quota.guaranteed + first.guaranteed)}`, in one",
            )


@check("GPU409", "empty-quota", Severity.WARNING)
def empty_quota(plan: Plan) -> Iterator[Finding]:
    """A quota allows nothing.

    ## Why
    Units that a tenant has no quota on are refused anyway. A quota of nothing looks like a grant and is none; most
    often `limit` was forgotten, which is as high as the guarantee when it is left out.

    ## Instead
    Write a limit to let the tenant use what others leave idle, or remove the quota.
    """
    for tenant, quota in each_quota(plan):
        if quota.guaranteed == 0 and quota.limit == 0:
            yield Finding(
                quota.at / "guaranteed",
                f"quota of tenant `{tenant.name}` on {units(quota)} allows nothing",
                label="no guarantee and no limit above it",
                notes=("a limit that is left out is as high as the guarantee: 0",),
                help=f"add a `limit` of up to {quota.unit.capacity}, or remove the quota",
            )


@check("GPU411", "limit-out-of-reach", Severity.WARNING)
def limit_out_of_reach(plan: Plan) -> Iterator[Finding]:
    """A quota's limit is higher than what there is to use.

    ## Why
    A limit above the pool's capacity bounds nothing, and one above the parent's is never reached. Both look like a
    bound that was thought about, and often count GPUs where units are counted, or the other way round. While a rollout
    is under way its pool has fewer units for a time, and there is no finding.

    ## Instead
    Lower the limit, or write `limit: none` to say that there is no bound.
    """
    for tenant, quota in each_quota(plan):
        if quota.unit.capacity and quota.pool.rollout is None:
            yield from _out_of_reach(tenant, quota, quota.unit.capacity, "pool has", quota.pool.nodes.at / "count")
    for part in plan.tree.nested_quotas:
        holder = f"parent `{part.holder.name}` may use"
        yield from _out_of_reach(part.tenant, part.quota, part.whole.limit, holder, part.whole.at / "limit")


def _out_of_reach(tenant: Tenant, quota: Quota, bound: Amount | None, has: str, at: Origin) -> Iterator[Finding]:
    if bound is not None and quota.limit is not None and quota.limit > max(bound, quota.guaranteed):
        yield Finding(
            quota.at / "limit",
            f"tenant `{tenant.name}` may use {number(quota.limit)} {units(quota)}, but its {has} {number(bound)}",
            label="never reached",
            related=(Label(at, f"{number(bound)} `{quota.unit.name}`"),),
            help=f"write `limit: {number(bound)}`, or `limit: none`",
        )


# --- What pools have ---------------------------------------------------------------------------------------------


@check("GPU416", "pools-share-a-resource", Severity.WARNING)
def pools_share_a_resource(plan: Plan) -> Iterator[Finding]:
    """A namespace is granted units of two pools that plain Kubernetes counts as one resource.

    ## Why
    A ResourceQuota counts a resource name, such as `nvidia.com/gpu`, in one namespace. It has no notion of nodes. With
    4 GPUs of one pool and 8 of another the namespace may use 12, and all 12 of them in one pool. Admission keeps it out
    of pools that it has no quota on; among its own it may choose. The device plugin cannot rename a resource by pool.
    A tenant that may use all of each pool anyway is not reported.

    ## Instead
    Give the tenant a namespace for each pool, and `split` each quota so that one namespace has all of it. Where one of
    the pools publishes shares under the plain name, let it say `rename: true`; where it is partitioned with strategy
    `single`, `mixed`. Schedulers with queues count by pool, DRA device classes by GPU model. With `onLoss: refuse` this
    is an error.
    """
    for tenant, resource, quotas in shared_caps(plan) if not plan.scheduler.counts_tenants else ():
        first, second = quotas[:2]
        bounded = [(quota.pool.name, cap) for quota in quotas if (cap := cap_of(plan, quota)) is not None]
        one_cap = f"one cap for all: {total_text(bounded)} `{resource}`, in whichever pool"
        if len(quotas) == 2:
            pools, hand_out = f"pools {listing([quota.pool.name for quota in quotas])}", "both hand out"
        else:
            pools, hand_out = f"{len(quotas)} pools", "all hand out"
        yield Finding(
            second.at / "pool",
            f"a quota cannot tell {pools} apart for tenant `{tenant.name}`: {hand_out} `{resource}`",
            label=f"`{second.unit.name}` is `{resource}` here",
            related=(Label(first.at / "pool", f"`{first.unit.name}` is `{resource}` here, too"),),
            notes=(
                *((one_cap,) if len(bounded) == len(quotas) else ()),
                f"{joined(keepers('pool'))} count by pool, and DRA by device class",
            ),
            help=_way_out(quotas)
            or "give the tenant a namespace for each pool, and `split` each quota so that one of them has all of it",
            severity=severity_of_loss(plan, Severity.WARNING),
        )


def _way_out(quotas: Sequence[Quota]) -> str:
    """Return a change to one of the pools that gives its units a name of their own, or an empty text."""
    for quota in quotas:
        part, name = quota.pool.part_with(quota.unit), quota.pool.name
        if part.shares and part.shares_of(quota.unit) and not part.shares.spec.rename:
            return f"write `rename: true` in pool `{name}`: its shares are then `{quota.unit.resource}.shared`"
        if isinstance(part.sharing, Mig) and part.sharing.spec.strategy is MigStrategy.SINGLE:
            return f"write `strategy: mixed` in pool `{name}`: its units are then named by profile"
    return ""


@check("GPU417", "unused-units", Severity.NOTE)
def unused_units(plan: Plan) -> Iterator[Finding]:
    """A pool has units that no tenant may use.

    ## Why
    Pods of tenants may use only what their tenant has a quota on, so these units stay idle. Often a quota was left
    behind when a layout changed, or names another profile.

    ## Instead
    Grant the units to a tenant, `limit: none` if it does not matter to whom, or take them out of the pool.
    """
    if not plan.tenants or plan.broken.tenants or plan.broken.incomplete_tenants:
        return
    # A quota that allows nothing, and one of a tenant without namespaces, are reported for themselves; those of a
    # parent are for its children to divide.
    used = {quota.key for tenant, quota in each_quota(plan) if tenant.has_work or not plan.tree.is_divided(tenant)}
    used |= dropped_units(plan)  # of which GPU115 tells
    grant = "guaranteed: {}" if cap_field(plan) == Cap.GUARANTEED else "guaranteed: 0, limit: none"
    for pool in plan.pools:
        idle = [unit for unit in pool.units if unit.capacity and (pool.name, unit.name) not in used]
        if len(idle) < len(pool.units) and isinstance(pool.sharing, DynamicMig):
            continue  # the place of what nobody asks for is made into something else
        divided = [part.sharing for part in pool.parts if isinstance(part.sharing, Mig)]
        # A layout that does not fit is reported for itself.
        is_refused = any(isinstance(entry.placed, Refusal) for mig in divided for entry in mig.layout.entries)
        if idle and not is_refused:
            amount = ", ".join(f"{unit.capacity} `{unit.name}`" for unit in idle)
            yield Finding(
                name_of(pool.at),
                f"nobody may use {listing([unit.name for unit in idle])} of pool `{pool.name}`",
                label=f"idle: {amount}",
                notes=("tenants may use only what they have a quota on",),
                help=f"grant them: `{{pool: {pool.name}, unit: {idle[0].name}, {grant.format(idle[0].capacity)}}}`",
            )


@check("GPU435", "nobody-can-borrow", Severity.NOTE)
def nobody_can_borrow(plan: Plan) -> Iterator[Finding]:
    """The cluster's scheduler lends what is idle, and no quota lets its tenant borrow.

    ## Why
    A quota without `limit` is both guarantee and cap. Kueue and KAI-Scheduler then divide a pool as plain Kubernetes
    does: what one tenant leaves idle nobody uses, though the scheduler would take it back as soon as it is wanted.

    ## Instead
    Write `limit: none`, or a number above `guaranteed`, on the quotas of tenants that may use what is idle. What they
    borrow is evicted when its owner asks for it, so their work should stand that: write checkpoints, or restart.
    """
    quotas = [(tenant, quota) for tenant, quota in each_quota(plan) if tenant.has_work]
    is_shared = len({quota.key for _, quota in quotas}) < len(quotas)
    if plan.scheduler.has_queues and is_shared and not any(quota.may_borrow for _, quota in quotas):
        yield Finding(
            plan.cluster.scheduler.at / "kind",
            f"no tenant can use what another leaves idle, though {plan.scheduler.title} lends and takes back",
            label="nothing to lend for",
            related=tuple(
                Label(quota.at / "guaranteed", f"`{tenant.name}` has {number(quota.guaranteed)} {units(quota)}")
                for tenant, quota in quotas[:3]
            ),
            notes=("without `limit` a quota is guarantee and cap in one",),
            help="write `limit: none` on the quotas of tenants that may borrow",
        )


@check("GPU436", "cap-without-queue")
def cap_without_queue(plan: Plan) -> Iterator[Finding]:
    """The cluster caps its tenants in queues, and nothing makes pods go through one.

    ## Why
    `cap: queue` takes the ResourceQuota off what is granted, so that work waits in its queue and is not refused. Plain
    Kubernetes has no queues, those of Run:ai are not in the cluster, and before Kubernetes 1.30 there are no admission
    policies, which keep pods from going around Kueue and KAI-Scheduler. Nothing would cap anybody.

    ## Instead
    Remove `cap`, or use Kueue or KAI-Scheduler with Kubernetes 1.30 or newer.
    """
    if plan.cluster.cap is not Cap.QUEUE:
        return
    at, scheduler = plan.cluster.scheduler.at, plan.scheduler
    if not scheduler.has_queues:
        related, fact = at / "kind", f"{scheduler.title} has no queues in the cluster"
    elif not has_admission_policies(plan.cluster):
        related, fact = plan.cluster.at / "kubernetes", "admission policies came with Kubernetes 1.30"
    else:
        return
    yield Finding(
        at / "cap",
        "nothing would cap what tenants use",
        label="no queue that pods have to go through",
        related=(Label(related, fact),),
        help="remove `cap`",
    )
