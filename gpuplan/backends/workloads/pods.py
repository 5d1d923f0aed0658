"""The pods of a workload, and what they mount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.backends.workloads.devices import resource_claims, resources
from gpuplan.backends.workloads.naming import claim_name, config_name, labels_of, metadata
from gpuplan.backends.workloads.schedulers import Terms
from gpuplan.planning.plan import POOL_LABEL, Tenant, Workload
from gpuplan.policy.models import Inference, PodSecurity

CONFIG_PATH: Final = "/etc/workload"


def config_map(workload: Workload) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(workload, config_name(workload)),
        "immutable": True,
        "data": dict(workload.spec.config),
    }


def pod_template(
    workload: Workload, terms: Terms, spec: Mapping[str, Any], container: Mapping[str, Any]
) -> dict[str, Any]:
    """A pod with one container; ``spec`` and ``container`` are what only some workloads need."""
    annotations = dict(terms.pod_annotations)
    claims = resource_claims(workload)
    volumes = [*_config_volume(workload), *model_volume(workload)]
    return {
        "metadata": {
            "labels": {**labels_of(workload), **terms.pod_labels},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            **spec,
            **({"schedulerName": terms.scheduler} if terms.scheduler else {}),
            **({"priorityClassName": workload.priority_class.name} if workload.priority_class else {}),
            **placement(workload),
            **pod_security(workload.tenant),
            **({"resourceClaims": claims} if claims else {}),
            "containers": [_container(workload, container)],
            **({"volumes": volumes} if volumes else {}),
        },
    }


def placement(workload: Workload) -> dict[str, Any]:
    """The pool, also under Kueue, which adds to what it admits the labels and tolerations of the flavor.

    It leaves out what is there already (`Merge` in `pkg/podset/podset.go` of Kueue), so that a Job stays as it is in
    Git; and a selector for one pool keeps it out of all others.
    """
    found = workload.pool.tolerations
    return {"nodeSelector": {POOL_LABEL: workload.pool.name}, **({"tolerations": found} if found else {})}


def _container(workload: Workload, more: Mapping[str, Any]) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in workload.spec.env.items()]
    asked = resources(workload)
    mounts = [*_config_mount(workload), *model_mount(workload)]
    return {
        "name": "main",
        "image": workload.spec.image,
        **({"command": list(workload.spec.command)} if workload.spec.command else {}),
        **({"args": list(workload.spec.args)} if workload.spec.args else {}),
        **({"env": env} if env else {}),
        **more,
        **({"resources": asked} if asked else {}),
        "securityContext": container_security(workload.tenant),
        **({"volumeMounts": mounts} if mounts else {}),
    }


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
