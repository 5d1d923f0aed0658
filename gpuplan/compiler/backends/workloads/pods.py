"""The pods of workloads, whatever runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import MAIN, Terms, config_name, labels_of
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.merging.strategic import Patched, patched
from gpuplan.compiler.manifests.shapes import shape_of_pods
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.grants import GRACE_SECONDS, most_grace_seconds
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan, Pool, Tenant, Workload
from gpuplan.compiler.planning.pods import Volume, volumes_of
from gpuplan.compiler.planning.workspaces import FILES, files_of
from gpuplan.compiler.policy.models import Allocation, Inference, ModelVolume, PodSecurity, ValueFrom


def pod_template(
    plan: Plan,
    workload: Workload,
    terms: Terms,
    spec: Mapping[str, Any],
    container: Mapping[str, Any],
    variables: Mapping[str, Variable],
) -> dict[str, Any]:
    """Return a pod with one container, and whatever the workload lays over that.

    ``spec``, ``container`` and ``variables`` are what only some workloads need.
    """
    metadata = given(labels={**labels_of(workload), **terms.pod_labels}, annotations=dict(terms.pod_annotations))
    priority = workload.priority_class
    most, grace = most_grace_seconds(plan.cluster, workload.tenant), {}
    if most is not None and most < GRACE_SECONDS:  # the API server gives pods more than they may have
        grace = {"terminationGracePeriodSeconds": most}
    more = given(
        schedulerName=terms.scheduler,
        priorityClassName=priority.name if priority else None,
        **_placement(plan, workload),
        **pod_security(workload.tenant, writers=workload.storage.group if workload.storage else None),
        imagePullSecrets=pull_secrets(workload),
        resourceClaims=resource_claims(workload),
        containers=[_container(workload, container, variables)],
        volumes=pod_volumes(workload),
    )
    return laid_over(plan, workload, {"metadata": metadata, "spec": {**spec, **grace, **more}}).body


def laid_over(plan: Plan, workload: Workload, template: dict[str, Any]) -> Patched:
    """Return the template with the workload's own patch."""
    if not workload.pod_patch:
        return Patched(template)
    return patched(template, workload.pod_patch, shape_of_pods(plan.cluster.spec.kubernetes))


def _placement(plan: Plan, workload: Workload) -> dict[str, Any]:
    """Return the pool, also under Kueue, which adds to what it admits the labels and tolerations of the flavor.

    It leaves out what is there already (`Merge` in `pkg/podset/podset.go` of Kueue), so that a Job stays as it is in
    Git; and a selector for one pool keeps it out of all others. So does an affinity to several: Kueue takes the first
    flavor with room that it allows (`flavorSelector` in `pkg/scheduler/flavorassigner/flavorassigner.go`).
    """
    pools = reach(plan, workload)
    if len(pools) == 1:
        return within(workload.pool)
    affinity: dict[str, Any] = {REQUIRED: {"nodeSelectorTerms": [_among([pool.name for pool in pools])]}}
    if not plan.scheduler.finds_pools:  # nobody else takes the earlier ones before the later
        steps = len(pools) - 1
        affinity[PREFERRED] = [
            {"weight": max(_MOST_WEIGHT * (steps - index) // steps, 1), "preference": _among([pool.name])}
            for index, pool in enumerate(pools[:-1])
        ]
    return given(affinity={"nodeAffinity": affinity}, tolerations=tolerations_among(pools))


def tolerations_among(pools: Sequence[Pool]) -> list[dict[str, str]]:
    """Return the tolerations of all pools, each once."""
    found = [toleration for pool in pools for toleration in pool.tolerations]
    return [toleration for index, toleration in enumerate(found) if toleration not in found[:index]]


def within(pool: Pool) -> dict[str, Any]:
    return given(nodeSelector={POOL_LABEL: pool.name}, tolerations=pool.tolerations)


REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


_MOST_WEIGHT: Final = 100


def _among(pools: list[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": pools}]}


Variable = str | ValueFrom | Mapping[str, Any]
"""The value of a variable, or where it comes from: as the policy says it, or as the pod does."""


def _container(workload: Workload, more: Mapping[str, Any], variables: Mapping[str, Variable]) -> dict[str, Any]:
    """Return the container; what the policy says of a variable counts, whoever else sets it."""
    spec = workload.spec
    # Limits equal requests, so that a pod has what it asks for and no more.
    amounts = {"cpu": spec.cpu, "memory": spec.memory, **units_of(workload)}
    asked = {name: amount for name, amount in amounts.items() if amount}
    claims = [{"name": claim["name"]} for claim in resource_claims(workload)]
    mounts = config_mount(workload)
    for volume in volumes_of(workload):
        is_filled = isinstance(volume.spec, ModelVolume) and volume.spec.download is not None
        # A service only reads a model that a Job has downloaded; training may write into the volume.
        is_read = is_filled and isinstance(workload.work, Inference)
        mounts.append({**mounted(volume), **({"readOnly": True} if is_read else {})})
    return given(
        name=MAIN,
        image=spec.image,
        command=list(spec.command),
        args=list(spec.args),
        env=variables_of({**variables, **spec.env}),
        **more,
        resources=given(limits=asked, requests=dict(asked), claims=claims),
        securityContext=container_security(workload.tenant),
        volumeMounts=mounts,
    )


def variables_of(env: Mapping[str, Variable]) -> list[dict[str, Any]]:
    return [{"name": name, **value_of(value)} for name, value in env.items()]


def value_of(value: Variable) -> dict[str, Any]:
    if isinstance(value, str):
        return {"value": value}
    if not isinstance(value, ValueFrom):
        return {"valueFrom": value}
    sources = {"secretKeyRef": value.secret_key_ref, "configMapKeyRef": value.config_map_key_ref}
    return {"valueFrom": {field: {"name": key.name, "key": key.key} for field, key in sources.items() if key}}


def pull_secrets(workload: Workload) -> list[dict[str, str]]:
    return [{"name": name} for name in workload.spec.image_pull_secrets]


# --- Devices -----------------------------------------------------------------------------------------------------


def units_of(workload: Workload) -> dict[str, str]:
    if workload.fraction or workload.unit.resource is None or workload.pool.spec.allocation is Allocation.DRA:
        return {}
    return {workload.unit.resource: str(workload.spec.count)}


def resource_claims(workload: Workload) -> list[dict[str, str]]:
    """Return the pod's claims, one for each device."""
    if workload.pool.spec.allocation is not Allocation.DRA:
        return []
    template = device_class_name(workload.pool, workload.unit)
    return [{"name": f"unit-{number}", "resourceClaimTemplateName": template} for number in range(workload.spec.count)]


# --- Security ----------------------------------------------------------------------------------------------------


def pod_security(tenant: Tenant, writers: int | None = None) -> dict[str, Any]:
    """Return what the tenant's level asks for; what no workload of ours needs is left out whatever the level is.

    ``writers`` is the group that may write to volumes.
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
            **({} if writers is None else {"fsGroup": writers}),
        },
    }


def container_security(tenant: Tenant) -> dict[str, Any]:
    is_restricted = tenant.spec.allow.pod_security is PodSecurity.RESTRICTED
    return {"allowPrivilegeEscalation": False, **({"capabilities": {"drop": ["ALL"]}} if is_restricted else {})}


# --- Volumes -----------------------------------------------------------------------------------------------------


def pod_volumes(workload: Workload) -> list[dict[str, Any]]:
    """Return all volumes that the pods have, less what the workload lays over them."""
    return [
        *([{"name": "config", "configMap": {"name": config_name(workload)}}] if files_of(workload) else []),
        *(claimed(workload, found) for found in volumes_of(workload)),
    ]


def config_mount(workload: Workload) -> list[dict[str, Any]]:
    return [{"name": "config", "mountPath": FILES, "readOnly": True}] if files_of(workload) else []


def claimed(workload: Workload, volume: Volume) -> dict[str, Any]:
    """Return a pod's volume that is a claim."""
    return {"name": volume.name, "persistentVolumeClaim": {"claimName": volume.claim(workload)}}


def mounted(volume: Volume) -> dict[str, Any]:
    """Return where a container sees a volume that it may write to."""
    return {"name": volume.name, "mountPath": volume.spec.mount_path}
