"""Compare what a plan's scheduler keeps with what another one would."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.schedulers import Concept, Needs, concepts
from gpuplan.compiler.checks import run
from gpuplan.compiler.checks.losses import Use, losses, uses
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.schedulers import SchedulerTraits


class ConceptChange(NamedTuple):
    """A concept of the capability matrix, and the places in the policy that it is about."""

    concept: Concept
    places: tuple[Use, ...]


class WorkloadChange(NamedTuple):
    """The concepts that a workload gains and loses, and its errors: by itself, its class, pools and quota."""

    name: str
    gained: tuple[Concept, ...]
    lost: tuple[Concept, ...]
    errors: tuple[Diagnostic, ...]


class SchedulerComparison(Value):
    """The concepts that the policy of one cluster asks for, by what becomes of them.

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
    """Compare the cluster's present scheduler with another, for this very policy."""
    ids = [concept.id for concept in concepts()]
    present = plan.scheduler
    before, after = ({name: losses(plan, name, traits) for name in ids} for traits in (present, other))

    def changes(places: Callable[[str], tuple[Use, ...]]) -> tuple[ConceptChange, ...]:
        listed = (ConceptChange(concept, places(concept.id)) for concept in concepts())
        return tuple(change for change in listed if change.places)

    gained = changes(lambda name: _without(before[name], after[name]))
    lost = changes(lambda name: _without(after[name], before[name]))
    # Nobody knows which release of the other scheduler there would be.
    is_same = other is plan.cluster.scheduler.traits
    known = frozenset() if is_same else frozenset(map(_identity, run(plan)))
    with_other = () if is_same else run(plan.under(other))
    errors = tuple(each for each in with_other if each.is_error and _identity(each) not in known)

    def of_workload(workload: Workload) -> WorkloadChange:
        parts = (workload, *reach(plan, workload), *((workload.priority_class,) if workload.priority_class else ()))
        sources = {id(part.at.source) for part in parts}
        quota = plan.tree.find_quota(workload.tenant, workload.key)

        def is_felt(at: Origin) -> bool:
            if quota is not None and quota.at.source is at.source and at.path[: len(quota.at.path)] == quota.at.path:
                return True
            return id(at.source) in sources

        def felt(changed: tuple[ConceptChange, ...]) -> tuple[Concept, ...]:
            return tuple(change.concept for change in changed if any(is_felt(use.at) for use in change.places))

        refused = tuple(error for error in errors if is_felt(error.finding.at))
        return WorkloadChange(workload.name, felt(gained), felt(lost), refused)

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
        workloads=tuple(map(of_workload, plan.workloads)),
    )


def _identity(diagnostic: Diagnostic) -> tuple[str, str, int, tuple[str | int, ...]]:
    finding = diagnostic.finding
    return diagnostic.code, finding.message, id(finding.at.source), finding.at.path


def _without(places: tuple[Use, ...], others: tuple[Use, ...]) -> tuple[Use, ...]:
    """Return the places that are not among the others, whatever is said there."""
    known = {(id(use.at.source), use.at.path) for use in others}
    return tuple(use for use in places if (id(use.at.source), use.at.path) not in known)
