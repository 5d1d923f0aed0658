"""Pods that ask for units of pools as tenants' pods do, and what becomes of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

from tests.cluster.api import Api, Object
from tests.cluster.processes import until

Case = TypeVar("Case", bound=Hashable)

POOL_LABEL: Final = "gpuplan.dev/pool"
GATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "kubernetes": {"schedulingGates": [{"name": "example.com/held"}]},
    "kueue": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
}
"""What keeps a pod from being scheduled, by the cluster's scheduler; Kueue's webhook adds its gate to every pod."""

ANYWHERE: Final = [{"operator": "Exists"}]
"""Tolerations of every taint."""

_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the scheduler made of some pods: the nodes of those that it bound, and why the others wait."""

    nodes: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def bound(self) -> int:
        return len(self.nodes)


def pod(
    namespace: str,
    pool: Mapping[str, Any],
    resource: str,
    units: int = 1,
    *,
    priority_class: str | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod for a pool of the plan: it selects the pool and tolerates its taints, as those of workloads do."""
    placed = {"nodeSelector": selector(pool), "tolerations": tolerations(pool)}
    return a_pod(namespace, {resource: units}, priority_class=priority_class, **{**placed, **spec})


def a_pod(
    namespace: str, asks: Mapping[str, int] | None = None, *, priority_class: str | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod that asks for these resources, and is gone as soon as it is deleted."""
    limits = {resource: str(amount) for resource, amount in (asks or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{next(_NUMBERS)}", "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            **({"priorityClassName": priority_class} if priority_class else {}),
            "containers": [
                {"name": "main", "image": "registry.example.com/app:1.0.0", "resources": {"limits": limits}}
            ],
            **spec,
        },
    }


def selector(pool: Mapping[str, Any], node: str | None = None) -> dict[str, str]:
    return {POOL_LABEL: pool["name"], **({"kubernetes.io/hostname": node} if node else {})}


def tolerations(pool: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {"key": taint["key"], "operator": "Equal", "value": taint["value"], "effect": taint["effect"]}
        for taint in pool["taints"]
    ]


def editor(tenant: Mapping[str, Any]) -> str:
    """A group whose members may make pods in the tenant's namespaces."""
    return next(str(member["group"]) for member in tenant["members"] if member["role"] != "view")


def schedule(api: Api, cases: Mapping[Case, Sequence[Object]]) -> dict[Case, Outcome]:
    """Create the pods of all cases, one after the other, and wait until the scheduler has judged every one."""
    made = {case: [_key(api.create(body)) for body in bodies] for case, bodies in cases.items()}
    namespaces = sorted({namespace for keys in made.values() for namespace, _ in keys})
    until(lambda: all(_is_judged(body) for body in _unbound(api, namespaces)), "the scheduler has judged all pods")
    found = {_key(body): body for namespace in namespaces for body in api.list(_pods(namespace))}
    return {case: _outcome([found[key] for key in keys if key in found]) for case, keys in made.items()}


@contextmanager
def namespaces(api: Api, *purposes: str) -> Iterator[list[str]]:
    """New namespaces that are no tenant's, one for each purpose; no pod of them is left."""
    names = [f"{purpose}-{next(_NUMBERS)}" for purpose in purposes]
    for name in names:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name in names:
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        until(partial(api.find, account), f"{name} has a service account")
    try:
        yield names
    finally:
        remove_pods(api, *names)
        for name in names:
            api.delete(f"/api/v1/namespaces/{name}")


def remove_pods(api: Api, *names: str) -> None:
    """Delete all pods of the namespaces, and wait until they are gone."""
    for name in names:
        api.delete(_pods(name), grace_seconds=0)
    until(lambda: not any(api.list(_pods(name)) for name in names), "pods are gone")


def why_pending(body: Mapping[str, Any]) -> str | None:
    """What the scheduler says of a pod that it cannot place; None while it has not judged the pod."""
    for condition in body["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return None


def _is_judged(body: Mapping[str, Any]) -> bool:
    """One for which others are being evicted is not judged yet."""
    return why_pending(body) is not None and not body["status"].get("nominatedNodeName")


def _unbound(api: Api, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        yield from api.list(f"{_pods(name)}?fieldSelector=spec.nodeName%3D")


def _outcome(bodies: Sequence[Mapping[str, Any]]) -> Outcome:
    nodes = [body["spec"]["nodeName"] for body in bodies if "nodeName" in body["spec"]]
    return Outcome(tuple(nodes), tuple(why_pending(body) or "" for body in bodies if "nodeName" not in body["spec"]))


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"
