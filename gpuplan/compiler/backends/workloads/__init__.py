"""The back end of the stage `workloads`: the work of teams, one folder for each namespace.

Each kind of work has a module with the objects that it is made of, and the places that these come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gpuplan.compiler.backends.workloads import job_sets, jobs, models, services, workspaces
from gpuplan.compiler.backends.workloads.bodies import Written
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import Plan, Stage, Workload
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import Batch, Inference, TrainingKind, Workspace


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield the objects of all workloads."""
    for workload in plan.workloads:
        folder = f"{Stage.WORKLOADS}/{workload.namespace}"
        subjects = about(workload)
        if plan.scheduler.preemptibility_label and workload.priority_class is not None:
            subjects += about(workload.priority_class)
        if len(pools := reach(plan, workload)) > 1:
            subjects += about(*pools, workload.tenant)
        for order, body, trace in objects(plan, workload):
            yield Manifest(folder, body, order=order, about=subjects, trace=trace)


def objects(plan: Plan, workload: Workload) -> Iterator[Written]:
    """Yield the objects of one workload, of kinds too that the cluster lacks."""
    yield from models.objects(plan, workload)
    match workload.work:
        case Inference() as work:
            yield from services.objects(plan, workload, work)
        case Batch() as work:
            match workload.training_kind:
                case TrainingKind.JOB:
                    yield from jobs.objects(plan, workload, work)
                case TrainingKind.JOB_SET:
                    yield from job_sets.objects(plan, workload, work)
                case TrainingKind.TRAIN_JOB:
                    yield from job_sets.train_job_objects(plan, workload, work)
                case unknown:
                    assert_never(unknown)
        case Workspace() as work:
            yield from workspaces.objects(plan, workload, work)
        case unknown:
            assert_never(unknown)
