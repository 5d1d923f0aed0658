"""The reasons for which Applications of Argo CD wait after a step (cases: `tests/cluster/test_argocd_syncs.py`).

A sync has no end of its own, and no two of an Application run at once. It asks before it prunes an object that says so.
What it applied must be healthy before a later wave is applied, and a Job is that when it has ended; after the last wave
it waits for nothing (`Sync` in https://github.com/argoproj/argo-cd/blob/v3.5.3/gitops-engine/pkg/sync/sync_context.go).

No sync begins where Argo CD cannot compare. It asks the API server what an apply would change, object by object, and
one refusal fails the comparison of all (`serverSideDiff` in `gitops-engine/pkg/diff/diff.go` and `CompareAppState` in
`controller/state.go` there). The next look takes what was compared before for known, and changes nothing; only objects
that come or go are seen (`useDiffCache` there). The options `Replace` and `Force` are read after that, in a sync.

An ApplicationSet with `create-update` deletes no Application, and the parent of the others prunes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import Body, section
from gpuplan.compiler.delivery.annotations import HOOK, SYNC_WAVE
from gpuplan.compiler.planning.appliers import (
    APPLICATION,
    APPLICATION_SET,
    find_applier,
    is_applied_by_client,
    is_pruned,
)
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.features.changes.hand_written import folder_of
from gpuplan.features.changes.kinds import locked_fields
from gpuplan.features.changes.model import Wait
from gpuplan.features.changes.objects import FILE, Objects


def waits(plan: Plan, before: Objects, after: Objects) -> Iterator[Wait]:
    """Those of a cluster of which the later plan is given, by folder; what a person syncs is pruned as they say."""
    kept = {folder_of(component) for component in plan.components}
    for folder, keys in groupby(sorted({*before, *after}), key=lambda key: key[0]):
        applier = find_applier(plan, folder)
        if applier is None or applier.kind not in (APPLICATION, APPLICATION_SET):
            continue
        identities = [identity for _, identity in keys]
        old, new = (
            {name: side[folder, name] for name in identities if (folder, name) in side} for side in (before, after)
        )
        gone = {name: body for name, body in old.items() if name not in new} if is_pruned(folder) else {}
        pruned = [
            name
            for name, body in gone.items()
            if applier.is_automatic and (_CONFIRM in str(_annotations(body).get(SYNC_OPTIONS, "")).split(","))
        ]
        last = max(map(_step, (*new.values(), *gone.values())), default=None)
        ended = [
            name
            for name, body in new.items()
            if ((name.group, name.kind) == ("batch", "Job") and HOOK not in _annotations(body) and _step(body) != last)
            and old.get(name) != body
        ]
        stay = () if is_applied_by_client(plan, folder) else new.keys() & old.keys()
        refused = sorted(
            name for name in stay if HOOK not in _annotations(new[name]) and locked_fields(name, old[name], new[name])
        )
        wait = Wait(plan.cluster.name, applier.name, folder)
        if new and (pruned or ended or refused):
            yield wait._replace(pruned=tuple(pruned), ended=tuple(ended), refused=tuple(refused))
        elif not new and folder not in kept and (left := tuple(name for name in old if name.kind != FILE)):
            yield wait._replace(left=left)


_CONFIRM: Final = "Prune=confirm"

_Step = tuple[int, int]
"""The phase, by its place among all, and the wave."""
_PHASES: Final = ("PreSync", "Sync", "PostSync")
_WAVE: Final = regex(r"[+-]?[0-9]{1,9}")


def _step(body: Body) -> _Step:
    """When it comes. What is no hook is in the phase `Sync`, and a wave that is no number is 0."""
    found = _annotations(body)
    phase, wave = str(found.get(HOOK, "Sync")), str(found.get(SYNC_WAVE))
    return _PHASES.index(phase) if phase in _PHASES else 0, int(wave) if _WAVE.fullmatch(wave) else 0


def _annotations(body: Body) -> Body:
    return section(body, "metadata", "annotations")
