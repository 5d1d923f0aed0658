"""What keeps a demand from being met, or an answer from being written (GPU827-GPU831)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Rule
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.planning.plan import Isolation, Plan, Unit
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.fleet import Fleet
from gpuplan.features.packing.granting import Seat
from gpuplan.features.packing.rules import (
    DEMAND_BEYOND_FLEET,
    ISOLATION_NOT_GIVEN,
    NO_MODEL_HOLDS_POD,
    NODES_WITHOUT_NAMES,
    WORK_WITHOUT_ROOM,
)
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Way
from gpuplan.features.packing.sizing.needs import Need


def unmet(plan: Plan, fleet: Fleet, answer: Answer, enough: Mapping[str, int]) -> Iterator[Diagnostic]:
    """What of the demand an answer leaves, and why; ``enough`` is how many nodes of each type would do for all."""
    more = _more_nodes(fleet, enough)
    for need, pods in answer.unmet:
        yield _unmet(plan, fleet, need, pods, more)


def _more_nodes(fleet: Fleet, enough: Mapping[str, int]) -> str:
    """The options that allow as many nodes as would do; empty where no option says that."""
    lacking = [item for item in fleet.node_types if enough.get(item.name, 0) > (item.nodes or 0)]
    if any(item.name != item.gpu.id for item in lacking):
        return ""
    return " ".join(f"--nodes-at-most {item.name}={enough[item.name]}" for item in lacking)


def _unmet(plan: Plan, fleet: Fleet, need: Need, pods: int, more: str) -> Diagnostic:
    at = need.at or plan.cluster.at
    what = f"{count(pods, 'pod')} of `{need.name or need.team}`"
    meant = [item for item in fleet.node_types if not need.models or item.gpu.id in need.models]
    holding = [item for item in meant if _holds(item, need)]
    if not holding:
        return _of(
            NO_MODEL_HOLDS_POD,
            plan,
            Finding(
                at,
                f"no GPU of the pools in question holds a pod of `{need.name or need.team}`",
                label=_asks(need),
                notes=tuple(_limits(meant or fleet.node_types)),
                help=_larger(need, meant, fleet),
            ),
        )
    isolated = [item for item in holding if _isolates(item, need)]
    if not isolated:
        return _of(
            ISOLATION_NOT_GIVEN,
            plan,
            Finding(
                at,
                f"no pool in question may isolate pods of `{need.name or need.team}` so well",
                label=f"needs {need.isolation.value}",
                notes=tuple(f"{item.name}: {listing([way.value for way in item.ways])}" for item in holding),
                help="leave `--keep` out, or name a pool that is not shared",
            ),
        )
    there = sum(item.nodes or 0 for item in isolated)
    return _of(
        DEMAND_BEYOND_FLEET,
        plan,
        Finding(
            at,
            f"{what} {'finds' if pods == 1 else 'find'} no room",
            label=f"{_amount(need)} asked for",
            notes=(f"there are {count(there, 'node')} that could hold them, and others use what is on those",),
            help=f"ask for fewer, or allow as many nodes as all of it takes: `{more}`"
            if more
            else "ask for fewer, or add nodes to its pools",
        ),
    )


def _amount(need: Need) -> str:
    if need.service is not None:
        return f"{need.service.requests_per_second:,g} requests a second"
    return count(need.pods, "pod")


def _of(rule: Rule, plan: Plan, finding: Finding) -> Diagnostic:
    return Diagnostic(rule, finding, (plan.cluster.name,))


def _holds(node_type: NodeType, need: Need) -> bool:
    """Whether a GPU of the type, whole or cut, could hold a pod."""
    return need.gpus <= node_type.gpus_per_node and need.memory_mib <= gpu_memory_mib(node_type.gpu)


def _isolates(node_type: NodeType, need: Need) -> bool:
    kept = [today for today in node_type.pools if today.is_kept]
    is_free = len(kept) < len(node_type.pools) or node_type.nodes is None
    ways = set(node_type.ways) if is_free else {today.cut.way for today in kept}
    given = {Way.WHOLE: Isolation.WHOLE_GPU, Way.MIG: Isolation.HARDWARE, Way.MPS: Isolation.MPS}
    order = [*Isolation]
    return any(order.index(given.get(way, Isolation.NONE)) <= order.index(need.isolation) for way in ways)


def _asks(need: Need) -> str:
    if need.gpus > 1:
        return f"asks for {need.gpus} GPUs of one node"
    return f"asks for {need.memory_mib:,} MiB"


def _limits(types: Iterable[NodeType]) -> Iterator[str]:
    for item in types:
        yield f"{item.gpu.id} has {gpu_memory_mib(item.gpu):,} MiB, {count(item.gpus_per_node, 'GPU')} on a node"


def _larger(need: Need, meant: Iterable[NodeType], fleet: Fleet) -> str:
    if need.models and not [*meant]:
        return f"name one of {listing(sorted({item.gpu.id for item in fleet.node_types}))}, or leave the models out"
    return "ask for less of one GPU, or add a pool of a larger model"


def unnamed(plan: Plan, assignment: Assignment) -> Iterator[Diagnostic]:
    """Nodes that must be named, and nobody but the user can name."""
    for place in assignment.unnamed:
        names = ", ".join(f"NODE-{number}" for number in range(1, min(place.unnamed, 3) + 1))
        yield _of(
            NODES_WITHOUT_NAMES,
            plan,
            Finding(
                plan.cluster.at / "nodeLabels",
                f"pool `{place.pool}` needs {count(place.unnamed, 'node')} that nothing names",
                label="each node has an object of its own here",
                help=f"add a pool like `{place.source.name}` with `names: [{names}]`, and run `gpuplan pack` again",
            ),
        )


def in_the_way(seats: Iterable[Seat], assignment: Assignment) -> Iterator[Diagnostic]:
    """Work on a unit that goes, or of which its tenant would have too little, and that fits no quota of its tenant."""
    for seat in seats:
        work = seat.workload
        if seat.key is None:
            wanted, tenant = work.most_pods * work.spec.count, work.tenant.name
            place = assignment.find(work.pool.name)
            stays = place is not None and work.unit.name in place.units()
            what = f"`{_name(work.unit)}` of pool `{work.pool.name}`"
            yield Diagnostic(
                WORK_WITHOUT_ROOM,
                Finding(
                    work.at / "pool",
                    f"workload `{work.name}` runs on {what}, of which tenant `{tenant}` would have too little"
                    if stays
                    else f"workload `{work.name}` runs on {what}, which would go",
                    label=f"needs {count(wanted, 'unit')} of one pool",
                    notes=(f"no quota that tenant `{tenant}` would have is so large",),
                    help=f"ask for its pods in the demand of `{tenant}`, too; or let it have fewer pods"
                    if stays
                    else f"keep its pool: `--keep {work.pool.name}`; or let it have fewer pods",
                ),
            )


def _name(unit: Unit) -> str:
    return unit.name
