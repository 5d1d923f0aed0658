"""Findings on a demand that an answer does not meet, and on answers that cannot be written (GPU827-831, GPU837)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.fleet import Fleet
from gpuplan.features.packing.granting import Seat
from gpuplan.features.packing.rules import (
    ANSWER_NOT_HELD,
    DEMAND_BEYOND_FLEET,
    ISOLATION_NOT_GIVEN,
    NO_MODEL_HOLDS_POD,
    NODES_WITHOUT_NAMES,
    WORK_WITHOUT_ROOM,
)
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Way
from gpuplan.features.packing.sizing.needs import Need


def unmet(plan: Plan, fleet: Fleet, answer: Answer, enough: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Yield why needs are not met; ``enough`` is how many nodes of each type would do for all."""
    lacking = [one for one in fleet.node_types if enough.get(one.name, 0) > (one.nodes or 0)]
    has_options = all(one.name == one.gpu.id for one in lacking)
    more = " ".join(f"--nodes-at-most {one.name}={enough[one.name]}" for one in lacking if has_options)
    clusters = (plan.cluster.name,)
    stopped = () if answer.is_exhaustive else ("the solver has stopped before it had tried all",)
    for need, pods in answer.unmet:
        is_named = need.name and need.name != need.team
        at = need.at or plan.cluster.at
        name = f"`{need.name}` of team `{need.team}`" if is_named else f"team `{need.team}`"
        meant = [one for one in fleet.node_types if not need.models or one.gpu.id in need.models]
        holding = [
            one for one in meant if need.gpus <= one.gpus_per_node and need.memory_mib <= gpu_memory_mib(one.gpu)
        ]
        isolating = [one for one in holding if _isolates(one, need)]
        if not holding:
            finding = _too_large(at, name, need, meant, fleet)
            yield Diagnostic(NO_MODEL_HOLDS_POD, finding, clusters)
        elif not isolating:
            finding = Finding(
                at,
                f"no pool in question may isolate pods of {name} so well",
                label=f"needs {need.isolation.value}",
                notes=tuple(f"{one.name}: {listing([way.value for way in one.ways])}" for one in holding),
                help="leave `--keep` out, or name a pool that is not shared",
            )
            yield Diagnostic(ISOLATION_NOT_GIVEN, finding, clusters)
        else:
            nodes = count(sum(one.nodes or 0 for one in isolating), "node")
            requests = need.service and f"{need.service.requests_per_second:,g} requests a second"
            finding = Finding(
                at,
                lacking_text(pods, f" of {name}", is_exhaustive=answer.is_exhaustive),
                label=f"{requests or count(need.pods, 'pod')} asked for"
                + (f", {need.pods - pods} with room" if need.pods > pods else ""),
                notes=(f"others use what is on the {nodes} that could hold them", *stopped),
                help=f"ask for fewer, or allow as many nodes as all of it takes: `{more}`"
                if more
                else "ask for fewer, or add nodes to its pools",
            )
            yield Diagnostic(DEMAND_BEYOND_FLEET, finding, clusters)


def lacking_text(pods: int, of: str = "", *, is_exhaustive: bool) -> str:
    """Say that pods have no room, or that none was found by a search that did not end."""
    if not is_exhaustive:
        return f"no room was found for {count(pods, 'pod')}{of}"
    return f"{count(pods, 'pod')}{of} {'finds' if pods == 1 else 'find'} no room"


def misplaced(plan: Plan, needs: Iterable[tuple[Need, int]]) -> Iterator[Diagnostic]:
    """Yield needs of which the policies of an answer do not hold so many pods that it grants."""
    for need, pods in needs:
        finding = Finding(
            need.at or plan.cluster.at,
            f"the answer has no place for {count(pods, 'pod')} of `{need.name or need.team}`",
            label=f"{count(need.pods, 'pod')} asked for",
            notes=("this is a defect of gpuplan",),
            help="report it with the policies and the demand; until then, ask of fewer pools with `--pool` or `--keep`",
        )
        yield Diagnostic(ANSWER_NOT_HELD, finding, (plan.cluster.name,))


def _too_large(at: Origin, name: str, need: Need, meant: Sequence[NodeType], fleet: Fleet) -> Finding:
    is_unknown = need.models and not meant
    models = listing(sorted({one.gpu.id for one in fleet.node_types})) if is_unknown else ""
    return Finding(
        at,
        f"no GPU of the pools in question holds a pod of {name}",
        label=f"asks for {need.gpus} GPUs of one node" if need.gpus > 1 else f"asks for {need.memory_mib:,} MiB",
        notes=tuple(
            f"{one.gpu.id} has {gpu_memory_mib(one.gpu):,} MiB, {count(one.gpus_per_node, 'GPU')} on a node"
            for one in meant or fleet.node_types
        ),
        help=f"name one of {models}, or leave the models out"
        if is_unknown
        else "ask for less of one GPU, or add a pool of a larger model",
    )


_GIVEN: Final = {Way.WHOLE: Isolation.WHOLE_GPU, Way.MIG: Isolation.HARDWARE, Way.MPS: Isolation.MPS}


def _isolates(node_type: NodeType, need: Need) -> bool:
    kept = [today for today in node_type.pools if today.is_kept]
    is_free = len(kept) < len(node_type.pools) or node_type.nodes is None
    ways = set(node_type.ways) if is_free else {today.cut.way for today in kept}
    order = [*Isolation]
    return any(order.index(_GIVEN.get(way, Isolation.NONE)) <= order.index(need.isolation) for way in ways)


def unnamed(plan: Plan, assignment: Assignment) -> Iterator[Diagnostic]:
    """Yield pools with nodes that must be named, and nobody but the user can name."""
    for place in assignment.places:
        if place.unnamed:
            names = ", ".join(f"NODE-{number}" for number in range(1, min(place.unnamed, 3) + 1))
            finding = Finding(
                plan.cluster.at / "nodeLabels",
                f"pool `{place.pool}` needs {count(place.unnamed, 'node')} that nothing names",
                label="each node has an object of its own here",
                help=f"add a pool like `{place.source.name}` with `names: [{names}]`, and run `gpuplan pack` again",
            )
            yield Diagnostic(NODES_WITHOUT_NAMES, finding, (plan.cluster.name,))


def in_the_way(seats: Iterable[Seat], assignment: Assignment) -> Iterator[Diagnostic]:
    """Yield work that fits no quota of its tenant, on a unit that goes or of which the tenant would have too little."""
    for seat in seats:
        work = seat.workload
        if seat.key is not None:
            continue
        tenant, place = work.tenant.name, assignment.find(work.pool.name)
        stays = place is not None and work.unit.name in place.units()
        goes = f"and tenant `{tenant}` would have too few" if stays else "and the pool would not hand them out"
        finding = Finding(
            work.at / "pool",
            f"workload `{work.name}` runs on `{work.unit.name}` of pool `{work.pool.name}`, {goes}",
            label=f"needs {count(work.most_pods * work.spec.count, 'unit')} of one pool",
            notes=(f"no quota that tenant `{tenant}` would have is so large",),
            help=f"ask for its pods in the demand of `{tenant}`, too; or let it have fewer pods"
            if stays and place is not None and place.nodes >= work.pool.nodes.count
            else f"keep its pool: `--keep {work.pool.name}`; or let it have fewer pods",
        )
        yield Diagnostic(WORK_WITHOUT_ROOM, finding)
