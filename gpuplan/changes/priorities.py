"""What changes of priority classes do."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.capacity import pods_of
from gpuplan.changes.model import Change, ChangeClass, change_of
from gpuplan.changes.pairing import successors
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, from_to, names
from gpuplan.planning.evictions import evicts_within
from gpuplan.planning.plan import Plan, PriorityClass


def priority_changes(before: Plan, after: Plan) -> Iterator[Change]:
    for one, other in successors(before.priority_classes, after.priority_classes, lambda *_: False):
        if one is None and other is not None:
            yield _change(
                after,
                other,
                ChangeClass.PREEMPTION_ORDER,
                f"priority class with the value {other.spec.value} is added",
                "pods that name it go before those of lower classes"
                + (", and evict them" if other.spec.preempts else ""),
                REVERT,
            )
        elif one is not None and other is None:
            yield _change(
                before,
                one,
                ChangeClass.ADMISSION,
                "priority class is removed",
                "new pods that name it are refused; those that run keep its value",
                REVERT,
            )
        elif one is not None and other is not None:
            yield from _changed(before, after, one, other)


def _changed(before: Plan, after: Plan, old: PriorityClass, new: PriorityClass) -> Iterator[Change]:
    if fixed := _fixed(before, after, old, new):
        yield _change(
            after,
            new,
            ChangeClass.RECREATE,
            "; ".join(fixed),
            "the API server refuses the change: the class must be deleted and recreated, and meanwhile nobody can "
            "create pods with it; pods that run keep what they had",
            "reverting is refused in the same way, once the class is recreated",
        )
    if old.spec.default != new.spec.default:
        yield _change(
            after,
            new,
            ChangeClass.PREEMPTION_ORDER,
            f"pods that name no class {'get this one' if new.spec.default else 'get this one no more'}",
            f"the priority of new pods without a class is {new.spec.value if new.spec.default else 'that of no class'}",
            REVERT,
        )
    if old.spec.preemptible != new.spec.preemptible and _obeys_preemptible(before, after, new.name):
        yield _change(
            after,
            new,
            ChangeClass.PREEMPTION_ORDER,
            f"pods of the class may {'be evicted' if new.spec.preemptible else 'not be evicted any more'}",
            "the scheduler evicts other pods than before",
            REVERT,
        )._replace(pods=_pods(before, old))
    if old.spec.description != new.spec.description:
        yield _change(after, new, ChangeClass.METADATA, "description changes", NOTHING_RUNS, REVERT)


def _fixed(before: Plan, after: Plan, old: PriorityClass, new: PriorityClass) -> list[str]:
    """What no PriorityClass can change (`ValidatePriorityClassUpdate` in `pkg/apis/scheduling/validation`).

    With Kueue, classes never preempt by themselves.
    """
    found = []
    if old.spec.value != new.spec.value:
        found.append(f"value changes {from_to(old.spec.value, new.spec.value)}")
    preempted, preempts = _preempts(before, old), _preempts(after, new)
    if preempted != preempts:
        found.append(f"pods of the class {'evict' if preempts else 'no longer evict'} others")
    return found


def _preempts(plan: Plan, priority: PriorityClass) -> bool:
    return priority.spec.preempts and not plan.scheduler.leaves_preemption_to_queues


def _obeys_preemptible(before: Plan, after: Plan, name: str) -> bool:
    """Whether an applied object obeys `preemptible`: a queue that evicts for all, or a label of work."""
    if after.scheduler.leaves_preemption_to_queues:
        old = {tenant.name: evicts_within(tenant) for tenant in before.tenants}
        return any(old.get(tenant.name) != evicts_within(tenant) for tenant in after.tenants)
    named = (item.priority_class for item in after.workloads if after.scheduler.labels_preemptible)
    return any(found is not None and found.name == name for found in named)


def _pods(plan: Plan, priority: PriorityClass) -> int:
    return sum(
        pods_of(tenant) for tenant in plan.tenants if priority.name in {found.name for found in tenant.priority_classes}
    )


def _change(
    plan: Plan, priority: PriorityClass, change_class: ChangeClass, what: str, effect: str, undo: str
) -> Change:
    tenants = names(
        [tenant.name for tenant in plan.tenants if priority.name in {item.name for item in tenant.priority_classes}]
    )
    whose = f" (open to {tenants})" if tenants and change_class.rank > ChangeClass.METADATA.rank else ""
    return change_of(plan, priority, change_class, f"{what}{whose}", effect, undo)
