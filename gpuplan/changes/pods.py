"""Pods as kubectl lists them, and which of them hold what a change takes away."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.changes.model import Change, ChangeClass, NodeImpact
from gpuplan.changes.nodes import has_node
from gpuplan.diagnostics import GpuplanError
from gpuplan.planning.node_patterns import NodePattern, parse
from gpuplan.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Plan, Pool
from gpuplan.values import NamedTuple

LIST_PODS: Final = "kubectl get pods -A -o json"


class Pod(NamedTuple):
    """A pod that is on a node and has not ended, so that it holds what it asks for.

    ``requests`` are its extended resources, ``claims`` how many ResourceClaims it names. ``has_fraction`` says that it
    asks for a part of a GPU by annotation. ``tenant`` and ``workload`` are the labels of its namespace, where that is
    listed too, and its own; they may be empty.
    """

    namespace: str
    name: str
    node: str
    tenant: str
    workload: str
    requests: Mapping[str, int]
    claims: int
    has_fraction: bool


class Holder(NamedTuple):
    """A pod that holds units which a change takes away; ``tenant`` is empty where nobody has its namespace."""

    namespace: str
    name: str
    node: str
    tenant: str
    units: Mapping[str, int]


def read_pods(text: str, name: str) -> tuple[Pod, ...]:
    """The pods of a cluster that hold something; trouble when the text, called ``name``, is no list of objects."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_list(name, f"it is not JSON: {error}") from error
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _no_list(name, "it has no list `items`")
    tenants = {_text(item, "metadata", "name"): _label(item, TENANT_LABEL) for item in items if _is(item, "Namespace")}
    listed = [item for item in items if _is(item, "Pod")]
    if items and not listed:
        raise _no_list(name, f"it lists {_text(items[0], 'kind') or 'objects without a kind'}, and no Pod")
    found = (_pod(item, tenants) for item in listed if _is_running(item))
    return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))


def find_holders(change: Change, earlier: Plan, pods: Sequence[Pod]) -> tuple[Holder, ...]:
    """The pods that hold what a change takes away, as the plan before it has nodes, namespaces and units.

    There may be more than the plan has room for: some came before their quota.
    """
    if not change.pods and not change.needs_drain:
        return ()
    owners = {namespace: tenant.name for tenant in earlier.tenants for namespace in tenant.spec.namespaces}
    places = _Places(earlier.pools)
    touched = _touched(change, earlier)
    found = []
    for pod in pods:
        pool = places.find_pool(pod)
        if change.nodes is not None and change.nodes.are_new:
            units = _gpus(pod) if _comes(change.nodes, pod, earlier) else {}
        elif pool is not None and pool.name in touched and _is_meant(change, pod, earlier):
            units = _units(pod, pool, _units_that_go(change, pool))
        else:
            continue
        if units:
            tenant = pod.tenant or owners.get(pod.namespace, "")
            found.append(Holder(pod.namespace, pod.name, pod.node, tenant, units))
    return tuple(found)


def held(plan: Plan, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Pool, Mapping[str, int]]]:
    """Each pod that holds units of a pool, with the pool, or the part of one, and how many of each unit."""
    places = _Places(plan.pools)
    for pod in pods:
        pool = places.find_pool(pod)
        if pool is not None and (units := _units(pod, pool, None)):
            yield pod, pool, units


# --- Which pods a change is about --------------------------------------------------------------------------------


class _Places:
    """Whose node a pod is on. A pool that names no nodes has those of no other pool."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._parts = tuple(part for pool in pools for part in pool.parts)

    def find_pool(self, pod: Pod) -> Pool | None:
        """The pool, or the part of one that is shared in a way of its own."""
        named = (part for part in self._parts if has_node(part.nodes, pod.node))
        unnamed = (part for part in self._parts if _is_anywhere(part) and _units(pod, part, None))
        return next(named, None) or next(unnamed, None)


def _is_anywhere(pool: Pool) -> bool:
    return not pool.nodes.names and pool.nodes.name_pattern is None


def _touched(change: Change, earlier: Plan) -> frozenset[str]:
    """The pools whose nodes a change is about; all of them where it says nothing of nodes."""
    named = {item.pool for item in change.capacity} | (
        {change.subject.name} if change.subject.kind == "Pool" else set()
    )
    if change.nodes is not None:
        named |= {pool.name for pool in earlier.pools if _shares_nodes(pool, change.nodes)}
    known = frozenset(pool.name for pool in earlier.pools)
    return known & named or known


def _shares_nodes(pool: Pool, impact: NodeImpact) -> bool:
    same_pattern = impact.pattern is not None and impact.pattern == pool.nodes.name_pattern
    return same_pattern or not set(impact.names).isdisjoint(pool.nodes.names)


def _is_meant(change: Change, pod: Pod, earlier: Plan) -> bool:
    """Whether the pod is on the nodes, or in the namespaces, that the change names."""
    if change.nodes is not None:
        return not change.nodes.names or change.nodes.pattern is not None or pod.node in change.nodes.names
    kind, name = change.subject
    if kind == "Workload":
        return pod.workload == name
    tenant = next((item for item in earlier.tenants if kind == "Tenant" and item.name == name), None)
    return tenant is None or pod.namespace in tenant.spec.namespaces


def _comes(nodes: NodeImpact, pod: Pod, earlier: Plan) -> bool:
    """Whether the pod is on one of the nodes, which was in no pool before."""
    if any(has_node(part.nodes, pod.node) for part in earlier.parts):
        return False
    pattern = parse(nodes.pattern) if nodes.pattern is not None else None
    return pod.node in nodes.names or (isinstance(pattern, NodePattern) and pattern.matches(pod.node))


def _gpus(pod: Pod) -> dict[str, int]:
    """What a pod holds of a node that was in no pool, by the names of resources."""
    return {name: number for name, number in pod.requests.items() if name.startswith(_OF_GPUS)}


_OF_GPUS: Final = "nvidia.com/"


def _units_that_go(change: Change, pool: Pool) -> frozenset[str] | None:
    """The units that are fewer afterwards; None for every unit, where nodes are set up again or more is lost."""
    if change.change_class.rank >= ChangeClass.REPARTITION.rank:
        return None
    fewer = {item.unit for item in change.capacity if item.pool == pool.name and item.after < item.before}
    return frozenset(fewer) or None


def _units(pod: Pod, pool: Pool, wanted: frozenset[str] | None) -> dict[str, int]:
    """How many of a pool's units a pod holds. By its claims alone nobody can tell one class of devices from another."""
    held: dict[str, int] = {}
    for unit in pool.units:
        if unit.resource is not None:
            number = pod.requests.get(unit.resource, 0)
        else:
            number = pod.claims if unit.device_class is not None else int(pod.has_fraction)
        if number and (wanted is None or unit.name in wanted):
            held[unit.name] = number
    return held


# --- Reading -----------------------------------------------------------------------------------------------------

_ENDED: Final = ("Succeeded", "Failed")
_FRACTIONS: Final = ("gpu-fraction", "gpu-memory")
_FRACTIONS_OF_CONTAINERS: Final = "nvidia.com/container."


def _asks_fraction(annotation: str) -> bool:
    """As KAI-Scheduler and Run:ai read them: `pkg/common/resources/gpu_sharing.go` of KAI-Scheduler."""
    return annotation in _FRACTIONS or annotation.startswith(_FRACTIONS_OF_CONTAINERS)


def _no_list(name: str, why: str) -> GpuplanError:
    return GpuplanError(f"`{name}` is no list of pods: {why}", f"write it with `{LIST_PODS}`")


def _is(item: Mapping[str, Any], kind: str) -> bool:
    return item.get("kind") == kind


def _is_running(item: Mapping[str, Any]) -> bool:
    """A pod that has ended gives back what it had, and one on no node has not got it yet."""
    return bool(_text(item, "spec", "nodeName")) and _text(item, "status", "phase") not in _ENDED


def _pod(item: Mapping[str, Any], tenants: Mapping[str, str]) -> Pod:
    namespace, spec = _text(item, "metadata", "namespace"), _mapping(item.get("spec"))
    return Pod(
        namespace,
        _text(item, "metadata", "name"),
        _text(item, "spec", "nodeName"),
        tenants.get(namespace, ""),
        _label(item, WORKLOAD_LABEL),
        _requests(spec),
        len(_list(spec.get("resourceClaims"))),
        any(_asks_fraction(key) for key in _mapping(_mapping(item.get("metadata")).get("annotations"))),
    )


def _requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """What a pod holds of extended resources: the sum of its containers', or an init container's where that is more.

    Sidecars, which are init containers that restart, run beside the others and add up: "Resource sharing within
    containers" in https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/.
    """
    containers = _list(spec.get("containers"))
    init = _list(spec.get("initContainers"))
    total: dict[str, int] = {}
    for container in (*containers, *(one for one in init if one.get("restartPolicy") == "Always")):
        for name, number in _asked(container):
            total[name] = total.get(name, 0) + number
    for container in init:
        for name, number in _asked(container):
            total[name] = max(total.get(name, 0), number)
    return total


def _asked(container: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """Extended resources have a domain in their name; requests and limits of one are the same."""
    resources = _mapping(container.get("resources"))
    asked = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return [(str(name), _whole(amount)) for name, amount in asked.items() if "/" in str(name) and _whole(amount)]


_THOUSANDS: Final = {"k": 10**3, "M": 10**6}


_MOST: Final = 2**63 - 1
"""Kubernetes caps what is larger: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/."""


def _whole(amount: object) -> int:
    """A number as the API server writes it: `8`, `1k`."""
    text = str(amount)
    number, factor = (text[:-1], _THOUSANDS[text[-1]]) if text[-1:] in _THOUSANDS else (text, 1)
    if not (number.isascii() and number.isdigit()):
        return 0
    digits = number.lstrip("0") or "0"
    return min(int(digits) * factor, _MOST) if len(digits) <= len(str(_MOST)) else _MOST


def _label(item: Mapping[str, Any], label: str) -> str:
    return _text(item, "metadata", "labels", label)


def _text(item: Mapping[str, Any], *path: str) -> str:
    value: object = item
    for part in path:
        value = _mapping(value).get(part)
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Mapping[str, Any]]:
    return [_mapping(item) for item in value] if isinstance(value, list) else []
