"""Checks on what a training is and who runs it (GPU558-563)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.frameworks import frameworks
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label
from gpuplan.planning.kueue import frameworks as known_to_kueue
from gpuplan.planning.plan import Plan, Workload
from gpuplan.policy.models import Api, Training, TrainingKind


def _sets(plan: Plan) -> Iterator[tuple[Workload, Training]]:
    """The trainings that are more than a Job."""
    for workload in plan.workloads:
        if isinstance(workload.work, Training) and workload.training_kind is not TrainingKind.JOB:
            yield workload, workload.work


@check("GPU558", "kind-without-controller")
def kind_without_controller(plan: Plan) -> Iterator[Finding]:
    """A training is of a kind that the cluster is not said to have.

    ## Why
    The API server refuses objects of a kind that nobody has installed, and Argo CD and Flux stop at the folder. Where
    the definition is there and its controller is not, nothing ever starts.

    ## Instead
    Install JobSet or Kubeflow Trainer, which brings JobSet with it, and write it into the cluster's `apis`. A plain Job
    needs neither: leave `kind` out.
    """
    apis = plan.cluster.spec.apis
    for workload, work in _sets(plan):
        if (needed := Api(work.kind.value)) not in apis:
            yield Finding(
                workload.work_at / "kind",
                f"`{workload.name}` is a {needed}, and cluster `{plan.cluster.name}` is not said to have any",
                label="not among the cluster's `apis`",
                help=f"write `apis: [{', '.join(sorted([*apis, needed]))}]` in the cluster, or leave `kind` out",
            )


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


@check("GPU562", "training-unknown-to-kueue")
def training_unknown_to_kueue(plan: Plan) -> Iterator[Finding]:
    """A training is of a kind that Kueue could admit as a whole, and it is not told so.

    ## Why
    Kueue then finds the Jobs that are made of it, or their pods, and queues those one by one: the label that names the
    queue is on the whole, which it does not look at.

    ## Instead
    Add the kind to `scheduler.kueue.frameworks`, and merge the Configuration that gpuplan writes into Kueue's own.
    """
    known = {found.kind for found in known_to_kueue(plan.cluster)}
    told = plan.cluster.scheduler.spec.kueue
    for workload, work in _sets(plan) if plan.scheduler.suspends_jobs else ():
        if work.kind.value not in known:
            kinds = sorted([*(told.frameworks if told else ()), work.kind.value])
            yield Finding(
                workload.work_at / "kind",
                f"`{workload.name}` is a {work.kind}, which Kueue is not told of",
                label="queued in parts",
                notes=(f"Kueue calls it `{frameworks()[work.kind.value].integration}`",),
                help=f"write `kueue: {{frameworks: [{', '.join(kinds)}]}}` in the cluster's `scheduler`",
            )
