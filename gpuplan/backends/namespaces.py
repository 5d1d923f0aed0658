"""The back end of the stage `namespaces`: one folder for each namespace of a tenant.

A folder holds all that is about its namespace, so that no kustomize build grows with the number of tenants: the
Namespace, its quota on GPUs, its members' roles, and its admission binding with the parameters. Only those parameters
live elsewhere, in `gpuplan-system`: a tenant with the role `edit` may write any ConfigMap of its own namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gpuplan.manifests import Manifest, admission_binding, quantity
from gpuplan.manifests.bodies import new_object
from gpuplan.manifests.provenance import ANY, Links, Routes, chosen, copied, ordered
from gpuplan.planning.dra import CLAIMS_QUOTA, DRIVER_CLASSES, device_classes, quota_key, uses_claims
from gpuplan.planning.grants import (
    GRANTS_POLICY,
    QUEUES_POLICY,
    SYSTEM_NAMESPACE,
    gpu_resources,
    has_admission_policies,
    parameters,
)
from gpuplan.planning.plan import TENANT_LABEL, Amount, Plan, Stage, Tenant, Unit
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.planning.sources import because_of, cap_of, named, namespace_of, resource_of
from gpuplan.planning.subjects import RESOURCES, about
from gpuplan.policy.models import Role
from gpuplan.values import NamedTuple

_FOLDER = Stage.NAMESPACES.value

_QUOTA = "gpuplan"

_RBAC = "rbac.authorization.k8s.io"


def render(plan: Plan) -> Iterator[Manifest]:
    """The folders of all namespaces; those of no tenant are left alone."""
    banned = _banned(plan)
    is_guarded = has_admission_policies(plan.cluster)
    scheduler = plan.scheduler
    for tenant in plan.tenants:
        whose = about(tenant)
        for namespace in tenant.spec.namespaces:
            folder = f"{_FOLDER}/{namespace}"
            of = _Traces(plan, tenant, namespace)
            yield Manifest(folder, _namespace(tenant, namespace, scheduler), about=whose, trace=of.namespace)
            quota = _resource_quota(tenant, namespace, banned)
            yield Manifest(folder, quota, about=(*whose, *RESOURCES), trace=of.resource_quota)
            for role, groups in _groups_by_role(tenant).items():
                binding = _role_binding(namespace, role, groups)
                yield Manifest(folder, binding, about=whose, trace=partial(of.role_binding, role))
            if is_guarded:
                pools = about(*(quota.pool for quota in tenant.quotas))
                for is_of_pools, body in _admission(tenant, namespace, scheduler):
                    yield Manifest(folder, body, about=(*whose, *pools) if is_of_pools else whose)


def _namespace(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> dict[str, Any]:
    """The level is also a warning: `enforce` judges pods alone, `warn` tells whoever applies a Deployment."""
    level = tenant.spec.allow.pod_security.value
    labels = {
        TENANT_LABEL: tenant.name,
        "pod-security.kubernetes.io/enforce": level,
        "pod-security.kubernetes.io/warn": level,
        **({scheduler.project_label: namespace} if scheduler.has_projects else {}),
    }
    return new_object("v1", "Namespace", namespace, labels=labels)


# --- Quota -------------------------------------------------------------------------------------------------------


def _banned(plan: Plan) -> dict[str, str]:
    banned = {f"requests.{resource}": "0" for resource in gpu_resources(plan)}
    if uses_claims(plan):
        banned |= {quota_key(name): "0" for name in (*device_classes(plan), *DRIVER_CLASSES)}
        banned[CLAIMS_QUOTA] = "0"
    return banned


def _resource_quota(tenant: Tenant, namespace: str, banned: Mapping[str, str]) -> dict[str, Any]:
    """Caps on what is granted, zero for every other way to a GPU: a key that is absent caps nothing.

    Only `requests.<resource>` counts for extended resources; the API server stores `limits.<resource>` and bare names
    too, and never counts them (`isExtendedResourceNameForQuota`, `podComputeUsageHelper` in
    `pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes). There is no scope for nodes, so pools whose units
    share a resource share one cap.

    Claims are counted by class. One of a class that the plan does not know is counted by nothing else: so there may be
    no more claims than devices.
    """
    return new_object("v1", "ResourceQuota", _QUOTA, namespace, spec={"hard": _hard(tenant, namespace, banned)})


def _hard(tenant: Tenant, namespace: str, banned: Mapping[str, str]) -> dict[str, str]:
    hard = dict(banned)
    caps: dict[str, Amount | None] = {}
    for quota in tenant.quotas:
        for key in _keys(quota.unit):
            cap, known = quota.caps[namespace], caps.get(key, 0)
            caps[key] = None if cap is None or known is None else cap + known
    for key, total in caps.items():
        if total is None:
            hard.pop(key, None)
        else:
            hard[key] = quantity(int(total))  # part of a device is none
    return hard


def _keys(unit: Unit) -> tuple[str, ...]:
    """What a ResourceQuota counts a unit by."""
    if unit.device_class:
        return quota_key(unit.device_class), CLAIMS_QUOTA
    return () if unit.resource is None else (f"requests.{unit.resource}",)


# --- Members -----------------------------------------------------------------------------------------------------


def _groups_by_role(tenant: Tenant) -> dict[Role, list[str]]:
    groups: dict[Role, set[str]] = {}
    for member in tenant.spec.members:
        groups.setdefault(member.role, set()).add(member.group)
    return {role: sorted(groups[role]) for role in sorted(groups)}


def _role_binding(namespace: str, role: Role, groups: list[str]) -> dict[str, Any]:
    """Named by the role, which cannot be changed in a binding. None of these roles may write quotas or namespaces."""
    role_ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role.value}
    subjects = [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups]
    name = f"gpuplan-{role.value}"
    return new_object(f"{_RBAC}/v1", "RoleBinding", name, namespace, roleRef=role_ref, subjects=subjects)


# --- Admission ---------------------------------------------------------------------------------------------------


def _admission(tenant: Tenant, namespace: str, scheduler: SchedulerTraits) -> Iterator[tuple[bool, dict[str, Any]]]:
    """The namespace's parameters, which say what of its pools the tenant has, and the policies' bindings with them.

    The namespace is chosen by the label that the API server sets and nobody can change. Whoever applies a binding
    needs the right to read ConfigMaps in `gpuplan-system`: the API server asks for it.
    """
    named = {"name": f"grants-{namespace}", "namespace": SYSTEM_NAMESPACE}
    yield (
        True,
        new_object("v1", "ConfigMap", named["name"], SYSTEM_NAMESPACE, data=parameters(tenant, namespace, scheduler)),
    )
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    for policy in (GRANTS_POLICY, QUEUES_POLICY) if scheduler.has_queues else (GRANTS_POLICY,):
        yield (
            False,
            admission_binding(f"{policy}-{namespace}", policy, here, named),
        )


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Where the objects of one namespace come from."""

    plan: Plan
    tenant: Tenant
    name: str

    def namespace(self) -> Routes:
        yield ("metadata", "name"), self._named()
        yield ("metadata", "labels", TENANT_LABEL), named(self.tenant)
        for mode in ("enforce", "warn"):
            route = ("metadata", "labels", f"pod-security.kubernetes.io/{mode}")
            yield route, copied(self.tenant.at / "allow" / "podSecurity")
        if label := self.plan.scheduler.project_label:
            yield ("metadata", "labels", label), (*self._named(), *chosen(self.plan.cluster.scheduler.at / "kind"))

    def resource_quota(self) -> Routes:
        """A resource that nobody has a quota on is there because a pool hands it out."""
        yield ("metadata", "namespace"), self._named()
        for pool in self.plan.pools:
            for unit in pool.units:
                for key in _keys(unit):
                    yield ("spec", "hard", key), (*because_of(pool), *resource_of(pool, unit))
        for quota in self.tenant.quotas:
            for key in _keys(quota.unit):
                links = (*chosen(quota.at / "pool", quota.at / "unit"), *cap_of(self.plan, quota, self.name))
                yield ("spec", "hard", key), links

    def role_binding(self, role: Role) -> Routes:
        yield ("metadata", "namespace"), self._named()
        members = [
            (self.tenant.at / "members" / index, member)
            for index, member in enumerate(self.tenant.spec.members)
            if member.role is role
        ]
        yield ("metadata", "name"), chosen(*(at / "role" for at, _ in members))
        yield ("roleRef", "name"), copied(*(at / "role" for at, _ in members))
        for index, group in enumerate(_groups_by_role(self.tenant)[role]):
            places = (at / "group" for at, member in members if member.group == group)
            yield ("subjects", index, "name"), copied(*places)
        yield ("subjects", ANY, "name"), ordered(*(at / "group" for at, _ in members))

    def _named(self) -> Links:
        return copied(namespace_of(self.tenant, self.name))
