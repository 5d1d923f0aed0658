"""Checks on what a training is and how it runs (GPU559-563)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label
from gpuplan.planning.plan import Plan, Workload
from gpuplan.policy.models import Training, TrainingKind


def _sets(plan: Plan) -> Iterator[tuple[Workload, Training]]:
    """The trainings that are more than a Job."""
    for workload in plan.workloads:
        if isinstance(workload.work, Training) and workload.training_kind is not TrainingKind.JOB:
            yield workload, workload.work


@check("GPU559", "not-by-this-kind")
def not_by_this_kind(plan: Plan) -> Iterator[Finding]:
    """A training asks for something that only a plain Job does.

    ## Why
    All pods of a JobSet or a TrainJob start again when one has failed (`failurePolicy.maxRestarts`): none has tries of
    its own, and trials that have ended would run once more.

    ## Instead
    Leave `kind` out, or what only a Job does.
    """
    for workload, work in _sets(plan):
        asked = {
            "trials": work.trials,
            "backoffLimitPerIndex": work.backoff_limit_per_index,
            "maxFailedIndexes": work.max_failed_indexes,
        }
        for field in (name for name, value in asked.items() if value is not None):
            yield Finding(
                workload.work_at / field,
                f"pods of `{workload.name}` start again together, and `{field}` is about each by itself",
                label=f"a {work.kind} does not know it",
                related=(Label(workload.work_at / "kind", f"a {work.kind}"),),
                help=f"leave `{field}` out, or `kind`",
            )
