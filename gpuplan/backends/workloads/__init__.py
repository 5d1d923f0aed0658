"""The back end of the stage `workloads`: what teams run, one folder for each namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gpuplan.backends.workloads.pods import (
    claim_name,
    config_name,
    container_security,
    job_name,
    model_mount,
    model_volume,
    placement,
    pod_security,
    pod_template,
    workload_object,
)
from gpuplan.backends.workloads.schedulers import terms
from gpuplan.manifests import Manifest, Subject, quantity
from gpuplan.manifests.bodies import given
from gpuplan.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Plan, Stage, Workload
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Autoscaling, Download, Inference, ModelVolume, Training

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
        name, data = config_name(workload), dict(workload.spec.config)
        yield _BEFORE, workload_object("v1", "ConfigMap", name, workload, immutable=True, data=data)
    if workload.spec.model:
        yield _BEFORE if workload.spec.model.download else _AFTER, _claim(workload, workload.spec.model)
        if workload.spec.model.download:
            yield _BEFORE, _download_job(workload, workload.spec.model.download)
    if isinstance(workload.work, Inference):
        yield _AFTER, _deployment(plan, workload, workload.work)
        yield _AFTER, _service(workload, workload.work)
        if workload.work.autoscaling:
            yield _AFTER, _autoscaler(workload, workload.work.autoscaling)
    else:
        yield _AFTER, _job(plan, workload, workload.work)


# --- Services ----------------------------------------------------------------------------------------------------

_PORT: Final = "http"

_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""A new pod gets the units of an old one. One more than the policy counts would wait for units that may never come."""


def _deployment(plan: Plan, workload: Workload, inference: Inference) -> dict[str, Any]:
    """The pods. Their number is not stated where it follows the load: whoever restores what is in Git would undo it."""
    asked = terms(plan, workload)
    container = {
        "ports": [{"name": _PORT, "containerPort": inference.port}],
        # Until then it may still be loading the model.
        "readinessProbe": {"tcpSocket": {"port": _PORT}},
    }
    spec = {
        **({} if inference.autoscaling else {"replicas": inference.replicas}),
        "selector": {"matchLabels": _selector(workload)},
        "strategy": _STRATEGY,
        "template": pod_template(workload, asked, {}, container),
    }
    return workload_object("apps/v1", "Deployment", workload.name, workload, asked, spec=spec)


def _service(workload: Workload, inference: Inference) -> dict[str, Any]:
    ports = [{"name": _PORT, "port": inference.port, "targetPort": _PORT}]
    spec = {"selector": _selector(workload), "ports": ports}
    return workload_object("v1", "Service", workload.name, workload, spec=spec)


def _selector(workload: Workload) -> dict[str, str]:
    """It can never be changed, so it is what never changes; no other pods of the namespace have the label."""
    return {WORKLOAD_LABEL: workload.name}


def _autoscaler(workload: Workload, scaling: Autoscaling) -> dict[str, Any]:
    """So many pods that each has at most its number of requests; the metric comes from an adapter."""
    target = {"type": "AverageValue", "averageValue": quantity(scaling.requests_per_second)}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name},
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": scaling.metric}, "target": target}}],
    }
    return workload_object("autoscaling/v2", "HorizontalPodAutoscaler", workload.name, workload, spec=spec)


# --- Work that ends ----------------------------------------------------------------------------------------------

_EVICTED: Final = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
"""A pod that has to make way, for another or for a node's maintenance, has not failed."""


def _job(plan: Plan, workload: Workload, training: Training) -> dict[str, Any]:
    """All pods at once, each with a number of its own (`JOB_COMPLETION_INDEX`) and once to its end.

    It stays when it has ended: were it deleted after a time, it would be missed and run again. Kueue takes no Job in
    that runs already (`ValidateJobOnUpdate` in `pkg/controller/jobframework/validation.go` there), so that the labels
    are part of what the Job is.
    """
    asked = terms(plan, workload)
    spec = {
        "parallelism": training.pods,
        "completions": training.pods,
        "completionMode": "Indexed",
        "backoffLimit": training.backoff_limit,
        "podFailurePolicy": {"rules": [_EVICTED]},
        "template": pod_template(workload, asked, {"restartPolicy": "Never"}, {}),
    }
    name = job_name(workload.name, {"labels": asked.labels, "spec": spec}, training.pods)
    return workload_object("batch/v1", "Job", name, workload, asked, spec=spec)


# --- Models ------------------------------------------------------------------------------------------------------


def _claim(workload: Workload, model: ModelVolume) -> dict[str, Any]:
    """Of a claim only the size can be changed."""
    spec = given(
        accessModes=[model.access_mode],
        storageClassName=model.storage_class,
        resources={"requests": {"storage": model.size}},
    )
    return workload_object("v1", "PersistentVolumeClaim", claim_name(workload), workload, spec=spec)


def _download_job(workload: Workload, download: Download) -> dict[str, Any]:
    """The Job, where the pods will be: a volume of one zone is made where its first pod runs.

    It asks for no GPU and names no class, so that it takes nobody's place. Without the workload's label its pod is none
    of the Service's.
    """
    container = given(
        name="download",
        image=download.image,
        command=list(download.command),
        args=list(download.args),
        securityContext=container_security(workload.tenant),
        volumeMounts=model_mount(workload, is_filled=False),
    )
    pod = {
        "restartPolicy": "OnFailure",
        **placement(workload),
        **pod_security(workload.tenant),
        "containers": [container],
        "volumes": model_volume(workload),
    }
    spec = {"template": {"metadata": {"labels": {TENANT_LABEL: workload.tenant.name}}, "spec": pod}}
    return workload_object("batch/v1", "Job", job_name(f"{workload.name}-download", spec), workload, spec=spec)
