"""JobSets: work that ends, and whose pods start again together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import AFTER, Written, job_name, workload_object
from gpuplan.compiler.backends.workloads.jobs import job_spec, job_spec_routes
from gpuplan.compiler.backends.workloads.peers import meeting_names
from gpuplan.compiler.backends.workloads.terms import terms_of
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Batch


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """A JobSet of one Job. Its controller makes the Service by which pods find one another."""
    yield AFTER, _job_set(plan, workload, work), partial(_routes, Traces(plan, workload), work)


_NODE: Final = "node"
"""What the only Job of a set is called in it, as Trainer's own runtimes have it."""

_AROUND: Final = f"-{_NODE}-0-abcde"
"""What the longest name of a pod has beside the set's name and the pod's index (`ValidateCreate` in
`pkg/webhooks/jobset_webhook.go` of JobSet)."""


def _job_set(plan: Plan, workload: Workload, batch: Batch) -> dict[str, Any]:
    """What it is can be changed as little as a Job can (`ValidateUpdate` beside the other one)."""
    asked = terms_of(plan, workload)
    content = {"labels": asked.labels, "spec": set_spec(plan, workload, batch, "")}
    name = set_name(workload, batch, content)
    spec = set_spec(plan, workload, batch, name)
    api = "jobset.x-k8s.io/v1alpha2"
    return workload_object(api, "JobSet", name, workload, asked.labels, asked.annotations, spec=spec)


def set_name(workload: Workload, batch: Batch, content: Mapping[str, Any]) -> str:
    """The name of a set with this content."""
    return job_name(workload.name, content, batch.completions, _AROUND)


def set_spec(plan: Plan, workload: Workload, batch: Batch, name: str) -> dict[str, Any]:
    """What a set called ``name`` is: one Job, which fails with its first pod and is then made again.

    The set has succeeded when its Job has.
    """
    first = f"{name}-{_NODE}-0-0.{name}"
    job = job_spec(plan, workload, batch, {"backoffLimit": 0}, {}, first, _evicted(batch))
    metadata = given(annotations=dict(terms_of(plan, workload).part_annotations))
    return {
        "network": {"enableDNSHostnames": workload.peers is not None},
        "failurePolicy": {"maxRestarts": batch.backoff_limit, **given(rules=[*_final(batch), *_free(batch)])},
        "replicatedJobs": [{"name": _NODE, "replicas": 1, "template": {**given(metadata=metadata), "spec": job}}],
    }


def _final(batch: Batch) -> list[dict[str, Any]]:
    """After what nothing starts again: a fatal exit, or too much time."""
    reasons = list(_reasons(batch).values())
    return [{"name": "final", "action": "FailJobSet", "onJobFailureReasons": reasons}] if reasons else []


def _evicted(batch: Batch) -> list[dict[str, Any]]:
    """A pod that has to make way fails the Job, so that all start again: made anew alone, it would wait for the others,
    and they for it, until their connections time out.

    Why a Job has failed is not told in more words than `PodFailurePolicy` before JobSet v0.10, so that beside fatal
    exits it is a failure like others.
    """
    failing = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return [] if batch.fatal_exit_codes else [failing]


def _free(batch: Batch) -> list[dict[str, Any]]:
    """Making way is none of the restarts that are counted."""
    if not _evicted(batch):
        return []
    action = "RestartJobSetAndIgnoreMaxRestarts"
    return [{"name": "evicted", "action": action, "onJobFailureReasons": ["PodFailurePolicy"]}]


def _reasons(batch: Batch) -> dict[str, str]:
    """For what the controller of Jobs says that one has failed, by the field that asks for it."""
    return {
        **({"deadline": "DeadlineExceeded"} if batch.deadline else {}),
        **({"fatalExitCodes": "PodFailurePolicy"} if batch.fatal_exit_codes else {}),
    }


# --- Where it comes from -------------------------------------------------------------------------------------------

_JOB: Final = ("replicatedJobs", 0, "template")


def _routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    content = [*of.asked(asked.labels, ()), *below(("spec",), set_routes(of, work))]
    name = of.content_name(content)
    yield (), of.training_kind()
    yield from of.metadata(name)
    yield from content
    yield from of.asked((), asked.annotations)
    yield from below(("spec",), set_name_routes(of, work, name))


def set_routes(of: Traces, work: Batch) -> Routes:
    """Where that of `set_spec` comes from which does not follow from its name."""
    at = of.workload.work_at
    yield ("network", "enableDNSHostnames"), chosen(at / "peers")
    yield ("failurePolicy", "maxRestarts"), copied(at / "backoffLimit")
    for index, field in enumerate(_reasons(work)):
        yield ("failurePolicy", "rules", 0, "onJobFailureReasons", index), chosen(at / field)
    yield ("failurePolicy", "rules"), chosen(at / "deadline", at / "fatalExitCodes")
    yield (*_JOB, "spec", "podFailurePolicy", "rules"), chosen(at / "fatalExitCodes")
    yield from below(_JOB, of.asked((), terms_of(of.plan, of.workload).part_annotations))
    yield from below((*_JOB, "spec"), job_spec_routes(of, work))


def set_name_routes(of: Traces, work: Batch, name: Links) -> Routes:
    """The variables in which the set's name stands."""
    env = (*_JOB, "spec", "template", "spec", "containers", 0, "env")
    yield from meeting_names(of, work, env, (*name, *chosen(of.workload.work_at / "peers")))
