"""The objects that work needs before it runs: files, its volumes, and the Job that fills one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from gpuplan.compiler.backends.workloads.bodies import (
    AFTER,
    BEFORE,
    TEMPLATE,
    Terms,
    Written,
    config_name,
    job_name,
    terms_of,
    workload_object,
)
from gpuplan.compiler.backends.workloads.pods import (
    claimed,
    container_security,
    mounted,
    pod_security,
    pull_secrets,
    variables_of,
    within,
)
from gpuplan.compiler.backends.workloads.tracing import Traces, program, variable
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Routes, below, copied, multiplied
from gpuplan.compiler.planning.amounts import counted_pools
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, Workload
from gpuplan.compiler.planning.pods import Volume, checkpoint_of, model_of
from gpuplan.compiler.planning.sources import counted_in, named, scheduler_of
from gpuplan.compiler.planning.workspaces import SETTINGS, files_of
from gpuplan.compiler.policy.models import Download


def objects(plan: Plan, workload: Workload) -> Iterator[Written]:
    """Yield a ConfigMap, claims and a download Job, as far as they are asked for."""
    of = Traces(plan, workload)
    if files_of(workload):
        data, name = dict(files_of(workload)), config_name(workload)
        config = workload_object("v1", "ConfigMap", name, workload, immutable=True, data=data)
        yield BEFORE, config, partial(_config_routes, of)
    if (model := model_of(workload)) and workload.spec.model:
        download = workload.spec.model.download
        yield BEFORE if download else AFTER, claim(workload, model), partial(claim_routes, of, model)
        if download:
            job = _download_job(plan, workload, model, download)
            yield BEFORE, job, partial(_download_job_routes, of, model)
    if checkpoint := checkpoint_of(workload):
        yield AFTER, claim(workload, checkpoint), partial(claim_routes, of, checkpoint)


def claim(workload: Workload, volume: Volume) -> dict[str, Any]:
    """Return a claim, of which only the size can be changed."""
    spec = given(
        accessModes=[volume.spec.access_mode],
        storageClassName=volume.spec.storage_class,
        resources={"requests": {"storage": volume.spec.size}},
    )
    return workload_object("v1", "PersistentVolumeClaim", volume.claim(workload), workload, spec=spec)


def _download_job(plan: Plan, workload: Workload, model: Volume, download: Download) -> dict[str, Any]:
    """Return the Job, where the pods will be: a volume of one zone is made where its first pod runs.

    It is in the workload's own pool, also where the pods may go to others: it needs none of what that has run out of.
    It asks for no GPU and names no class, so that it takes nobody's place. Without the workload's label its pod is none
    of the Service's. Where the pool's CPU and memory are counted it goes through the workload's queue, with its class.
    """
    asked = _download_terms(plan, workload)
    priority = workload.priority_class if asked.scheduler else None
    container = given(
        name="download",
        image=download.image,
        command=list(download.command),
        args=list(download.args),
        env=variables_of(download.env),
        securityContext=container_security(workload.tenant),
        volumeMounts=[mounted(model)],
    )
    pod = {
        "restartPolicy": "OnFailure",
        **given(schedulerName=asked.scheduler, priorityClassName=priority.name if priority else None),
        **within(workload.pool),
        **pod_security(workload.tenant),
        **given(imagePullSecrets=pull_secrets(workload)),
        "containers": [container],
        "volumes": [claimed(workload, model)],
    }
    labels = {TENANT_LABEL: workload.tenant.name, **asked.pod_labels}
    spec = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    return workload_object("batch/v1", "Job", job_name(f"{workload.name}-download", spec), workload, spec=spec)


def _download_terms(plan: Plan, workload: Workload) -> Terms:
    """Return what a scheduler with a queue of its own reads on pods; Kueue queues the Job by its webhook."""
    asked = terms_of(plan, workload)
    return asked if asked.scheduler and workload.pool.name in counted_pools(plan) else Terms()


# --- Where it comes from -------------------------------------------------------------------------------------------


def _config_routes(of: Traces) -> Routes:
    yield from of.metadata(of.config_name())
    for name in of.workload.spec.config:
        yield ("data", name), copied(of.workload.at / "config" / name)
    if of.workload.idle:
        yield ("data", SETTINGS), multiplied(of.workload.work_at / "idle")


def claim_routes(of: Traces, volume: Volume) -> Routes:
    at = volume.at
    yield from of.metadata(named(of.workload))
    yield ("spec", "accessModes"), copied(at / "accessMode")
    yield ("spec", "storageClassName"), copied(at / "storageClass")
    yield ("spec", "resources"), copied(at / "size")


def _download_job_routes(of: Traces, model: Volume) -> Routes:
    content = list(below(TEMPLATE, _download(of, model)))
    yield from of.metadata(of.content_name(content))
    yield from content


def _download(of: Traces, model: Volume) -> Routes:
    yield ("metadata", "labels", TENANT_LABEL), of.tenant()
    if (asked := _download_terms(of.plan, of.workload)).scheduler:
        yield from of.asked(asked.pod_labels, ())
        yield ("spec", "schedulerName"), scheduler_of(of.plan)
        yield ("spec", "priorityClassName"), of.class_()
        yield ("metadata", "labels"), counted_in(of.plan)
        yield ("spec", "schedulerName"), counted_in(of.plan)
    yield from of.within()
    if of.workload.spec.model and (download := of.workload.spec.model.download):
        at = of.workload.at / "model" / "download"
        yield from below(("spec", "containers", 0), program(at, download.command, download.args))
        for index, (name, value) in enumerate(download.env.items()):
            yield from below(("spec", "containers", 0, "env", index), variable(at / "env" / name, value))
    yield from of.pulled()
    yield from below(("spec", "containers", 0), of.mount(0, model))
    yield from of.security()
    yield ("spec", "volumes"), named(of.workload)
