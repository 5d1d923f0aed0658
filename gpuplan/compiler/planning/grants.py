"""What a tenant's pods may ask for in one namespace: the facts that quotas and admission policies both need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog import parse_profile
from gpuplan.compiler.planning.capping import knows_admission_policies
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource
from gpuplan.compiler.planning.kai import queue_of
from gpuplan.compiler.planning.plan import Cluster, Mps, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.schedulers.kubernetes import KUBERNETES
from gpuplan.compiler.policy.models import Admission

SYSTEM_NAMESPACE = "gpuplan-system"
"""Where the parameters of the admission policies live: tenants have no role there, so they cannot widen them."""

GRANTS_POLICY = "gpuplan-grants"
"""The ValidatingAdmissionPolicy that holds the pods of a namespace to its grants, by the parameters below."""

QUEUES_POLICY = "gpuplan-queues"
"""The ValidatingAdmissionPolicy that holds the work of a namespace to its tenant's queues, by the same parameters."""

FRACTION = "fraction"
"""What stands for the resource in a grant on a pool of fractions, which pods ask for by an annotation."""

# Read by the NVIDIA container toolkit (`internal/config/image` and `internal/modifier/gated.go` of its source).
# CUDA_VERSION is among them: an image with it and without NVIDIA_REQUIRE_CUDA counts as one of the first generation,
# which gets every GPU where NVIDIA_VISIBLE_DEVICES is not set.
DEVICE_VARIABLES = (
    "CUDA_VERSION",
    "DOCKER_RESOURCE_GPU",
    "NVIDIA_IMEX_CHANNELS",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    "NVIDIA_NVSWITCH",
)
"""Variables beside `NVIDIA_VISIBLE_DEVICES` by which a container chooses devices; no pod of a tenant may set them."""


RUNTIME_CLASS = "nvidia"
"""The RuntimeClass that the GPU Operator makes where its values name none."""


def runtime_class(cluster: Cluster) -> str:
    """The RuntimeClass that the GPU Operator makes, so far as its values are in the policy."""
    operator = cluster.gpu_operator.spec.values.get("operator")
    named = operator.get("runtimeClass") if isinstance(operator, dict) else None
    return named if isinstance(named, str) and named else RUNTIME_CLASS


def has_admission_policies(cluster: Cluster) -> bool:
    """Whether the cluster's API server knows ValidatingAdmissionPolicy; without it only quotas hold."""
    return knows_admission_policies(cluster.spec.kubernetes)


def grace_seconds(cluster: Cluster) -> int | None:
    """The longest grace period that pods with GPUs may ask for; None where the policy does not bound it."""
    period = cluster.spec.admission.grace_period
    return None if period == "none" else seconds(period)


def most_grace_seconds(cluster: Cluster, tenant: Tenant) -> int | None:
    """The same for pods of a tenant, which may have a bound of its own."""
    bound = grace_seconds(cluster)
    period = tenant.spec.allow.grace_period
    return bound if bound is None or period is None else seconds(period)


GRACE_SECONDS: Final = 30
"""Of pods that say nothing (`DefaultTerminationGracePeriodSeconds` in `core/v1/types.go` of kubernetes/api)."""

USUAL_GRACE_SECONDS: Final = seconds(Admission.model_fields["grace_period"].default)
"""The longest that pods may ask for where the policy says nothing."""


class Grant(Value):
    """A resource, a DeviceClass or `FRACTION` that pods of one namespace may ask for in one pool.

    ``most_per_container`` is None where a container may ask for any number.
    """

    pool: str
    resource: str
    most_per_container: int | None


def grants(tenant: Tenant, namespace: str | None) -> tuple[Grant, ...]:
    """What a namespace may use, sorted; a cap of zero there grants nothing.

    None stands for those that are the tenant's by their label.
    """
    found = {}
    for quota in tenant.quotas:
        if (quota.labelled_cap if namespace is None else quota.caps[namespace]) != 0:
            resource = quota.unit.asked_as or FRACTION
            found[quota.pool.name, resource] = Grant(quota.pool.name, resource, _most_per_container(tenant, quota))
    return tuple(found[key] for key in sorted(found))


def _most_per_container(tenant: Tenant, quota: Quota) -> int | None:
    if refuses_more_than_one(quota.pool, quota.unit):
        return 1
    return tenant.spec.allow.units_per_container if quota.unit.asked_as else None


def refuses_more_than_one(pool: Pool, unit: Unit) -> bool:
    """Whether the device plugin refuses containers that ask for two or more of a unit, because it is a share.

    Under MPS it always did (`internal/rm/rm.go` of k8s-device-plugin, `ValidateRequest`); newer releases let the
    option decide, which the policy language does not offer: two shares of MPS may be of one GPU. GPUs that stay whole
    beside sliced MIG devices are no shares, and neither are devices of profiles that are not sliced.
    """
    part = pool.part_with(unit)
    if part.shares is None or part.shares_of(unit) is None:
        return False
    return isinstance(part.shares, Mps) or part.shares.spec.fail_requests_greater_than_one


def parameters(tenant: Tenant, namespace: str | None, scheduler: SchedulerTraits = KUBERNETES) -> Mapping[str, str]:
    """The data of the ConfigMap that the policies read for a namespace; every value is a list, an item a line.

    A line of ``grants`` is a pool, a resource or a DeviceClass that it hands out, and how many of it one container may
    ask for (or ``any``). Where tenants have a queue in each pool there are ``queues``: a pool, and the queue in it. All
    keys are always there: an expression that misses one fails, and the policy then refuses.
    """
    found = grants(tenant, namespace)
    pools = dict.fromkeys([grant.pool for grant in found])
    data = {
        "tenant": tenant.name,
        "pools": _lines(pools),
        "grants": _lines([f"{grant.pool} {grant.resource} {grant.most_per_container or 'any'}" for grant in found]),
        "priorityClasses": _lines([priority.name for priority in tenant.priority_classes]),
    }
    if network := [resource for resource in tenant.spec.allow.rdma if resource.startswith(_NVIDIA)]:
        data["otherResources"] = _lines(sorted(set(network)))
    if tenant.spec.allow.grace_period is not None:
        data["gracePeriod"] = str(seconds(tenant.spec.allow.grace_period))
    if scheduler.has_queues_by_pool:
        data["queues"] = _lines([f"{pool} {queue_of(tenant, pool)}" for pool in pools])
    return data


_NVIDIA: Final = "nvidia.com/"
"""What the policies take for GPUs, unless they are told that it is none."""


def _lines(items: Iterable[str]) -> str:
    return "".join([f"{item}\n" for item in items])


USUAL_RESOURCES = (GPU_RESOURCE, f"{GPU_RESOURCE}.shared")
"""What a node publishes until its configuration is applied, or when it has none."""


def gpu_resources(plan: Plan) -> tuple[str, ...]:
    """Every resource by which a GPU of the cluster may be had, now or after a change of layout, sorted.

    Beside the pools' own: the usual ones, and the profiles of layouts that no pool uses yet, or any more.
    """
    found = set(USUAL_RESOURCES)
    found.update(unit.resource for pool in plan.pools for unit in pool.units if unit.resource is not None)
    for layout in (*plan.mig_layouts, *(retained.layout for retained in plan.retained_layouts)):
        profiles = {profile for entry in layout.entries for profile in entry.instances if parse_profile(profile)}
        found.update(map(mig_resource, profiles))
    return tuple(sorted(found))
