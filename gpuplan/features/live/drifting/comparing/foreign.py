"""Objects of others that act against what gpuplan writes (GPU816); all else that others have is theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, field_path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, Tenant
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.rules import ACTS_AGAINST_POLICY

_RBAC: Final = "rbac.authorization.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"


def opponents(
    plan: Plan,
    dump: Dump,
    ours: AbstractSet[Identity],
    written: Mapping[Identity, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[Diagnostic]:
    """What acts against a plan: objects of a dump, none of ours, and fields that others added to what is written."""
    around = _Around(plan, dump, {*ours})
    for check in (_quotas, _node_rules, _cluster_policies, _cluster_queues, _local_queues, _role_bindings):
        for finding in check(around):
            yield Diagnostic(ACTS_AGAINST_POLICY, finding, (plan.cluster.name,))
    for finding in _additions(dump, written):
        yield Diagnostic(ACTS_AGAINST_POLICY, finding, (plan.cluster.name,))


class _Around(NamedTuple):
    """A plan, what a dump has, and which of it is ours."""

    plan: Plan
    dump: Dump
    ours: set[Identity]

    def others(self, group: str, kind: str) -> Iterator[Item]:
        return (item for item in self.dump.of_kind(group, kind) if item.identity not in self.ours)

    def tenant_of(self, namespace: str) -> Tenant | None:
        """The tenant that a namespace belongs to, by name or by its label."""
        named = next((tenant for tenant in self.plan.tenants if namespace in tenant.spec.namespaces), None)
        item = self.dump.find("", "Namespace", namespace)
        label = item.labels.get(TENANT_LABEL, "") if item else ""
        labelled = (tenant for tenant in self.plan.tenants if tenant.name == label and tenant.spec.labelled_namespaces)
        return named or next(labelled, None)

    def labels_of(self, namespace: str, tenant: Tenant) -> Mapping[str, str]:
        """The labels of a namespace: those that it has, or else those that it is given."""
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


def _additions(dump: Dump, written: Mapping[Identity, Mapping[str, Any]]) -> Iterator[Finding]:
    for addition in _ADDITIONS:
        for item in dump.of_kind(addition.group, addition.kind):
            found = value_at(item.body, addition.route)
            body = written.get(item.identity)
            if body is None or not found or found == addition.idle or value_at(body, addition.route) is not None:
                continue
            yield Finding(
                item.at / addition.route,
                f"{item.title} has `{field_path(addition.route)}`, which no policy writes",
                label=addition.effect,
                notes=("a sync leaves fields alone that others added",),
                help="take it out; where the API server refuses that, delete the object: the next sync creates it",
            )


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(around: _Around) -> Iterator[Finding]:
    counted = {unit.asked_as for pool in around.plan.pools for unit in pool.units if unit.asked_as}
    for item in around.others("", "ResourceQuota"):
        tenant = around.tenant_of(item.namespace)
        hard = inside(item.body, "spec", "hard")
        asked = {key: key.removeprefix(_REQUESTS) for key in hard if key.startswith(_REQUESTS)}
        keys = [key for key, resource in asked.items() if resource in counted or resource.startswith("nvidia.com/")]
        if tenant and keys:
            yield Finding(
                item.at / "spec" / "hard" / keys[0],
                f"{item.title} caps `{keys[0]}` beside gpuplan's quota",
                label=f"{listing(keys)} of tenant `{tenant.name}`",
                related=(Label(tenant.at, "what the tenant may have is said here"),),
                notes=("of two quotas that count the same, the tighter one holds",),
                help=f"delete it, or set the quota in Tenant `{tenant.name}`",
            )


_REQUESTS: Final = "requests."
"""How all keys begin that count extended resources (`isExtendedResourceNameForQuota` in
`pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes); others of them cap nothing.
"""


# --- Nodes -------------------------------------------------------------------------------------------------------


def _node_rules(around: _Around) -> Iterator[Finding]:
    given = {key: part for part in around.plan.parts for key in part.labels}
    for item in around.dump.objects:
        if item.kind != "NodeFeatureRule" or item.identity in around.ours:
            continue
        for index, rule in enumerate(sequence(inside(item.body, "spec").get("rules"))):
            for key, value in mapping(mapping(rule).get("labels")).items():
                if key in given:
                    yield Finding(
                        item.at / "spec" / "rules" / index / "labels" / key,
                        f"{item.title} gives nodes the label `{key}`, which pools give them",
                        label=f"`{value}`" if isinstance(value, str) else "",
                        related=(Label(given[key].at, f"pool `{given[key].name}` gives it"),),
                        notes=("of two rules that give a node one label, the one whose name comes later holds",),
                        help="take the label out of the rule",
                    )


def _cluster_policies(around: _Around) -> Iterator[Finding]:
    name = around.plan.cluster.gpu_operator.cluster_policy
    for item in around.others("nvidia.com", "ClusterPolicy"):
        if item.name != name:
            yield Finding(
                item.at / "metadata" / "name",
                f"{item.title} is a second one beside `{name}`",
                label="the GPU Operator obeys one: the oldest from v26.7.0 on, before the first that it sees",
                related=(Label(around.plan.cluster.gpu_operator.at, f"the policy is about `{name}`"),),
                notes=("it writes no `status.state` of the others (`Reconcile` in its `clusterpolicy_controller.go`)",),
                help="delete the one that is not in use",
            )


# --- Queues ------------------------------------------------------------------------------------------------------


def _cluster_queues(around: _Around) -> Iterator[Finding]:
    for item in around.others(_KUEUE, "ClusterQueue"):
        spec = inside(item.body, "spec")
        selector = spec.get("namespaceSelector")
        open_to = [
            namespace
            for tenant in around.plan.tenants
            for namespace in tenant.spec.namespaces
            if isinstance(selector, Mapping) and matches(selector, around.labels_of(namespace, tenant)) is True
        ]
        if open_to:
            yield Finding(
                item.at / "spec" / "namespaceSelector",
                f"{item.title} takes work of tenants' namespaces",
                label=f"of {listing(open_to)}",
                notes=("what it admits, no quota of theirs counts",),
                help="let its `namespaceSelector` leave these namespaces out",
            )


def _local_queues(around: _Around) -> Iterator[Finding]:
    queues = {identity.name for identity in around.ours if identity.kind == "ClusterQueue"}
    for item in around.others(_KUEUE, "LocalQueue"):
        tenant = around.tenant_of(item.namespace)
        queue = text(inside(item.body, "spec").get("clusterQueue"))
        if tenant and queue and queue not in queues:
            yield Finding(
                item.at / "spec" / "clusterQueue",
                f"{item.title} leads to a ClusterQueue that is not gpuplan's",
                label=f"`{queue}` admits what the quota of tenant `{tenant.name}` does not count",
                related=(Label(tenant.at, "what the tenant may have is said here"),),
                help="delete it",
            )


# --- Rights ------------------------------------------------------------------------------------------------------


def _role_bindings(around: _Around) -> Iterator[Finding]:
    for item in around.others(_RBAC, "RoleBinding"):
        tenant = around.tenant_of(item.namespace)
        role = mapping(item.body.get("roleRef"))
        spaces = {item.namespace, *(tenant.spec.namespaces if tenant else ())}
        named = [who for subject in sequence(item.body.get("subjects")) if (who := _who(mapping(subject), spaces))]
        if tenant and named and _writes_quotas(around.dump, role, item.namespace):
            yield Finding(
                item.at / "roleRef" / "name",
                f"{item.title} lets others write quotas of tenant `{tenant.name}`",
                label=f"{listing(named)} may, as `{text(role.get('name'))}`",
                related=(Label(tenant.at, "what the tenant may have is said here"),),
                notes=("who may write a ResourceQuota can lift it",),
                help="bind `edit` or `admin`, which leave quotas alone, or name the members in the Tenant",
            )


def _who(subject: Mapping[str, Any], namespaces: AbstractSet[str]) -> str:
    """A person, a group, or an account of the tenant's own namespaces; empty for Kubernetes' own and other programs."""
    name = text(subject.get("name"))
    if subject.get("kind") == "ServiceAccount":
        return name if subject.get("namespace") in namespaces else ""
    is_everybody = name in ("system:authenticated", "system:unauthenticated", "system:serviceaccounts")
    accounts = {f"system:serviceaccounts:{namespace}" for namespace in namespaces}
    return "" if name.startswith("system:") and not is_everybody and name not in accounts else name


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
