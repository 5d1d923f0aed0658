"""The back end of the stage `workloads`: what teams run, one folder for each namespace.

Each kind of work has a module with the objects that it is made of, and the places that these come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from gpuplan.compiler.backends.workloads import job_sets, jobs, models, services, train_jobs, workspaces
from gpuplan.compiler.backends.workloads.bodies import Written
from gpuplan.compiler.manifests import Manifest, Subject
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.plan import Plan, Stage, Workload
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.policy.models import Batch, Inference, TrainingKind, Workspace


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of all workloads."""
    for workload in plan.workloads:
        folder = f"{Stage.WORKLOADS}/{workload.namespace}"
        subjects = (*about(workload), *_classes(plan, workload), *_fallbacks(plan, workload))
        for order, body, trace in objects(plan, workload):
            yield Manifest(folder, body, order=order, about=subjects, trace=trace)


def _classes(plan: Plan, workload: Workload) -> tuple[Subject, ...]:
    """The class, where a label of the work says whether it may be evicted."""
    named = workload.priority_class
    return about(named) if plan.scheduler.preemptibility_label and named is not None else ()


def _fallbacks(plan: Plan, workload: Workload) -> tuple[Subject, ...]:
    """What decides where the work may go beside its own pool, where it may."""
    pools = reach(plan, workload)
    return about(*pools, workload.tenant) if len(pools) > 1 else ()


def objects(plan: Plan, workload: Workload) -> Iterator[Written]:
    """Those of one workload, of kinds too that the cluster lacks."""
    yield from models.objects(plan, workload)
    match workload.work:
        case Inference() as work:
            yield from services.objects(plan, workload, work)
        case Batch() as work:
            yield from _ending(plan, workload, work)
        case Workspace() as work:
            yield from workspaces.objects(plan, workload, work)
        case unknown:
            assert_never(unknown)


def _ending(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    match workload.training_kind:
        case TrainingKind.JOB:
            yield from jobs.objects(plan, workload, work)
        case TrainingKind.JOB_SET:
            yield from job_sets.objects(plan, workload, work)
        case TrainingKind.TRAIN_JOB:
            yield from train_jobs.objects(plan, workload, work)
        case unknown:
            assert_never(unknown)
