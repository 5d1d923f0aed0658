"""TrainJobs of Kubeflow Trainer: a JobSet that Trainer makes of a runtime."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import AFTER, BEFORE, Written, labels_of, workload_object
from gpuplan.compiler.backends.workloads.job_sets import set_name, set_name_routes, set_routes, set_spec
from gpuplan.compiler.backends.workloads.terms import terms_of
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, below
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Batch


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """A TrainJob after its runtime, without which Trainer refuses it.

    The runtime is the training's own. What a TrainJob can patch of a runtime for all is neither the scheduler nor the
    priority class of its pods, and differs from one release of Trainer to the next (`PodSpecOverride` of v2.0,
    `PodTemplateOverride` of v2.1, `RuntimePatch` from v2.2 on, in `pkg/apis/trainer/v1alpha1/trainjob_types.go`).
    """
    of = Traces(plan, workload)
    name = _name(plan, workload, work)
    yield BEFORE, _runtime(plan, workload, work, name), partial(_runtime_routes, of, work)
    yield AFTER, _train_job(plan, workload, name), partial(_train_job_routes, of, work)


_API: Final = "trainer.kubeflow.org/v1alpha1"


def _name(plan: Plan, workload: Workload, batch: Batch) -> str:
    """That of both, and of the JobSet."""
    asked = terms_of(plan, workload)
    content = {
        "labels": asked.labels,
        "annotations": asked.annotations,
        "spec": set_spec(plan, workload, batch, ""),
    }
    return set_name(workload, batch, content)


def _runtime(plan: Plan, workload: Workload, batch: Batch, name: str) -> dict[str, Any]:
    """All that the TrainJob is.

    No Job of it has the label of a step that Trainer knows (`trainer.kubeflow.org/trainjob-ancestor-step`): of such one
    it asks for a container called `node`, and else it takes the set as it is, with as many pods as its Job has at once
    (`RuntimeInfo` in `pkg/runtime/core/trainingruntime.go`).
    """
    metadata = given(labels=labels_of(workload), annotations=dict(terms_of(plan, workload).annotations))
    spec = {"template": {"metadata": metadata, "spec": set_spec(plan, workload, batch, name)}}
    return workload_object(_API, "TrainingRuntime", name, workload, spec=spec)


def _train_job(plan: Plan, workload: Workload, name: str) -> dict[str, Any]:
    asked = terms_of(plan, workload)
    reference = {"apiGroup": _API.partition("/")[0], "kind": "TrainingRuntime", "name": name}
    spec = {"runtimeRef": reference}
    return workload_object(_API, "TrainJob", name, workload, asked.labels, asked.annotations, spec=spec)


# --- Where it comes from -------------------------------------------------------------------------------------------


def _runtime_routes(of: Traces, work: Batch) -> Routes:
    name = _name_links(of, work)
    template = ("spec", "template")
    yield (), of.training_kind()
    yield from of.metadata(name)
    yield from below(template, of.labels())
    yield from below(template, of.asked((), terms_of(of.plan, of.workload).annotations))
    yield from below((*template, "spec"), set_routes(of, work))
    yield from below((*template, "spec"), set_name_routes(of, work, name))


def _train_job_routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    yield (), of.training_kind()
    yield from of.metadata(_name_links(of, work))
    yield from of.asked(asked.labels, asked.annotations)
    yield ("spec", "runtimeRef", "name"), _name_links(of, work)


def _name_links(of: Traces, work: Batch) -> Links:
    asked = terms_of(of.plan, of.workload)
    return of.content_name([*of.asked(asked.labels, asked.annotations), *set_routes(of, work)])
