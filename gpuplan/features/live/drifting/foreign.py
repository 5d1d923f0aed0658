"""Objects of others that act against what gpuplan writes (GPU816); all else that others have is theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Label, field_path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, Tenant
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report

_RBAC: Final = "rbac.authorization.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"


def opponents(
    plan: Plan,
    dump: Dump,
    ours: AbstractSet[Identity],
    written: Mapping[Identity, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[Diagnostic]:
    """Yield findings on what acts against a plan: objects of others, and fields that others added to ours."""
    around = _Around(plan, dump, {*ours})
    for check in (_quotas, _nodes, _queues, _role_bindings):
        yield from (replace(diagnostic, clusters=(plan.cluster.name,)) for diagnostic in check(around))
    for addition in _ADDITIONS:
        for item in dump.of_kind(addition.group, addition.kind):
            found, body = value_at(item.body, addition.route), written.get(item.identity)
            if body is None or not found or found == addition.idle or value_at(body, addition.route) is not None:
                continue
            at, field = item.at / addition.route, field_path(addition.route)
            diagnostic = report("added-field", at, item=item, field=field, addition=addition)
            yield replace(diagnostic, clusters=(plan.cluster.name,))


def _said_by(tenant: Tenant) -> tuple[Label, ...]:
    return (Label(tenant.at, "the tenant's quotas are here"),)


class _Around(NamedTuple):
    """A plan, what a dump has, and which of it is ours."""

    plan: Plan
    dump: Dump
    ours: set[Identity]

    def others(self, group: str, kind: str) -> Iterator[Item]:
        return (item for item in self.dump.of_kind(group, kind) if item.identity not in self.ours)

    def tenant_of(self, namespace: str) -> Tenant | None:
        """Return the tenant that a namespace belongs to, by name or by its label."""
        named = next((tenant for tenant in self.plan.tenants if namespace in tenant.spec.namespaces), None)
        item = self.dump.find("", "Namespace", namespace)
        label = item.labels.get(TENANT_LABEL, "") if item else ""
        labelled = (tenant for tenant in self.plan.tenants if tenant.name == label and tenant.spec.labelled_namespaces)
        return named or next(labelled, None)

    def labels_of(self, namespace: str, tenant: Tenant) -> Mapping[str, str]:
        """Return the labels of a namespace: those that it has, or else those that it is given."""
        item = self.dump.find("", "Namespace", namespace)
        given = {TENANT_LABEL: tenant.name} if item is None else item.labels
        return {"kubernetes.io/metadata.name": namespace, **given}


# --- Fields of our objects ---------------------------------------------------------------------------------------


class _Addition(NamedTuple):
    """A field that takes an object of a kind out of force, wholly or in part, by a value other than ``idle``."""

    group: str
    kind: str
    route: tuple[str, ...]
    effect: str
    idle: object = None


_ADMISSION: Final = "admissionregistration.k8s.io"
_ADDITIONS: Final = (
    _Addition("", "ResourceQuota", ("spec", "scopes"), "it counts only the pods of these scopes"),
    _Addition("", "ResourceQuota", ("spec", "scopeSelector"), "it counts only the pods that this selects"),
    _Addition(
        _ADMISSION, "ValidatingAdmissionPolicy", ("spec", "matchConditions"), "it judges only what meets all of these"
    ),
    _Addition(
        "",
        "Namespace",
        ("metadata", "labels", "pod-security.kubernetes.io/enforce-version"),
        "pods meet the checks of that release alone",
        "latest",
    ),
    _Addition("scheduling.k8s.io", "PriorityClass", ("globalDefault",), "pods that name no class get it"),
    _Addition(_KUEUE, "ClusterQueue", ("spec", "stopPolicy"), "it admits nothing", "None"),
    _Addition(_KUEUE, "LocalQueue", ("spec", "stopPolicy"), "it admits nothing", "None"),
)


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(around: _Around) -> Iterator[Diagnostic]:
    counted = {unit.asked_as for pool in around.plan.pools for unit in pool.units if unit.asked_as}
    for item in around.others("", "ResourceQuota"):
        tenant = around.tenant_of(item.namespace)
        hard = inside(item.body, "spec", "hard")
        asked = {key: key.removeprefix(_REQUESTS) for key in hard if key.startswith(_REQUESTS)}
        keys = [key for key, resource in asked.items() if resource in counted or resource.startswith("nvidia.com/")]
        if tenant and keys:
            at, related = item.at / "spec" / "hard" / keys[0], _said_by(tenant)
            yield report("quota-beside", at, related=related, item=item, keys=keys, all=listing(keys), tenant=tenant)


_REQUESTS: Final = "requests."
"""The beginning of all keys that count extended resources (`isExtendedResourceNameForQuota` in
`pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes); others of them cap nothing."""


# --- Nodes -------------------------------------------------------------------------------------------------------


def _nodes(around: _Around) -> Iterator[Diagnostic]:
    given = {key: part for part in around.plan.parts for key in part.labels}
    for item in around.dump.objects:
        if item.kind != "NodeFeatureRule" or item.identity in around.ours:
            continue
        for index, rule in enumerate(sequence(inside(item.body, "spec").get("rules"))):
            for key, value in mapping(mapping(rule).get("labels")).items():
                if key in given:
                    at, pool = item.at / "spec" / "rules" / index / "labels" / key, given[key]
                    related, shown = (Label(pool.at, f"pool `{pool.name}` gives it"),), f"`{value}`"
                    shown = shown if isinstance(value, str) else ""
                    yield report("label-by-another-rule", at, related=related, item=item, key=key, value=shown)
    operator, name = around.plan.cluster.gpu_operator, around.plan.cluster.gpu_operator.cluster_policy
    for item in around.others("nvidia.com", "ClusterPolicy"):
        if item.name != name:
            at, related = item.at / "metadata" / "name", (Label(operator.at, f"the policy is about `{name}`"),)
            yield report("second-cluster-policy", at, related=related, item=item, name=name)


# --- Queues ------------------------------------------------------------------------------------------------------


def _queues(around: _Around) -> Iterator[Diagnostic]:
    for item in around.others(_KUEUE, "ClusterQueue"):
        selector = inside(item.body, "spec").get("namespaceSelector")
        open_to = [
            namespace
            for tenant in around.plan.tenants
            for namespace in tenant.spec.namespaces
            if isinstance(selector, Mapping) and matches(selector, around.labels_of(namespace, tenant)) is True
        ]
        if open_to:
            at = item.at / "spec" / "namespaceSelector"
            yield report("queue-takes-tenants", at, item=item, namespaces=listing(open_to))
    queues = {identity.name for identity in around.ours if identity.kind == "ClusterQueue"}
    for item in around.others(_KUEUE, "LocalQueue"):
        owner = around.tenant_of(item.namespace)
        queue = text(inside(item.body, "spec").get("clusterQueue"))
        if owner and queue and queue not in queues:
            at, related = item.at / "spec" / "clusterQueue", _said_by(owner)
            yield report("leads-to-another-queue", at, related=related, item=item, queue=queue, tenant=owner)


# --- Rights ------------------------------------------------------------------------------------------------------


def _role_bindings(around: _Around) -> Iterator[Diagnostic]:
    for item in around.others(_RBAC, "RoleBinding"):
        tenant = around.tenant_of(item.namespace)
        role = mapping(item.body.get("roleRef"))
        spaces = {item.namespace, *(tenant.spec.namespaces if tenant else ())}
        everybody = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts")
        groups = {*everybody, *(f"system:serviceaccounts:{namespace}" for namespace in spaces)}
        named: list[str] = []  # people, groups, and accounts of the tenant's namespaces, but for Kubernetes' own
        for subject in map(mapping, sequence(item.body.get("subjects"))):
            name, is_account = text(subject.get("name")), subject.get("kind") == "ServiceAccount"
            is_program = subject.get("namespace") not in spaces if is_account else name.startswith("system:")
            if name and (not is_program or (name in groups and not is_account)):
                named.append(name)
        if tenant and named and _writes_quotas(around.dump, role, item.namespace):
            at, related = item.at / "roleRef" / "name", _said_by(tenant)
            who, called = listing(named), text(role.get("name"))
            yield report("binding-writes-quotas", at, related=related, item=item, tenant=tenant, who=who, role=called)


def _writes_quotas(dump: Dump, role: Mapping[str, Any], namespace: str) -> bool:
    """Whether a role lets somebody write ResourceQuotas; Kubernetes' own `admin` does not (`bootstrappolicy`)."""
    kind, name = text(role.get("kind")), text(role.get("name"))
    if (kind, name) == ("ClusterRole", "cluster-admin"):
        return True
    item = dump.find(_RBAC, kind, name, namespace if kind == "Role" else "")
    rules = sequence(item.body.get("rules")) if item else ()
    return any(
        _has(rule, "apiGroups", ("", "*")) and _has(rule, "resources", ("resourcequotas", "*")) and _has(rule, *_WRITE)
        for rule in map(mapping, rules)
        if not rule.get("resourceNames")
    )


_WRITE: Final = ("verbs", ("*", "create", "update", "patch", "delete", "deletecollection"))


def _has(rule: Mapping[str, Any], field: str, wanted: Iterable[str]) -> bool:
    return not {*map(text, sequence(rule.get(field)))}.isdisjoint(wanted)
