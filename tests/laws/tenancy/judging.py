"""What a plan's admission policies say of a request, each rule by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.admission.judging import Request, anything, refusals as admission_refusals
from gpuplan.compiler.admission.policies import holds_for, policies
from gpuplan.compiler.manifests.admission import AdmissionPolicy
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tenancy.boundaries import plan_of
from tests.laws.tenancy.requests import HOME, Case, Object, Step, merged

MEMBERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "edit": ("jane", ("mallory",)),
    "admin": ("joe", ("mallory-admins",)),
    "view": ("jim", ("mallory-viewers",)),
    "stranger": ("jill", ("alice",)),
    "fabric": ("john", ("fabric",)),
    "autoscaler": (f"system:serviceaccount:{HOME}:ray", ("system:serviceaccounts", f"system:serviceaccounts:{HOME}")),
    "ci": (f"system:serviceaccount:{HOME}:ci", ("system:serviceaccounts", f"system:serviceaccounts:{HOME}")),
}
"""The name and the groups of whoever has a role in the namespace, or in another one; that of `fabric` has RDMA.

CI's token has the role `edit`. KubeRay gives its autoscaler an account in the namespace of the RayCluster.
"""

CONTROLLERS: Final[Mapping[str, str]] = {
    **{
        name: f"kube-system:{name}"
        for name in (
            "cronjob-controller",
            "daemon-set-controller",
            "deployment-controller",
            "generic-garbage-collector",
            "job-controller",
            "namespace-controller",
            "pod-garbage-collector",
            "replicaset-controller",
            "replication-controller",
            "resource-claim-controller",
            "statefulset-controller",
        )
    },
    "binder": "kai-scheduler:binder",
    "jobset": "jobset-system:jobset-controller-manager",
    "kserve": "kserve:kserve-controller-manager",
    "kubeflow": "kubeflow:training-operator",
    "kuberay": "kuberay:kuberay-operator",
    "kueue": "kueue-system:kueue-controller-manager",
    "lws": "lws-system:lws-controller-manager",
    "mpi": "mpi-operator:mpi-operator",
    "pod-grouper": "kai-scheduler:pod-grouper",
    "trainer": "kubeflow-system:kubeflow-trainer-controller-manager",
}
"""Namespace and name of the service account of each."""

ADMINISTRATOR: Final = "administrator"
KUEUE: Final = "kueue"
QUEUE_GROUP: Final = "kueue.x-k8s.io"
"""The API group of what Kueue makes of work."""

_PRIORITIES: Final = {
    "research": 20,
    "batch": 50,
    "production": 90,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def user_of(who: str) -> str:
    return MEMBERS[who][0] if who in MEMBERS else f"system:serviceaccount:{CONTROLLERS.get(who, who)}"


def refusals(case: Case) -> Mapping[str, str]:
    """The rules that refuse the last step, by name, with what they say. All before it must be let through."""
    *before, last = _judged(case)
    assert not any(before), f"{case.label}: refused earlier by {before}"
    return last


def _judged(case: Case) -> Iterator[Mapping[str, str]]:
    plan = plan_of(case.platform)
    current: Object = {}
    for step in case.steps:
        after = _after(step, current)
        yield _refusals(plan, step, current if step.verb in ("change", "delete") else None, after)
        current = after if step.verb in ("make", "change") else current


def _after(step: Step, current: Object) -> Object:
    match step.verb:
        case "make":
            return _with_priority(dict(step.what))
        case "change":
            found: Object = merged(current, step.what)
            return found
        case "evict":
            return eviction(current, step.what)
        case _:
            return {}


def eviction(pod: Mapping[str, Any], options: Mapping[str, Any]) -> Object:
    """Of a pod, asked for with options of a deletion."""
    metadata = {"name": pod["metadata"]["name"], "namespace": HOME}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": {**options}}


def _with_priority(body: Object) -> Object:
    """The API server resolves a priority class before policies run."""
    if body["kind"] != "Pod":
        return body
    spec = body["spec"]
    return {**body, "spec": {**spec, "priority": _PRIORITIES.get(spec.get("priorityClassName", ""), 0)}}


def _refusals(plan: Plan, step: Step, old: Object | None, new: Object) -> dict[str, str]:
    if step.verb == "send":
        return {}
    home = (new or old or {}).get("metadata", {}).get("namespace", HOME)
    tenant = next((found for found in plan.tenants if found.name == home), None)
    concerned = [policy for policy in policies(plan) if _concerns(policy, step, new or old or {})]
    if tenant is not None:
        concerned = [policy for policy in concerned if holds_for(policy.name, tenant)]
    request = Request(
        object=new or None,
        old=old,
        operation=_OPERATIONS[step.verb],
        namespace=home,
        subresource=step.subresource,
        options=step.what if step.verb == "delete" else {},
        parameters=dict(parameters(tenant, home, plan.scheduler)) if tenant else {},
        may=_rights_of(step.who),
    )
    return {found.rule.name: found.message for found in admission_refusals(concerned, request)}


_OPERATIONS: Final = {"make": "CREATE", "change": "UPDATE", "delete": "DELETE", "evict": "CREATE"}


def _rights_of(who: str) -> Callable[[str, str, str], bool]:
    """Of controllers Kueue's alone may change what it counts."""
    if who in MEMBERS:
        return _may_not
    return anything if who in (KUEUE, ADMINISTRATOR) else _may_not_queue


def _may_not(_group: str, _resource: str, _verb: str) -> bool:
    return False


def _may_not_queue(group: str, _resource: str, _verb: str) -> bool:
    return group != QUEUE_GROUP


def _concerns(policy: AdmissionPolicy, step: Step, body: Object) -> bool:
    subresource = f"/{step.subresource}" if step.subresource else ""
    version, resource = body["apiVersion"], f"{body['kind'].lower()}s{subresource}"
    if step.verb == "evict":
        version, resource = "v1", "pods/eviction"
    every = f"{version.rpartition('/')[0]}/*"
    return any(_OPERATIONS[step.verb] in policy.match.get(api, {}).get(resource, ()) for api in (version, every))
