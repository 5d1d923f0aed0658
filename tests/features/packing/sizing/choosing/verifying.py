"""Judges answers by what NVIDIA's placements and the needs say alone: nothing here is shared with what makes them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

from gpuplan.compiler.planning.placement.placing import InstanceCounts, fits
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Answer, Grant, Group, NodeType, Way
from gpuplan.features.packing.sizing.needs import Need

ORDER = list(Isolation)


def verify(answer: Answer, needs: Sequence[Need], node_types: Sequence[NodeType]) -> list[str]:
    """What is wrong with an answer; nothing where it can be had."""
    return [
        *_cuts(answer),
        *_nodes(answer, node_types),
        *_kept(answer, node_types),
        *_supply(answer),
        *(wrong for grant in answer.grants for wrong in _fitting(grant)),
        *_served(answer, needs),
    ]


def _cuts(answer: Answer) -> Iterator[str]:
    for group in answer.groups:
        cut, node_type = group.cut, group.node_type
        if group.nodes <= 0:
            yield f"{group.nodes} nodes"
        if len(cut.per_gpu) != node_type.gpus_per_node:
            yield f"{len(cut.per_gpu)} GPUs of {node_type.gpus_per_node} are cut"
        for counts in cut.per_gpu:
            if counts and not fits(node_type.gpu, counts):
                yield f"{dict(counts)} does not fit"
        if any(cut.per_gpu) is not (cut.way is Way.MIG):
            yield f"{cut.way} with {cut.per_gpu}"
        yield from () if _is_todays(group) else _new_cuts(group)


def _new_cuts(group: Group) -> Iterator[str]:
    cut, node_type = group.cut, group.node_type
    if cut.way not in node_type.ways:
        yield f"{cut.way} is not allowed"
    if node_type.is_equal_within_node and len({tuple(sorted(c.items())) for c in cut.per_gpu}) > 1:
        yield "GPUs of a node differ"
    if any(name not in node_type.profiles for counts in cut.per_gpu for name in counts):
        yield "a profile that may not be made"
    if (cut.replicas > 1) is (cut.way in (Way.WHOLE, Way.MIG)):
        yield f"{cut.replicas} replicas of {cut.way}"


def _is_todays(group: Group) -> bool:
    return any(today.pool == group.pool and today.cut == group.cut for today in group.node_type.pools)


def _nodes(answer: Answer, node_types: Sequence[NodeType]) -> Iterator[str]:
    for node_type in node_types:
        used = sum(group.nodes for group in answer.groups if group.node_type is node_type)
        if node_type.nodes is not None and used > node_type.nodes:
            yield f"{used} nodes of {node_type.nodes}"
    names = [group.pool for group in answer.groups if group.pool]
    if len(names) != len(set(names)):
        yield f"pools twice: {names}"


def _kept(answer: Answer, node_types: Sequence[NodeType]) -> Iterator[str]:
    for node_type in node_types:
        for today in node_type.pools:
            if today.is_kept and not any(
                (g.pool, g.nodes, g.cut) == (today.pool, today.nodes, today.cut) for g in answer.groups
            ):
                yield f"{today.pool} is not kept"


def _supply(answer: Answer) -> Iterator[str]:
    taken: Counter[tuple[int, str]] = Counter()
    gangs: dict[int, list[int]] = defaultdict(list)
    known = {id(group): at for at, group in enumerate(answer.groups)}
    for grant in answer.grants:
        at = known.get(id(grant.group))
        if at is None:
            yield "a grant of no group"
            continue
        taken[at, grant.unit] += grant.units
        if grant.unit == "gpu":
            each = max(grant.need.gpus, 1)
            gangs[at] += [each] * (grant.units // each)
            if grant.units % each:
                yield "a part of a pod"
    for (at, unit), units in taken.items():
        group = answer.groups[at]
        held = sum(_held(group, counts)[unit] for counts in group.cut.per_gpu) * group.nodes
        if units > held:
            yield f"{units} {unit} of {held}"
    for at, sizes in gangs.items():
        group = answer.groups[at]
        per_node = sum(not counts for counts in group.cut.per_gpu)
        if not _has_room(sorted(sizes, reverse=True), [per_node] * group.nodes):
            yield f"no room for pods of {sizes} GPUs on {group.nodes} nodes of {per_node}"


def _held(group: Group, counts: InstanceCounts) -> Counter[str]:
    if counts:
        return Counter(dict(counts))
    return Counter(shared=group.cut.replicas) if group.cut.replicas > 1 else Counter(gpu=1)


def _has_room(sizes: Sequence[int], nodes: list[int]) -> bool:
    """Whether pods fit whole onto nodes: first those with most GPUs, each place tried once."""
    if not sizes or sizes[0] == 1:
        return sum(sizes) <= sum(nodes)
    for room in sorted({room for room in nodes if room >= sizes[0]}):
        rest = list(nodes)
        rest.remove(room)
        if _has_room(sizes[1:], [*rest, room - sizes[0]]):
            return True
    return False


def _fitting(grant: Grant) -> Iterator[str]:
    need, group = grant.need, grant.group
    gpu = group.node_type.gpu
    if need.models and gpu.id not in need.models:
        yield f"{need.name} on {gpu.id}"
    whole = gpu.memory_mib or gpu.memory_gib * 1024
    profile = gpu.find_profile(grant.unit)
    if profile:
        memory = profile.memory_mib or (int(profile.memory_gib * 1024) if profile.memory_gib else 0)
        compute, isolation, share = Fraction(profile.compute_slices, gpu.compute_slices), Isolation.HARDWARE, 1
        engines = profile.engines
    else:
        share = group.cut.replicas
        memory, compute, engines = whole // share, Fraction(1, share), gpu.engines
        isolation = {Way.TIME_SLICING: Isolation.NONE, Way.MPS: Isolation.MPS}.get(group.cut.way, Isolation.WHOLE_GPU)
    if need.memory_mib > memory:
        yield f"{need.name} needs {need.memory_mib} MiB of {memory}"
    if need.compute > compute:
        yield f"{need.name} needs {need.compute} of {compute}"
    if ORDER.index(isolation) > ORDER.index(need.isolation):
        yield f"{need.name} is apart by {isolation}"
    if need.gpus and isolation is not Isolation.WHOLE_GPU:
        yield f"{need.name} has no whole GPU"
    for engine, count in need.engines.items():
        if (getattr(engines, engine) or 0) // share < count:
            yield f"{need.name} has too few {engine}"


def _served(answer: Answer, needs: Sequence[Need]) -> Iterator[str]:
    unmet = {id(need): pods for need, pods in answer.unmet}
    for need in needs:
        mine = [grant for grant in answer.grants if grant.need is need]
        lacks = unmet.pop(id(need), 0)
        if need.service is None:
            pods = sum(grant.units for grant in mine) // max(need.gpus, 1)
            if pods + lacks != need.pods:
                yield f"{need.name}: {pods} pods and {lacks} unmet of {need.pods}"
        else:
            reached = sum((grant.units * reach(need, grant) for grant in mine), Fraction(0))
            if (reached >= Fraction(str(need.service.requests_per_second))) is bool(lacks):
                yield f"{need.name} reaches {float(reached)}, unmet {lacks}"
    if unmet:
        yield "unmet needs that nobody has"


def reach(need: Need, grant: Grant) -> Fraction:
    service = need.service
    assert service is not None
    profile = grant.group.node_type.gpu.find_profile(grant.unit)
    slices = profile.compute_slices if profile else grant.group.node_type.gpu.compute_slices
    usable = [
        point.requests_per_second
        for point in service.measured
        if point.size in (grant.unit, slices)
        and point.processes <= service.max_processes
        and (service.latency_ms is None or point.latency_ms <= service.latency_ms)
    ]
    return round(Fraction(max(usable, default=0)), 6)
