"""What changes of workloads do: by what differs of their objects, since a pod is what the whole plan makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.changes.model import NOTHING_RUNS, REVERT, Change, ChangeClass, ObjectChange, of, worst
from gpuplan.changes.step import Step, successors, told
from gpuplan.planning.plan import Stage, Workload
from gpuplan.policy.differences import changed_fields
from gpuplan.policy.models import Inference, Training
from gpuplan.wording import count, joined


def workload_changes(step: Step, found: Iterable[ObjectChange]) -> Iterator[Change]:
    """``found`` is all that differs in the cluster."""
    classes = _classes(found)

    def changed(step: Step, old: Workload, new: Workload) -> Iterator[Change]:
        if new.name in classes:
            yield from _changed(step, old, new, worst(classes[new.name]))

    sides = step.before.workloads, step.after.workloads
    pairs = successors(*sides, key=lambda item: (item.namespace, item.name))
    return told(step, pairs, _added, _removed, changed)


def _classes(found: Iterable[ObjectChange]) -> dict[str, list[ChangeClass]]:
    """The classes of what differs where workloads run, by workload."""
    classes: dict[str, list[ChangeClass]] = {}
    for item in found:
        if item.folder.startswith(f"{Stage.WORKLOADS}/"):
            for subject in item.about:
                if subject.kind == "Workload":
                    classes.setdefault(subject.name, []).append(item.change_class)
    return classes


def _added(step: Step, new: Workload) -> Iterator[Change]:
    what = f"workload is added: {count(new.most_pods, 'pod')} at most"
    effect = f"its pods take units of its tenant's quota; {NOTHING_RUNS}"
    yield Change(*of(step.after, new), ChangeClass.QUOTA, what, effect, "reverting removes it, and ends its pods")


def _removed(step: Step, old: Workload) -> Iterator[Change]:
    yield Change(
        *of(step.before, old),
        ChangeClass.DESTRUCTIVE,
        "workload is removed",
        "its pods end, and its volume goes when a person confirms it" if old.spec.model else "its pods end",
        "reverting starts it again, from the beginning",
        pods=old.most_pods,
    )


def _changed(step: Step, old: Workload, new: Workload, found: ChangeClass) -> Iterator[Change]:
    is_recreated, effect, undo = found is ChangeClass.RECREATE, f"more or fewer pods; {NOTHING_RUNS}", REVERT
    if is_recreated:
        effect, undo = "its pods are recreated, one after the other", "reverting recreates them once more"
        if isinstance(new.work, Training):
            effect = "its Job is another one: the pods end, and the new ones start from the beginning"
    words = _differences(old, new)
    if words or found.rank > ChangeClass.METADATA.rank:
        what = words or "its pool, its tenant or the scheduler asks something else of pods"
        yield Change(*of(step.after, new), found, what, effect, undo, pods=old.most_pods if is_recreated else 0)


def _pods(workload: Workload) -> str:
    """How many there are: ``4``, or ``2 to 8``."""
    work = workload.work
    scaling = work.autoscaling if isinstance(work, Inference) else None
    return f"{scaling.min_replicas} to {scaling.max_replicas}" if scaling else str(workload.most_pods)


def _differences(old: Workload, new: Workload) -> str:
    """What the policy says otherwise, by name or meant without one; empty where it says the same."""
    if _pods(old) != _pods(new):
        return f"there are {_pods(new)} pods, not {_pods(old)}"
    found = [change.words for change in changed_fields(old.spec, new.spec)]
    found += ["unit"] if old.unit.name != new.unit.name else []
    names = [item.priority_class and item.priority_class.name for item in (old, new)]
    found += ["priority class"] if names[0] != names[1] else []
    return f"changes: {joined([*dict.fromkeys(found)])}" if found else ""
