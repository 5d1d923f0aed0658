"""Jobs: work that ends, and the variables by which the pods of a training find one another."""

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
    terms_of,
    workload_object,
)
from gpuplan.compiler.backends.workloads.pods import Variable, pod_template
from gpuplan.compiler.backends.workloads.tracing import NO_VARIABLES, Several, Traces
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied
from gpuplan.compiler.planning.plan import Isolation, Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.sources import asked_by, named
from gpuplan.compiler.policy.models import Batch, Peers


def objects(plan: Plan, workload: Workload, work: Batch) -> Iterator[Written]:
    """Yield a Job, and a Service before it if its pods find one another."""
    of = Traces(plan, workload)
    job = _job(plan, workload, work)
    if workload.peers:
        yield BEFORE, _meeting(workload, workload.peers, job["metadata"]["name"]), partial(_meeting_routes, of, work)
    yield AFTER, job, partial(_job_routes, of, work)


def _job(plan: Plan, workload: Workload, batch: Batch) -> dict[str, Any]:
    """Return so many pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

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
    """Return the Job's spec; ``name`` is its own, which its pods know if they find one another."""
    subdomain = name if workload.peers else None
    return job_spec(
        plan, workload, batch, _tries(workload, batch), given(subdomain=subdomain), f"{name}-0.{name}", [EVICTED]
    )


EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


_WITH_THE_FIRST: Final = {"rules": [{"succeededIndexes": "0"}]}
"""The policy that does not wait for pods which never came: the first one keeps what all meet at."""


def job_spec(
    plan: Plan,
    workload: Workload,
    batch: Batch,
    tries: Mapping[str, int],
    pod: Mapping[str, Any],
    first: str,
    evicted: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the spec of a Job, whoever makes it; ``first`` is the name by which its pods find the first one.

    ``evicted`` are the rules on pods that have to make way.
    """
    asked = terms_of(plan, workload)
    variables: dict[str, Variable] = {**asked.env, **meeting_point(workload, batch, first)}
    fatal = []
    # The codes have to be in order, each once (`validatePodFailurePolicyRuleOnExitCodes` in
    # `pkg/apis/batch/validation/validation.go` of kubernetes/kubernetes). `FailIndex` needs tries of each pod: others
    # go on when one pod has failed for good.
    if codes := sorted(set(batch.fatal_exit_codes)):
        fails_alone = batch.trials is not None and batch.backoff_limit_per_index is not None
        on_exit = {"containerName": MAIN, "operator": "In", "values": codes}
        fatal.append({"action": "FailIndex" if fails_alone else "FailJob", "onExitCodes": on_exit})
    return {
        "parallelism": batch.pods,
        "completions": batch.completions,
        "completionMode": "Indexed",
        **tries,
        **({"successPolicy": _WITH_THE_FIRST} if workload.elastic else {}),
        **({"activeDeadlineSeconds": seconds(batch.deadline)} if batch.deadline else {}),
        "podFailurePolicy": {"rules": [*evicted, *fatal]},
        "template": pod_template(plan, workload, asked, {"restartPolicy": "Never", **pod}, {}, variables),
    }


def _tries(workload: Workload, batch: Batch) -> dict[str, int]:
    """Return how often pods come again. If each has tries of its own, they have none in common, unless one says so.

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


# --- Pods that find one another ----------------------------------------------------------------------------------

_RENDEZVOUS: Final = "rendezvous"


def _meeting(workload: Workload, peers: Peers, job: str) -> dict[str, Any]:
    """Return a Service without an address of its own, so that the pod of an index is called `<job>-<index>.<job>`.

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


_INDEX: Final = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
"""The index of the pod in its Job; `$(JOB_COMPLETION_INDEX)` is that of no other variable, for the controller adds it
last (`addCompletionIndexEnvVariable` in `pkg/controller/job/indexed_job_utils.go` of kubernetes/kubernetes)."""


def meeting_point(workload: Workload, batch: Batch, first: str) -> dict[str, Variable]:
    """Return the variables of a pod that finds others; ``first`` is the name by which it finds the first one.

    torchrun reads those that begin with `PET_` in place of its arguments (`torch/distributed/argparse_util.py` of
    PyTorch), and sets the other four for each process that it starts. A program that is started without it reads them
    as they are: it is one process in each pod.

    Where pods come and go, they meet at a store that the first one keeps (`c10d_rendezvous_backend.py` in
    `torch/distributed/elastic/rendezvous`), and ranks are what they agree on. A pod that leaves makes the processes of
    the others fail, which torchrun starts again so many times. For the first one itself they wait as long as the
    `read_timeout` of the store says, which is a minute where nobody says it; after that they have failed.
    """
    if workload.peers is None:
        return {}
    port, pods = str(workload.peers.port), str(batch.pods)
    is_whole = workload.unit.isolation is Isolation.WHOLE_GPU and workload.fraction is None
    processes = {"PET_NPROC_PER_NODE": str(workload.spec.count if is_whole else 1)}
    if workload.elastic:
        return {
            "PET_NNODES": f"{workload.elastic.min_pods}:{pods}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{first}:{port}",
            "PET_RDZV_ID": first,
            "PET_RDZV_CONF": f"read_timeout={_PATIENCE}",
            "PET_MAX_RESTARTS": str(batch.backoff_limit),
            **processes,
        }
    return {
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
        "WORLD_SIZE": pods,
        "RANK": _INDEX,
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": port,
        "PET_NNODES": pods,
        "PET_NODE_RANK": _INDEX,
        **processes,
    }


_PATIENCE: Final = 600
"""Seconds: the first pod may be the last one to have its node and its image."""


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
    each = copied(at / "backoffLimitPerIndex")
    if work.backoff_limit_per_index is None and of.workload.elastic:
        each = (*copied(at / "backoffLimit"), *chosen(at / "elastic"))
    most = (*copied(at / "maxFailedIndexes"), *(chosen(at / "peers") if of.workload.peers else ()))
    limits = (("backoffLimit", copied(at / "backoffLimit")), ("backoffLimitPerIndex", each), ("maxFailedIndexes", most))
    tries = [(("spec", field), links) for field, links in limits]
    return [*of.asked(terms_of(of.plan, of.workload).labels, ()), *tries, *below(("spec",), job_spec_routes(of, work))]


def job_spec_routes(of: Traces, work: Batch) -> Routes:
    """Yield the routes of that part of `job_spec` which does not follow from a name."""
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


def meeting_variables(of: Traces, batch: Batch) -> Mapping[str, Several]:
    """Return where each variable comes from; the first pod's name follows from all that the object is."""
    if of.workload.peers is None:
        return NO_VARIABLES
    at = of.workload.work_at
    peers = chosen(at / "peers", at / "elastic")
    return {name: [((), peers), (("value",), _links(of, name))] for name in meeting_point(of.workload, batch, "")}


def meeting_names(of: Traces, batch: Batch, env: Path, name: Links) -> Routes:
    """Yield the variables that name the first pod, in the container's ``env``; ``name`` is what its name follows."""
    for index, variable in enumerate(of.variables(meeting_point(of.workload, batch, ""))):
        if variable in _FIRST and variable not in of.workload.spec.env:
            yield (*env, index, "value"), (*name, *_links(of, variable))


def _links(of: Traces, name: str) -> Links:
    """Return the places of the value of a variable, but for the name of the first pod."""
    at = of.workload.work_at
    match name:
        case "MASTER_PORT" | "PET_MASTER_PORT" | "PET_RDZV_ENDPOINT":
            return copied(at / "peers" / "port")
        case "WORLD_SIZE":
            return copied(at / "pods")
        case "PET_NNODES":
            return (*copied(at / "pods"), *(copied(at / "elastic" / "minPods") if of.workload.elastic else ()))
        case "PET_MAX_RESTARTS":
            return copied(at / "backoffLimit")
        case "PET_NPROC_PER_NODE":
            return (*copied(of.workload.at / "count"), *asked_by(of.plan, of.workload))
        case _:
            return ()


_FIRST: Final = ("MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT", "PET_RDZV_ID")
