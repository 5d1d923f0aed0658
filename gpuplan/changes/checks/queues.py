"""Checks on queues that are removed, or left to nobody, while work is in them (GPU703, 711)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends import kueue
from gpuplan.changes.checks.nodes import RETAIN
from gpuplan.changes.checks.places import earlier, name_of_cluster, pods_note, pods_of
from gpuplan.changes.step import Step
from gpuplan.checks.registry import check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Family, Finding, Origin, Severity
from gpuplan.manifests import Manifest, identity_of
from gpuplan.planning import kai
from gpuplan.planning.plan import Plan, RetainedObject, Tenant
from gpuplan.wording import count, listing


@check("GPU703", "queue-removed-in-use", family=Family.STEP)
def queue_removed_in_use(step: Step) -> Iterator[Finding]:
    """A queue is removed while work may be in it.

    ## Why
    Kueue keeps a ClusterQueue by its finalizer `kueue.x-k8s.io/resource-in-use` until nothing in it holds quota, and
    what waits in it is admitted by nobody: the removal hangs as long as the longest job runs. A tenant's queue goes
    when the tenant is removed or renamed, when it loses its last namespace, or its last quota that Kueue can count.

    With KAI-Scheduler nothing hangs, and it is a warning: what runs goes on, and what waits names a queue that is not
    there and is never placed. A queue that others are part of cannot be deleted before they are, which the order of
    removal sees to.

    ## Instead
    Put the queue on hold first, and remove it when it is empty: `gpuplan retain --write` writes it down with
    `stopPolicy: Hold`. Pods that are listed with `--pods` are looked up: where none runs there is no finding.
    """
    if step.before.scheduler is not step.after.scheduler:
        return
    for tenant in _without_queue(step):
        there = pods_of(step, tenant)
        if there != 0:
            yield Finding(
                _place(step, tenant),
                f"ClusterQueue `{tenant.name}` is removed while work may be in it",
                label="it goes when nothing in it holds quota",
                notes=(*_gone(step, tenant), *pods_note(there)),
                help=f"run `{RETAIN}` and commit what it writes; remove it when the queue is empty",
            )
    yield from _kai_queues(step)


def _without_queue(step: Step) -> Iterator[Tenant]:
    """The tenants whose ClusterQueue is there no more, nor retained."""
    kept = _cluster_queues(step.after) | _retained_queues(step.after)
    gone = _cluster_queues(step.before) - kept
    yield from (tenant for tenant in step.before.tenants if tenant.name in gone)


def _cluster_queues(plan: Plan) -> set[str]:
    manifests = (artifact for artifact in kueue.render(plan) if isinstance(artifact, Manifest))
    return {manifest.name for manifest in manifests if manifest.kind == "ClusterQueue"}


def _retained_queues(plan: Plan) -> set[str]:
    objects = (identity_of(item.what.spec.manifest) for item in plan.retained if isinstance(item.what, RetainedObject))
    return {identity.name for identity in objects if identity.kind == "ClusterQueue"}


def _place(step: Step, tenant: Tenant) -> Origin:
    """The tenant that stays, or else the one that has its namespaces, or else the cluster."""
    for later in step.after.tenants:
        if later.name == tenant.name or not set(later.spec.namespaces).isdisjoint(tenant.spec.namespaces):
            return name_of(later.at)
    return name_of_cluster(step)


def _gone(step: Step, tenant: Tenant) -> tuple[str, ...]:
    """A note on where a tenant was written that is there no more."""
    stays = any(later.name == tenant.name for later in step.after.tenants)
    return () if stays else (earlier(name_of(tenant.at), f"tenant `{tenant.name}`"),)


def _kai_queues(step: Step) -> Iterator[Finding]:
    kept = {queue.name for queue in kai.queues(step.after)}
    gone: dict[str, list[str]] = {}
    for queue in kai.queues(step.before):
        if queue.takes_work and queue.name not in kept:
            gone.setdefault(queue.tenant.name, []).append(queue.name)
    for tenant in step.before.tenants:
        there = pods_of(step, tenant)
        if tenant.name in gone and there != 0:
            yield Finding(
                _place(step, tenant),
                f"tenant `{tenant.name}` loses {count(len(gone[tenant.name]), 'queue')} while work may be there",
                label="what waits there is never placed",
                notes=(f"removed: {listing(gone[tenant.name])}", *_gone(step, tenant), *pods_note(there)),
                help="let what is queued end first, and say so: `# gpuplan: ignore[GPU703] REASON`",
                severity=Severity.WARNING,
            )


# --- Another scheduler -------------------------------------------------------------------------------------------


@check("GPU711", "scheduler-left-with-work", family=Family.STEP)
def scheduler_left_with_work(step: Step) -> Iterator[Finding]:
    """The cluster gets another scheduler while work is in the queues of the one that it has.

    ## Why
    Queues leave the policies with the scheduler. Kueue keeps those that hold work, and the removal hangs; what is
    suspended or behind a scheduling gate waits for an admission that nobody gives. With KAI-Scheduler it is a warning:
    what runs goes on, and pods that wait name a scheduler and a queue that look after them no more.

    ## Instead
    Let the queues run empty first. Of Kueue, `gpuplan retain --write` keeps them on hold beside the new scheduler until
    they are. Pods that are listed with `--pods` are looked up: where none runs there is no finding.
    """
    old, new = step.before.cluster.scheduler, step.after.cluster.scheduler
    if old.traits is new.traits or not old.traits.has_queues:
        return
    left = [*_without_queue(step), *_with_kai_queue(step.before)]
    in_use = [tenant.name for tenant in left if pods_of(step, tenant) != 0]
    if in_use:
        hangs = old.traits.queues_hold_work
        yield Finding(
            new.at / "kind",
            f"{old.traits.title} is left while work may be in {count(len(in_use), 'queue')}",
            label=f"it was `{old.kind}`",
            notes=(f"queues of {listing(in_use)}",),
            help=f"run `{RETAIN}` and commit what it writes; remove it when the queues are empty"
            if hangs
            else "let the queues run empty first, and say so: `# gpuplan: ignore[GPU711] REASON`",
            severity=None if hangs else Severity.WARNING,
        )


def _with_kai_queue(plan: Plan) -> list[Tenant]:
    named = {queue.tenant.name for queue in kai.queues(plan) if queue.takes_work}
    return [tenant for tenant in plan.tenants if tenant.name in named]
