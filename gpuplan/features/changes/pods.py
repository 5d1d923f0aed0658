"""Pods as kubectl lists them, and which of them hold what a change takes away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.plain import Body, items, mappings, section, value_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operators import is_tolerated
from gpuplan.compiler.documents.listed import Wanted, find_objects
from gpuplan.compiler.planning.node_patterns import find_pattern, has_node
from gpuplan.compiler.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Plan, Pool
from gpuplan.compiler.planning.serving import canary_name
from gpuplan.features.changes.model import Change, NodeImpact

LIST_PODS: Final = "kubectl get pods -A -o json"
PODS: Final = Wanted("Pod", "pods", LIST_PODS)


class Pod(NamedTuple):
    """A pod that is on a node and has not ended, so that it holds what it asks for.

    ``requests`` are its extended resources, ``claims`` how many ResourceClaims it names. ``has_fraction`` says that it
    asks for a part of a GPU by annotation. ``tenant`` and ``workload`` are the labels of its namespace, where that is
    listed too, and its own; they may be empty. ``owner`` is the kind and the name of what made it, or of the Deployment
    behind that; both are empty where it has none.
    """

    namespace: str
    name: str
    node: str
    tenant: str
    workload: str
    requests: Mapping[str, int]
    claims: int
    has_fraction: bool
    owner: tuple[str, str] = ("", "")
    tolerations: tuple[Body, ...] = ()


class Outsider(NamedTuple):
    """An owner of pods that do not tolerate a new taint, and the number of its ``pods`` on those nodes now."""

    namespace: str
    kind: str
    name: str
    pods: int


class Holder(NamedTuple):
    """A pod that holds units which a change takes away; ``tenant`` is empty where nobody has its namespace."""

    namespace: str
    name: str
    node: str
    tenant: str
    units: Mapping[str, int]


def read_pods(text: str, name: str = "") -> tuple[Pod, ...]:
    """The pods of a cluster that hold something; trouble when the text, called ``name``, is no list of objects."""
    return pods_in(find_objects({name: text}, PODS))


def pods_in(objects: Iterable[tuple[str, Body]]) -> tuple[Pod, ...]:
    """The pods among objects that hold something, with the tenants of namespaces that are there as well."""
    tenants: dict[str, str] = {}
    listed: dict[tuple[str, str], Body] = {}
    for _, item in objects:
        if item.get("kind") == "Namespace":
            tenants[_text(item, "metadata", "name")] = _text(item, "metadata", "labels", TENANT_LABEL)
        elif item.get("kind") == PODS.kind:
            listed[_text(item, "metadata", "namespace"), _text(item, "metadata", "name")] = item
    # A pod that has ended gives back what it had, and one on no node has not got it yet.
    found = (
        _pod(item, tenants)
        for item in listed.values()
        if _text(item, "spec", "nodeName") and _text(item, "status", "phase") not in _ENDED
    )
    return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))


def find_holders(change: Change, earlier: Plan, pods: Sequence[Pod]) -> tuple[Holder, ...]:
    """The pods that hold what a change takes away, as the plan before it has nodes, namespaces and units.

    There may be more than the plan has room for: some came before their quota.
    """
    if not change.pods and not change.needs_drain:
        return ()
    touched = _touched(change, earlier)
    found = []
    for pod in pods:
        pool = _part_of(pod, earlier.parts)
        units: Mapping[str, int] = {}
        if change.nodes is not None and change.nodes.are_new:
            gpus = {name: number for name, number in pod.requests.items() if name.startswith(_OF_GPUS)}
            units = gpus if _comes(change.nodes, pod, earlier) else {}
        elif pool is not None and pool.name in touched and _is_meant(change, pod, earlier):
            units = _units(pod, pool, _units_that_go(change, pool))
        if units:
            owner = earlier.owners.get(pod.namespace)
            tenant = pod.tenant or (owner.name if owner else "")
            found.append(Holder(pod.namespace, pod.name, pod.node, tenant, units))
    return tuple(found)


def find_outsiders(change: Change, earlier: Plan, pods: Sequence[Pod]) -> tuple[Outsider, ...]:
    """Return the owners whose pods could not return to the nodes that a change closes, DaemonSets first.

    A pool that says nothing of its nodes has those where pods hold its units. What a node's kubelet starts by itself
    is not scheduled.
    """
    pool = next((found for found in earlier.pools if found.name == change.subject.name), None)
    if not change.closing or pool is None:
        return ()
    nodes = {pod.node for pod, of, _ in held(earlier, pods) if of.name == pool.name}
    found: Counter[tuple[str, str, str]] = Counter()
    for pod in pods:
        is_there = pod.node in nodes or any(has_node(part.nodes, pod.node) for part in pool.parts)
        tolerates = (is_tolerated(pod.tolerations, taint.key, taint.value, taint.effect) for taint in change.closing)
        kind, name = pod.owner
        if is_there and kind != "Node" and not all(tolerates):
            found[pod.namespace, kind or "Pod", name or pod.name] += 1
    outsiders = (Outsider(*key, number) for key, number in found.items())
    return tuple(sorted(outsiders, key=lambda outsider: (outsider.kind != "DaemonSet", *outsider)))


def held(plan: Plan, pods: Iterable[Pod]) -> Iterator[tuple[Pod, Pool, Mapping[str, int]]]:
    """Each pod that holds units of a pool, with the pool, or the part of one, and how many of each unit."""
    parts = plan.parts
    for pod in pods:
        pool = _part_of(pod, parts)
        if pool is not None and (units := _units(pod, pool, None)):
            yield pod, pool, units


# --- Which pods a change is about --------------------------------------------------------------------------------


def _part_of(pod: Pod, parts: Iterable[Pool]) -> Pool | None:
    """Return the part of a pool whose node a pod is on. A part that names no nodes has those of no other part."""
    named = (part for part in parts if has_node(part.nodes, pod.node))
    unnamed = (
        part for part in parts if not part.nodes.names and part.nodes.name_pattern is None and _units(pod, part, None)
    )
    return next(chain(named, unnamed), None)


def _touched(change: Change, earlier: Plan) -> frozenset[str]:
    """The pools whose nodes a change is about; all of them where it says nothing of nodes."""
    named = {item.pool for item in change.capacity}
    if change.subject.kind == "Pool":
        named.add(change.subject.name)
    if change.nodes is not None:
        names, pattern = change.nodes.names, change.nodes.pattern
        for pool in earlier.pools:
            is_same = pattern is not None and pattern == pool.nodes.name_pattern
            if is_same or any(has_node(part.nodes, name) for name in names for part in pool.parts):
                named.add(pool.name)
    known = frozenset(pool.name for pool in earlier.pools)
    return known & named or known


def _is_meant(change: Change, pod: Pod, earlier: Plan) -> bool:
    """Whether the pod is on the nodes, or in the namespaces, that the change names."""
    if change.nodes is not None:
        return not change.nodes.names or change.nodes.pattern is not None or pod.node in change.nodes.names
    kind, name = change.subject
    if kind == "Workload":
        return pod.workload in (name, canary_name(name))
    tenant = next((item for item in earlier.tenants if kind == "Tenant" and item.name == name), None)
    return tenant is None or pod.namespace in tenant.spec.namespaces


def _comes(nodes: NodeImpact, pod: Pod, earlier: Plan) -> bool:
    """Whether the pod is on one of the nodes, which was in no pool before."""
    if any(has_node(part.nodes, pod.node) for part in earlier.parts):
        return False
    pattern = find_pattern(nodes.pattern)
    return pod.node in nodes.names or (pattern is not None and pattern.matches(pod.node))


_OF_GPUS: Final = "nvidia.com/"


def _units_that_go(change: Change, pool: Pool) -> frozenset[str] | None:
    """The units that are fewer afterwards; None for every unit, where nodes are set up again or more is lost."""
    if change.change_class.rank >= ChangeClass.REPARTITION.rank:
        return None
    fewer = {item.unit for item in change.capacity if item.pool == pool.name and item.after < item.before}
    return frozenset(fewer) or None


def _units(pod: Pod, pool: Pool, wanted: frozenset[str] | None) -> dict[str, int]:
    """Return the number of each unit of a pool that a pod holds. Claims count for each class of devices."""
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


def _pod(body: Body, tenants: Mapping[str, str]) -> Pod:
    """Fractions are asked for as KAI-Scheduler 0.17 reads them (`pkg/common/resources/gpu_sharing.go`), and by
    container as newer releases of it or Run:ai may.
    """
    namespace, annotations = _text(body, "metadata", "namespace"), section(body, "metadata", "annotations")
    return Pod(
        namespace,
        _text(body, "metadata", "name"),
        _text(body, "spec", "nodeName"),
        tenants.get(namespace, ""),
        _text(body, "metadata", "labels", WORKLOAD_LABEL),
        _requests(section(body, "spec")),
        len(items(section(body, "spec").get("resourceClaims"))),
        any(key in _FRACTIONS or key.startswith(_FRACTIONS_OF_CONTAINERS) for key in annotations),
        _owner(body),
        tuple(mappings(section(body, "spec").get("tolerations"))),
    )


def _owner(body: Body) -> tuple[str, str]:
    """A ReplicaSet is called as its Deployment and the hash that its pods have as a label."""
    references = mappings(section(body, "metadata").get("ownerReferences"))
    owner = next((one for one in references if one.get("controller") is True), {})
    kind, name = _text(owner, "kind"), _text(owner, "name")
    suffix = "-" + _text(body, "metadata", "labels", "pod-template-hash")
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return "Deployment", name.removesuffix(suffix)
    return kind, name


def _requests(spec: Body) -> dict[str, int]:
    """Return a pod's extended resources: the sum of its containers, or an init container's number if that is more.

    Sidecars, which are init containers that restart, run beside the others and add up: "Resource sharing within
    containers" in https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/.
    """
    init = mappings(spec.get("initContainers"))
    sidecars = (one for one in init if one.get("restartPolicy") == "Always")
    total: Counter[str] = Counter()
    for container in (*mappings(spec.get("containers")), *sidecars):
        total.update(_asked(container))
    for container in init:
        total |= Counter(_asked(container))
    return dict(total)


def _asked(container: Body) -> dict[str, int]:
    """Extended resources have a domain in their name; requests and limits of one are the same."""
    asked = {**section(container, "resources", "limits"), **section(container, "resources", "requests")}
    return {str(name): _whole(amount) for name, amount in asked.items() if "/" in str(name) and _whole(amount)}


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


def _text(body: Body, *route: str) -> str:
    value = value_of(body, route)
    return value if isinstance(value, str) else ""
