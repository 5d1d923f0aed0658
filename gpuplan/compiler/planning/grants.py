"""Permissions of a tenant's members and pods, as quotas, roles and admission policies enforce them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import value_of
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import parse_profile
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource
from gpuplan.compiler.planning.kai import queue_of
from gpuplan.compiler.planning.plan import TENANT_LABEL, Amount, Cluster, Mps, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.planning.projects import portion, seconds
from gpuplan.compiler.planning.schedulers import SchedulerTraits, knows_admission_policies
from gpuplan.compiler.planning.schedulers.kubernetes import KUBERNETES
from gpuplan.compiler.planning.subjects import every
from gpuplan.compiler.policy.models import Admission, Cap, Effect, Enforcement, Member, PodSecurity

SYSTEM_NAMESPACE = "gpuplan-system"
"""The namespace of the admission policies' parameters. Tenants have no role there, so they cannot widen them."""

GRANTS_POLICY = "gpuplan-grants"
"""The ValidatingAdmissionPolicy that holds the pods of a namespace to its grants, by the parameters below."""

QUEUES_POLICY = "gpuplan-queues"
"""The ValidatingAdmissionPolicy that holds the work of a namespace to its tenant's queues, by the same parameters."""

FRACTION = "fraction"
"""The resource in a grant on a pool of fractions, which pods ask for by an annotation."""

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
    """Return the RuntimeClass that the GPU Operator makes, by its values in the policy."""
    named = value_of(cluster.gpu_operator.spec.values, ("operator", "runtimeClass"))
    return named if isinstance(named, str) and named else RUNTIME_CLASS


def has_admission_policies(cluster: Cluster) -> bool:
    """Whether the cluster's API server knows ValidatingAdmissionPolicy; without it only quotas hold."""
    return knows_admission_policies(cluster.spec.kubernetes)


def enforcement_of(cluster: Cluster, tenant: Tenant, namespace: str | None) -> Enforcement:
    """Return the action of admission policies in a namespace; None stands for those that are the tenant's by label."""
    own = tenant.spec.admission
    return own.namespaces.get(namespace or "", own.enforcement or cluster.spec.admission.enforcement)


def place_of_enforcement(cluster: Cluster, tenant: Tenant, namespace: str | None) -> Origin:
    """Return the place of the policy that decides it."""
    own = tenant.spec.admission
    if namespace in own.namespaces:
        return tenant.at / "admission" / "namespaces" / str(namespace)
    return (tenant if own.enforcement else cluster).at / "admission" / "enforcement"


def is_warned(cluster: Cluster, tenant: Tenant, namespace: str | None) -> bool:
    """Whether admission accepts what its rules refuse in a namespace, and warns of it."""
    return enforcement_of(cluster, tenant, namespace) is Enforcement.WARN


def enforcements(plan: Plan) -> Mapping[Enforcement, Mapping[str, tuple[str | None, ...]]]:
    """Return the namespaces of tenants by the enforcement that they have, and by tenant.

    Without any namespace there is the cluster's enforcement, with nothing.
    """
    found: dict[Enforcement, dict[str, tuple[str | None, ...]]] = {plan.cluster.spec.admission.enforcement: {}}
    for tenant in plan.tenants:
        for namespace in (*tenant.spec.namespaces, *([None] if tenant.spec.labelled_namespaces else ())):
            named = found.setdefault(enforcement_of(plan.cluster, tenant, namespace), {})
            named[tenant.name] = (*named.get(tenant.name, ()), namespace)
    return {mode: named for mode, named in found.items() if named} or found


def warned_namespaces(plan: Plan) -> list[tuple[Tenant, str]]:
    """Return the namespaces where admission only warns, with their tenants; those by label are told by the label."""
    warned = enforcements(plan).get(Enforcement.WARN, {})
    return [
        (tenant, name or f"{TENANT_LABEL}={tenant.name}")
        for tenant in plan.tenants
        for name in warned.get(tenant.name, ())
    ]


def grace_seconds(cluster: Cluster) -> int | None:
    """Return the longest grace period that pods with GPUs may ask for, or None without a bound."""
    period = cluster.spec.admission.grace_period
    return None if period == "none" else seconds(period)


def most_grace_seconds(cluster: Cluster, tenant: Tenant) -> int | None:
    """Return the longest grace period for pods of a tenant, which may have a bound of its own."""
    bound = grace_seconds(cluster)
    period = tenant.spec.allow.grace_period
    return bound if bound is None or period is None else seconds(period)


GRACE_SECONDS: Final = 30
"""The grace period of pods that state none (`DefaultTerminationGracePeriodSeconds` in kubernetes/api)."""

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
    """Return the grants of a namespace, sorted. A cap of zero grants nothing.

    None stands for those that are the tenant's by their label.
    """
    found = {}
    for quota in tenant.quotas:
        if (quota.labelled_cap if namespace is None else quota.caps[namespace]) != 0:
            resource = quota.unit.asked_as or FRACTION
            most = tenant.spec.allow.units_per_container if quota.unit.asked_as else None
            most = 1 if refuses_more_than_one(quota.pool, quota.unit) else most
            found[quota.pool.name, resource] = Grant(quota.pool.name, resource, most)
    return tuple(found[key] for key in sorted(found))


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
    """Return the data of the ConfigMap that the policies read for a namespace. Every value is a list, an item a line.

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
"""The prefix of resources that the policies take for GPUs, unless a parameter excepts them."""


def _lines(items: Iterable[str]) -> str:
    return "".join([f"{item}\n" for item in items])


USUAL_RESOURCES = (GPU_RESOURCE, f"{GPU_RESOURCE}.shared")
"""The resources that a node publishes without a configuration, or before it is applied."""


def gpu_resources(plan: Plan) -> tuple[str, ...]:
    """Return every resource of GPUs of the cluster, now or after a change of layout, sorted.

    Beside the pools' own: the usual ones, and the profiles of layouts that no pool uses yet, or any more.
    """
    found = set(USUAL_RESOURCES)
    found.update(unit.resource for pool in plan.pools for unit in pool.units if unit.resource is not None)
    for layout in (*plan.mig_layouts, *(retained.layout for retained in plan.retained_layouts)):
        profiles = {profile for entry in layout.entries for profile in entry.instances if parse_profile(profile)}
        found.update(map(mig_resource, profiles))
    return tuple(sorted(found))


class Account(NamedTuple):
    """A subject of a RoleBinding. ``field`` is the field of the policy that names it."""

    kind: str
    name: str
    field: str


def account_of(member: Member) -> Account:
    """Return the account of a member. A service account is a user by its user name, which the authorizer treats alike.

    (`appliesToUser` in `pkg/registry/rbac/validation/rule.go` of kubernetes/kubernetes.)
    """
    if member.user is not None:
        return Account("User", member.user, "user")
    return Account("Group", member.group or "", "group")


def role_of(member: Member) -> str:
    """Return the name of the member's ClusterRole."""
    return member.cluster_role or member.role.value


def role_field(member: Member) -> str:
    """Return the field of the policy that names the role."""
    return "clusterRole" if member.cluster_role else "role"


RDMA_LABEL: Final = "gpuplan.dev/rdma"
"""On the namespaces of such tenants: their level of Pod Security is `privileged`, and an admission policy of gpuplan's
chooses them by it. It comes and goes with the level in one request, and the policy is on every cluster: so pods are
never held to nothing. No role of a tenant may change a Namespace."""


def is_held_by_rules(tenant: Tenant) -> bool:
    """Whether the rules of an admission policy stand in for the tenant's level of Pod Security."""
    return bool(tenant.spec.allow.rdma) and tenant.spec.allow.pod_security is PodSecurity.BASELINE


NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that the API server gives every namespace; nobody can change it."""


def network_resources(plan: Plan) -> tuple[str, ...]:
    """Return the network resources that some tenant may ask for, sorted. Other tenants may not."""
    return tuple(sorted({resource for tenant in plan.tenants for resource in tenant.spec.allow.rdma}))


def whose_enforcement(plan: Plan) -> tuple[Subject, ...]:
    """Return subjects for objects that follow from tenants' own enforcements, or none if no tenant has one."""
    return every(Tenant) if any(tenant.spec.admission.model_fields_set for tenant in plan.tenants) else ()


def whose_network(plan: Plan) -> tuple[Subject, ...]:
    """Return subjects for objects that follow from network resources of any tenant, or none if no tenant has some."""
    return every(Tenant) if network_resources(plan) else ()


def places_of(plan: Plan, resource: str) -> Iterator[Origin]:
    """Yield the places that grant a network resource to tenants."""
    for tenant in plan.tenants:
        for index, listed in enumerate(tenant.spec.allow.rdma):
            if listed == resource:
                yield tenant.at / "allow" / "rdma" / index


Barrier = tuple[tuple[str, str, str], ...]
"""The taints of a node that keep pods off, each as its key, its value and its effect; `ANY` stands for any value."""

ANY: Final = "*"

_USUAL: Final[tuple[Barrier, ...]] = (
    (("node-role.kubernetes.io/control-plane", ANY, Effect.NO_SCHEDULE.value),),
    (("node-role.kubernetes.io/master", ANY, Effect.NO_SCHEDULE.value),),
    ((GPU_RESOURCE, ANY, Effect.NO_SCHEDULE.value),),
)
"""The taint of kubeadm's control planes, its older name, and the taint of GPU nodes in managed services."""


TOLERATIONS_RULE: Final = "tolerations-within-pools"
"""The admission rule that lets no pod tolerate taints of pools without a grant."""


def is_closed(plan: Plan, pool: Pool) -> bool:
    """Whether tenants' pods come to the pool's nodes by a grant alone, those without GPUs too."""
    is_held = TOLERATIONS_RULE not in plan.cluster.spec.admission.without
    return bool(pool.barrier) and is_held and has_admission_policies(plan.cluster)


def barriers(plan: Plan) -> tuple[Barrier, ...]:
    """Return each set of taints that a pod must tolerate for nodes of some pool or of the control plane, sorted.

    A usual one covers those of its key alone, whatever their values.
    """
    covered = {(key, effect) for ((key, _, effect),) in _USUAL}
    closed = ([(taint.key, taint.value, taint.effect.value) for taint in pool.barrier] for pool in plan.pools)
    sets = {tuple(sorted(taints)) for taints in closed}
    own = {taints for taints in sets if taints and not (len(taints) == 1 and (taints[0][0], taints[0][2]) in covered)}
    return tuple(sorted({*_USUAL, *own}))


def is_kept(quota: Quota, cap: Cap) -> bool:
    """Whether a ResourceQuota can bound a class: it counts pods by what their containers ask for.

    Claims have no class, and a fraction is no resource. Where queues cap there is none: it would refuse some pods of
    work that a queue has let in as a whole.
    """
    return cap is not Cap.QUEUE and quota.unit.resource is not None and not quota.unit.device_class


def class_cap(tenant: Tenant, quota: Quota, namespace: str, priority_class: str) -> Amount | None:
    """Return the most that pods of a class may use of a quota in a namespace. It is divided as the quota is."""
    limit, cap = quota.class_limits.get(priority_class), quota.caps[namespace]
    if limit is None:
        return cap
    part = portion(quota, tenant.spec.namespaces, namespace, limit) if quota.split else limit
    return part if cap is None else min(part, cap)


def class_caps(tenant: Tenant, namespace: str, cap: Cap) -> Mapping[str, Mapping[str, int]]:
    """Return the caps by class and resource, for classes that some quota limits.

    A ResourceQuota knows no nodes: quotas on one resource add up. Where one of them has no bound there is none, and
    ``counted_with`` says which these are.
    """
    kept = [quota for quota in tenant.quotas if is_kept(quota, cap)]
    found: dict[str, dict[str, int]] = {}
    for name in dict.fromkeys(name for quota in kept for name in quota.class_limits):
        for resource in dict.fromkeys(quota.unit.resource for quota in kept if name in quota.class_limits):
            parts = [class_cap(tenant, quota, namespace, name) for quota in kept if quota.unit.resource == resource]
            known = [part for part in parts if part is not None]
            if resource is not None and len(known) == len(parts):
                found.setdefault(name, {})[resource] = int(sum(known))
    return found


def counted_with(tenant: Tenant, quota: Quota, priority_class: str, cap: Cap) -> tuple[Quota, ...]:
    """Return quotas in other pools whose resource a ResourceQuota for the class counts as well. It knows no nodes."""
    return tuple(
        other
        for other in tenant.quotas
        if other.pool is not quota.pool
        and other.unit.resource == quota.unit.resource
        and is_kept(other, cap)
        and any(
            quota.caps[namespace] != 0 and class_cap(tenant, other, namespace, priority_class) != 0
            for namespace in tenant.spec.namespaces
        )
    )
