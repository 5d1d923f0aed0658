"""The pods of a workload: what they ask for, what they mount, and how they and their objects are called.

A Job's pods cannot be changed, and pods do not look at a ConfigMap again after they have started. Both have names that
change with their content, so that a change is a new object: Argo CD's other way, `Replace=true,Force=true`, deletes and
creates again, and makes no difference to what runs (`docs/user-guide/sync-options.md` there).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.backends.workloads.schedulers import Terms
from gpuplan.manifests.bodies import digest, given, new_object
from gpuplan.planning.dra import device_class_name
from gpuplan.planning.plan import POOL_LABEL, TENANT_LABEL, WORKLOAD_LABEL, Tenant, Workload
from gpuplan.policy.models import Allocation, Inference, PodSecurity

CONFIG_PATH: Final = "/etc/workload"

_LONGEST: Final = 63


# --- Names -------------------------------------------------------------------------------------------------------


def workload_object(
    api_version: str, kind: str, name: str, workload: Workload, terms: Terms | None = None, **body: object
) -> dict[str, Any]:
    """An object of a workload, with what its scheduler reads there."""
    asked = terms or Terms()
    labels, annotations = {**labels_of(workload), **asked.labels}, dict(asked.annotations)
    return new_object(api_version, kind, name, workload.namespace, labels=labels, annotations=annotations, **body)


def labels_of(workload: Workload) -> dict[str, str]:
    return {TENANT_LABEL: workload.tenant.name, WORKLOAD_LABEL: workload.name}


def claim_name(workload: Workload) -> str:
    return f"{workload.name}-model"


def config_name(workload: Workload) -> str:
    return f"{workload.name}-{digest(workload.spec.config)}"


def job_name(name: str, content: Mapping[str, Any], pods: int = 1) -> str:
    """The name, cut where need be, and a digest of what the Job is.

    A pod's host name is that of its Job and its index, in at most 63 characters: the API server refuses a Job whose
    last pod would have a longer one (`ValidateJob` in `pkg/apis/batch/validation/validation.go` of
    kubernetes/kubernetes).
    """
    room = _LONGEST - len("-12345678") - len(f"-{max(pods - 1, 0)}")
    return f"{name[:room].rstrip('-')}-{digest(content)}"


# --- Pods --------------------------------------------------------------------------------------------------------


def pod_template(
    workload: Workload, terms: Terms, spec: Mapping[str, Any], container: Mapping[str, Any]
) -> dict[str, Any]:
    """A pod with one container; ``spec`` and ``container`` are what only some workloads need."""
    metadata = given(labels={**labels_of(workload), **terms.pod_labels}, annotations=dict(terms.pod_annotations))
    priority = workload.priority_class
    more = given(
        schedulerName=terms.scheduler,
        priorityClassName=priority.name if priority else None,
        **placement(workload),
        **pod_security(workload.tenant),
        resourceClaims=_resource_claims(workload),
        containers=[_container(workload, container)],
        volumes=[*_config_volume(workload), *model_volume(workload)],
    )
    return {"metadata": metadata, "spec": {**spec, **more}}


def placement(workload: Workload) -> dict[str, Any]:
    """The pool, also under Kueue, which adds to what it admits the labels and tolerations of the flavor.

    It leaves out what is there already (`Merge` in `pkg/podset/podset.go` of Kueue), so that a Job stays as it is in
    Git; and a selector for one pool keeps it out of all others.
    """
    return given(nodeSelector={POOL_LABEL: workload.pool.name}, tolerations=workload.pool.tolerations)


def _container(workload: Workload, more: Mapping[str, Any]) -> dict[str, Any]:
    spec = workload.spec
    return given(
        name="main",
        image=spec.image,
        command=list(spec.command),
        args=list(spec.args),
        env=[{"name": name, "value": value} for name, value in spec.env.items()],
        **more,
        resources=_resources(workload),
        securityContext=container_security(workload.tenant),
        volumeMounts=[*_config_mount(workload), *model_mount(workload)],
    )


# --- Devices -----------------------------------------------------------------------------------------------------


def _resources(workload: Workload) -> dict[str, Any]:
    """The container's resources. Limits equal requests, so that a pod has what it asks for and no more."""
    amounts = {"cpu": workload.spec.cpu, "memory": workload.spec.memory, **_units(workload)}
    asked = {name: amount for name, amount in amounts.items() if amount}
    claims = [{"name": claim["name"]} for claim in _resource_claims(workload)]
    return given(limits=asked, requests=dict(asked), claims=claims)


def _units(workload: Workload) -> dict[str, str]:
    if workload.fraction or workload.unit.resource is None or workload.pool.spec.allocation is Allocation.DRA:
        return {}
    return {workload.unit.resource: str(workload.spec.count)}


def _resource_claims(workload: Workload) -> list[dict[str, str]]:
    """The pod's claims, one for each device."""
    if workload.pool.spec.allocation is not Allocation.DRA:
        return []
    template = device_class_name(workload.pool, workload.unit)
    return [{"name": f"unit-{number}", "resourceClaimTemplateName": template} for number in range(workload.spec.count)]


# --- Security ----------------------------------------------------------------------------------------------------


def pod_security(tenant: Tenant) -> dict[str, Any]:
    """What the tenant's level asks for; without it whatever no workload of ours needs is left out all the same.

    Under `restricted` the API server refuses pods that do not say so themselves. Elsewhere images may run as root.
    """
    is_restricted = tenant.spec.allow.pod_security is PodSecurity.RESTRICTED
    return {
        "automountServiceAccountToken": False,
        # A Service `vllm` would give the pods beside it `VLLM_PORT=tcp://...`, which vLLM reads as its own.
        "enableServiceLinks": False,
        "securityContext": {
            **({"runAsNonRoot": True} if is_restricted else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def container_security(tenant: Tenant) -> dict[str, Any]:
    is_restricted = tenant.spec.allow.pod_security is PodSecurity.RESTRICTED
    return {
        "allowPrivilegeEscalation": False,
        **({"capabilities": {"drop": ["ALL"]}} if is_restricted else {}),
    }


# --- Volumes -----------------------------------------------------------------------------------------------------


def _config_volume(workload: Workload) -> list[dict[str, Any]]:
    return [{"name": "config", "configMap": {"name": config_name(workload)}}] if workload.spec.config else []


def _config_mount(workload: Workload) -> list[dict[str, Any]]:
    return [{"name": "config", "mountPath": CONFIG_PATH, "readOnly": True}] if workload.spec.config else []


def model_volume(workload: Workload) -> list[dict[str, Any]]:
    return (
        [{"name": "model", "persistentVolumeClaim": {"claimName": claim_name(workload)}}] if workload.spec.model else []
    )


def model_mount(workload: Workload, *, is_filled: bool = True) -> list[dict[str, Any]]:
    """A service only reads a model that a Job has downloaded; training may write into the volume.

    ``is_filled`` is false for the Job.
    """
    if workload.spec.model is None:
        return []
    is_read = is_filled and bool(workload.spec.model.download) and isinstance(workload.work, Inference)
    mount = {"name": "model", "mountPath": workload.spec.model.mount_path}
    return [{**mount, "readOnly": True} if is_read else mount]
