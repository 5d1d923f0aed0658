"""What changes of workloads do: their objects are compared, since a pod is what the whole plan makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.backends import workloads
from gpuplan.changes.model import Change, ChangeClass, worst
from gpuplan.changes.objects import Objects, differing
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, counted
from gpuplan.manifests import Subject
from gpuplan.planning.plan import WORKLOAD_LABEL, Inference, Plan, Training, Workload
from gpuplan.policy.differences import changed_fields
from gpuplan.wording import joined

_Key = tuple[str, str]


def workload_changes(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = ({(item.namespace, item.name): item for item in plan.workloads} for plan in (before, after))
    old_objects, new_objects = _objects(before), _objects(after)
    for key in sorted({*old, *new}):
        one, other = old.get(key), new.get(key)
        if one is None and other is not None:
            yield _added(after, other)
        elif one is not None and other is None:
            yield _removed(before, one)
        elif one is not None and other is not None:
            found = list(differing("", old_objects.get(key, {}), new_objects.get(key, {})))
            if found:
                yield _changed(after, one, other, worst(item.change_class for item in found))


def _objects(plan: Plan) -> dict[_Key, Objects]:
    found: dict[_Key, dict[tuple[str, object], object]] = {}
    for manifest in workloads.render(plan):
        key = manifest.namespace, str(manifest.body["metadata"]["labels"][WORKLOAD_LABEL])
        found.setdefault(key, {})[manifest.folder, manifest.identity] = manifest.body
    return found  # type: ignore[return-value]


def _added(after: Plan, new: Workload) -> Change:
    return _change(
        after,
        new,
        ChangeClass.QUOTA,
        f"workload is added: {counted(new.most_pods, 'pod')} at most",
        f"its pods take units of its tenant's quota; {NOTHING_RUNS}",
        "reverting removes it, and ends its pods",
    )


def _removed(before: Plan, old: Workload) -> Change:
    return _change(
        before,
        old,
        ChangeClass.DESTRUCTIVE,
        "workload is removed",
        "its pods end, and its volume goes when a person confirms it" if old.spec.model else "its pods end",
        "reverting starts it anew, from the beginning",
    )._replace(pods=old.most_pods)


def _changed(after: Plan, old: Workload, new: Workload, found: ChangeClass) -> Change:
    what = _differences(old, new)
    if found is not ChangeClass.RECREATE:
        return _change(after, new, found, what, f"more or fewer pods; {NOTHING_RUNS}", REVERT)
    if isinstance(new.work, Training):
        effect = "its Job is another one: the pods end, and the new ones start from the beginning"
    else:
        effect = "its pods are made anew, one after the other"
    return _change(after, new, found, what, effect, "reverting makes them anew once more")._replace(pods=old.most_pods)


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
    pods, next_pods = _pods(old), _pods(new)
    if pods != next_pods:
        return f"there are {next_pods} pods, not {pods}"
    found = [change.words for change in changed_fields(old.spec, new.spec)]
    found += [word for name, word in _MEANT.items() if _name(old, name) != _name(new, name)]
    words = [*dict.fromkeys(found)]
    return f"changes: {joined(words)}" if words else "its pool, its tenant or the scheduler asks something else of pods"


def _change(plan: Plan, workload: Workload, change_class: ChangeClass, what: str, effect: str, undo: str) -> Change:
    return Change(
        plan.cluster.name,
        change_class,
        Subject("Workload", workload.name),
        what,
        effect,
        undo,
        workload.at,
    )
