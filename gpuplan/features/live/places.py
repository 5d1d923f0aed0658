"""Where pods may run: what a node is labelled with, keeps pods off by and hands out, and what pods ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.workloads.bodies import FRACTION as PART_OF_GPU, GPU_MEMORY
from gpuplan.compiler.backends.workloads.pods import REQUIRED
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog.operators import is_tolerated
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, PASSING_TAINTS
from gpuplan.compiler.planning.plan import POOL_LABEL, Pool, Stage
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, SCHEDULER_NAME
from gpuplan.features.live.dump import Item, texts_of, units_in

Body = Mapping[str, Any]
_RESOURCES: Final = "nvidia.com/"


class Node(NamedTuple):
    """A node: what it is labelled with, keeps pods off by, and hands out of extended resources."""

    item: Item
    labels: Mapping[str, str]
    taints: Sequence[Body]
    units: Mapping[str, int]
    pool: Pool | None = None

    @property
    def name(self) -> str:
        return self.item.name


def node_of(live: Item, pool: Pool | None = None) -> Node:
    """Return a node as the dump shows it, with the taints that keep pods off.

    Some taints come and go with the state of a node. One with the name of a resource is tolerated: where a node group
    has one, the API server's admission plugin ExtendedResourceToleration adds the toleration
    (`plugin/pkg/admission/extendedresourcetoleration/admission.go` of kubernetes/kubernetes). A resource whose devices
    are all unhealthy now is in `capacity` alone.
    """
    allocatable, capacity = (inside(live.body, "status", field) for field in ("allocatable", "capacity"))
    units = {
        key: units_in(allocatable.get(key)) or units_in(capacity.get(key))
        for key in {**capacity, **allocatable}
        if key.startswith(_RESOURCES)
    }
    lasting = [
        taint
        for taint in taints_of(live)
        if not (key := text(taint.get("key"))).startswith(PASSING_TAINTS) and not units.get(key)
    ]
    return Node(live, texts_of(live.labels), lasting, units, pool)


def taints_of(live: Item) -> Sequence[Body]:
    return [*map(mapping, sequence(inside(live.body, "spec").get("taints")))]


class Obstacle(NamedTuple):
    """A reason why a node takes no pod: what is on the node and in the pod, and what helps."""

    reason: str
    help: str


def obstacles(node: Node, pod: Body, marks: Mapping[str, str]) -> Iterator[Obstacle]:
    """Yield why a node takes no pod of a `spec`: its shard, labels, taints and units; ``marks`` are labels and
    annotations of the pod.

    A pod that names its node passes by the scheduler, and the kubelet looks at taints with NoExecute alone
    (`GeneralPredicates` in `pkg/kubelet/lifecycle/predicate.go` of kubernetes/kubernetes). A shard of KAI-Scheduler has
    the nodes of its pods' node pool, and one without a name the nodes without (`addNodePoolLabel` in
    `pkg/podgrouper/pod_controller.go` of KAI-Scheduler).
    """
    named = text(pod.get("nodeName"))
    if named not in ("", node.name):
        yield Obstacle(f"its pods name node `{named}`", "remove `nodeName` from its pods")
    shard, own = node.labels.get(NODE_POOL_LABEL, ""), marks.get(NODE_POOL_LABEL, "")
    if pod.get("schedulerName") == SCHEDULER_NAME and shard != own and not named:
        has = f"`{node.name}` has the label `{NODE_POOL_LABEL}: {shard}`" if shard else f"`{node.name}` is in no shard"
        yield Obstacle(f"{has}, and its pods have {f'`{own}`' if own else 'none'}", _name_the_shard(node.pool))
    for key, value in mapping(pod.get("nodeSelector")).items():
        if node.labels.get(key) != value:
            yield Obstacle(f"its pods select `{key}: {value}`; {_label_of(node, key)}", _select_otherwise(node.pool))
    required = value_at(pod, ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"))
    terms = [*map(mapping, sequence(required))]
    if terms and not any(_meets(node, term) for term in terms):
        parts = (mapping(part) for term in terms for part in sequence(term.get("matchExpressions")))
        keys = dict.fromkeys(text(part.get("key")) for part in parts)
        has = "; ".join(_label_of(node, key) for key in keys) or f"`{node.name}` has another name"
        yield Obstacle(f"the affinity of its pods does not match: {has}", _select_otherwise(node.pool))
    tolerations = sequence(pod.get("tolerations"))
    for taint in node.taints:
        key, value, effect = (text(taint.get(field)) for field in ("key", "value", "effect"))
        if not is_tolerated(tolerations, key, value, effect) and not (named and effect == "NoSchedule"):
            reason = f"`{node.name}` has the taint `{key}={value}:{effect}`, which its pods do not tolerate"
            yield Obstacle(reason, _TOLERATE_IT)
    for resource, number in needed(pod, marks).items():
        if (there := node.units.get(resource, 0)) < number:
            reason = f"a pod asks for {number} `{resource}`, and `{node.name}` hands out {there or 'none'}"
            yield Obstacle(reason, _KEEP_THE_SHARING)


def _name_the_shard(pool: Pool | None) -> str:
    """Say when pods can have the label: each shard sees only the nodes and Queues with its label, or with none.

    (`GetLabelSelector` in `pkg/scheduler/conf/scheduler_conf.go` of KAI-Scheduler.) Pods that run stay where they are.
    """
    if pool is None:
        return ""
    folders = " and ".join(f"`{stage.value}/{pool.name}`" for stage in (Stage.QUEUES, Stage.PARTITIONS))
    label = f"{NODE_POOL_LABEL}: {pool.name}"
    return f"sync {folders} last, and write `{label}` with the queue there into the labels of its pods right after"


def _select_otherwise(pool: Pool | None) -> str:
    """Name labels that the nodes have before and after a sync, or the sync that brings one."""
    if pool is None:
        return ""
    if kept := [f"`{key}: {value}`" for key, value in pool.nodes.selector.items() if key not in pool.labels]:
        return f"select {joined(kept)} in its pods first, which the nodes have before and after the sync"
    label, folder = f"{POOL_LABEL}: {pool.name}", f"{Stage.PARTITIONS.value}/{pool.name}"
    return f"keep the label that it selects, or select `{label}` right after the sync of `{folder}`, which brings it"


_TOLERATE_IT: Final = "tolerate the taint in its pods before the first sync, or remove it from `taints` of the Pool"
_KEEP_THE_SHARING: Final = "write the sharing of these nodes into the Pool: `gpuplan explain Pool.spec.sharing`"


def _label_of(node: Node, key: str) -> str:
    return f"`{node.name}` has `{key}: {node.labels[key]}`" if key in node.labels else f"`{node.name}` has no `{key}`"


def _meets(node: Node, term: Mapping[str, Any]) -> bool:
    by_name = {"matchExpressions": term.get("matchFields") or ()}
    return (
        matches({"matchExpressions": term.get("matchExpressions") or ()}, node.labels) is not False
        and matches(by_name, {"metadata.name": node.name}) is not False
    )


def needed(pod: Body, marks: Mapping[str, str]) -> Mapping[str, int]:
    """Return the units that a node hands out which takes a pod: a part of a GPU needs a GPU."""
    is_part = not {PART_OF_GPU, GPU_MEMORY}.isdisjoint(marks)
    return {GPU_RESOURCE: 1, **asked(pod)} if is_part else asked(pod)


def asked(pod: Body) -> Mapping[str, int]:
    """Return the units of NVIDIA's resources that one pod asks for."""
    found: dict[str, int] = {}
    for container in map(mapping, sequence(pod.get("containers"))):
        for resource, amount in inside(container, "resources", "limits").items():
            if resource.startswith(_RESOURCES):
                found[resource] = found.get(resource, 0) + units_in(amount)
    return {resource: number for resource, number in found.items() if number}


def pods_of(work: Item) -> Iterator[tuple[Mapping[str, str], Body]]:
    """Yield the labels and annotations, and the `spec`, of the pods of an object."""
    for route, pod in parts_with(work.body, "containers"):
        metadata = inside(mapping(value_at(work.body, route[:-1])), "metadata")
        yield {**texts_of(inside(metadata, "annotations")), **texts_of(inside(metadata, "labels"))}, pod


def placed_by(pod: Body, marks: Mapping[str, str]) -> str:
    """Return all of a pod that `obstacles` reads: most pods of a cluster are placed alike."""
    return repr([*(pod.get(field) for field in _PLACED_BY), needed(pod, marks), marks.get(NODE_POOL_LABEL)])


_PLACED_BY: Final = ("schedulerName", "nodeName", "nodeSelector", "affinity", "tolerations")
