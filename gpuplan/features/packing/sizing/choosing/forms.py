"""The forms that one node, or one GPU of a node, can have: the columns of which an answer is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.compiler.planning.placement.placing import InstanceCounts
from gpuplan.features.packing.sizing.answers import Cut, NodeType, Today, Way
from gpuplan.features.packing.sizing.choosing.asking import Place
from gpuplan.features.packing.sizing.choosing.parts import Part, instance, share, whole

UNCUT: InstanceCounts = MappingProxyType({})


class GpuForm(Value, eq=False):
    """One GPU: the instances on it, none if it stays whole, and the parts that pods can have of it."""

    number: int
    instances: InstanceCounts
    parts: Mapping[Part, int]


class NodeForm(Value, eq=False):
    """One node: ``free`` GPUs that are made into GPU forms, and the parts that pods can have of the others.

    ``gangs`` has a number of GPUs for each pod with several GPUs that the node has room for. If no GPU is free, ``cut``
    is how all of them are cut; ``today`` is the pool that such nodes are in.
    """

    number: int
    free: int
    parts: Mapping[Part, int]
    gangs: tuple[int, ...] = ()
    cut: Cut | None = None
    today: Today | None = None


def standing_places(types: Sequence[NodeType]) -> Iterator[Place]:
    """Yield the parts that pods can have of nodes that are cut already, several whole GPUs of a node among them."""
    for number, node_type in enumerate(types):
        for today in node_type.pools:
            parts = node_parts(node_type, today.cut)
            yield from ((number, part) for part in parts)
            singles = parts[whole(node_type.gpu)]
            yield from ((number, whole(node_type.gpu, gpus)) for gpus in range(2, singles + 1))


def node_parts(node_type: NodeType, cut: Cut) -> Counter[Part]:
    if cut.way in (Way.TIME_SLICING, Way.MPS):
        return Counter({share(node_type.gpu, cut.way, cut.replicas): cut.replicas * len(cut.per_gpu)})
    parts: Counter[Part] = Counter()
    for counts in cut.per_gpu:
        parts.update(gpu_parts(node_type, counts))
    return parts


def gpu_parts(node_type: NodeType, counts: InstanceCounts) -> Mapping[Part, int]:
    held = {name: count for name, count in counts.items() if count}
    if not held:
        return {whole(node_type.gpu): 1}
    gpu, parts = node_type.gpu, {}
    for name, count in held.items():
        if profile := gpu.find_profile(gpu.current_name(name)):
            parts[instance(gpu, profile)._replace(name=name)] = count
    return parts


def gpu_forms(number: int, node_type: NodeType, wanted: Iterable[Place]) -> list[GpuForm]:
    """Return all maximal layouts of the profiles that are asked for, and the whole GPU if one is asked for."""
    parts = [part for at, part in wanted if at == number]
    names = {part.name for part in parts if part.way is Way.MIG}
    layouts = maximal_layouts(node_type.gpu, names) if names else ()
    forms = [GpuForm(number, counts, gpu_parts(node_type, counts)) for counts in layouts]
    if any(part.way is Way.WHOLE and part.gpus == 1 for part in parts):
        forms.append(GpuForm(number, UNCUT, gpu_parts(node_type, UNCUT)))
    return forms


def node_forms(number: int, node_type: NodeType, wanted: Iterable[Place], forms: Sequence[GpuForm]) -> list[NodeForm]:
    """Return nodes that are cut as the answer wants: by GPU, or all their GPUs alike."""
    parts = [part for at, part in wanted if at == number]
    gangs = sorted({part.gpus for part in parts if part.gpus > 1}, reverse=True)
    gpus = node_type.gpus_per_node
    shares = [part for part in parts if part.way in (Way.TIME_SLICING, Way.MPS)]
    nodes = [
        NodeForm(number, 0, {part: gpus * part.replicas}, cut=shared_cut(part.way, gpus, part.replicas))
        for part in dict.fromkeys(shares)
    ]
    for group in _gangs(gangs, gpus):
        taken = {whole(node_type.gpu, size): count for size, count in Counter(group).items()}
        rest = gpus - sum(group)
        if not node_type.is_equal_within_node:
            nodes.append(NodeForm(number, rest, taken, group))
        elif group:
            nodes.append(NodeForm(number, 0, taken | {whole(node_type.gpu): rest}, group, uncut(gpus)))
    if node_type.is_equal_within_node:
        for form in forms:
            alike = {part: count * gpus for part, count in form.parts.items()}
            nodes.append(NodeForm(number, 0, alike, cut=cut_of((form.instances,) * gpus)))
    return nodes


def shared_cut(way: Way, gpus: int, replicas: int) -> Cut:
    return Cut(way, (UNCUT,) * gpus, replicas)


def uncut(gpus: int) -> Cut:
    return Cut(Way.WHOLE, (UNCUT,) * gpus)


def cut_of(per_gpu: Iterable[InstanceCounts]) -> Cut:
    """Return the cut of a node whose GPUs hold these instances, in one order: whole GPUs come last."""

    def key(counts: InstanceCounts) -> tuple[bool, int, tuple[tuple[str, int], ...]]:
        return not counts, sum(counts.values()), tuple(sorted(counts.items(), reverse=True))

    ordered = tuple(sorted(per_gpu, key=key))
    return Cut(Way.MIG if any(ordered) else Way.WHOLE, ordered)


def cut_forms(
    number: int, node_type: NodeType, cut: Cut, today: Today | None, wanted: Iterable[Place]
) -> Iterator[NodeForm]:
    """Yield nodes of that cut, with each choice of pods with several GPUs on its whole GPUs."""
    sizes = sorted({part.gpus for at, part in wanted if at == number and part.gpus > 1}, reverse=True)
    parts = node_parts(node_type, cut)
    one = whole(node_type.gpu)
    for group in _gangs(sizes, parts[one]):
        held = parts + Counter({whole(node_type.gpu, size): count for size, count in Counter(group).items()})
        held[one] -= sum(group)
        yield NodeForm(number, 0, +held, group, cut, today)


def _gangs(sizes: Sequence[int], gpus: int) -> Iterator[tuple[int, ...]]:
    """Yield every choice of pods of several GPUs that have room on so many, also no pod."""
    if not sizes:
        yield ()
        return
    for count in range(gpus // sizes[0], -1, -1):
        for rest in _gangs(sizes[1:], gpus - count * sizes[0]):
            yield (sizes[0],) * count + rest
