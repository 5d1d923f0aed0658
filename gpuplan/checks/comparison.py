"""What changes for a plan when another scheduler divides its GPUs."""

from __future__ import annotations

from typing import NamedTuple

from gpuplan.catalog.schedulers import Concept, Needs, concepts
from gpuplan.checks.losses import Use, losses, uses
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.values import Value


class ConceptChange(NamedTuple):
    """A concept of the capability matrix, and the places in the policy that it is about."""

    concept: Concept
    places: tuple[Use, ...]


class SchedulerComparison(Value):
    """What the policy of one cluster asks for, by what becomes of it; what it does not ask for is nowhere.

    ``gained`` is lost today and kept by the other, ``lost`` the other way round; one concept may be in both, at
    different places. ``settings`` is what the other keeps only if its own configuration says so; ``errors`` are those
    that the policy would have with it and does not have today.
    """

    cluster: str
    present: SchedulerTraits
    other: SchedulerTraits
    gained: tuple[ConceptChange, ...]
    lost: tuple[ConceptChange, ...]
    kept: tuple[ConceptChange, ...]
    lost_by_both: tuple[ConceptChange, ...]
    settings: tuple[ConceptChange, ...]
    errors: tuple[Diagnostic, ...]


def compare(plan: Plan, other: SchedulerTraits) -> SchedulerComparison:
    """The cluster's present scheduler and another, for this very policy."""
    present = plan.scheduler
    gained, lost, kept, lost_by_both, settings = [], [], [], [], []
    for concept in concepts():
        asked = uses(plan, concept.id)
        before, after = losses(plan, concept.id, present), losses(plan, concept.id, other)
        gained.append(ConceptChange(concept, _without(before, after)))
        lost.append(ConceptChange(concept, _without(after, before)))
        lost_by_both.append(ConceptChange(concept, _without(after, _without(after, before))))
        kept.append(ConceptChange(concept, () if before or after else asked))
        needed = other.capability(concept.id).needs is Needs.CONFIGURATION
        settings.append(ConceptChange(concept, asked if needed else ()))
    return SchedulerComparison(
        plan.cluster.name,
        present,
        other,
        gained=_found(gained),
        lost=_found(lost),
        kept=_found(kept),
        lost_by_both=_found(lost_by_both),
        settings=_found(settings),
        errors=_new_errors(plan, other),
    )


def _new_errors(plan: Plan, other: SchedulerTraits) -> tuple[Diagnostic, ...]:
    """The errors that the plan would have; which release of the other there would be is not known."""
    from gpuplan.checks import run

    scheduler = plan.cluster.scheduler
    if other is scheduler.traits:
        return ()
    changed = plan.under(other)
    known = {_identity(found) for found in run(plan)}
    return tuple(found for found in run(changed) if found.is_error and _identity(found) not in known)


def _identity(found: Diagnostic) -> tuple[str, str, int, tuple[str | int, ...]]:
    return found.code, found.finding.message, id(found.finding.at.source), found.finding.at.path


def _without(found: tuple[Use, ...], others: tuple[Use, ...]) -> tuple[Use, ...]:
    """The places of the first that are not among the second; what is said there may differ."""
    known = {_key(use) for use in others}
    return tuple(use for use in found if _key(use) not in known)


def _key(use: Use) -> tuple[int, tuple[str | int, ...]]:
    return id(use.at.source), use.at.path


def _found(changes: list[ConceptChange]) -> tuple[ConceptChange, ...]:
    return tuple(change for change in changes if change.places)
