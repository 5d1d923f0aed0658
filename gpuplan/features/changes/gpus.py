"""The effects of changes of the platform's own GPU models. Changes of pools and tenants say the units."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.plan import OwnGpu
from gpuplan.compiler.policy.differences import changed_fields
from gpuplan.features.changes.model import Change, of
from gpuplan.features.changes.step import Step, changes_of, successors


def gpu_changes(step: Step) -> Iterator[Change]:
    return changes_of(step, successors(step.before.gpus, step.after.gpus), _added, _removed, _changed)


def _added(step: Step, new: OwnGpu) -> Iterator[Change]:
    yield Change(*of(step.after, new), ChangeClass.METADATA, "GPU model is described")


def _removed(step: Step, old: OwnGpu) -> Iterator[Change]:
    yield Change(*of(step.before, old), ChangeClass.METADATA, "GPU model is described no more")


def _changed(step: Step, old: OwnGpu, new: OwnGpu) -> Iterator[Change]:
    if found := dict.fromkeys(change.words for change in changed_fields(old.spec, new.spec)):
        what = f"GPU model is described otherwise: {joined([*found])}"
        yield Change(*of(step.after, new), ChangeClass.METADATA, what)
