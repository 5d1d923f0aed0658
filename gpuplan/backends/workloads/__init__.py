"""The back end of the stage `workloads`: what teams run, one folder for each namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.workloads.inference import autoscaler, deployment, service
from gpuplan.backends.workloads.model import claim, download_job
from gpuplan.backends.workloads.pods import config_map
from gpuplan.backends.workloads.training import job
from gpuplan.manifests import Manifest, Subject
from gpuplan.planning.plan import Plan, Stage, Workload
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Inference

_BEFORE, _AFTER = 0, 1
"""What pods need, and what runs them. Whoever waits until what comes first is healthy waits for downloads and for no
service or training. A volume without a download may wait for its first pod, so it comes with the pods."""


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of all workloads."""
    for workload in plan.workloads:
        folder = f"{Stage.WORKLOADS}/{workload.namespace}"
        subjects = (*about(workload), *_classes(plan, workload))
        for order, body in _objects(plan, workload):
            yield Manifest(folder, body, order=order, about=subjects)


def _classes(plan: Plan, workload: Workload) -> tuple[Subject, ...]:
    """The class, where a label of the work says whether it may be evicted."""
    named = workload.priority_class
    return about(named) if plan.scheduler.labels_preemptible and named is not None else ()


def _objects(plan: Plan, workload: Workload) -> Iterator[tuple[int, dict[str, Any]]]:
    if workload.spec.config:
        yield _BEFORE, config_map(workload)
    if workload.spec.model:
        yield _BEFORE if workload.spec.model.download else _AFTER, claim(workload, workload.spec.model)
        if workload.spec.model.download:
            yield _BEFORE, download_job(workload, workload.spec.model.download)
    if isinstance(workload.work, Inference):
        yield _AFTER, deployment(plan, workload, workload.work)
        yield _AFTER, service(workload, workload.work)
        if workload.work.autoscaling:
            yield _AFTER, autoscaler(workload, workload.work.autoscaling)
    else:
        yield _AFTER, job(plan, workload, workload.work)
