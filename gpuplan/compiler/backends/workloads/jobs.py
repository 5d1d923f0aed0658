"""Jobs: work that ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import (
    AFTER,
    BEFORE,
    MAIN,
    TEMPLATE,
    Written,
    job_name,
    selector_of,
    workload_object,
)
from gpuplan.compiler.backends.workloads.peers import meeting_names, meeting_point, meeting_variables
from gpuplan.compiler.backends.workloads.pods import Variable, pod_template
from gpuplan.compiler.backends.workloads.terms import terms_of
from gpuplan.compiler.backends.workloads.tracing import Traces
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.policy.models import Batch, Peers


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """A Job, and where its pods find one another a Service before it."""
    of = Traces(plan, workload)
    job = _job(plan, workload, work)
    if workload.peers:
        yield BEFORE, _meeting(workload, workload.peers, job["metadata"]["name"]), partial(_meeting_routes, of, work)
    yield AFTER, job, partial(_job_routes, of, work)


def _job(plan: Plan, workload: Workload, batch: Batch) -> dict[str, Any]:
    """So many pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

    It stays when it has ended: were it deleted after a time, it would be missed and run again. Kueue takes no Job in
    that runs already (`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go` there), so that the labels
    are part of what the Job is.
    """
    asked = terms_of(plan, workload)
    content = {"labels": asked.labels, "spec": _spec(plan, workload, batch, "")}
    name = job_name(workload.name, content, batch.completions)
    spec = _spec(plan, workload, batch, name)
    return workload_object("batch/v1", "Job", name, workload, asked.labels, asked.annotations, spec=spec)


def _spec(plan: Plan, workload: Workload, batch: Batch, name: str) -> dict[str, Any]:
    """What the Job is; ``name`` is its own, which its pods know where they find one another."""
    subdomain = name if workload.peers else None
    return job_spec(
        plan,
        workload,
        batch,
        _tries(workload, batch),
        given(subdomain=subdomain),
        f"{name}-0.{name}",
        [EVICTED],
    )


EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


_WITH_THE_FIRST: Final = {"rules": [{"succeededIndexes": "0"}]}
"""Where pods come and go, those that never came are not waited for: the first one keeps what all meet at."""


def job_spec(
    plan: Plan,
    workload: Workload,
    batch: Batch,
    tries: Mapping[str, int],
    pod: Mapping[str, Any],
    first: str,
    evicted: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What a Job does, whoever makes it; ``first`` is the name by which its pods find the first one.

    ``evicted`` are the rules on pods that have to make way.
    """
    asked = terms_of(plan, workload)
    variables: dict[str, Variable] = {**asked.env, **meeting_point(workload, batch, first)}
    return {
        "parallelism": batch.pods,
        "completions": batch.completions,
        "completionMode": "Indexed",
        **tries,
        **({"successPolicy": _WITH_THE_FIRST} if workload.elastic else {}),
        **({"activeDeadlineSeconds": seconds(batch.deadline)} if batch.deadline else {}),
        "podFailurePolicy": {"rules": [*evicted, *_fatal(batch)]},
        "template": pod_template(plan, workload, asked, {"restartPolicy": "Never", **pod}, {}, variables),
    }


def _tries(workload: Workload, batch: Batch) -> dict[str, int]:
    """How often pods come again. Where each has tries of its own, they have none in common, unless somebody says so.

    Of a training that goes on with fewer each has as many as all have elsewhere: when the first one goes, and with it
    what they meet at, torchrun ends in all others with an error.
    """
    each = batch.backoff_limit_per_index
    if each is None and workload.elastic:
        return {"backoffLimitPerIndex": batch.backoff_limit}
    if each is None:
        return {"backoffLimit": batch.backoff_limit}
    common = {"backoffLimit": batch.backoff_limit} if "backoff_limit" in batch.model_fields_set else {}
    waits = workload.peers is not None and workload.elastic is None
    most = 0 if batch.max_failed_indexes is None and waits else batch.max_failed_indexes
    return {**common, "backoffLimitPerIndex": each, **({} if most is None else {"maxFailedIndexes": most})}


def _fatal(batch: Batch) -> list[dict[str, Any]]:
    """What a program says that will not end otherwise a second time.

    The codes have to be in order, each once (`validatePodFailurePolicyRuleOnExitCodes` in
    `pkg/apis/batch/validation/validation.go` of kubernetes/kubernetes). `FailIndex` needs tries of each pod.
    """
    codes = sorted(set(batch.fatal_exit_codes))
    if not codes:
        return []
    action = "FailIndex" if _fails_alone(batch) else "FailJob"
    return [{"action": action, "onExitCodes": {"containerName": MAIN, "operator": "In", "values": codes}}]


def _fails_alone(batch: Batch) -> bool:
    """Whether others go on when one pod has failed for good."""
    return batch.trials is not None and batch.backoff_limit_per_index is not None


# --- Pods that find one another ----------------------------------------------------------------------------------

_RENDEZVOUS: Final = "rendezvous"


def _meeting(workload: Workload, peers: Peers, job: str) -> dict[str, Any]:
    """A Service without an address of its own, so that the pod of an index is called `<job>-<index>.<job>`.

    It has the Job's name: no Service has to become another one when the Job does, and none is in the way where the
    workload was an inference service, whose address can never be taken away. Pods have their names before they are
    ready, since they look for one another as they start.
    """
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": selector_of(workload),
        "ports": [{"name": _RENDEZVOUS, "port": peers.port}],
    }
    return workload_object("v1", "Service", job, workload, spec=spec)


# --- Where it comes from -------------------------------------------------------------------------------------------


def _job_routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    content = _content(of, work)
    yield (), of.training_kind()
    yield from of.metadata(of.content_name(content))
    yield from content
    yield from of.asked((), asked.annotations)
    if of.workload.peers:
        name = (*of.content_name(content), *chosen(of.workload.work_at / "peers"))
        yield (*TEMPLATE, "spec", "subdomain"), name
        yield from meeting_names(of, work, (*TEMPLATE, "spec", "containers", 0, "env"), name)


def _meeting_routes(of: Traces, work: Batch) -> Routes:
    peers = of.workload.work_at / "peers"
    yield (), (*chosen(peers), *of.training_kind())
    yield from of.metadata(of.content_name(_content(of, work)))
    yield ("spec", "selector"), named(of.workload)
    yield ("spec", "ports", 0, "port"), copied(peers / "port")


def _content(of: Traces, work: Batch) -> list[tuple[Path, Links]]:
    at = of.workload.work_at
    tries = [
        (("spec", "backoffLimit"), copied(at / "backoffLimit")),
        (("spec", "backoffLimitPerIndex"), _tries_of_each(of, work)),
        (
            ("spec", "maxFailedIndexes"),
            (*copied(at / "maxFailedIndexes"), *(chosen(at / "peers") if of.workload.peers else ())),
        ),
    ]
    return [*of.asked(terms_of(of.plan, of.workload).labels, ()), *tries, *below(("spec",), job_spec_routes(of, work))]


def _tries_of_each(of: Traces, work: Batch) -> Links:
    at = of.workload.work_at
    if work.backoff_limit_per_index is None and of.workload.elastic:
        return (*copied(at / "backoffLimit"), *chosen(at / "elastic"))
    return copied(at / "backoffLimitPerIndex")


def job_spec_routes(of: Traces, work: Batch) -> Routes:
    """Where that of `job_spec` comes from which does not follow from a name."""
    at = of.workload.work_at
    yield ("parallelism",), copied(at / "pods")
    yield ("completions",), copied(at / ("pods" if work.trials is None else "trials"))
    yield ("activeDeadlineSeconds",), copied(at / "deadline")
    if of.workload.elastic:
        yield ("successPolicy",), chosen(at / "elastic")
    codes = work.fatal_exit_codes
    fatal = ("podFailurePolicy", "rules", 1)
    yield (*fatal, "action"), chosen(at / "trials", at / "backoffLimitPerIndex")
    for place, code in enumerate(sorted(set(codes))):
        yield (*fatal, "onExitCodes", "values", place), copied(at / "fatalExitCodes" / codes.index(code))
    yield from below(("template",), of.pod(variables=meeting_variables(of, work)))
