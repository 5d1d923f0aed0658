"""What changes for a plan when another scheduler divides its GPUs."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.catalog.schedulers import Concept, Needs, concepts
from gpuplan.checks.losses import Use, losses, uses
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.values import NamedTuple, Value


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
    ids = [concept.id for concept in concepts()]
    present = plan.scheduler
    before, after = ({name: losses(plan, name, traits) for name in ids} for traits in (present, other))

    def changes(places: Callable[[str], tuple[Use, ...]]) -> tuple[ConceptChange, ...]:
        found = (ConceptChange(concept, places(concept.id)) for concept in concepts())
        return tuple(change for change in found if change.places)

    return SchedulerComparison(
        plan.cluster.name,
        present,
        other,
        gained=changes(lambda name: _without(before[name], after[name])),
        lost=changes(lambda name: _without(after[name], before[name])),
        kept=changes(lambda name: () if before[name] or after[name] else uses(plan, name)),
        lost_by_both=changes(lambda name: _without(after[name], _without(after[name], before[name]))),
        settings=changes(lambda name: uses(plan, name) if other.capability(name).needs is Needs.CONFIGURATION else ()),
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
    known = {(id(use.at.source), use.at.path) for use in others}
    return tuple(use for use in found if (id(use.at.source), use.at.path) not in known)
