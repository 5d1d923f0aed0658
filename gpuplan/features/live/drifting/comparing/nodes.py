"""The nodes of a dump beside the pools of a plan: labels, taints, models, what they publish, and which there are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.gpus import SHARED_ENDING
from gpuplan.compiler.manifests import Identity, parse_quantity
from gpuplan.compiler.manifests.provenance import Links, chosen, copied
from gpuplan.compiler.planning.plan import GPU_RESOURCE, MIG_CONFIG_LABEL, POOL_LABEL, DynamicMig, Plan, Pool, Taint
from gpuplan.compiler.planning.pool_nodes import has_node
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.sources import default_taint_of, label_of, name_of, node_of
from gpuplan.compiler.policy.models import Allocation, NodeLabels
from gpuplan.features.live.drifting.comparing.objects import Scope
from gpuplan.features.live.dump import Dump, Item

PRODUCT: Final = "nvidia.com/gpu.product"
MIG_STATE: Final = "nvidia.com/mig.config.state"
_SUCCESS: Final = "success"


class NodeDifference(NamedTuple):
    """A node that is not as its pool says; ``item`` is None where the node, or some of the pool's, is not there.

    ``route`` leads to the field in the node. ``pool`` is None for a node that is in none. What ``is_labelled`` is set
    again by what labels nodes. ``links`` are the places of the policy that say it.
    """

    name: str
    item: Item | None
    pool: Pool | None
    route: Path
    written: object
    live: object
    links: Links
    note: str = ""
    is_labelled: bool = False


def compare_nodes(plan: Plan, dump: Dump) -> Iterator[NodeDifference]:
    """What the nodes of a dump have otherwise than the plan; nothing where the dump has no nodes."""
    items = {item.name: item for item in dump.of_kind("", "Node")}
    if not items:
        return
    of: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items.values():
        part = _home(plan, item)
        if part is None:
            yield from _strays(plan, item)
        else:
            of[part.name].append(item)
            yield from _differences(plan, part, item)
    if Scope(dump).is_whole(Identity("", "Node", "", "")):
        for pool in plan.pools:
            yield from _missing(pool, of[pool.name])


def count_nodes(plan: Plan, dump: Dump) -> int:
    """How many nodes are compared with their pool; those that gpuplan writes are compared as objects, too."""
    if plan.cluster.spec.node_labels is NodeLabels.NODE:
        return 0
    return len({item.name for item in dump.of_kind("", "Node") if _home(plan, item)})


def _home(plan: Plan, item: Item) -> Pool | None:
    """The pool, or the part of one, that a node belongs to."""
    return next((part for part in plan.parts if _is_in(part, item)), None)


def _is_in(part: Pool, item: Item) -> bool:
    nodes = part.nodes
    if any(item.labels.get(key) != value for key, value in nodes.selector.items()) or item.name in nodes.moved:
        return False
    if nodes.names or nodes.name_pattern is not None:
        return has_node(nodes, item.name)
    if nodes.are_by_board:
        return _product(item) in _products(part)
    return bool(nodes.selector) or item.labels.get(POOL_LABEL) == part.name


def _product(item: Item) -> str:
    """The board's product label, whatever GPU Feature Discovery has added for how it is shared."""
    return SHARED_ENDING.sub("", item.labels.get(PRODUCT, ""))


def _products(pool: Pool) -> Sequence[str]:
    return [product.label for product in pool.gpu.products]


# --- One node ----------------------------------------------------------------------------------------------------


def _strays(plan: Plan, item: Item) -> Iterator[NodeDifference]:
    """A node that no pool has, and that says that it is of one."""
    if POOL_LABEL in item.labels:
        route: Path = ("metadata", "labels", POOL_LABEL)
        named = item.labels[POOL_LABEL]
        known = next((pool for pool in plan.pools if pool.name == named), None)
        note = f"pool `{named}` does not take a node of this name" if known else f"there is no pool `{named}`"
        links = copied(known.at / "nodes") if known else ()
        yield NodeDifference(item.name, item, known, route, ABSENT, named, links, note)


def _differences(plan: Plan, part: Pool, item: Item) -> Iterator[NodeDifference]:
    if plan.cluster.spec.node_labels is not NodeLabels.NODE:  # those are objects that are written
        yield from _labels(plan, part, item)
    yield from _taints(part, item)
    if PRODUCT in item.labels and _product(item) not in _products(part):
        links = chosen(part.at / "gpu")
        wanted, live = " or ".join(_products(part)), item.labels[PRODUCT]
        note = f"the board is no {part.gpu.id}"
        yield NodeDifference(item.name, item, part, ("metadata", "labels", PRODUCT), wanted, live, links, note)
    state = item.labels.get(MIG_STATE, _SUCCESS)
    if MIG_CONFIG_LABEL in part.labels and state != _SUCCESS:
        links = label_of(plan, part, MIG_CONFIG_LABEL)
        route: Path = ("metadata", "labels", MIG_STATE)
        yield NodeDifference(item.name, item, part, route, _SUCCESS, state, links, _STATES.get(state, ""))
    yield from _units(part, item)


_STATES: Final = {
    "failed": "the MIG manager does not try again until the label `nvidia.com/mig.config` changes",
    "pending": "the MIG manager is at work",
    "rebooting": "the MIG manager is at work",
}


def _labels(plan: Plan, part: Pool, item: Item) -> Iterator[NodeDifference]:
    for key, value in part.labels.items():
        live = item.labels.get(key, ABSENT)
        if live == value:
            continue
        note = _note_on_layout(plan, live) if key == MIG_CONFIG_LABEL else ""
        route: Path = ("metadata", "labels", key)
        links = label_of(plan, part, key)
        yield NodeDifference(item.name, item, part, route, value, live, links, note, is_labelled=True)


def _note_on_layout(plan: Plan, live: object) -> str:
    known = {layout.config_name for layout in plan.mig_layouts} | {ALL_DISABLED}
    known |= {layout.spec.config_name for layout in plan.retained_layouts}
    return "" if live in known or live is ABSENT else "no entry of the MIG manager's file is called so"


def _taints(part: Pool, item: Item) -> Iterator[NodeDifference]:
    """Taints are told apart by key and effect; others may have set more."""
    live = [mapping(taint) for taint in sequence(inside(item.body, "spec").get("taints"))]
    for index, taint in enumerate(part.taints):
        same = next((n for n, other in enumerate(live) if _is_same_taint(taint, other)), None)
        links = default_taint_of(part, taint) if taint.is_default else copied(part.at / "taints" / index)
        written = f"{taint.key}={taint.value}:{taint.effect.value}" if taint.value else f"{taint.key}:{taint.effect}"
        if same is None:
            route: Path = ("spec", "taints")
            yield NodeDifference(item.name, item, part, route, written, ABSENT, links, is_labelled=True)
        elif text(live[same].get("value")) != taint.value:
            found = text(live[same].get("value"))
            route = ("spec", "taints", same, "value")
            yield NodeDifference(item.name, item, part, route, taint.value, found, links, is_labelled=True)


def _is_same_taint(taint: Taint, live: Mapping[str, Any]) -> bool:
    return (taint.key, taint.effect.value) == (live.get("key"), live.get("effect"))


def _units(part: Pool, item: Item) -> Iterator[NodeDifference]:
    """What a node publishes; partitions that are made on demand, and claimed devices, are no resources."""
    if isinstance(part.sharing, DynamicMig) or part.spec.allocation is Allocation.DRA:
        return
    planned: Counter[str] = Counter()
    for unit in part.units:
        if unit.device_class is None:
            planned[unit.resource or GPU_RESOURCE] += unit.per_node
    status = inside(item.body, "status")
    capacity, allocatable = ({**mapping(status.get(key))} for key in ("capacity", "allocatable"))
    others = {key for key in allocatable if key.startswith(_RESOURCES) and _number(allocatable[key])}
    for resource in sorted(planned.keys() | others) if allocatable else ():
        has_others = resource in capacity and _number(capacity[resource]) != planned[resource]
        field = "capacity" if has_others else "allocatable"
        live = (capacity if field == "capacity" else allocatable).get(resource, ABSENT)
        if _number(live) != planned[resource]:
            note = "the rest is not healthy, or not set up" if field == "allocatable" and planned[resource] else ""
            links = copied(part.at / "sharing", part.at / "nodes" / "gpusPerNode")
            written = planned[resource] or ABSENT
            yield NodeDifference(item.name, item, part, ("status", field, resource), written, live, links, note)


_RESOURCES: Final = "nvidia.com/"


def _number(value: object) -> int:
    found = parse_quantity(str(value)) if isinstance(value, str | int) else None
    return int(found or 0)


# --- Nodes that are not there ------------------------------------------------------------------------------------


def _missing(pool: Pool, found: Sequence[Item]) -> Iterator[NodeDifference]:
    """Nodes that a pool names, or as many as it counts."""
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
