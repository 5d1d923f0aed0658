"""The nodes of a dump beside the pools of a plan: labels, taints, models, what they publish, and which there are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.provenance import Links, chosen, copied
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_STATE_LABEL, PRODUCT_ENDING, PRODUCT_LABEL
from gpuplan.compiler.planning.node_patterns import has_node
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, POOL_LABEL, DynamicMig, Plan, Pool
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.sources import default_taint_of, label_of, name_of, node_of
from gpuplan.compiler.policy.models import Allocation, NodeLabels
from gpuplan.features.live.drifting.objects import Scope
from gpuplan.features.live.dump import Dump, Item, units_in

_SUCCESS: Final = "success"
_LABELS: Final = ("metadata", "labels")


class NodeDifference(NamedTuple):
    """A node that is not as its pool says; ``node`` is None where the node, or some of the pool's, is not there.

    ``route`` leads to the field in the node. ``pool`` is None for a node that is in none. What ``is_labelled`` is set
    again by what labels nodes. ``links`` are the places of the policy that say it.
    """

    name: str
    node: Item | None
    pool: Pool | None
    route: Path
    written: object
    live: object
    links: Links
    note: str = ""
    is_labelled: bool = False


def compare_nodes(plan: Plan, dump: Dump) -> Iterator[NodeDifference]:
    """Yield the differences of a dump's nodes from a plan; none if the dump has no nodes."""
    items = {item.name: item for item in dump.of_kind("", "Node")}
    if not items:
        return
    of: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items.values():
        part = home(plan, item)
        if part is None:
            if POOL_LABEL in item.labels:  # it says that it is of a pool, and that does not have it
                named = item.labels[POOL_LABEL]
                known = next((pool for pool in plan.pools if pool.name == named), None)
                note = f"pool `{named}` does not take a node of this name" if known else f"there is no pool `{named}`"
                links = copied(known.at / "nodes") if known else ()
                yield NodeDifference(item.name, item, known, (*_LABELS, POOL_LABEL), ABSENT, named, links, note)
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
                        yield NodeDifference(name, None, pool, (), name, ABSENT, node_of(pool, name))
            elif len(there) != pool.nodes.count:
                links = (*copied(pool.at / "nodes" / "count"), *chosen(name_of(pool)))
                note = f"pool `{pool.name}` has {count(len(there), 'node')} in the cluster, not {pool.nodes.count}"
                if len(there) > pool.nodes.count:
                    note += f": {listing(sorted(there))}"
                yield NodeDifference("", None, pool, (), pool.nodes.count, len(there), links, note)


def count_nodes(plan: Plan, dump: Dump) -> int:
    """Return how many nodes are compared with their pool, without those that are compared as objects."""
    if plan.cluster.spec.node_labels is NodeLabels.NODE:
        return 0
    return len({item.name for item in dump.of_kind("", "Node") if home(plan, item)})


def home(plan: Plan, node: Item) -> Pool | None:
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


# --- One node ----------------------------------------------------------------------------------------------------


def _differences(plan: Plan, part: Pool, node: Item) -> Iterator[NodeDifference]:
    known: set[object] = {layout.config_name for layout in plan.mig_layouts} | {ALL_DISABLED, ABSENT}
    known |= {layout.spec.config_name for layout in plan.retained_layouts}
    are_objects = plan.cluster.spec.node_labels is NodeLabels.NODE  # which are written as such
    for key, value in part.labels.items() if not are_objects else ():
        if (live := node.labels.get(key, ABSENT)) != value:
            is_unknown = key == MIG_CONFIG_LABEL and live not in known
            note = "no entry of the MIG manager's file is called so" if is_unknown else ""
            links = label_of(plan, part, key)
            yield NodeDifference(node.name, node, part, (*_LABELS, key), value, live, links, note, is_labelled=True)
    yield from _taints(part, node)
    if PRODUCT_LABEL in node.labels and _product(node) not in _products(part):
        links = chosen(part.at / "gpu")
        wanted, live = " or ".join(_products(part)), node.labels[PRODUCT_LABEL]
        note = f"the board is no {part.gpu.id}"
        yield NodeDifference(node.name, node, part, (*_LABELS, PRODUCT_LABEL), wanted, live, links, note)
    state = node.labels.get(MIG_STATE_LABEL, _SUCCESS)
    if MIG_CONFIG_LABEL in part.labels and state != _SUCCESS:
        links = label_of(plan, part, MIG_CONFIG_LABEL)
        route: Path = (*_LABELS, MIG_STATE_LABEL)
        yield NodeDifference(node.name, node, part, route, _SUCCESS, state, links, _STATES.get(state, ""))
    yield from _units(part, node)


_STATES: Final = {
    "failed": "the MIG manager does not try again until the label `nvidia.com/mig.config` changes",
    "pending": "the MIG manager is at work",
    "rebooting": "the MIG manager is at work",
}


def _taints(part: Pool, node: Item) -> Iterator[NodeDifference]:
    """Taints are told apart by key and effect; others may have set more."""
    live = [mapping(taint) for taint in sequence(inside(node.body, "spec").get("taints"))]
    for index, taint in enumerate(part.taints):
        place = taint.key, taint.effect.value
        same = next((n for n, other in enumerate(live) if (other.get("key"), other.get("effect")) == place), None)
        links = default_taint_of(part, taint) if taint.is_default else copied(part.at / "taints" / index)
        written = f"{taint.key}={taint.value}:{taint.effect.value}" if taint.value else f"{taint.key}:{taint.effect}"
        if same is None:
            route: Path = ("spec", "taints")
            yield NodeDifference(node.name, node, part, route, written, ABSENT, links, is_labelled=True)
        elif text(live[same].get("value")) != taint.value:
            found = text(live[same].get("value"))
            route = ("spec", "taints", same, "value")
            yield NodeDifference(node.name, node, part, route, taint.value, found, links, is_labelled=True)


def _units(part: Pool, node: Item) -> Iterator[NodeDifference]:
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
            yield NodeDifference(node.name, node, part, ("status", field, resource), written, live, links, note)


_RESOURCES: Final = "nvidia.com/"
