"""What a sync of Argo CD waits for after a step: until then its Application takes no other commit, a revert included.

A sync has no end of its own, and no two of an Application run at once. It asks before it prunes an object that says so,
and where objects come one after the other, by waves, it waits until each that it applied is healthy, and a Job is that
when it has ended (`Sync` in https://github.com/argoproj/argo-cd/blob/v3.5.3/gitops-engine/pkg/sync/sync_context.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from gpuplan.compiler.base.bodies import Body, section
from gpuplan.compiler.delivery.annotations import HOOK, SYNC_WAVE
from gpuplan.compiler.delivery.appliers import APPLICATION, APPLICATION_SET, find_applier, is_pruned
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.features.changes.model import Hold
from gpuplan.features.changes.objects import Objects


def holds(plan: Plan, before: Objects, after: Objects) -> Iterator[Hold]:
    """Those of a cluster of which the later plan is given, by folder.

    A folder that goes as a whole is synced no more, and one that a person starts is pruned as that person says.
    """
    for folder, keys in groupby(sorted({*before, *after}), key=lambda key: key[0]):
        applier = find_applier(plan, folder)
        if applier is None or applier.kind not in (APPLICATION, APPLICATION_SET):
            continue
        identities = [identity for _, identity in keys]
        old, new = (
            {name: side[folder, name] for name in identities if (folder, name) in side} for side in (before, after)
        )
        gone = {name: body for name, body in old.items() if name not in new} if is_pruned(folder) else {}
        pruned = [name for name, body in gone.items() if applier.is_automatic and _must_be_confirmed(body)]
        steps = {_step(body) for body in (*new.values(), *gone.values())}
        jobs = [name for name, body in new.items() if _is_job(name, body) and old.get(name) != body]
        ended = jobs if len(steps) > 1 else ()
        if new and (pruned or ended):
            yield Hold(plan.cluster.name, applier.name, folder, tuple(pruned), tuple(ended))


def _is_job(name: Identity, body: Body) -> bool:
    """Whether it ends by itself; hooks, which change nothing of a cluster, are told of where they are configured."""
    return (name.group, name.kind) == ("batch", "Job") and HOOK not in _annotations(body)


def _must_be_confirmed(body: Body) -> bool:
    return _CONFIRM in str(_annotations(body).get(SYNC_OPTIONS, "")).split(",")


_CONFIRM: Final = "Prune=confirm"


def _step(body: Body) -> tuple[object, object]:
    """When it comes: the phase of a hook, and the wave."""
    found = _annotations(body)
    return found.get(HOOK), found.get(SYNC_WAVE, "0")


def _annotations(body: Body) -> Body:
    return section(body, "metadata", "annotations")
