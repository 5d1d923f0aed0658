"""The nodes of a dump beside the pools of a plan: labels, taints, models, what they publish, and which there are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.provenance import Links, chosen, copied
from gpuplan.compiler.planning.discovered import (
    AKS_NODE_POOL_LABEL,
    EKS_NODE_POOL_LABEL,
    GKE_BOARD_LABEL,
    GKE_NODE_POOL_LABEL,
    GPU_RESOURCE,
    MIG_STATE_LABEL,
    PRODUCT_ENDING,
    PRODUCT_LABEL,
    mig_resource,
)
from gpuplan.compiler.planning.node_patterns import has_node
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, POOL_LABEL, DynamicMig, Mig, Mps, Plan, Pool
from gpuplan.compiler.planning.pools import ALL_DISABLED, shown_products
from gpuplan.compiler.planning.sources import default_taint_of, label_of, name_of, node_of
from gpuplan.compiler.policy.models import Allocation, Effect, MigStrategy, NodeLabels
from gpuplan.features.live.drifting.objects import Observed, Scope
from gpuplan.features.live.drifting.operator import DEPLOY_LABELS, operands_of
from gpuplan.features.live.dump import Dump, Item, units_in
from gpuplan.features.live.pools.nodes import read_machines, read_taints

_SUCCESS: Final = "success"
_LABELS: Final = ("metadata", "labels")


def compare_nodes(plan: Plan, dump: Dump) -> Iterator[Observed]:
    """Yield the differences of a dump's nodes from a plan; none if the dump has no nodes."""
    items = {item.name: item for item in dump.of_kind("", "Node")}
    if not items:
        return
    of: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items.values():
        part = home_of(plan, item)
        if part is None:
            if POOL_LABEL in item.labels:  # it says that it is of a pool, and that does not have it
                named = item.labels[POOL_LABEL]
                known = next((pool for pool in plan.pools if pool.name == named), None)
                note = f"pool `{named}` does not take a node of this name" if known else f"there is no pool `{named}`"
                links = copied(known.at / "nodes") if known else ()
                yield _of(item, (*_LABELS, POOL_LABEL), ABSENT, named, links, note)
        else:
            of[part.name].append(item)
            yield from _differences(plan, part, item)
    if Scope(dump).is_whole(Identity("", "Node", "", "")):
        for pool in plan.pools:
            found = of[pool.name]
            there = {item.name for item in found}
            if pool.nodes.names:
                for name in pool.nodes.names:
                    if name not in there:
                        yield Observed(f"Node {name}", None, (), name, ABSENT, node_of(pool, name))
            elif len(there) != pool.nodes.count:
                links = (*copied(pool.at / "nodes" / "count"), *chosen(name_of(pool)))
                note = f"pool `{pool.name}` has {count(len(there), 'node')} in the cluster, not {pool.nodes.count}"
                if len(there) > pool.nodes.count:
                    note += f": {listing(sorted(there))}"
                yield Observed(f"Pool {pool.name}", None, (), pool.nodes.count, len(there), links, note)


def count_nodes(plan: Plan, dump: Dump) -> int:
    """Return how many nodes are compared with their pool, without those that are compared as objects."""
    if plan.cluster.spec.node_labels is NodeLabels.NODE:
        return 0
    return len({item.name for item in dump.of_kind("", "Node") if home_of(plan, item)})


def doubt_of(plan: Plan, dump: Dump) -> str:
    """Return the reason to believe that a dump is of another cluster, or an empty text.

    Its nodes are of another cloud than those that pools select, or none is in a pool and no namespace is a tenant's.
    """
    scope, nodes = Scope(dump), dump.of_kind("", "Node")
    chosen_by = _clouds(key for pool in plan.pools for key in pool.nodes.selector)
    found = _clouds(key for node in nodes for key in node.labels)
    if chosen_by and found and chosen_by.isdisjoint(found):
        return f"its nodes have labels of {listing(sorted(found))}, and pools select by {listing(sorted(chosen_by))}"
    namespaces = {namespace for tenant in plan.tenants for namespace in tenant.spec.namespaces}
    are_whole = all(scope.is_whole(Identity("", kind, "", "")) for kind in ("Node", "Namespace"))
    live = read_machines(dump).live
    if not (are_whole and live and namespaces and any(pool.nodes.count for pool in plan.pools)):
        return ""
    is_ours = any(home_of(plan, node) for node in nodes) or any(
        item.name in namespaces for item in dump.of_kind("", "Namespace")
    )
    return "" if is_ours else "no node is in a pool, and no namespace is a tenant's"


def _clouds(keys: Iterable[str]) -> set[str]:
    known = {key.partition("/")[0] for key in (GKE_NODE_POOL_LABEL, EKS_NODE_POOL_LABEL, AKS_NODE_POOL_LABEL)}
    return {key.partition("/")[0] for key in keys} & known


def home_of(plan: Plan, node: Item) -> Pool | None:
    """Return the pool, or the part of one, that a node belongs to."""
    return next((part for part in plan.parts if _is_in(part, node)), None)


def _is_in(part: Pool, node: Item) -> bool:
    nodes = part.nodes
    if any(node.labels.get(key) != value for key, value in nodes.selector.items()) or node.name in nodes.moved:
        return False
    if nodes.names or nodes.name_pattern is not None:
        return has_node(nodes, node.name)
    if nodes.are_by_board:
        return _product(node) in _products(part)
    return bool(nodes.selector) or node.labels.get(POOL_LABEL) == part.name


def _product(node: Item) -> str:
    """Return the board's product label, whatever GPU Feature Discovery has added for how it is shared."""
    return PRODUCT_ENDING.sub("", node.labels.get(PRODUCT_LABEL, ""))


def _products(pool: Pool) -> Sequence[str]:
    return [product.label for product in pool.gpu.products]


def _of(
    node: Item, route: Path, written: object, live: object, links: Links, note: str = "", *, is_labelled: bool = False
) -> Observed:
    return Observed(f"Node {node.name}", node, route, written, live, links, note, is_labelled)


# --- One node ----------------------------------------------------------------------------------------------------


def _differences(plan: Plan, part: Pool, node: Item) -> Iterator[Observed]:
    known: set[object] = {layout.config_name for layout in plan.mig_layouts} | {ALL_DISABLED, ABSENT}
    known |= {layout.spec.config_name for layout in plan.retained_layouts}
    are_objects = plan.cluster.spec.node_labels is NodeLabels.NODE  # which are written as such
    for key, value in part.labels.items() if not are_objects else ():
        if (live := node.labels.get(key, ABSENT)) != value:
            is_unknown = key == MIG_CONFIG_LABEL and live not in known
            note = "no entry of the MIG manager's file is called so" if is_unknown else ""
            links = label_of(plan, part, key)
            yield _of(node, (*_LABELS, key), value, live, links, note, is_labelled=True)
    yield from _taints(part, node)
    yield from _discovered(part, node)
    for operand in operands_of(plan, part):  # which labels keep off a node (`gpuStateLabels` in its `controllers`)
        key = f"{DEPLOY_LABELS}{operand.label}"
        if node.labels.get(key) == "false" and key not in part.labels:
            yield _of(node, (*_LABELS, key), ABSENT, "false", operand.links, operand.effect)
    state = node.labels.get(MIG_STATE_LABEL, _SUCCESS)
    if MIG_CONFIG_LABEL in part.labels and state != _SUCCESS:
        links = label_of(plan, part, MIG_CONFIG_LABEL)
        route: Path = (*_LABELS, MIG_STATE_LABEL)
        yield _of(node, route, _SUCCESS, state, links, _STATES.get(state, ""))
    yield from _units(part, node)


_STATES: Final = {
    "failed": "the MIG manager does not try again until the label `nvidia.com/mig.config` changes",
    "pending": "the MIG manager is at work",
    "rebooting": "the MIG manager is at work",
}


def _taints(part: Pool, node: Item) -> Iterator[Observed]:
    """Taints are told apart by key and effect."""
    live = [mapping(taint) for taint in sequence(inside(node.body, "spec").get("taints"))]
    for index, taint in enumerate(part.taints):
        place = taint.key, taint.effect.value
        same = next((n for n, other in enumerate(live) if (other.get("key"), other.get("effect")) == place), None)
        links = default_taint_of(part, taint) if taint.is_default else copied(part.at / "taints" / index)
        written = f"{taint.key}={taint.value}:{taint.effect.value}" if taint.value else f"{taint.key}:{taint.effect}"
        if same is None:
            route: Path = ("spec", "taints")
            yield _of(node, route, written, ABSENT, links, is_labelled=True)
        elif text(live[same].get("value")) != taint.value:
            found = text(live[same].get("value"))
            route = ("spec", "taints", same, "value")
            yield _of(node, route, taint.value, found, links, is_labelled=True)
    yield from _foreign_taints(part, node)


def _foreign_taints(part: Pool, node: Item) -> Iterator[Observed]:
    """Taints of others that keep the pool's pods off. GKE has pods tolerate the one that it sets itself."""
    ours = {(taint.key, taint.effect.value) for taint in part.taints}
    own = [(GPU_RESOURCE, Effect.NO_SCHEDULE.value, "present")] if GKE_BOARD_LABEL in node.labels else []
    for key, effect, value in read_taints(inside(node.body, "spec").get("taints")):
        if (key, effect) not in ours and effect != Effect.PREFER_NO_SCHEDULE and (key, effect, value) not in own:
            written = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
            note = f"pods of pool `{part.name}` do not tolerate it"
            yield _of(node, ("spec", "taints"), ABSENT, written, copied(part.at / "taints"), note)


def _discovered(part: Pool, node: Item) -> Iterator[Observed]:
    """Compare the labels by which GPU Feature Discovery tells the board, and how it is divided and shared.

    It has them from the file of the device plugin that it reads itself (`internal/lm` of NVIDIA/k8s-device-plugin).
    What is not shared has one replica, or none if MIG is on.
    """
    live = node.labels.get(PRODUCT_LABEL, "")
    if live and _product(node) not in _products(part):
        links, note = chosen(part.at / "gpu"), f"the board is no {part.gpu.id}"
        yield _of(node, (*_LABELS, PRODUCT_LABEL), " or ".join(_products(part)), live, links, note)
        return
    if isinstance(part.sharing, DynamicMig) or part.spec.allocation is Allocation.DRA:
        return
    wanted = {PRODUCT_LABEL: shown_products(part)}
    for resource, shares in _shared(part).items():
        wanted[f"{resource}.replicas"] = [str(shares)] if shares else ["1", "0"]
        kind = "mps" if isinstance(part.sharing, Mps) else "time-slicing"
        wanted[f"{resource}.sharing-strategy"] = [kind] if shares else ["none", ""]
    for key, values in wanted.items():
        if node.labels.get(key, values[0]) not in values:
            note = "the device plugin shares or divides the GPUs otherwise"
            yield _of(node, (*_LABELS, key), values[0], node.labels[key], copied(part.at / "sharing"), note)


def _shared(part: Pool) -> Mapping[str, int]:
    """Return into how many shares each resource is divided that labels are about; 0 for those that are not shared."""
    stated = part.shares.stated if part.shares else ()
    if not isinstance(part.sharing, Mig):
        return {GPU_RESOURCE: stated[0].number if stated else 0}
    profiles = dict.fromkeys(name for entry in part.sharing.layout.entries for name in entry.instances)
    turns = part.sharing.time_slicing
    divided = {name: found.number if turns and (found := turns.find(name)) else 0 for name in profiles}
    if part.sharing.spec.strategy is MigStrategy.SINGLE:
        return {GPU_RESOURCE: max(divided.values(), default=0)}
    return {GPU_RESOURCE: 0, **{mig_resource(name): shares for name, shares in divided.items()}}


def _units(part: Pool, node: Item) -> Iterator[Observed]:
    """Compare the resources that a node publishes, but for partitions on demand and claimed devices."""
    if isinstance(part.sharing, DynamicMig) or part.spec.allocation is Allocation.DRA:
        return
    planned: Counter[str] = Counter()
    for unit in part.units:
        if unit.device_class is None:
            planned[unit.resource or GPU_RESOURCE] += unit.per_node
    status = inside(node.body, "status")
    capacity, allocatable = ({**mapping(status.get(key))} for key in ("capacity", "allocatable"))
    others = {key for key in allocatable if key.startswith(_RESOURCES) and units_in(allocatable[key])}
    for resource in sorted(planned.keys() | others) if allocatable else ():
        has_others = resource in capacity and units_in(capacity[resource]) != planned[resource]
        field = "capacity" if has_others else "allocatable"
        live = (capacity if field == "capacity" else allocatable).get(resource, ABSENT)
        if units_in(live) != planned[resource]:
            note = "the rest is not healthy, or not set up" if field == "allocatable" and planned[resource] else ""
            links = copied(part.at / "sharing", part.at / "nodes" / "gpusPerNode")
            written = planned[resource] or ABSENT
            yield _of(node, ("status", field, resource), written, live, links, note)


_RESOURCES: Final = "nvidia.com/"
