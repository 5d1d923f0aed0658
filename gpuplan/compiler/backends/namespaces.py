"""The back end of the stage `namespaces`: one folder for each namespace of a tenant.

A folder holds all that is about its namespace, so that no kustomize build grows with the number of tenants: the
Namespace, its quota on GPUs, its members' roles, and its admission binding with the parameters. Only those parameters
live elsewhere, in `gpuplan-system`: a tenant with the role `edit` may write any ConfigMap of its own namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from gpuplan.compiler.admission.policies import POD_SECURITY_POLICY
from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import Manifest, admission_binding, quantity
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, adding, choosing, chosen, copied, ordered
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.discovered import mig_resource
from gpuplan.compiler.planning.dra import CLAIMS_QUOTA, DRIVER_CLASSES, device_classes, quota_key, uses_claims
from gpuplan.compiler.planning.grants import (
    FRACTION,
    GRANTS_POLICY,
    NAME_LABEL,
    QUEUES_POLICY,
    RDMA_LABEL,
    SYSTEM_NAMESPACE,
    USUAL_RESOURCES,
    Account,
    account_of,
    class_caps,
    gpu_resources,
    grants,
    has_admission_policies,
    is_held_by_rules,
    is_warned,
    network_resources,
    parameters,
    place_of_enforcement,
    places_of,
    refuses_more_than_one,
    role_field,
    role_of,
    whose_network,
)
from gpuplan.compiler.planning.plan import TENANT_LABEL, Amount, Counted, Mps, Plan, Quota, Stage, Tenant, Unit
from gpuplan.compiler.planning.pods import compute_caps, container_limits, defaults_of
from gpuplan.compiler.planning.subjects import RESOURCES, about
from gpuplan.compiler.policy.models import PodSecurity

_T = TypeVar("_T")

_FOLDER = Stage.NAMESPACES.value

QUOTA: Final = "gpuplan"
"""The name of the ResourceQuota of a namespace; those of priority classes have their names behind it."""

_RBAC = "rbac.authorization.k8s.io"


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield the folders of all namespaces; those of no tenant are left alone."""
    banned = {f"requests.{resource}": "0" for resource in (*gpu_resources(plan), *network_resources(plan))}
    if uses_claims(plan):
        banned |= {quota_key(name): "0" for name in (*device_classes(plan), *DRIVER_CLASSES)}
        banned[CLAIMS_QUOTA] = "0"
    is_guarded = has_admission_policies(plan.cluster)
    scheduler, network = plan.scheduler, whose_network(plan)
    for tenant in plan.tenants:
        if tenant.spec.labelled_namespaces and is_guarded:
            yield from _labelled(plan, tenant)
        whose = about(tenant)
        for namespace in tenant.spec.namespaces:
            folder = f"{_FOLDER}/{namespace}"
            of = _Traces(plan, tenant, namespace)
            yield Manifest(folder, _namespace(plan, tenant, namespace), about=whose, trace=of.namespace)
            compute = compute_caps(tenant, namespace, scheduler)
            quota = _resource_quota(tenant, namespace, banned, compute)
            yield Manifest(folder, quota, about=(*whose, *RESOURCES, *network), trace=of.resource_quota)
            pools = about(*(quota.pool for quota in tenant.quotas))
            for name, caps in class_caps(tenant, namespace, plan.cluster.cap).items():
                # It bounds pods of one class, beside the bound on all (`podMatchesScopeFunc` in the evaluator of pods).
                of_class = {"scopeName": "PriorityClass", "operator": "In", "values": [name]}
                hard = {f"requests.{resource}": quantity(cap) for resource, cap in caps.items()}
                spec = {"hard": hard, "scopeSelector": {"matchExpressions": [of_class]}}
                body = new_object("v1", "ResourceQuota", f"{QUOTA}-{name}", namespace, spec=spec)
                yield Manifest(folder, body, about=(*whose, *pools), trace=partial(of.class_quota, name))
            if limits := container_limits(tenant, namespace, scheduler):
                limit_range = {"limits": [{"type": "Container", **limits}]}
                body = new_object("v1", "LimitRange", QUOTA, namespace, spec=limit_range)
                yield Manifest(folder, body, about=whose, trace=of.limit_range)
            for role, subjects in _members_by_role(tenant).items():
                # It is named by the role, which it cannot change. No role of Kubernetes may write quotas or namespaces.
                role_ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
                listed = [{"apiGroup": _RBAC, "kind": kind, "name": name} for kind, name, _ in subjects]
                api, name = f"{_RBAC}/v1", f"gpuplan-{role}"
                body = new_object(api, "RoleBinding", name, namespace, roleRef=role_ref, subjects=listed)
                yield Manifest(folder, body, about=whose, trace=partial(of.role_binding, role))
            if is_guarded:
                # The API server sets the label and nobody can change it.
                here = {"matchLabels": {NAME_LABEL: namespace}}
                yield from _grants(of, folder, f"-{namespace}", here)


def _labelled(plan: Plan, tenant: Tenant) -> Iterator[Manifest]:
    """Yield what holds in namespaces that are the tenant's by label and not by name: there may be any number.

    No name of a namespace has a dot, so that none of the objects of those is called so. Their level of Pod Security is
    up to whoever makes them; so an admission policy of ours holds them to `baseline` all the same.
    """
    of, own = _Traces(plan, tenant, None), sorted(tenant.spec.namespaces)
    others = given(
        matchLabels={TENANT_LABEL: tenant.name},
        matchExpressions=[{"key": NAME_LABEL, "operator": "NotIn", "values": own}] if own else None,
    )
    yield from _grants(of, Stage.SCHEDULING.value, f".{tenant.name}", others)
    if tenant.spec.allow.pod_security not in (PodSecurity.PRIVILEGED, PodSecurity.EXTERNAL):
        name, warns = f"{POD_SECURITY_POLICY}.{tenant.name}", is_warned(plan.cluster, tenant, None)
        binding = admission_binding(name, POD_SECURITY_POLICY, others, warns=warns)
        trace = partial(of.policy_binding, POD_SECURITY_POLICY)
        yield Manifest(Stage.SCHEDULING.value, binding, about=about(tenant), trace=trace)


def _grants(of: _Traces, folder: str, suffix: str, selector: Mapping[str, Any]) -> Iterator[Manifest]:
    """Yield the parameters of a tenant's policies in some namespaces, and the bindings of these policies to them.

    Whoever applies a binding needs the right to read ConfigMaps in `gpuplan-system`: the API server asks for it.
    """
    tenant, scheduler, name = of.tenant, of.plan.scheduler, f"grants{suffix}"
    body = new_object("v1", "ConfigMap", name, SYSTEM_NAMESPACE, data=parameters(tenant, of.name, scheduler))
    subjects = about(tenant, *(quota.pool for quota in tenant.quotas))
    yield Manifest(folder, body, about=subjects, trace=of.parameters, why=text_of("why-grants"))
    for policy in (GRANTS_POLICY, QUEUES_POLICY) if scheduler.has_queues else (GRANTS_POLICY,):
        read = {"name": name, "namespace": SYSTEM_NAMESPACE}
        warns = is_warned(of.plan.cluster, tenant, of.name)
        body = admission_binding(f"{policy}{suffix}", policy, selector, read, warns=warns)
        yield Manifest(folder, body, about=about(tenant), trace=partial(of.policy_binding, policy))


def _namespace(plan: Plan, tenant: Tenant, namespace: str) -> dict[str, Any]:
    """Return the Namespace.

    The level is also a warning: `enforce` judges pods alone, `warn` tells whoever applies a Deployment. If a tenant may
    use RDMA it forbids nothing, and an admission policy of ours does so in its place. Where admission only warns, what
    is enforced stays as it is; RDMA needs that nothing is.
    """
    is_held, scheduler = is_held_by_rules(tenant), plan.scheduler
    level = (PodSecurity.PRIVILEGED if is_held else tenant.spec.allow.pod_security).value
    warns = is_warned(plan.cluster, tenant, namespace) and not is_held
    modes = ("audit" if warns else "enforce", "warn")
    labels = {
        TENANT_LABEL: tenant.name,
        **({RDMA_LABEL: "true"} if is_held else {}),
        **({} if level == PodSecurity.EXTERNAL else {f"pod-security.kubernetes.io/{mode}": level for mode in modes}),
        **({scheduler.project_label: namespace} if scheduler.has_projects else {}),
    }
    return new_object("v1", "Namespace", namespace, labels=labels)


# --- Quota -------------------------------------------------------------------------------------------------------


def _resource_quota(
    tenant: Tenant, namespace: str, banned: Mapping[str, str], compute: Mapping[Counted, int]
) -> dict[str, Any]:
    """Return caps on what is granted, and zero for every other way to a GPU: a key that is absent caps nothing.

    Only `requests.<resource>` counts for extended resources; the API server stores `limits.<resource>` and bare names
    too, and never counts them (`isExtendedResourceNameForQuota`, `podComputeUsageHelper` in
    `pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes). There is no scope for nodes, so pools whose units
    share a resource share one cap.

    Claims are counted by class. One of a class that the plan does not know is counted by nothing else: so there may be
    no more claims than devices.

    CPU, memory and pods come last. They are of all pods of the namespace, on whatever nodes.

    Where the queue caps all that there is nothing is left. The API server keeps no empty mapping, and what applies the
    object would find it changed for ever.
    """
    free = {f"requests.{resource}" for resource in tenant.spec.allow.rdma}
    hard = {key: number for key, number in banned.items() if key not in free}
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
    hard |= {_COMPUTE_KEYS[counted]: amount_text(counted, cap) for counted, cap in compute.items()}
    return new_object("v1", "ResourceQuota", QUOTA, namespace, spec={"hard": hard} if hard else {})


_COMPUTE_KEYS: Final = {Counted.CPU: "requests.cpu", Counted.MEMORY: "requests.memory", Counted.PODS: "pods"}
"""The keys by which a ResourceQuota counts CPU, memory and pods."""


def _keys(unit: Unit) -> tuple[str, ...]:
    """Return the keys by which a ResourceQuota counts a unit."""
    if unit.device_class:
        return quota_key(unit.device_class), CLAIMS_QUOTA
    return () if unit.resource is None else (f"requests.{unit.resource}",)


# --- Members -----------------------------------------------------------------------------------------------------


def _members_by_role(tenant: Tenant) -> dict[str, list[Account]]:
    found = grouped((role_of(member), account_of(member)) for member in tenant.spec.members)
    return {role: sorted({*found[role]}) for role in sorted(found)}


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Routes of the objects of one namespace; without a name, of all that are the tenant's by label."""

    plan: Plan
    tenant: Tenant
    name: str | None

    def namespace(self) -> Routes:
        yield ("metadata", "name"), self._named()
        yield ("metadata", "labels", TENANT_LABEL), sources.named(self.tenant)
        for mode in ("enforce", "audit", "warn"):
            route = ("metadata", "labels", f"pod-security.kubernetes.io/{mode}")
            yield route, copied(self.tenant.at / "allow" / "podSecurity")
            yield route, self._rdma()
            if mode != "warn" and not is_held_by_rules(self.tenant):
                yield route, self._enforcement()
        yield ("metadata", "labels", RDMA_LABEL), self._rdma()
        if label := self.plan.scheduler.project_label:
            yield ("metadata", "labels", label), (*self._named(), *chosen(self.plan.cluster.scheduler.at / "kind"))

    def _enforcement(self) -> Links:
        return chosen(place_of_enforcement(self.plan.cluster, self.tenant, self.name))

    def _rdma(self) -> Links:
        """Return the place that grants it at all: one resource is enough."""
        listed = self.tenant.spec.allow.rdma
        return chosen(self.tenant.at / "allow" / "rdma" / 0) if len(listed) == 1 else ()

    def resource_quota(self) -> Routes:
        yield ("metadata", "namespace"), self._named()
        for resource in network_resources(self.plan):
            places = tuple(places_of(self.plan, resource))
            yield ("spec", "hard", f"requests.{resource}"), copied(*places) if len(places) == 1 else ()
        for key, links in _offered(self.plan).items():
            yield ("spec", "hard", key), links
        by_key = grouped((key, quota) for quota in self.tenant.quotas for key in _keys(quota.unit))
        for key, quotas in by_key.items():
            caps = tuple(link for quota in quotas for link in self._cap_of(quota))
            asked = (link for quota in quotas for link in sources.asked_by(self.plan, quota))
            yield ("spec", "hard", key), (*(adding(caps) if len(quotas) > 1 else caps), *asked)
        for counted, key in _COMPUTE_KEYS.items():
            yield ("spec", "hard", key), self._compute_of(counted)

    def class_quota(self, priority_class: str) -> Routes:
        """Yield the routes of a bound on a class. Of several limits none alone decides that it is there."""
        stated = [
            quota.at / "classLimits" / priority_class
            for quota in self.tenant.quotas
            if priority_class in quota.class_limits
        ]
        name = sources.named(*(item for item in self.tenant.priority_classes if item.name == priority_class))
        yield (), (*sources.caps_of(self.plan), *(chosen(*stated) if len(stated) == 1 else ()))
        yield ("metadata", "name"), name
        yield ("metadata", "namespace"), self._named()
        yield ("spec", "scopeSelector", "matchExpressions", 0, "values", 0), name
        counted = [quota for quota in self.tenant.quotas if quota.unit.resource and not quota.unit.device_class]
        for resource in dict.fromkeys(quota.unit.resource for quota in counted):
            quotas = [quota for quota in counted if quota.unit.resource == resource]
            caps = tuple(
                link
                for quota in quotas
                for link in sources.class_cap_of(self.plan, quota, self.name or "", priority_class)
            )
            asked = (link for quota in quotas for link in sources.asked_by(self.plan, quota))
            yield ("spec", "hard", f"requests.{resource}"), (*(adding(caps) if len(quotas) > 1 else caps), *asked)

    def limit_range(self) -> Routes:
        """Yield the routes of a LimitRange: what the tenant says or the ResourceQuota counts is enough for it."""
        yield ("metadata", "namespace"), self._named()
        item, reasons = ("spec", "limits", 0), list[Links]()
        for counted, found in defaults_of(self.tenant).items():
            needed, name = choosing(self._compute_of(counted)), counted.value
            written = copied(found.at / found.request_field) if found.request is not None else needed
            yield (*item, "default", name), copied(found.at / "limit")
            yield (*item, "defaultRequest", name), written
            yield (*item, "maxLimitRequestRatio", name), copied(found.at / "maxRatio")
            reasons += [links for links in (needed, *map(chosen, found.stated)) if links]
        yield (), tuple(link for link in next(iter(reasons), ()) if all(link in other for other in reasons))

    def _compute_of(self, counted: Counted) -> Links:
        """Return the places of a quota on compute. Whether it counts here at all is its split's to say."""
        granted = [quota for quota in self.tenant.quotas if quota.find_compute(counted)]
        links = tuple(link for quota in granted for link in sources.compute_cap_of(self.plan, quota, counted))
        splits = (quota.at / "split" / (self.name or "") for quota in self.tenant.quotas if quota.split)
        where = (*chosen(*splits), *sources.scheduler_of(self.plan)) if links else ()
        return (*(adding(links) if len(granted) > 1 else links), *where)

    def role_binding(self, role: str) -> Routes:
        """Yield the routes of a binding. A member may be a group's name alone, which says nothing of the role."""
        yield ("metadata", "namespace"), self._named()
        members = [
            (self.tenant.at / "members" / index, member)
            for index, member in enumerate(self.tenant.spec.members)
            if role_of(member) == role
        ]
        roles = [
            at / role_field(member) for at, member in members if {"role", "cluster_role"} & member.model_fields_set
        ]
        yield ("metadata", "name"), chosen(*roles)
        yield ("roleRef", "name"), (copied if len(members) == 1 else chosen)(*roles)
        for index, subject in enumerate(_members_by_role(self.tenant)[role]):
            places = [at / subject.field for at, member in members if account_of(member) == subject]
            yield ("subjects", index, "name"), copied(*places)
            yield ("subjects", index, "kind"), chosen(*places)
        if len(members) > 1:
            everyone = ordered(*(at / account_of(member).field for at, member in members))
            yield ("subjects", ANY, "name"), everyone
            yield ("subjects", ANY, "kind"), everyone

    def parameters(self) -> Routes:
        """Yield the routes of the grants.

        A line is there while the cap is above zero; lines are in the order of names.
        """
        yield (), sources.admission_of(self.plan)
        yield ("metadata", "name"), self._named()
        yield ("data", "tenant"), sources.named(self.tenant)
        yield ("data", "gracePeriod"), copied(self.tenant.at / "allow" / "gracePeriod")
        # They are sorted: of several each may be in the place of another.
        rdma = [self.tenant.at / "allow" / "rdma" / index for index in range(len(self.tenant.spec.allow.rdma))]
        link = copied if len(rdma) == 1 else chosen
        yield ("data", "otherResources"), link(*rdma)
        yield ("data", "otherResources", ANY), link(*rdma)
        for index, priority in enumerate(self.tenant.priority_classes):
            at = self.tenant.at / "priorityClasses" / index
            yield ("data", "priorityClasses", index), (*copied(at), *sources.named(priority))
        granted = grants(self.tenant, self.name)
        if not granted:
            yield ("data",), chosen(*filter(None, map(self._cap_of_zero, self.tenant.quotas)))
        pools = {grant.pool for grant in granted}
        for index, (quotas, links) in enumerate(self._listed(lambda quota: quota.pool.name, pools)):
            yield ("data", "pools", index), links
            pool = quotas[0].pool
            is_kept = pool.name in self.tenant.spec.names.queues
            called = sources.queue_by_pool_of(self.tenant, pool) if is_kept else sources.named(self.tenant)
            yield ("data", "queues", index), (*links, *called, *sources.scheduler_of(self.plan))
        resources = {(grant.pool, grant.resource) for grant in granted}
        for index, (quotas, links) in enumerate(self._listed(_granted, resources)):
            asked = (link for quota in quotas for link in (*sources.asked_by(self.plan, quota), *self._most_of(quota)))
            yield ("data", "grants", index), (*links, *asked)

    def _listed(self, key: Callable[[Quota], _T], written: Collection[_T]) -> Iterator[tuple[Sequence[Quota], Links]]:
        """Yield the quotas of each line that is there, sorted; those before it could be gone, and all be elsewhere.

        Where several quotas are of one line, none alone decides that it is there.
        """
        groups = grouped((key(quota), quota) for quota in sorted(self.tenant.quotas, key=_granted))
        places = [place for quota in self.tenant.quotas for place in (quota.at / "pool", sources.name_of(quota.pool))]
        before: list[Origin] = places if len(self.tenant.quotas) > 1 else []
        for line, quotas in groups.items():
            alone = quotas[0] if len(quotas) == 1 else None
            cap = self._cap_of_zero(alone) if alone else None
            if line in written:
                own = (*copied(alone.at / "pool"), *(chosen(cap) if cap else ())) if alone else ()
                yield quotas, (*sources.named(quotas[0].pool), *own, *ordered(*before))
            before = [*before, cap] if cap else before

    def _cap_of_zero(self, quota: Quota) -> Origin | None:
        """Return what would make a cap of zero: a split or a guarantee, for no limit is less than a guarantee."""
        (number, *_) = self._cap_of(quota)
        return None if number.at == quota.at / "limit" else number.at

    def _most_of(self, quota: Quota) -> Links:
        """Return what bounds the units of a container.

        The device plugin refuses several shares, whatever a tenant may.
        """
        part = quota.pool.part_with(quota.unit)
        is_sliced = part.shares_of(quota.unit) is not None and not isinstance(part.shares, Mps)
        refuses = chosen(part.shares.at / "failRequestsGreaterThanOne") if part.shares and is_sliced else ()
        if refuses_more_than_one(quota.pool, quota.unit):
            return refuses
        return (*refuses, *copied(self.tenant.at / "allow" / "unitsPerContainer"))

    def policy_binding(self, policy: str) -> Routes:
        yield (), sources.admission_of(self.plan)
        if policy == QUEUES_POLICY:
            yield (), sources.scheduler_of(self.plan)
        yield ("metadata", "name"), self._named()
        yield ("spec", "paramRef", "name"), self._named()
        yield ("spec", "paramRef", "parameterNotFoundAction"), self._enforcement()
        yield ("spec", "validationActions"), self._enforcement()
        selector = ("spec", "matchResources", "namespaceSelector")
        yield (*selector, "matchLabels", ANY), self._named()
        places = [sources.namespace_of(self.tenant, name) for name in sorted(self.tenant.spec.namespaces)]
        for index, place in enumerate(places if self.name is None else ()):
            yield (*selector, "matchExpressions", 0, "values", index), (*copied(place), *ordered(*places))

    def _named(self) -> Links:
        if self.name is None:
            return (*sources.named(self.tenant), *chosen(self.tenant.at / "labelledNamespaces"))
        return copied(sources.namespace_of(self.tenant, self.name))

    def _cap_of(self, quota: Quota) -> Links:
        """Return what a ResourceQuota caps in the namespace; without any, a limit of 0 still grants nothing."""
        return copied(sources.limit_of(quota)) if self.name is None else sources.cap_of(self.plan, quota, self.name)


def _granted(quota: Quota) -> tuple[str, str]:
    return quota.pool.name, quota.unit.asked_as or FRACTION


def _offered(plan: Plan) -> Mapping[str, Links]:
    """Return by key of a ResourceQuota what alone decides that the cluster may hand that out.

    If several layouts or pools hand out a unit, it is there without any one of them; `nvidia.com/gpu` is without all.
    """
    ways: dict[str, list[Links]] = {f"requests.{resource}": [] for resource in USUAL_RESOURCES}
    for layout in plan.mig_layouts:
        for profile, at in sources.places_of_profiles(layout):
            ways.setdefault(f"requests.{mig_resource(profile)}", []).append(chosen(at))
    of_layouts = frozenset(ways)
    for pool in plan.pools:
        for unit in pool.units:
            for key in _keys(unit):
                if key not in of_layouts:
                    ways.setdefault(key, []).append(sources.resource_of(pool, unit))
    for name in (CLAIMS_QUOTA, *map(quota_key, DRIVER_CLASSES)):
        ways[name] = [sources.claims_of(plan)]
    return {key: links[0] for key, links in ways.items() if len(links) == 1}
