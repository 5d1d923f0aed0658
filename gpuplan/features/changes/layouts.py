"""The effects of changes of the platform's own GPU models, and of MIG layouts that no pool uses.

A pool's change says those of its own layout.

That no pool uses a layout is said of policies. Nodes name the entry that they had until their label moves, which is as
late as somebody approves it, and the MIG manager fails on a node whose label names no entry of its file.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.backends.gpu_operator import mig_parted
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Layout, Mig, Plan
from gpuplan.compiler.policy.differences import changed_fields
from gpuplan.features.changes.model import NOTHING_RUNS, Change, division, from_to, of, who_names
from gpuplan.features.changes.step import Step, changes_of, means_same, successors

_RESTARTS = f"mig-manager restarts with another file; {NOTHING_RUNS}"
"""It reads its file when it starts, so an entry more or less makes it start again."""


def layout_changes(step: Step) -> Iterator[Change]:
    return changes_of(step, successors(step.before.layouts, step.after.layouts, _is_alike), _added, _removed, _changed)


def _added(step: Step, new: Layout) -> Iterator[Change]:
    yield Change(*of(step.after, new), ChangeClass.PLUGIN_RESTART, "layout is added", _RESTARTS)


def _removed(step: Step, old: Layout) -> Iterator[Change]:
    if not _is_used(step.before, old):
        yield Change(*of(step.before, old), *_judged(step, old, "unused layout is removed"))


def _changed(step: Step, old: Layout, new: Layout) -> Iterator[Change]:
    if old.name != new.name:
        what = f"layout `{old.name}` is called `{new.name}`"
    elif _is_alike(old, new):
        what = f"the entry of an unused layout is called `{new.config_name}`"
    else:
        what = f"unused layout is edited: {from_to(division(old), division(new))}"
    is_same = (old.name, old.config_name) == (new.name, new.config_name) and _is_alike(old, new)
    if not _is_used(step.before, old) and not is_same:
        yield Change(*of(step.after, new), *_judged(step, old, what))


def _is_alike(one: Layout, other: Layout) -> bool:
    return one.gpu.id == other.gpu.id and means_same(one.entries, other.entries)


def _is_used(plan: Plan, layout: Layout) -> bool:
    sharings = (part.sharing for part in plan.parts)
    return any(isinstance(item, Mig) and item.layout.config_name == layout.config_name for item in sharings)


def _judged(step: Step, was: Layout, words: str) -> tuple[ChangeClass, str, str]:
    """The class, and what comes of it that the entry of a layout may go."""
    name = was.config_name
    by = step.naming(MIG_CONFIG_LABEL, name)
    is_kept = name in mig_parted.configuration(step.after)["mig-configs"]
    if by == () or is_kept or not step.before.may_be_divided_by(was):
        return ChangeClass.PLUGIN_RESTART, words, _RESTARTS
    found = (
        f"`kubectl get nodes -l {MIG_CONFIG_LABEL}={name}` must list none (`--nodes FILE` shows it)"
        if by is None
        else who_names(by)
    )
    effect = f"`{name}` vanishes, and a node that still names it fails as its mig-manager restarts: {found}"
    return ChangeClass.TWO_STEP, words, effect


def gpu_changes(step: Step) -> Iterator[Change]:
    """Yield the changes of the platform's own GPU models. Changes of pools and of tenants say the units."""
    for old, new in successors(step.before.gpus, step.after.gpus):
        if old is not None and new is None:
            yield Change(*of(step.before, old), ChangeClass.METADATA, "GPU model is described no more")
        elif old is None and new is not None:
            yield Change(*of(step.after, new), ChangeClass.METADATA, "GPU model is described")
        elif old and new and (fields := dict.fromkeys(change.words for change in changed_fields(old.spec, new.spec))):
            what = f"GPU model is described otherwise: {joined([*fields])}"
            yield Change(*of(step.after, new), ChangeClass.METADATA, what)
