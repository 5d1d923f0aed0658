"""Checks on what tenants lose while they use it: units, queues, classes (GPU703, 706-707, 711, 715-716, 758)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.backends import kueue
from gpuplan.compiler.base.diagnostics import Family, Finding, Origin, Severity
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import add, name_of, number
from gpuplan.compiler.manifests import Identity, Manifest, identity_of
from gpuplan.compiler.planning import kai
from gpuplan.compiler.planning.kueue import cluster_queue
from gpuplan.compiler.planning.plan import Amount, Plan, Quota, RetainedObject, Tenant
from gpuplan.features.changes.checks.nodes import earlier, name_of_cluster, pods_note, pods_of
from gpuplan.features.changes.nodes import quotas
from gpuplan.features.changes.pods import held
from gpuplan.features.changes.step import Step
from gpuplan.features.changes.tenants import users_of
from gpuplan.features.changes.ways import RETAIN


@check("GPU703", "queue-removed-in-use", family=Family.STEP)
def queue_removed_in_use(step: Step) -> Iterator[Finding]:
    """A queue is removed while work may be in it.

    ## Why
    Kueue keeps a ClusterQueue by its finalizer `kueue.x-k8s.io/resource-in-use` until nothing in it holds quota, and
    what waits in it is admitted by nobody: the removal hangs as long as the longest job runs. A tenant's queue goes
    when the tenant is removed or renamed, when it loses its last namespace, or its last quota that Kueue can count.

    With KAI-Scheduler nothing hangs, and it is a warning: what runs goes on, and what waits names a queue that is not
    there and is never placed. A queue that others are part of cannot be deleted before they are
    (`pkg/admission/webhook/queuehooks/queue_validator.go` there): where all leave at once, its removal may be refused
    until it is tried again.

    ## Instead
    Put the queue on hold first, and remove it when it is empty: `gpuplan retain --write` writes it down with
    `stopPolicy: Hold`. Pods that are listed with `--pods` are looked up: where none runs there is no finding.
    """
    if step.before.scheduler is not step.after.scheduler:
        return
    for tenant in _without_queue(step):
        if (there := pods_of(step, tenant.spec.namespaces)) != 0:
            yield Finding(
                _place(step, tenant),
                f"ClusterQueue `{cluster_queue(tenant)}` is removed while work may be in it",
                label="it goes when nothing in it holds quota",
                notes=(*_gone(step, tenant), *pods_note(there)),
                help=f"run `{RETAIN}` and commit what it writes; remove it when the queue is empty",
            )
    kept = {queue.name for queue in kai.queues(step.after)}
    gone: dict[str, list[str]] = {}
    for queue in kai.queues(step.before):
        if queue.takes_work and queue.name not in kept:
            gone.setdefault(queue.tenant.name, []).append(queue.name)
    for tenant in step.before.tenants:
        if tenant.name in gone and (there := pods_of(step, tenant.spec.namespaces)) != 0:
            yield Finding(
                _place(step, tenant),
                f"tenant `{tenant.name}` loses {count(len(gone[tenant.name]), 'queue')} while work may be there",
                label="waiting work is never placed",
                notes=(f"removed: {listing(gone[tenant.name])}", *_gone(step, tenant), *pods_note(there)),
                help="let what is queued end first, and say so: `# gpuplan: ignore[GPU703] REASON`",
                severity=Severity.WARNING,
            )


def _without_queue(step: Step) -> list[Tenant]:
    """The tenants whose ClusterQueue is there no more, nor retained."""
    objects = (item.what.spec.manifest for item in step.after.retained if isinstance(item.what, RetainedObject))
    kept = {*_cluster_queues(step.after), *(identity_of(body) for body in objects)}
    gone = {identity.name for identity in _cluster_queues(step.before) - kept}
    return [tenant for tenant in step.before.tenants if cluster_queue(tenant) in gone]


def _cluster_queues(plan: Plan) -> set[Identity]:
    manifests = (artifact for artifact in kueue.render(plan) if isinstance(artifact, Manifest))
    return {manifest.identity for manifest in manifests if manifest.kind == "ClusterQueue"}


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
    named = {queue.tenant.name for queue in kai.queues(step.before) if queue.takes_work}
    left = [*_without_queue(step), *(tenant for tenant in step.before.tenants if tenant.name in named)]
    in_use = [tenant.name for tenant in left if pods_of(step, tenant.spec.namespaces) != 0]
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


@check("GPU758", "running-pods-not-counted", Severity.WARNING, family=Family.STEP)
def running_pods_not_counted(step: Step) -> Iterator[Finding]:
    """The cluster gets a scheduler that does not count the pods that run now.

    ## Why
    What started before the queues were there is in none of them. Until it ends, tenants may use all of their quota
    beside it, the units of a guarantee may be taken, and nothing evicts who has them. What is admitted meanwhile and
    finds no room stays `Pending`.

    Kueue counts what its webhook has seen (`Default` in `pkg/controller/jobs/pod/pod_webhook.go` there). KAI-Scheduler
    makes PodGroups of pods that name it as `schedulerName` (`pkg/podgrouper/pod_controller.go`), and counts these; the
    rest it takes from the pool as a whole (`getNodeResources` in `pkg/scheduler/plugins/proportion/proportion.go`).
    Run:ai 3.0 schedules by KAI-Scheduler.

    Teams must start anew, too, what they have deployed themselves. Kueue puts each Deployment and LeaderWorkerSet that
    somebody changes into the queue `default`, and refuses that while a pod of it is ready: so it refuses every change.
    It refuses a queue for a Job that is not suspended.

    ## Instead
    Let what runs end, or start it anew once the queues are there, as [move to Kueue](../how-to/move-to-kueue.md)
    says. Pods that are listed with `--pods` are counted; else those that the workloads may have. Where none runs there
    is no finding.
    """
    old, new = step.before.cluster.scheduler, step.after.cluster.scheduler
    if old.traits is new.traits or not new.traits.counts_tenants:
        return
    units = grouped(
        ((quota.pool.name, quota.unit.name), used)
        for tenant in step.before.tenants
        for quota in tenant.quotas
        if (used := _used(step, tenant, quota, plan=step.before))
    )
    if units or step.pods is None:
        numbers = [f"{number(add(found))} `{unit}` of pool `{pool}`" for (pool, unit), found in sorted(units.items())]
        most = "at most, by the Workloads; " if numbers else ""
        yield Finding(
            new.at / "kind",
            f"pods that run now are not counted by {new.traits.title}",
            label=f"it was `{old.kind}`",
            notes=(
                *([f"they hold {joined(numbers)}, until they end"] if numbers else ()),
                *((f"{most}`--pods FILE` counts what runs",) if step.pods is None else ()),
            ),
            help="start anew what runs once the queues are there, also what teams have deployed themselves",
        )


@check("GPU706", "guarantee-below-use", Severity.WARNING, family=Family.STEP)
def guarantee_below_use(step: Step) -> Iterator[Finding]:
    """A guarantee falls below what its tenant uses.

    ## Why
    What runs goes on, but what is beyond the guarantee is borrowed from then on: the scheduler takes it back by
    evicting pods as soon as somebody with a guarantee asks for it. What a tenant uses are the pods that its workloads
    may have at most, or those that are listed with `--pods`.

    ## Instead
    Make the workloads smaller first, or lower the guarantee to what they use.
    """
    if not step.after.scheduler.reclaims:
        return
    source = "as its workloads ask for at most" if step.pods is None else "as its pods hold now"
    for tenant, old, new in _lowered(step):
        if new.guaranteed < old.guaranteed:
            used = _used(step, tenant, new)
            if used > new.guaranteed:
                yield Finding(
                    new.at / "guaranteed",
                    f"tenant `{tenant.name}` uses {number(used)} `{new.unit.name}` of pool `{new.pool.name}`, and "
                    f"{number(new.guaranteed)} are guaranteed from now on",
                    label=f"it was {number(old.guaranteed)}",
                    notes=(source, "units beyond the guarantee may be evicted for others"),
                    help=f"guarantee {number(used)}, or make its workloads smaller first",
                )


@check("GPU707", "limit-below-use", Severity.WARNING, family=Family.STEP)
def limit_below_use(step: Step) -> Iterator[Finding]:
    """A limit falls below what runs.

    ## Why
    A quota judges new pods only. What runs beyond it goes on, and everything that is to replace it is refused: a
    rolling update stops half-way, and a pod that is evicted does not come back. This is known of pods that are listed
    with `--pods`; that workloads in the policies fit is checked anyway.

    ## Instead
    Let what is beyond the limit end first, or lower the limit to what runs.
    """
    if step.pods is None:
        return
    for tenant, old, new in _lowered(step):
        spaces = (None,) if step.after.scheduler.counts_tenants else tenant.spec.namespaces
        for namespace in spaces:
            most, allowed = (
                (quota.limit if namespace is None else quota.caps.get(namespace, 0)) for quota in (old, new)
            )
            if allowed is None or (most is not None and allowed >= most):
                continue
            used = _used(step, tenant, new, namespace)
            if used > allowed:
                who = f"tenant `{tenant.name}`" if namespace is None else f"namespace `{namespace}`"
                yield Finding(
                    new.at / ("limit" if new.limit is not None else "guaranteed"),
                    f"{who} uses {number(used)} `{new.unit.name}` of pool `{new.pool.name}`, and may use "
                    f"{number(allowed)} from now on",
                    label="new pods are refused",
                    notes=("pods that run go on; those that are to replace them are refused",),
                    help=f"let {number(used - allowed)} end first, or allow {number(used)}",
                )


def _lowered(step: Step) -> Iterator[tuple[Tenant, Quota, Quota]]:
    """The quotas of tenants that stay, before and after; of one that is there no more nothing is left."""
    for old, new in step.tenants:
        if new is None:
            continue
        has = quotas(new, {})
        for key, quota in quotas(old, step.renamed_pools).items():
            caps = dict.fromkeys(quota.caps, 0)
            yield new, quota, has.get(key) or quota._replace(at=new.at / "quotas", guaranteed=0, limit=0, caps=caps)


def _used(step: Step, tenant: Tenant, quota: Quota, namespace: str | None = None, plan: Plan | None = None) -> Amount:
    """Return the units that pods hold now, or without a list of pods those that a plan's workloads may hold at most.

    It is the later plan, if none is named.
    """
    if step.pods is None:
        those = (plan or step.after).workloads
        workloads = (item for item in those if (item.tenant.name, item.key) == (tenant.name, quota.key))
        return add([item.most_pods * item.amount_per_pod for item in workloads])
    spaces = tenant.spec.namespaces if namespace is None else (namespace,)
    names = step.renamed_pools
    return add(
        [
            units.get(quota.unit.name, 0)
            for pod, pool, units in held(step.before, step.pods)
            if pod.namespace in spaces
            and names.get(pool.name, pool.name) == names.get(quota.pool.name, quota.pool.name)
        ]
    )


# --- What goes ---------------------------------------------------------------------------------------------------


@check("GPU715", "namespace-removed", Severity.WARNING, family=Family.STEP)
def namespace_removed(step: Step) -> Iterator[Finding]:
    """A namespace is no tenant's any more.

    ## Why
    The Namespace leaves the output with its folder. Argo CD removes nothing then, and syncs nothing of it any more:
    what runs there goes on, in the limits that it had, which nobody mends. A person deletes the namespace, and with it
    pods, volumes and secrets. Flux leaves it where it is; then nothing limits what runs there, as its quotas and
    admission rules are gone.

    ## Instead
    Move what is needed first, and say in a comment that the namespace is empty. `gpuplan diff` says how to delete it
    and its Application. Where it is to stay, leave it with a tenant.
    """
    stay = {tenant.name: tenant for tenant in step.after.tenants}
    for tenant in step.before.tenants:
        gone = [name for name in tenant.spec.namespaces if name not in step.after.owners]
        if gone:
            later = stay.get(tenant.name)
            there = pods_of(step, gone)
            yield Finding(
                (later.at / "namespaces").key if later is not None else name_of_cluster(step),
                f"{'namespace' if len(gone) == 1 else 'namespaces'} {listing(gone)} of tenant `{tenant.name}` "
                f"{'goes' if len(gone) == 1 else 'go'}, and everything in {'it' if len(gone) == 1 else 'them'}",
                label="not among them any more" if later is not None else "no tenant has it",
                notes=(*([] if later else [earlier(name_of(tenant.at), f"tenant `{tenant.name}`")]), *pods_note(there)),
                help="move what is needed first, and say so: `# gpuplan: ignore[GPU715] REASON`",
            )


@check("GPU716", "priority-class-removed-in-use", Severity.WARNING, family=Family.STEP)
def priority_class_removed_in_use(step: Step) -> Iterator[Finding]:
    """A priority class is removed that tenants may name.

    ## Why
    Pods that run keep their priority, and every new one that names the class is refused: what a Deployment or a Job
    starts again does not come back. No policy names it any more, but what teams have written themselves may.

    ## Instead
    Take the class from the tenants first and tell them, and remove it in a later commit.
    """
    kept = {item.name for item in step.after.priority_classes}
    for item in step.before.priority_classes:
        users = [tenant.name for tenant in users_of(step.before, item)]
        if item.name not in kept and users:
            yield Finding(
                name_of_cluster(step),
                f"priority class `{item.name}` is removed, which {listing(users)} may name",
                label="new pods that name it are refused",
                notes=(earlier(name_of(item.at), "it"),),
                help="keep the class, take it from the tenants' `priorityClasses`, and remove it in a later commit",
            )
