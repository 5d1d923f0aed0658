"""Answers of few layouts: cuts of whole nodes that are worth a thought, and the best that so many of them can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from gpuplan.features.packing.sizing.answers import Cut, NodeType, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask
from gpuplan.features.packing.sizing.choosing.assembling import assemble, cut_key
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, cut_of
from gpuplan.features.packing.sizing.choosing.highs import INFINITE
from gpuplan.features.packing.sizing.choosing.program import Choice, Found

Amounts = Sequence[Fraction]
_MOST_TRIES = 24


def layouts(types: Sequence[NodeType], found: Found) -> set[tuple[str, object]]:
    """The layouts that an answer makes, but for those of kept pools."""
    return {
        (types[one.number].gpu.id, cut_key(one.cut))
        for one in assemble(types, found.nodes, found.gpus)
        if one.cut.way is Way.MIG and not (one.today and one.today.is_kept)
    }


def limited(
    asked: Sequence[Ask], types: Sequence[NodeType], most: int, found: Found | None, time_limit_s: float
) -> Callable[[Amounts], Choice]:
    """Makes choices of at most so many layouts: among nodes whose GPUs are all alike, and those of `_candidates`."""
    cuts = list(_candidates(asked, types, found, time_limit_s))

    def choice(amounts: Amounts) -> Choice:
        made = Choice([_alike(node_type) for node_type in types], asked, cuts=cuts)
        made.types = types
        for at, amount in enumerate(amounts):
            made.demand(at, amount)
        _limit(made, most)
        return made

    return choice


def is_complete(types: Iterable[NodeType]) -> bool:
    """Whether nodes whose GPUs are all alike are all that there can be."""
    return all(node_type.is_equal_within_node or node_type.gpus_per_node == 1 for node_type in types)


def _alike(node_type: NodeType) -> NodeType:
    return replace(node_type, is_equal_within_node=True)


def _limit(choice: Choice, most: int) -> None:
    alike: dict[object, list[int]] = {}
    for index, form in choice.node_forms.items():
        if form.cut and form.cut.way is Way.MIG and not (form.today and form.today.is_kept):
            alike.setdefault((choice.types[form.number].gpu.id, cut_key(form.cut)), []).append(index)
    used, most_nodes = [], choice.most_nodes
    for indexes in alike.values():
        is_used = choice.program.number(1)
        factors = {**dict.fromkeys(indexes, -1), is_used: most_nodes}
        choice.program.row(0, factors, INFINITE)
        used.append(is_used)
    choice.program.row(0, dict.fromkeys(used, 1), most)


def _candidates(
    asked: Sequence[Ask], types: Sequence[NodeType], found: Found | None, time_limit_s: float
) -> Iterator[tuple[int, Cut]]:
    """Cuts of the answer without a limit, those of today, and for each type one with which few nodes do for all."""
    known = assemble(types, found.nodes, found.gpus) if found else []
    yield from ((one.number, one.cut) for one in known if one.today is None and one.cut.way is Way.MIG)
    for number, node_type in enumerate(types):
        if node_type.is_equal_within_node or node_type.gpus_per_node == 1:
            continue
        mine = [ask for ask in asked if any(at == number for at, _ in ask.worth)]
        amounts = [ask.amount for ask in mine]
        most = node_type.nodes or max(2 * sum(one.nodes for one in known), 1)
        least = 1
        for _ in range(_MOST_TRIES):
            if least > most:
                break
            nodes = (least + most) // 2
            cut = _one_for_all(mine, node_type, number, types, amounts, nodes, time_limit_s)
            if cut is None:
                least = nodes + 1
            else:
                yield number, cut
                most = nodes - 1


def _one_for_all(
    asked: Sequence[Ask],
    node_type: NodeType,
    number: int,
    types: Sequence[NodeType],
    amounts: Amounts,
    nodes: int,
    time_limit_s: float,
) -> Cut | None:
    """How so many nodes of one type are cut alike, so that they do for all by themselves; None where they cannot."""
    choice = Choice([replace(other, pools=(), nodes=None) for other in types], asked)
    program = choice.program
    mine = [index for index, form in choice.node_forms.items() if form.number == number and not form.cut]
    gpus = [index for index, form in choice.gpu_forms.items() if form.number == number]
    for index in {*choice.node_forms, *choice.gpu_forms} - {*mine, *gpus}:
        program.upper[index] = 0
    for index in (*mine, *gpus):
        program.row(0, {index: 1, program.number(): -nodes}, 0)
    program.row(0, dict.fromkeys(mine, 1), nodes)
    for at, amount in enumerate(amounts):
        choice.demand(at, amount)
    solution = choice.solve({}, step=1, time_limit_s=time_limit_s)
    if not solution.values:
        return None
    per_gpu = [
        form.instances for index, form in choice.gpu_forms.items() for _ in range(solution.values[index] // nodes)
    ]
    cut = cut_of([*per_gpu, *[UNCUT] * (node_type.gpus_per_node - len(per_gpu))])
    return cut if cut.way is Way.MIG else None
