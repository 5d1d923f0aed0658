"""Checks on what tenants lose while they use it: units, namespaces, priority classes (GPU706-707, 715-716)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpuplan.changes.capacity import quotas
from gpuplan.changes.checks.places import earlier, name_of_cluster, pods_note
from gpuplan.changes.pods import Pod, held
from gpuplan.changes.step import Step
from gpuplan.checks.registry import check
from gpuplan.checks.wording import add, name_of, number
from gpuplan.diagnostics import Family, Finding, Severity
from gpuplan.planning.plan import Amount, Quota, Tenant
from gpuplan.wording import listing


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
    for tenant, old, new in _lowered(step):
        if new.guaranteed < old.guaranteed:
            used = _used(step, tenant, new)
            if used > new.guaranteed:
                yield Finding(
                    new.at / "guaranteed",
                    f"tenant `{tenant.name}` uses {number(used)} `{new.unit.name}` of pool `{new.pool.name}`, and "
                    f"{number(new.guaranteed)} are guaranteed from now on",
                    label=f"it was {number(old.guaranteed)}",
                    notes=(_source(step), "what is beyond the guarantee may be evicted for others"),
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
            most, allowed = (_most(quota, namespace) for quota in (old, new))
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
    names = step.renamed_pools
    for old, new in step.tenants:
        if old is not None and new is not None:
            has = quotas(new, {})
            yield from ((new, quota, has.get(key) or _nothing(new, quota)) for key, quota in quotas(old, names).items())


def _nothing(tenant: Tenant, quota: Quota) -> Quota:
    return quota._replace(at=tenant.at / "quotas", guaranteed=0, limit=0, caps=dict.fromkeys(quota.caps, 0))


def _most(quota: Quota, namespace: str | None) -> Amount | None:
    """The most that may be used: of the whole tenant, or in a namespace, where nothing is if it is new."""
    return quota.limit if namespace is None else quota.caps.get(namespace, 0)


def _used(step: Step, tenant: Tenant, quota: Quota, namespace: str | None = None) -> Amount:
    """How many units pods hold now, or workloads may at most where nobody knows."""
    if step.pods is not None:
        is_counted = _counts(tenant, namespace)
        names = step.renamed_pools
        return add(
            [
                units.get(quota.unit.name, 0)
                for pod, pool, units in held(step.before, step.pods)
                if is_counted(pod) and names.get(pool.name, pool.name) == names.get(quota.pool.name, quota.pool.name)
            ]
        )
    return add(
        [
            workload.most_pods * workload.amount_per_pod
            for workload in step.after.workloads
            if workload.tenant.name == tenant.name
            and (workload.pool.name, workload.unit.name) == (quota.pool.name, quota.unit.name)
        ]
    )


def _counts(tenant: Tenant, namespace: str | None) -> Callable[[Pod], bool]:
    spaces = tenant.spec.namespaces if namespace is None else (namespace,)
    return lambda pod: pod.namespace in spaces


def _source(step: Step) -> str:
    return "as its workloads ask for at most" if step.pods is None else "as its pods hold now"


# --- What goes ---------------------------------------------------------------------------------------------------


@check("GPU715", "namespace-removed", Severity.WARNING, family=Family.STEP)
def namespace_removed(step: Step) -> Iterator[Finding]:
    """A namespace is no tenant's any more.

    ## Why
    The Namespace leaves the output. Argo CD asks a person before it deletes it, and whoever says yes deletes everything
    in it: pods, volumes, secrets. Flux leaves it where it is; then nothing limits what runs there, as its quotas and
    admission rules are gone.

    ## Instead
    Move what is needed first, and say in a comment that the namespace is empty. Where it is to stay, leave it with a
    tenant.
    """
    kept = {name for tenant in step.after.tenants for name in tenant.spec.namespaces}
    stay = {tenant.name: tenant for tenant in step.after.tenants}
    for tenant in step.before.tenants:
        gone = [name for name in tenant.spec.namespaces if name not in kept]
        if gone:
            there = None
            if step.pods is not None:
                there = sum(pod.namespace in gone for pod, _, _ in held(step.before, step.pods))
            later = stay.get(tenant.name)
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
        users = [tenant.name for tenant in step.before.tenants if item.name in _classes(tenant)]
        if item.name not in kept and users:
            yield Finding(
                name_of_cluster(step),
                f"priority class `{item.name}` is removed, which {listing(users)} may name",
                label="new pods that name it are refused",
                notes=(earlier(name_of(item.at), "it"),),
                help="keep the class, take it from the tenants' `priorityClasses`, and remove it in a later commit",
            )


def _classes(tenant: Tenant) -> set[str]:
    return {item.name for item in tenant.priority_classes}
