"""What changes of workloads do: by what differs of their objects, since a pod is what the whole plan makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpuplan.changes.model import Change, ChangeClass, ObjectChange, change_of, worst
from gpuplan.changes.wording import NOTHING_RUNS, REVERT
from gpuplan.planning.plan import Plan, Stage, Workload
from gpuplan.policy.differences import changed_fields
from gpuplan.policy.models import Inference, Training
from gpuplan.wording import count, joined


def workload_changes(before: Plan, after: Plan, found: Iterable[ObjectChange]) -> Iterator[Change]:
    """``found`` is all that differs in the cluster."""
    old, new = ({(item.namespace, item.name): item for item in plan.workloads} for plan in (before, after))
    classes = _classes(found)
    for key in sorted({*old, *new}):
        one, other = old.get(key), new.get(key)
        if one is None and other is not None:
            yield _added(after, other)
        elif one is not None and other is None:
            yield _removed(before, one)
        elif one is not None and other is not None and other.name in classes:
            change_class, words = worst(classes[other.name]), _differences(one, other)
            if words or change_class.rank > ChangeClass.METADATA.rank:
                yield _changed(after, one, other, change_class, words or _ASKED_BY_OTHERS)


_ASKED_BY_OTHERS: Final = "its pool, its tenant or the scheduler asks something else of pods"


def _classes(found: Iterable[ObjectChange]) -> dict[str, list[ChangeClass]]:
    """The classes of what differs where workloads run, by workload."""
    classes: dict[str, list[ChangeClass]] = {}
    for item in found:
        if item.folder.startswith(f"{Stage.WORKLOADS}/"):
            for subject in item.about:
                if subject.kind == "Workload":
                    classes.setdefault(subject.name, []).append(item.change_class)
    return classes


def _added(after: Plan, new: Workload) -> Change:
    return change_of(
        after,
        new,
        ChangeClass.QUOTA,
        f"workload is added: {count(new.most_pods, 'pod')} at most",
        f"its pods take units of its tenant's quota; {NOTHING_RUNS}",
        "reverting removes it, and ends its pods",
    )


def _removed(before: Plan, old: Workload) -> Change:
    return change_of(
        before,
        old,
        ChangeClass.DESTRUCTIVE,
        "workload is removed",
        "its pods end, and its volume goes when a person confirms it" if old.spec.model else "its pods end",
        "reverting starts it again, from the beginning",
    )._replace(pods=old.most_pods)


def _changed(after: Plan, old: Workload, new: Workload, found: ChangeClass, what: str) -> Change:
    if found is not ChangeClass.RECREATE:
        return change_of(after, new, found, what, f"more or fewer pods; {NOTHING_RUNS}", REVERT)
    if isinstance(new.work, Training):
        effect = "its Job is another one: the pods end, and the new ones start from the beginning"
    else:
        effect = "its pods are recreated, one after the other"
    return change_of(after, new, found, what, effect, "reverting recreates them once more")._replace(pods=old.most_pods)


def _pods(workload: Workload) -> str:
    """How many there are: ``4``, or ``2 to 8``."""
    work = workload.work
    scaling = work.autoscaling if isinstance(work, Inference) else None
    return f"{scaling.min_replicas} to {scaling.max_replicas}" if scaling else str(workload.most_pods)


_MEANT: Final = {"unit": "unit", "priority_class": "priority class"}
"""Parts of the plan that a workload may mean without naming them."""


def _name(workload: Workload, part: str) -> str | None:
    found: str | None = getattr(getattr(workload, part), "name", None)
    return found


def _differences(old: Workload, new: Workload) -> str:
    """What the policy says otherwise; empty where it says the same."""
    pods, next_pods = _pods(old), _pods(new)
    if pods != next_pods:
        return f"there are {next_pods} pods, not {pods}"
    found = [change.words for change in changed_fields(old.spec, new.spec)]
    found += [word for name, word in _MEANT.items() if _name(old, name) != _name(new, name)]
    words = [*dict.fromkeys(found)]
    return f"changes: {joined(words)}" if words else ""
