"""The effects of changes of tenants, their priority classes and their workloads."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.kai import queue_of
from gpuplan.compiler.planning.kueue import cluster_queue, has_queue, local_queue
from gpuplan.compiler.planning.plan import Plan, PriorityClass, Quota, Tenant
from gpuplan.compiler.planning.pods import Defaults, defaults_of
from gpuplan.compiler.planning.preemption import evicts_within
from gpuplan.compiler.planning.projects import times_of
from gpuplan.features.changes.fields import changes_by_row
from gpuplan.features.changes.model import (
    NOTHING_RUNS,
    REVERT,
    Change,
    GrantChange,
    amount,
    fate_of_queues,
    from_to,
    names,
    of,
)
from gpuplan.features.changes.nodes import grants, pods_of, quotas
from gpuplan.features.changes.step import Step, changes_of, successors


def tenant_changes(step: Step) -> Iterator[Change]:
    return changes_of(step, step.tenants, _added, _removed, _changed)


def _added(step: Step, tenant: Tenant) -> Iterator[Change]:
    where = f" with the namespaces {names(tenant.spec.namespaces)}" if tenant.spec.namespaces else ""
    yield Change(
        *of(step.after, tenant),
        ChangeClass.QUOTA,
        f"tenant is added{where}",
        f"its namespaces and quotas are made; {NOTHING_RUNS}",
        "reverting takes namespaces away again, which is destructive",
        grants=grants(None, tenant, {}),
    )


def _removed(step: Step, tenant: Tenant) -> Iterator[Change]:
    spaces = tenant.spec.namespaces
    where = f"the namespaces {names(spaces)} leave the policy, and stay until a person deletes them" if spaces else ""
    scheduler = step.before.scheduler
    held = f"; its queues {fate_of_queues(scheduler)}" if scheduler.has_queues else ""
    yield Change(
        *of(step.before, tenant),
        ChangeClass.DESTRUCTIVE,
        "tenant is removed",
        f"{where or 'its quotas leave the policy'}{held}",
        "reverting brings namespaces and quotas back, not what was in them",
        grants=grants(tenant, None, {}),
        pods=pods_of(tenant),
    )


def _changed(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    if old.name != new.name:
        scheduler = step.before.scheduler if step.before.scheduler.has_queues else step.after.scheduler
        is_held = scheduler.has_queues
        yield Change(
            *of(step.after, new),
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"tenant `{old.name}` is called `{new.name}`",
            f"its queues are others: the old ones {fate_of_queues(scheduler)}, and what queues work is in cannot change"
            if is_held
            else "its namespaces get another label; what runs goes on",
            "reverting is the same the other way round" if is_held else REVERT,
            pods=pods_of(old) if is_held else 0,
        )
    yield from _names(step, old, new)
    yield from _namespaces(step, old, new)
    yield from _quotas(step, old, new)
    yield from _containers(step, old, new)
    yield from _times(step, old, new)
    yield from changes_by_row(step, old, new)


def _names(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """The queues of a tenant that stays, by the names that it keeps. A LocalQueue cannot name another ClusterQueue."""
    scheduler = step.after.scheduler
    if old.name != new.name or step.before.scheduler is not scheduler or not scheduler.has_queues:
        return
    was, will = (_called(tenant, plan) for tenant, plan in ((old, step.before), (new, step.after)))
    for what, name in will.items():
        earlier = was.get(what, name)
        if earlier != name:
            yield Change(
                *of(step.after, new, new.at / "names"),
                ChangeClass.TWO_STEP,
                f"its work names the {what} `{name}`, and no longer `{earlier}`",
                f"queues that leave {fate_of_queues(scheduler)}, and what queues work is in cannot change",
                "reverting is the same the other way round",
                pods=pods_of(old),
            )


def _called(tenant: Tenant, plan: Plan) -> dict[str, str]:
    """Return the names of a tenant's queues, by their kind."""
    if not plan.scheduler.has_queues_by_pool:
        return {"ClusterQueue": cluster_queue(tenant), "LocalQueue": local_queue(tenant)} if has_queue(tenant) else {}
    pools = dict.fromkeys(quota.pool.name for quota in plan.tree.together.get(tenant.name, ()))
    return {f"queue in pool `{pool}`": queue_of(tenant, pool) for pool in pools}


def _namespaces(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    gone = [name for name in old.spec.namespaces if name not in new.spec.namespaces]
    come = [name for name in new.spec.namespaces if name not in old.spec.namespaces]
    kept = {name for tenant in step.after.tenants for name in tenant.spec.namespaces}
    place = of(step.after, new, new.at / "namespaces")
    if lost := [name for name in gone if name not in kept]:
        yield Change(
            *place,
            ChangeClass.DESTRUCTIVE,
            f"loses the namespaces {names(lost)}",
            "they leave the policy, and stay with all in them until a person deletes them",
            "reverting brings the namespaces back, not what was in them",
            pods=pods_of(old),
        )
    if given := [name for name in gone if name in kept]:
        is_held = step.after.scheduler.has_queues
        yield Change(
            *place,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the namespaces {names(given)} go to another tenant",
            "what runs there counts for a tenant that did not start it"
            + ("; the queue that work there is in cannot change" if is_held else ""),
            "reverting is the same the other way round",
            pods=pods_of(old) if is_held else 0,
        )
    if come:
        yield Change(*place, ChangeClass.QUOTA, f"gets the namespaces {names(come)}")


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    differing = grants(old, new, step.renamed_pools)
    held, holds = quotas(old, step.renamed_pools), quotas(new, {})
    both = [key for key in holds if key in held]
    divided = [key for key in both if _division(step.before, held[key]) != _division(step.after, holds[key])]
    bounded = [text for key in both for text in _class_texts(held[key], holds[key])]
    texts = [*map(_grant, differing), *(f"{pool} {unit} is divided or lent otherwise" for pool, unit in divided)]
    texts += bounded
    if texts:
        less = bool(bounded) or any(
            item.guaranteed_after < item.guaranteed_before
            or (item.limit_after is not None and (item.limit_before is None or item.limit_after < item.limit_before))
            for item in differing
        )
        is_closed = any((item.pool, item.unit) in held.keys() - holds.keys() for item in differing)
        yield Change(
            *of(step.after, new, new.at / "quotas"),
            ChangeClass.ADMISSION if is_closed else ChangeClass.QUOTA,
            "; ".join(texts),
            "pods that run go on, even beyond a quota; new ones wait or are refused" if less else NOTHING_RUNS,
            grants=differing,
        )


def _grant(grant: GrantChange) -> str:
    """``a100-mixed 3g.40gb: guarantee from 8 to 16``."""
    parts = (
        ("guarantee", grant.guaranteed_before, grant.guaranteed_after),
        ("limit", grant.limit_before, grant.limit_after),
    )
    found = [f"{what} {from_to(amount(old), amount(new))}" for what, old, new in parts if old != new]
    return f"{grant.pool} {grant.unit}: {', '.join(found)}"


def _class_texts(old: Quota, new: Quota) -> Iterator[str]:
    """``a100-mixed 3g.40gb: limit of class research from no limit to 4``."""
    for name in {**old.class_limits, **new.class_limits}:
        before, after = (quota.class_limits.get(name) for quota in (old, new))
        if before != after:
            yield f"{' '.join(new.key)}: limit of class {name} {from_to(amount(before), amount(after))}"


def _division(plan: Plan, quota: Quota) -> object:
    """Return the split of a quota among namespaces, and its lending if the scheduler lends."""
    split = {name: number for name, number in quota.split.items() if name in quota.caps}
    lends = plan.scheduler.supports("lendable") and quota.lendable < quota.guaranteed
    return split, quota.lendable if lends else None


# --- What a tenant may do ----------------------------------------------------------------------------------------


def _containers(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """Pods have what their containers were given when they were made."""
    before, after = defaults_of(old), defaults_of(new)
    texts = [
        f"{counted.value} {_default(after[counted])}"
        for counted in before
        if _default(before[counted]) != _default(after[counted])
    ]
    if texts and new.spec.namespaces:
        yield Change(
            *of(step.after, new, new.at / "containers"),
            ChangeClass.ADMISSION,
            f"containers that say nothing of it have {'; '.join(texts)}",
            "new pods are made with it, and judged by it; those that run go on",
        )


def _default(defaults: Defaults) -> str:
    """``500m, 2 at most, 4 times the request at most``."""
    request, limit = (
        amount_text(defaults.counted, item) if item is not None else "" for item in (defaults.request, defaults.limit)
    )
    parts = (
        request,
        limit and f"{limit} at most",
        f"{amount(defaults.ratio)} times the request at most" if defaults.ratio else "",
    )
    return ", ".join(filter(None, parts)) or "what Kubernetes gives"


def _times(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """Run:ai's rules hold for what is submitted after them."""
    before, after = ({at.path[-2:]: time for at, time in times_of(tenant)} for tenant in (old, new))
    texts = [
        f"{key[0]} {_TIMES[str(key[1])]} {from_to(before.get(key, _EVER), after.get(key, _EVER))}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    if texts and step.after.scheduler.has_projects:
        yield Change(
            *of(step.after, new, new.at / "timeLimits"),
            ChangeClass.ADMISSION,
            f"time of its work: {'; '.join(texts)}",
            "it holds for what is submitted once Run:ai is told; what was before keeps its times",
        )


_EVER = "any time"
_TIMES = {"run": "run", "idle": "are idle", "preemptibleIdle": "that may be evicted are idle"}
"""The words for the time that a limit bounds."""


# --- Who goes first ----------------------------------------------------------------------------------------------


# --- Priority classes --------------------------------------------------------------------------------------------


def priority_changes(step: Step) -> Iterator[Change]:
    pairs = successors(step.before.priority_classes, step.after.priority_classes)
    return changes_of(step, pairs, _class_added, _class_removed, _class_changed)


def _class_added(step: Step, new: PriorityClass) -> Iterator[Change]:
    yield Change(
        *of(step.after, new),
        ChangeClass.PREEMPTION_ORDER,
        f"priority class with the value {new.spec.value} is added{_whose(step.after, new)}",
        "pods that name it go before those of lower classes" + (", and evict them" if new.spec.preempts else ""),
    )


def _class_removed(step: Step, old: PriorityClass) -> Iterator[Change]:
    what = f"priority class is removed{_whose(step.before, old)}"
    effect = "new pods that name it are refused; those that run keep its value"
    yield Change(*of(step.before, old), ChangeClass.ADMISSION, what, effect)


def _class_changed(step: Step, old: PriorityClass, new: PriorityClass) -> Iterator[Change]:
    place, whose = of(step.after, new), _whose(step.after, new)
    if fixed := _fixed(step, old, new):
        yield Change(
            *place,
            ChangeClass.RECREATE,
            "; ".join(fixed) + whose,
            "the API server refuses the change: the class must be deleted and recreated, and meanwhile nobody can "
            "create pods with it; pods that run keep what they had",
            "reverting ends the wait; once the class is recreated, it is refused in the same way",
        )
    if old.spec.default != new.spec.default:
        what = f"pods that name no class {'get this one' if new.spec.default else 'get this one no more'}{whose}"
        value = new.spec.value if new.spec.default else "that of no class"
        effect = f"the priority of new pods without a class is {value}"
        yield Change(*place, ChangeClass.PREEMPTION_ORDER, what, effect)
    if old.spec.preemptible != new.spec.preemptible and _obeys_preemptible(step, new.name):
        what = f"pods of the class may {'be evicted' if new.spec.preemptible else 'not be evicted any more'}{whose}"
        effect, pods = "the scheduler evicts other pods than before", sum(map(pods_of, users_of(step.before, old)))
        yield Change(*place, ChangeClass.PREEMPTION_ORDER, what, effect, pods=pods)
    if old.spec.description != new.spec.description:
        yield Change(*place, ChangeClass.METADATA, "description changes")


def _fixed(step: Step, old: PriorityClass, new: PriorityClass) -> list[str]:
    """Return the changes that no PriorityClass allows. With Kueue, classes never preempt by themselves.

    (`ValidatePriorityClassUpdate` in `pkg/apis/scheduling/validation`.)
    """
    fixed = []
    if old.spec.value != new.spec.value:
        fixed.append(f"value changes {from_to(old.spec.value, new.spec.value)}")
    preempted, preempts = (
        priority.spec.preempts and not plan.scheduler.leaves_preemption_to_queues
        for plan, priority in ((step.before, old), (step.after, new))
    )
    if preempted != preempts:
        fixed.append(f"pods of the class {'evict' if preempts else 'no longer evict'} others")
    return fixed


def _obeys_preemptible(step: Step, name: str) -> bool:
    """Whether an applied object obeys `preemptible`: a queue that evicts for all, or a label of work."""
    before, after = step.before, step.after
    if after.scheduler.leaves_preemption_to_queues:
        old = {tenant.name: evicts_within(tenant) for tenant in before.tenants}
        return any(old.get(tenant.name) != evicts_within(tenant) for tenant in after.tenants)
    named = (item.priority_class for item in after.workloads if after.scheduler.preemptibility_label)
    return any(found is not None and found.name == name for found in named)


def users_of(plan: Plan, priority: PriorityClass) -> list[Tenant]:
    return [tenant for tenant in plan.tenants if priority.name in {found.name for found in tenant.priority_classes}]


def _whose(plan: Plan, priority: PriorityClass) -> str:
    tenants = names([tenant.name for tenant in users_of(plan, priority)])
    return f" (open to {tenants})" if tenants else ""
