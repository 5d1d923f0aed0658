"""Workspaces: work in which a person sits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import (
    AFTER,
    TEMPLATE,
    Written,
    job_name,
    selector_of,
    terms_of,
    workload_object,
)
from gpuplan.compiler.backends.workloads.jobs import EVICTED
from gpuplan.compiler.backends.workloads.models import claim, claim_routes
from gpuplan.compiler.backends.workloads.pods import pod_template
from gpuplan.compiler.backends.workloads.tracing import NO_VARIABLES, Traces
from gpuplan.compiler.manifests.provenance import Routes, below, chosen, copied, multiplied
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.pods import storage_of
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.planning.workspaces import FILES, SEARCH_PATH
from gpuplan.compiler.policy.models import Workspace


def objects(plan: Plan, workload: Workload, work: Workspace) -> Iterator[Written]:
    """Yield a Job, the Service that leads to its pod, and the volume that outlives both."""
    of = Traces(plan, workload)
    if storage := storage_of(workload):
        yield AFTER, claim(workload, storage), partial(claim_routes, of, storage)
    yield AFTER, _job(plan, workload, work), partial(_job_routes, of)
    # It leads to the pod within the cluster alone: nobody but the program asks who comes.
    ports = [{"name": _PORT, "port": work.port, "targetPort": _PORT}]
    spec = {"selector": selector_of(workload), "ports": ports}
    service = workload_object("v1", "Service", workload.name, workload, spec=spec)
    yield AFTER, service, partial(_service_routes, of)


_TRIES: Final = 3
"""The number of times that a pod comes again whose program has failed. Then it gives its units back."""

_PORT: Final = "workspace"


def _job(plan: Plan, workload: Workload, work: Workspace) -> dict[str, Any]:
    """Return one pod, until its program ends: then its units are free.

    Kueue queues it as a whole, and its time is the Job's.
    A Deployment or a StatefulSet would start the program again, whoever ended it. The Job stays when it has ended, so
    that nobody who restores what is in Git starts it again; whoever deletes it has it back.
    """
    asked = terms_of(plan, workload)
    variables = {**asked.env, **({SEARCH_PATH: FILES} if workload.idle else {})}
    container = {
        "ports": [{"name": _PORT, "containerPort": work.port}],
        # A request would count as somebody's activity; to be connected to does not.
        "readinessProbe": {"tcpSocket": {"port": _PORT}},
    }
    spec = {
        "parallelism": 1,
        "completions": 1,
        "completionMode": "Indexed",
        "backoffLimit": _TRIES,
        **({"activeDeadlineSeconds": seconds(work.run_time)} if work.run_time else {}),
        "podFailurePolicy": {"rules": [EVICTED]},
        "template": pod_template(plan, workload, asked, {"restartPolicy": "Never"}, container, variables),
    }
    name = job_name(workload.name, {"labels": asked.labels, "spec": spec})
    return workload_object("batch/v1", "Job", name, workload, asked.labels, asked.annotations, spec=spec)


# --- Where it comes from -------------------------------------------------------------------------------------------


def _job_routes(of: Traces) -> Routes:
    at, content = of.workload.work_at, [*of.asked(terms_of(of.plan, of.workload).labels, ())]
    content.append((("spec", "activeDeadlineSeconds"), multiplied(at / "runTime")))
    variables = {SEARCH_PATH: [((), chosen(at / "idle"))]} if of.workload.idle else NO_VARIABLES
    content += below(TEMPLATE, of.pod([(("ports", 0, "containerPort"), copied(at / "port"))], variables))
    content.append(((*TEMPLATE, "spec", "securityContext", "fsGroup"), copied(at / "storage" / "group")))
    yield from of.metadata(of.content_name(content))
    yield from content
    yield from of.asked((), terms_of(of.plan, of.workload).annotations)


def _service_routes(of: Traces) -> Routes:
    yield from of.metadata(named(of.workload))
    yield ("spec", "selector"), named(of.workload)
    yield ("spec", "ports", 0, "port"), copied(of.workload.work_at / "port")
