"""What needs can be had on few nodes, by trying every cut of every node and every place of every pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product

from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import NodeType, Way
from gpuplan.features.packing.sizing.needs import Need

Slot = tuple[str, str, int, Fraction, int, int]
"""The GPU model, the unit, MiB, the part of a GPU, the strength of isolation, and of which node (for whole GPUs)."""
ORDER = list(reversed(Isolation))


def is_possible(needs: Sequence[Need], pods: Sequence[int], types: Sequence[NodeType], nodes: Sequence[int]) -> bool:
    """Whether so many pods of each need have a place on so many nodes of each type, cut in whichever way."""
    wanted = sorted((need for need, count in zip(needs, pods, strict=True) for _ in range(count)), key=_hardness)
    choices = [combinations_with_replacement(node_cuts(one), count) for one, count in zip(types, nodes, strict=True)]
    return any(_holds(wanted, [cut for cuts in chosen for cut in cuts]) for chosen in product(*choices))


def fleets(types: Sequence[NodeType], most: int) -> Iterator[tuple[int, ...]]:
    """Numbers of nodes of each type, up to that many in all."""
    limits = [range(min(most, one.nodes if one.nodes is not None else most) + 1) for one in types]
    yield from (nodes for nodes in product(*limits) if sum(nodes) <= most)


@lru_cache
def node_cuts(node_type: NodeType) -> tuple[tuple[Slot, ...], ...]:
    """What a node of the type can be: all layouts of its GPUs, and all numbers of shares."""
    gpu, gpus = node_type.gpu, node_type.gpus_per_node
    whole = gpu.memory_mib or gpu.memory_gib * 1024
    kinds: list[tuple[Slot, ...]] = []
    if Way.WHOLE in node_type.ways:
        kinds.append(((gpu.id, "gpu", whole, Fraction(1), ORDER.index(Isolation.WHOLE_GPU), 0),))
    if Way.MIG in node_type.ways:
        kinds += [_instances(gpu, counts) for counts in _layouts(gpu, node_type.profiles)]
    if node_type.is_equal_within_node:
        found = [kind * gpus for kind in kinds]
    else:
        found = [sum(row, ()) for row in combinations_with_replacement(kinds, gpus)]
    for way, isolation in ((Way.TIME_SLICING, Isolation.NONE), (Way.MPS, Isolation.MPS)):
        for replicas in range(2, 9) if way in node_type.ways else ():
            share = gpu.id, "shared", whole // replicas, Fraction(1, replicas), ORDER.index(isolation), 0
            found.append((share,) * replicas * gpus)
    return tuple(found)


@lru_cache
def _layouts(gpu: Gpu, profiles: tuple[str, ...]) -> tuple[Mapping[str, int], ...]:
    """Layouts that no instance can be added to, by brute force."""
    limits = [range(profile.max_instances + 1) for profile in gpu.profiles if profile.name in profiles]
    names = [profile.name for profile in gpu.profiles if profile.name in profiles]
    every = [dict(zip(names, row, strict=True)) for row in product(*limits) if any(row)]
    fitting = [row for row in every if fits(gpu, row)]
    return tuple(
        row
        for row in fitting
        if not any(other != row and all(other[name] >= row[name] for name in names) for other in fitting)
    )


def _instances(gpu: Gpu, counts: Mapping[str, int]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for name, count in counts.items():
        profile = gpu.find_profile(name)
        assert profile is not None
        memory = profile.memory_mib or int((profile.memory_gib or 0) * 1024)
        part = Fraction(profile.compute_slices, gpu.compute_slices)
        slots += [(gpu.id, name, memory, part, ORDER.index(Isolation.HARDWARE), 0)] * count
    return tuple(slots)


def _holds(wanted: Sequence[Need], cuts: Sequence[tuple[Slot, ...]]) -> bool:
    slots = [(*slot[:5], at if slot[1] == "gpu" else 0) for at, cut in enumerate(cuts) for slot in cut]
    return len(wanted) <= len(slots) and _place(tuple(wanted), tuple(slots))


def _place(wanted: tuple[Need, ...], slots: tuple[Slot, ...]) -> bool:
    """Pod after pod, each wherever it can be; slots that are the same are tried once."""
    if not wanted:
        return True
    need, *rest = wanted
    tried = set()
    for slot in slots:
        if slot in tried or not _is_enough(slot, need):
            continue
        tried.add(slot)
        left = list(slots)
        gpus = max(need.gpus, 1)
        if left.count(slot) < gpus:
            continue
        for _ in range(gpus):
            left.remove(slot)
        if _place(tuple(rest), tuple(left)):
            return True
    return False


def _is_enough(slot: Slot, need: Need) -> bool:
    model, unit, memory, compute, isolation, _ = slot
    return (
        (unit == "gpu" or not (need.gpus or need.isolation is Isolation.WHOLE_GPU))
        and need.memory_mib <= memory
        and need.compute <= compute
        and isolation >= ORDER.index(need.isolation)
        and (not need.models or model in need.models)
        and (unit != "shared" or need.memory_mib + need.compute > 0)
    )


def _hardness(need: Need) -> tuple[int, int, Fraction]:
    return -need.gpus, -need.memory_mib, -need.compute
