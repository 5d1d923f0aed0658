"""Objects of others that act against what gpuplan writes (GPU816); all else that others have is theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Label, Path, Severity
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.manifests import Identity, parse_quantity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.kueue import frameworks
from gpuplan.compiler.planning.plan import POOL_LABEL, TENANT_LABEL, Plan, Stage, Tenant
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.features.components import limited_gpus
from gpuplan.features.live.clusters.schedulers import kueue_configurations
from gpuplan.features.live.drifting.nodes import home_of
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.pools.nodes import read_machines

_RBAC: Final = "rbac.authorization.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"


def opponents(
    plan: Plan,
    dump: Dump,
    ours: AbstractSet[Identity],
    written: Mapping[Identity, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[Diagnostic]:
    """Yield findings on what acts against a plan: errors for what stops work or takes away what policies give."""
    around = _Around(plan, dump, {*ours}, written)
    for check in (_quotas, _defaults, _nodes, _queues, _configurations, _role_bindings):
        yield from (replace(diagnostic, clusters=(plan.cluster.name,)) for diagnostic in check(around))


def _said_by(tenant: Tenant) -> tuple[Label, ...]:
    return (Label(tenant.at, "the tenant's quotas are here"),)


class _Around(NamedTuple):
    """A plan, what a dump has, and which of it is ours."""

    plan: Plan
    dump: Dump
    ours: set[Identity]
    written: Mapping[Identity, Mapping[str, Any]] = MappingProxyType({})

    def others(self, group: str, kind: str) -> Iterator[Item]:
        return (item for item in self.dump.of_kind(group, kind) if item.identity not in self.ours)

    def names(self, kind: str) -> set[str]:
        """Return the names of our objects of a kind."""
        return {identity.name for identity in self.ours if identity.kind == kind}

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


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(around: _Around) -> Iterator[Diagnostic]:
    counted = {unit.asked_as for pool in around.plan.pools for unit in pool.units if unit.asked_as}
    for item in around.others("", "ResourceQuota"):
        tenant = around.tenant_of(item.namespace)
        hard = inside(item.body, "spec", "hard")
        asked = {key: key.removeprefix(_REQUESTS) for key in hard if key.startswith(_REQUESTS)}
        keys = [key for key, resource in asked.items() if resource in counted or resource.startswith("nvidia.com/")]
        if tenant and keys:
            tighter = [key for key in hard if _is_tighter(around, item, key)]
            severity = None if set(keys).isdisjoint(tighter) else Severity.ERROR
            yield report(
                "quota-beside",
                item.at / "spec" / "hard" / keys[0],
                related=_said_by(tenant),
                severity=severity,
                help=_what_may_go(around, item, tighter, tenant),
                item=item,
                keys=keys,
                all=listing(keys),
                tenant=tenant,
            )


def _what_may_go(around: _Around, quota: Item, tighter: Sequence[str], tenant: Tenant) -> str:
    """Say what of a quota may go and when: what another one caps as tightly, once that is there."""
    kept = [key for key in inside(quota.body, "spec", "hard") if key not in tighter]
    is_there = any(
        around.dump.find(*identity[:2], *identity[:1:-1])
        for identity in around.written
        if (identity.kind, identity.namespace) == ("ResourceQuota", quota.namespace)
    )
    first = "" if is_there else f"sync `{Stage.NAMESPACES.value}/{quota.namespace}` first, then "
    if not tighter:
        return f"{first}delete it: no cap of it is tighter than gpuplan's"
    stay = f"leave {listing(tighter)} in it, which nothing else caps so tightly, until Tenant `{tenant.name}` does"
    return f"{first}take {listing(kept)} out of it, and {stay}" if kept else stay


def _is_tighter(around: _Around, quota: Item, key: str) -> bool:
    """Whether a quota of others allows less than ours of its namespace; extended resources count by `requests.`."""
    if "/" in key and not key.startswith((_REQUESTS, "count/")):
        return False
    spellings = (key, f"{_REQUESTS}{key}")
    own = (
        parse_quantity(str(found))
        for identity, body in around.written.items()
        if (identity.kind, identity.namespace) == ("ResourceQuota", quota.namespace)
        for spelling in spellings
        if (found := inside(body, "spec", "hard").get(spelling)) is not None
    )
    theirs, ours = (
        parse_quantity(str(inside(quota.body, "spec", "hard")[key])),
        min((found for found in own if found is not None), default=None),
    )
    return ours is None or theirs is None or theirs < ours


def _defaults(around: _Around) -> Iterator[Diagnostic]:
    """Objects of others that give something to pods that ask for nothing."""
    for item in around.others("", "LimitRange"):
        tenant = around.tenant_of(item.namespace)
        for index, limit in enumerate(map(mapping, sequence(inside(item.body, "spec").get("limits")))):
            for field, key, effect in limited_gpus(limit, is_whole=True) if tenant else ():
                at = item.at / "spec" / "limits" / index / field / key
                yield report("gpus-in-limits", at, item=item, key=key, effect=effect, tenant=tenant)
    for item in around.others("scheduling.k8s.io", "PriorityClass"):
        if item.body.get("globalDefault") is True:
            yield report("class-for-everybody", item.at / "globalDefault", item=item)


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
    live = read_machines(around.dump).live
    homeless = [
        item
        for item in around.dump.of_kind("", "Node")
        if item.name in live
        and POOL_LABEL not in item.labels
        and home_of(around.plan, item) is None
        # Others have their GPUs for virtual machines.
        and item.labels.get("nvidia.com/gpu.workload.config", "container") == "container"
    ]
    if homeless and around.plan.pools:
        names = listing([item.name for item in homeless])
        called = count(len(homeless), "node")
        verb = "is" if len(homeless) == 1 else "are"
        yield report("node-in-no-pool", homeless[0].at / "metadata" / "name", called=called, verb=verb, names=names)
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
    yield from _quota_of_queues(around)
    queues = around.names("ClusterQueue")
    for item in around.others(_KUEUE, "LocalQueue"):
        owner = around.tenant_of(item.namespace)
        queue = text(inside(item.body, "spec").get("clusterQueue"))
        if owner and queue and queue not in queues:
            at, related = item.at / "spec" / "clusterQueue", _said_by(owner)
            yield report("leads-to-another-queue", at, related=related, item=item, queue=queue, tenant=owner)


def _quota_of_queues(around: _Around) -> Iterator[Diagnostic]:
    """Queues of others that take part in what is the tenants': below a queue of ours, or with a flavor of ours."""
    for group, kind, fields, parent in _PARENTS:
        for item in around.others(group, kind):
            spec = inside(item.body, "spec")
            field = next((field for field in fields if text(spec.get(field)) in around.names(parent)), "")
            if field:
                yield report("queue-below", item.at / "spec" / field, item=item, name=spec[field], kind=parent)
            for route, name in _flavors(spec):
                if not field and name in around.names("ResourceFlavor"):
                    yield report("queue-with-flavor", item.at / "spec" / route, item=item, name=name)
                    break


_PARENTS: Final = (
    (_KUEUE, "ClusterQueue", ("cohortName", "cohort"), "Cohort"),
    (_KUEUE, "Cohort", ("parentName", "parent"), "Cohort"),
    ("scheduling.run.ai", "Queue", ("parentQueue",), "Queue"),
)
"""The fields by which queues name the one above: Kueue's as `v1beta2` and `v1beta1` have it, and KAI-Scheduler's."""


def _flavors(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for group, listed in enumerate(map(mapping, sequence(spec.get("resourceGroups")))):
        for index, flavor in enumerate(map(mapping, sequence(listed.get("flavors")))):
            yield ("resourceGroups", group, "flavors", index, "name"), text(flavor.get("name"))


def _configurations(around: _Around) -> Iterator[Diagnostic]:
    """Kueue's own Configuration, which nobody syncs unless its chart is gpuplan's."""
    plan = around.plan
    if plan.scheduler is not KUEUE:
        return
    settings = plan.cluster.scheduler.spec.kueue
    is_meant = bool(settings and settings.configuration.get("manageJobsWithoutQueueName"))
    of = {(known.group, known.kind): known.integration for known in frameworks(plan.cluster)}
    used = {of[pair]: pair[1] for identity in sorted(around.ours) if (pair := identity[:2]) in of}
    for item, at, body in kueue_configurations(around.dump):
        listed = value_at(body, ("integrations", "frameworks"))
        known = sequence(listed) if listed is not None else ("batch/job",)
        lacking = [name for name in of.values() if name not in known]
        for name in filter(used.get, lacking):
            yield report("kind-without-queue", at, item=item, name=name, kind=used[name])
        if rest := [name for name in lacking if name not in used]:
            yield report("kinds-unknown", at, item=item, names=listing(rest))
        if body.get("manageJobsWithoutQueueName") is True and not is_meant:
            yield report("jobs-without-queue", at, item=item)


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
