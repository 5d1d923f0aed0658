"""What changes of priority classes do."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.capacity import pods_of
from gpuplan.changes.model import Change, ChangeClass, of
from gpuplan.changes.step import Step, successors, told
from gpuplan.changes.wording import from_to, names
from gpuplan.planning.plan import Plan, PriorityClass, Tenant
from gpuplan.planning.preemption import evicts_within


def priority_changes(step: Step) -> Iterator[Change]:
    pairs = successors(step.before.priority_classes, step.after.priority_classes)
    return told(step, pairs, _added, _removed, _changed)


def _added(step: Step, new: PriorityClass) -> Iterator[Change]:
    yield Change(
        *of(step.after, new),
        ChangeClass.PREEMPTION_ORDER,
        f"priority class with the value {new.spec.value} is added{_whose(step.after, new)}",
        "pods that name it go before those of lower classes" + (", and evict them" if new.spec.preempts else ""),
    )


def _removed(step: Step, old: PriorityClass) -> Iterator[Change]:
    what = f"priority class is removed{_whose(step.before, old)}"
    effect = "new pods that name it are refused; those that run keep its value"
    yield Change(*of(step.before, old), ChangeClass.ADMISSION, what, effect)


def _changed(step: Step, old: PriorityClass, new: PriorityClass) -> Iterator[Change]:
    place, whose = of(step.after, new), _whose(step.after, new)
    if fixed := _fixed(step, old, new):
        yield Change(
            *place,
            ChangeClass.RECREATE,
            "; ".join(fixed) + whose,
            "the API server refuses the change: the class must be deleted and recreated, and meanwhile nobody can "
            "create pods with it; pods that run keep what they had",
            "reverting is refused in the same way, once the class is recreated",
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
    """What no PriorityClass can change (`ValidatePriorityClassUpdate` in `pkg/apis/scheduling/validation`).

    With Kueue, classes never preempt by themselves.
    """
    found = []
    if old.spec.value != new.spec.value:
        found.append(f"value changes {from_to(old.spec.value, new.spec.value)}")
    preempted, preempts = (
        priority.spec.preempts and not plan.scheduler.leaves_preemption_to_queues
        for plan, priority in ((step.before, old), (step.after, new))
    )
    if preempted != preempts:
        found.append(f"pods of the class {'evict' if preempts else 'no longer evict'} others")
    return found


def _obeys_preemptible(step: Step, name: str) -> bool:
    """Whether an applied object obeys `preemptible`: a queue that evicts for all, or a label of work."""
    before, after = step.before, step.after
    if after.scheduler.leaves_preemption_to_queues:
        old = {tenant.name: evicts_within(tenant) for tenant in before.tenants}
        return any(old.get(tenant.name) != evicts_within(tenant) for tenant in after.tenants)
    named = (item.priority_class for item in after.workloads if after.scheduler.labels_preemptible)
    return any(found is not None and found.name == name for found in named)


def users_of(plan: Plan, priority: PriorityClass) -> list[Tenant]:
    return [tenant for tenant in plan.tenants if priority.name in {found.name for found in tenant.priority_classes}]


def _whose(plan: Plan, priority: PriorityClass) -> str:
    tenants = names([tenant.name for tenant in users_of(plan, priority)])
    return f" (open to {tenants})" if tenants else ""
