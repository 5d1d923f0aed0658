"""Checks on what holds tenants to what they may use: queues, ResourceQuotas, and the time to let go (GPU435-444)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.checks.caps import each_quota
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import number, units
from gpuplan.compiler.planning.grants import has_admission_policies
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Cap


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
