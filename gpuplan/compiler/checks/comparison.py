"""What changes for a plan when another scheduler divides its GPUs."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.schedulers import Concept, Needs, concepts
from gpuplan.compiler.checks.losses import Use, losses, uses
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.schedulers import SchedulerTraits


class ConceptChange(NamedTuple):
    """A concept of the capability matrix, and the places in the policy that it is about."""

    concept: Concept
    places: tuple[Use, ...]


class WorkloadChange(NamedTuple):
    """What becomes of a workload: by what it says itself, its class, its pools and its tenant's quota on them."""

    name: str
    gained: tuple[Concept, ...]
    lost: tuple[Concept, ...]
    errors: tuple[Diagnostic, ...]


class SchedulerComparison(Value):
    """What the policy of one cluster asks for, by what becomes of it; what it does not ask for is nowhere.

    ``gained`` is lost today and kept by the other, ``lost`` the other way round; one concept may be in both, at
    different places. ``settings`` is what the other keeps only if its own configuration says so; ``errors`` are those
    that the policy would have with it and does not have today. ``workloads`` are all there are, by name, each with the
    part of this that it feels.
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
    workloads: tuple[WorkloadChange, ...]


def compare(plan: Plan, other: SchedulerTraits) -> SchedulerComparison:
    """The cluster's present scheduler and another, for this very policy."""
    ids = [concept.id for concept in concepts()]
    present = plan.scheduler
    before, after = ({name: losses(plan, name, traits) for name in ids} for traits in (present, other))

    def changes(places: Callable[[str], tuple[Use, ...]]) -> tuple[ConceptChange, ...]:
        found = (ConceptChange(concept, places(concept.id)) for concept in concepts())
        return tuple(change for change in found if change.places)

    gained = changes(lambda name: _without(before[name], after[name]))
    lost = changes(lambda name: _without(after[name], before[name]))
    errors = _new_errors(plan, other)
    return SchedulerComparison(
        plan.cluster.name,
        present,
        other,
        gained=gained,
        lost=lost,
        kept=changes(lambda name: () if before[name] or after[name] else uses(plan, name)),
        lost_by_both=changes(lambda name: _without(after[name], _without(after[name], before[name]))),
        settings=changes(lambda name: uses(plan, name) if other.capability(name).needs is Needs.CONFIGURATION else ()),
        errors=errors,
        workloads=tuple(_of_workload(plan, workload, gained, lost, errors) for workload in plan.workloads),
    )


def _of_workload(
    plan: Plan,
    workload: Workload,
    gained: tuple[ConceptChange, ...],
    lost: tuple[ConceptChange, ...],
    errors: tuple[Diagnostic, ...],
) -> WorkloadChange:
    parts = (workload, *reach(plan, workload), *((workload.priority_class,) if workload.priority_class else ()))
    sources = {id(part.at.source) for part in parts}
    quota = plan.tree.find_quota(workload.tenant, workload.key)

    def felt(changes: tuple[ConceptChange, ...]) -> tuple[Concept, ...]:
        return tuple(change.concept for change in changes if any(is_felt(use.at) for use in change.places))

    def is_felt(at: Origin) -> bool:
        if quota is not None and quota.at.source is at.source and at.path[: len(quota.at.path)] == quota.at.path:
            return True
        return id(at.source) in sources

    refused = tuple(error for error in errors if is_felt(error.finding.at))
    return WorkloadChange(workload.name, felt(gained), felt(lost), refused)


def _new_errors(plan: Plan, other: SchedulerTraits) -> tuple[Diagnostic, ...]:
    """The errors that the plan would have; which release of the other there would be is not known."""
    from gpuplan.compiler.checks import run

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
