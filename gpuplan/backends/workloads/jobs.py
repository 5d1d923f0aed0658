"""Jobs: work that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpuplan.backends.workloads.bodies import (
    AFTER,
    BEFORE,
    MAIN,
    TEMPLATE,
    Written,
    job_name,
    selector_of,
    workload_object,
)
from gpuplan.backends.workloads.pods import Variable, pod_template
from gpuplan.backends.workloads.terms import terms_of
from gpuplan.backends.workloads.tracing import NO_VARIABLES, Several, Traces
from gpuplan.diagnostics import Path
from gpuplan.manifests.bodies import given
from gpuplan.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.planning.plan import Isolation, Plan, Workload
from gpuplan.planning.projects import seconds
from gpuplan.planning.sources import asked_by, named
from gpuplan.policy.models import Batch, Peers


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """A Job, and where its pods find one another a Service before it."""
    of = Traces(plan, workload)
    job = _job(plan, workload, work)
    if workload.peers:
        yield BEFORE, _meeting(workload, workload.peers, job["metadata"]["name"]), partial(_meeting_routes, of, work)
    yield AFTER, job, partial(_job_routes, of, work)


EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


def _job(plan: Plan, workload: Workload, batch: Batch) -> dict[str, Any]:
    """So many pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

    It stays when it has ended: were it deleted after a time, it would be missed and run again. Kueue takes no Job in
    that runs already (`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go` there), so that the labels
    are part of what the Job is.
    """
    asked = terms_of(plan, workload)
    content = {"labels": asked.labels, "spec": _job_spec(plan, workload, batch, "")}
    name = job_name(workload.name, content, batch.completions)
    spec = _job_spec(plan, workload, batch, name)
    return workload_object("batch/v1", "Job", name, workload, asked.labels, asked.annotations, spec=spec)


def _job_spec(plan: Plan, workload: Workload, batch: Batch, name: str) -> dict[str, Any]:
    """What the Job is; ``name`` is its own, which its pods know where they find one another."""
    asked = terms_of(plan, workload)
    pod = given(restartPolicy="Never", subdomain=name if workload.peers else None)
    variables = {**asked.env, **_meeting_point(workload, batch, name)}
    return {
        "parallelism": batch.pods,
        "completions": batch.completions,
        "completionMode": "Indexed",
        **_tries(batch, has_peers=workload.peers is not None),
        **({"activeDeadlineSeconds": seconds(batch.deadline)} if batch.deadline else {}),
        "podFailurePolicy": {"rules": [EVICTED, *_fatal(batch)]},
        "template": pod_template(plan, workload, asked, pod, {}, variables),
    }


def _tries(batch: Batch, *, has_peers: bool) -> dict[str, int]:
    """How often pods come again. Where each has tries of its own, they have none in common, unless somebody says so."""
    each = batch.backoff_limit_per_index
    if each is None:
        return {"backoffLimit": batch.backoff_limit}
    common = {"backoffLimit": batch.backoff_limit} if "backoff_limit" in batch.model_fields_set else {}
    most = 0 if batch.max_failed_indexes is None and has_peers else batch.max_failed_indexes
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

_INDEX: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""Which pod of its Job it is; `$(JOB_COMPLETION_INDEX)` is that of no other variable, for the controller adds it last
(`addCompletionIndexEnvVariable` in `pkg/controller/job/indexed_job_utils.go` of kubernetes/kubernetes)."""


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


def _meeting_point(workload: Workload, batch: Batch, job: str) -> dict[str, Variable]:
    """The variables of a pod that finds others.

    torchrun reads those that begin with `PET_` in place of its arguments (`torch/distributed/argparse_util.py` of
    PyTorch), and sets the other four for each process that it starts. A program that is started without it reads them
    as they are: it is one process in each pod.
    """
    if workload.peers is None:
        return {}
    first, port, pods = f"{job}-0.{job}", str(workload.peers.port), str(batch.pods)
    return {
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
        "WORLD_SIZE": pods,
        "RANK": _INDEX,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": port,
        "PET_NNODES": pods,
        "PET_NODE_RANK": _INDEX,
        "PET_NPROC_PER_NODE": str(_processes(workload)),
    }


def _processes(workload: Workload) -> int:
    """One for each GPU of a pod. Of several MIG devices a process of CUDA sees the first one only."""
    is_whole = workload.unit.isolation is Isolation.WHOLE_GPU and workload.fraction is None
    return workload.spec.count if is_whole else 1


# --- Where it comes from -------------------------------------------------------------------------------------------


def _job_routes(of: Traces, work: Batch) -> Routes:
    asked = terms_of(of.plan, of.workload)
    content = _job_content(of, work)
    yield from of.metadata(of.content_name(content))
    yield from content
    yield from of.asked((), asked.annotations)
    if of.workload.peers:
        name = (*of.content_name(content), *chosen(of.workload.work_at / "peers"))
        yield (*TEMPLATE, "spec", "subdomain"), name
        for index, variable in enumerate(of.variables(_MEETING)):
            if variable in _FIRST and variable not in of.workload.spec.env:
                yield (*TEMPLATE, "spec", "containers", 0, "env", index, "value"), name


def _meeting_routes(of: Traces, work: Batch) -> Routes:
    peers = of.workload.work_at / "peers"
    yield (), chosen(peers)
    yield from of.metadata(of.content_name(_job_content(of, work)))
    yield ("spec", "selector"), named(of.workload)
    yield ("spec", "ports", 0, "port"), copied(peers / "port")


def _job_content(of: Traces, work: Batch) -> list[tuple[Path, Links]]:
    return [*of.asked(terms_of(of.plan, of.workload).labels, ()), *_training(of, work)]


def _training(of: Traces, work: Batch) -> Routes:
    at = of.workload.work_at
    yield ("spec", "parallelism"), copied(at / "pods")
    yield ("spec", "completions"), copied(at / ("pods" if work.trials is None else "trials"))
    yield ("spec", "backoffLimit"), copied(at / "backoffLimit")
    yield ("spec", "backoffLimitPerIndex"), copied(at / "backoffLimitPerIndex")
    yield (
        ("spec", "maxFailedIndexes"),
        (*copied(at / "maxFailedIndexes"), *(chosen(at / "peers") if of.workload.peers else ())),
    )
    yield ("spec", "activeDeadlineSeconds"), copied(at / "deadline")
    codes = work.fatal_exit_codes
    fatal = ("spec", "podFailurePolicy", "rules", 1)
    yield (*fatal, "action"), chosen(at / "trials", at / "backoffLimitPerIndex")
    for place, code in enumerate(sorted(set(codes))):
        yield (*fatal, "onExitCodes", "values", place), copied(at / "fatalExitCodes" / codes.index(code))
    yield from below(TEMPLATE, of.pod(variables=_meeting_variables(of) if of.workload.peers else NO_VARIABLES))


def _meeting_variables(of: Traces) -> dict[str, Several]:
    peers = chosen(of.workload.work_at / "peers")
    return {name: [((), peers), (("value",), links(of))] for name, links in _MEETING.items()}


def _port_from(of: Traces) -> Links:
    return copied(of.workload.work_at / "peers" / "port")


def _pods_from(of: Traces) -> Links:
    return copied(of.workload.work_at / "pods")


def _processes_from(of: Traces) -> Links:
    return (*copied(of.workload.at / "count"), *asked_by(of.plan, of.workload))


_MEETING: Final[Mapping[str, Callable[[Traces], Links]]] = {
    "MASTER_ADDR": lambda _: (),
    "MASTER_PORT": _port_from,
    "WORLD_SIZE": _pods_from,
    "RANK": lambda _: (),
    "PET_MASTER_ADDR": lambda _: (),
    "PET_MASTER_PORT": _port_from,
    "PET_NNODES": _pods_from,
    "PET_NODE_RANK": lambda _: (),
    "PET_NPROC_PER_NODE": _processes_from,
}
"""What each variable of `_meeting_point` says; where the first pod is follows from all that the Job is."""

_FIRST: Final = ("MASTER_ADDR", "PET_MASTER_ADDR")
