"""The volume that holds a workload's model, and the Job that fills it."""

from __future__ import annotations

from typing import Any

from gpuplan.backends.workloads.naming import claim_name, job_name, metadata
from gpuplan.backends.workloads.pods import container_security, model_mount, model_volume, placement, pod_security
from gpuplan.planning.plan import TENANT_LABEL, Workload
from gpuplan.policy.models import Download, ModelVolume


def claim(workload: Workload, model: ModelVolume) -> dict[str, Any]:
    """Of a claim only the size can be changed."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(workload, claim_name(workload)),
        "spec": {
            "accessModes": [model.access_mode],
            **({"storageClassName": model.storage_class} if model.storage_class else {}),
            "resources": {"requests": {"storage": model.size}},
        },
    }


def download_job(workload: Workload, download: Download) -> dict[str, Any]:
    """The Job, where the pods will be: a volume of one zone is made where its first pod runs.

    It asks for no GPU and names no class, so that it takes nobody's place. Without the workload's label its pod is none
    of the Service's.
    """
    spec = {
        "template": {
            "metadata": {"labels": {TENANT_LABEL: workload.tenant.name}},
            "spec": {
                "restartPolicy": "OnFailure",
                **placement(workload),
                **pod_security(workload.tenant),
                "containers": [_container(workload, download)],
                "volumes": model_volume(workload),
            },
        }
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(workload, job_name(f"{workload.name}-download", spec)),
        "spec": spec,
    }


def _container(workload: Workload, download: Download) -> dict[str, Any]:
    return {
        "name": "download",
        "image": download.image,
        **({"command": list(download.command)} if download.command else {}),
        **({"args": list(download.args)} if download.args else {}),
        "securityContext": container_security(workload.tenant),
        "volumeMounts": model_mount(workload, is_filled=False),
    }
