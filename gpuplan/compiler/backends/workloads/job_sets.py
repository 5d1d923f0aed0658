"""JobSets: work that ends, and whose pods start again together. Trainer makes one of a TrainJob."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import (
    AFTER,
    BEFORE,
    Written,
    job_name,
    labels_of,
    terms_of,
    workload_object,
)
from gpuplan.compiler.backends.workloads.jobs import job_spec, job_spec_routes, meeting_names
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Batch


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """Yield a JobSet of one Job. Its controller makes the Service by which pods find one another."""
    # What it is can be changed as little as a Job can (`ValidateUpdate` beside the other one).
    asked, api = terms_of(plan, workload), "jobset.x-k8s.io/v1alpha2"
    content = {"labels": asked.labels, "spec": _set_spec(plan, workload, work, "")}
    name = job_name(workload.name, content, work.completions, _AROUND)
    spec = _set_spec(plan, workload, work, name)
    body = workload_object(api, "JobSet", name, workload, asked.labels, asked.annotations, spec=spec)
    yield AFTER, body, partial(_routes, Traces(plan, workload), work)


_NODE: Final = "node"
"""The name of the only Job of a set in it, as Trainer's own runtimes have it."""

_AROUND: Final = f"-{_NODE}-0-abcde"
"""The part of a pod's longest name beside the set's name and the pod's index (`ValidateCreate` in
`pkg/webhooks/jobset_webhook.go` of JobSet)."""


def _set_spec(plan: Plan, workload: Workload, batch: Batch, name: str) -> dict[str, Any]:
    """Return the spec of a set called ``name``: one Job, which fails with its first pod and is then made again.

    The set has succeeded when its Job has.
    """
    first = f"{name}-{_NODE}-0-0.{name}"
    job = job_spec(plan, workload, batch, {"backoffLimit": 0}, {}, first, _evicted(batch))
    metadata = given(annotations=dict(terms_of(plan, workload).part_annotations))
    # Nothing starts a set again after a fatal exit or too much time; making way is none of the restarts that count.
    final = {"name": "final", "action": "FailJobSet", "onJobFailureReasons": list(_reasons(batch).values())}
    free = {"name": "evicted", "action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": [_POD_FAILURE]}
    rules = [*([final] if _reasons(batch) else ()), *([free] if _evicted(batch) else ())]
    return {
        "network": {"enableDNSHostnames": workload.peers is not None},
        "failurePolicy": {"maxRestarts": batch.backoff_limit, **given(rules=rules)},
        "replicatedJobs": [{"name": _NODE, "replicas": 1, "template": {**given(metadata=metadata), "spec": job}}],
    }


_POD_FAILURE: Final = "PodFailurePolicy"


def _evicted(batch: Batch) -> list[dict[str, Any]]:
    """Return the rule by which a pod that has to make way fails the Job, so that all start again.

    Made anew alone, it would wait for the others, and they for it, until their connections time out. Before JobSet
    v0.10 the reason of a Job's failure is not more than `PodFailurePolicy`, so that beside fatal exits it is a failure
    like others.
    """
    failing = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return [] if batch.fatal_exit_codes else [failing]


def _reasons(batch: Batch) -> dict[str, str]:
    """Return the reasons that the controller of Jobs gives for a failure, by the field that asks for them."""
    return {
        **({"deadline": "DeadlineExceeded"} if batch.deadline else {}),
        **({"fatalExitCodes": _POD_FAILURE} if batch.fatal_exit_codes else {}),
    }


# --- TrainJobs ---------------------------------------------------------------------------------------------------


def train_job_objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """Yield a TrainJob after its runtime, without which Trainer refuses it.

    The runtime is the training's own. What a TrainJob can patch of a runtime for all is neither the scheduler nor the
    priority class of its pods, and differs from one release of Trainer to the next (`PodSpecOverride` of v2.0,
    `PodTemplateOverride` of v2.1, `RuntimePatch` from v2.2 on, in `pkg/apis/trainer/v1alpha1/trainjob_types.go`).
    """
    of = Traces(plan, workload)
    asked = terms_of(plan, workload)
    content = {"labels": asked.labels, "annotations": asked.annotations, "spec": _set_spec(plan, workload, work, "")}
    name = job_name(workload.name, content, work.completions, _AROUND)
    # No Job has the label of a step that Trainer knows (`trainer.kubeflow.org/trainjob-ancestor-step`): of such one it
    # asks for a container called `node`, and else it takes the set as it is, with as many pods as its Job has at once
    # (`RuntimeInfo` in `pkg/runtime/core/trainingruntime.go`).
    metadata = given(labels=labels_of(workload), annotations=dict(asked.annotations))
    template = {"template": {"metadata": metadata, "spec": _set_spec(plan, workload, work, name)}}
    runtime = workload_object(_TRAINER, "TrainingRuntime", name, workload, spec=template)
    yield BEFORE, runtime, partial(_runtime_routes, of, work)
    reference = {"runtimeRef": {"apiGroup": _TRAINER.partition("/")[0], "kind": "TrainingRuntime", "name": name}}
    job = workload_object(_TRAINER, "TrainJob", name, workload, asked.labels, asked.annotations, spec=reference)
    yield AFTER, job, partial(_train_job_routes, of, work)


_TRAINER: Final = "trainer.kubeflow.org/v1alpha1"


# --- Where it comes from -------------------------------------------------------------------------------------------


_JOB: Final = ("replicatedJobs", 0, "template")


def _routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    content = [*of.asked(asked.labels, ()), *below(("spec",), _set_routes(of, work))]
    name = of.content_name(content)
    yield (), of.training_kind()
    yield from of.metadata(name)
    yield from content
    yield from of.asked((), asked.annotations)
    yield from below(("spec",), _set_name_routes(of, work, name))


def _set_routes(of: Traces, work: Batch) -> Routes:
    """Yield the routes of that part of `set_spec` which does not follow from its name."""
    at = of.workload.work_at
    yield ("network", "enableDNSHostnames"), chosen(at / "peers")
    yield ("failurePolicy", "maxRestarts"), copied(at / "backoffLimit")
    for index, field in enumerate(_reasons(work)):
        yield ("failurePolicy", "rules", 0, "onJobFailureReasons", index), chosen(at / field)
    yield ("failurePolicy", "rules"), chosen(at / "deadline", at / "fatalExitCodes")
    yield (*_JOB, "spec", "podFailurePolicy", "rules"), chosen(at / "fatalExitCodes")
    yield from below(_JOB, of.asked((), terms_of(of.plan, of.workload).part_annotations))
    yield from below((*_JOB, "spec"), job_spec_routes(of, work))


def _set_name_routes(of: Traces, work: Batch, name: Links) -> Routes:
    """Yield the routes of the variables in which the set's name stands."""
    env = (*_JOB, "spec", "template", "spec", "containers", 0, "env")
    yield from meeting_names(of, work, env, (*name, *chosen(of.workload.work_at / "peers")))


def _runtime_routes(of: Traces, work: Batch) -> Routes:
    name = _name_links(of, work)
    template = ("spec", "template")
    yield (), of.training_kind()
    yield from of.metadata(name)
    yield from below(template, of.labels())
    yield from below(template, of.asked((), terms_of(of.plan, of.workload).annotations))
    yield from below((*template, "spec"), _set_routes(of, work))
    yield from below((*template, "spec"), _set_name_routes(of, work, name))


def _train_job_routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    yield (), of.training_kind()
    yield from of.metadata(_name_links(of, work))
    yield from of.asked(asked.labels, asked.annotations)
    yield ("spec", "runtimeRef", "name"), _name_links(of, work)


def _name_links(of: Traces, work: Batch) -> Links:
    asked = terms_of(of.plan, of.workload)
    return of.content_name([*of.asked(asked.labels, asked.annotations), *_set_routes(of, work)])
