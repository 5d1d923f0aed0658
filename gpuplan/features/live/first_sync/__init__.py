"""The first sync of imported policies: what it does to a cluster as a dump shows it, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Severity
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.drifting import compare_with
from gpuplan.features.live.drifting.model import Differs, Drift, NextSync, planned
from gpuplan.features.live.dump import Dump
from gpuplan.features.live.first_sync.harms import harms
from gpuplan.features.live.first_sync.worlds import worlds


class Effect(StrEnum):
    """The effect of a change, worst first."""

    STOPS = "stops work"
    """Pods that run today do not start again, or the API server refuses a part of the sync."""
    TAKES_AWAY = "takes away"
    """Somebody may use less than today."""
    REPARTITIONS = "repartitions"
    RESTARTS = "restarts"
    """Pods of the GPU Operator start again on nodes."""
    CHANGES = "changes"


class FirstSync(Value):
    """The effects of a first sync: ``found`` are findings on harm, ``changed`` the fields that differ, by effect.

    ``added`` has the kinds of the objects that the dump lacks, with their numbers. ``annotated`` counts objects that
    get annotations and labels which only people and gpuplan's own objects read. ``absent`` are nodes that policies name
    and the dump lacks.
    """

    found: Mapping[Effect, tuple[Diagnostic, ...]]
    changed: Mapping[Effect, tuple[Drift, ...]]
    absent: tuple[Drift, ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)
    annotated: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether the API server refuses a part of it."""
        return bool(self.changed[Effect.STOPS])


def simulate(plan: Plan, dump: Dump) -> FirstSync:
    """Compare what a dump shows with what it would show after a sync of all folders."""
    platform = planned(plan, Path())
    found: dict[Effect, list[Diagnostic]] = {effect: [] for effect in Effect}
    for harm in harms(dump, worlds(plan, dump, platform)):
        milder = Effect.CHANGES if harm.diagnostic.severity is Severity.NOTE else Effect.TAKES_AWAY
        found[Effect.STOPS if harm.stops else milder].append(harm.diagnostic)
    drifts = [drift for drift in compare_with(plan, dump).synced if drift.differs is not Differs.MISSING]
    absent = tuple(drift for drift in drifts if drift.differs is Differs.NODE and not drift.path)
    changed: dict[Effect, list[Drift]] = {effect: [] for effect in Effect}
    annotated = set()
    for drift in drifts:
        if drift in absent:
            continue
        if _is_mark(drift):
            annotated.add(drift.title)
        else:
            changed[_effect(drift)].append(drift)
    new = [identity.kind for identity in platform.shown_by(dump) if dump.find(*identity[:2], *identity[:1:-1]) is None]
    return FirstSync(
        {effect: tuple(items) for effect, items in found.items()},
        {effect: tuple(items) for effect, items in changed.items()},
        absent,
        Counter(sorted(new)),
        len(annotated),
    )


def _is_mark(drift: Drift) -> bool:
    """Whether a difference is an annotation, or a label that gpuplan alone gives and reads."""
    is_own = drift.path.startswith(_READ_BY_NOBODY_ELSE) and not drift.has_live
    return is_own or drift.path.startswith("metadata.annotations")


_READ_BY_NOBODY_ELSE: Final = tuple(
    f'metadata.labels["{key}'
    for key in ("gpuplan.dev/", *(f"pod-security.kubernetes.io/{mode}" for mode in ("warn", "audit")))
)
"""Beginnings of labels that refuse nothing and move no pod."""


def _effect(drift: Drift) -> Effect:
    if drift.next_sync is NextSync.FAILS:
        return Effect.STOPS
    return _BY_CLASS.get(drift.change_class, Effect.CHANGES)


_BY_CLASS: Final = {
    ChangeClass.REPARTITION: Effect.REPARTITIONS,
    ChangeClass.PLUGIN_RESTART: Effect.RESTARTS,
    ChangeClass.RECREATE: Effect.RESTARTS,
}


def all_found(sync: FirstSync) -> Iterator[Diagnostic]:
    """Yield the findings, worst first."""
    for effect in Effect:
        yield from sync.found[effect]
