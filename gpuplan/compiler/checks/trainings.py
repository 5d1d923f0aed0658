"""Checks on what a training is and how it runs (GPU559-563)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Training, TrainingKind


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
    its own, trials that have ended would run once more, and nobody goes on without one that has left. Trainer has no
    elastic training either (`EnforceMLPolicy` in `pkg/runtime/framework/plugins/torch/torch.go` of v2.3.0).

    ## Instead
    Leave `kind` out, or what only a Job does.
    """
    for workload, work in _sets(plan):
        asked = {
            "trials": work.trials,
            "backoffLimitPerIndex": work.backoff_limit_per_index,
            "maxFailedIndexes": work.max_failed_indexes,
            "elastic": work.elastic,
        }
        for field in (name for name, value in asked.items() if value is not None):
            yield Finding(
                (workload.work_at / field).key,
                f"pods of `{workload.name}` start again together, and `{field}` is about each by itself",
                label=f"a {work.kind} does not know it",
                related=(Label(workload.work_at / "kind", f"a {work.kind}"),),
                help=f"leave `{field}` out, or `kind`",
            )


_SUCCESS_BY_ONE = (1, 31)
"""The release from which on `JobSuccessPolicy` is on by default."""


@check("GPU563", "elastic-contradicts-itself")
def elastic_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """A training is to go on with fewer pods, and something else that it says does not allow that.

    ## Why
    Pods that come and go agree on who is there (torchrun's `--nnodes=2:4`), so they have to find one another, and run
    all at once. Those that start together are `minPods` of them. The job has succeeded when its first pod has, for
    others may never have come: that is a Job's `successPolicy`, which Kubernetes before 1.31 drops without a word,
    unless a feature gate is on (`JobSuccessPolicy` in `pkg/features/kube_features.go` of kubernetes/kubernetes).

    ## Instead
    Write `peers: {}` beside `elastic`, and leave `gang` and `trials` out.
    """
    version = plan.cluster.spec.kubernetes
    is_old = (parse_version(version) or _SUCCESS_BY_ONE) < _SUCCESS_BY_ONE
    for workload in plan.workloads:
        work, at = workload.work, workload.work_at
        if not isinstance(work, Training) or work.elastic is None:
            continue
        name, fewest, here = workload.name, work.elastic.min_pods, (at / "elastic").key
        if fewest > work.pods:
            yield Finding(
                at / "elastic" / "minPods",
                f"`{name}` goes on with {fewest} pods, and has {work.pods}",
                label=f"{work.pods} at most",
                related=(Label(at / "pods", "the most"),),
                help=f"write `minPods: {work.pods}` or less",
            )
        if work.peers is None:
            yield Finding(
                here,
                f"pods of `{name}` come and go, and do not find one another",
                label="nobody knows who is there",
                help="write `peers: {}` beside it",
            )
        for field in (field for field, value in (("gang", work.gang), ("trials", work.trials)) if value is not None):
            yield Finding(
                at / field,
                f"pods of `{name}` come and go, and it has `{field}`",
                label="`minPods` start together" if field == "gang" else "one after the other",
                related=(Label(here, f"{fewest} to {work.pods} pods"),),
                help=f"leave `{field}` out, or `elastic`",
            )
        if is_old:
            yield Finding(
                here,
                f"Kubernetes {version} waits for pods of `{name}` that never come",
                label="`successPolicy` is dropped before 1.31",
                related=(Label(plan.cluster.at / "kubernetes", "the cluster's version"),),
                help="upgrade the cluster to 1.31 or later, or leave `elastic` out",
            )
