"""Nodes of few cuts, made of how many GPUs hold what."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Key, as_key
from gpuplan.features.packing.sizing.answers import Cut, Group, NodeType, Today
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, GpuForm, NodeForm, cut_of

Gangs = tuple[int, ...]


class Assembled(NamedTuple):
    """Nodes that are cut alike, and for how many of them which pods with several GPUs they have room for."""

    number: int
    cut: Cut
    today: Today | None
    gangs: Mapping[Gangs, int]

    @property
    def nodes(self) -> int:
        return sum(self.gangs.values())


def assemble(
    types: Sequence[NodeType], nodes: Sequence[tuple[NodeForm, int]], gpus: Sequence[tuple[GpuForm, int]]
) -> list[Assembled]:
    """The nodes of an answer: those whose cut is given, and those that GPU forms are laid onto."""
    found: dict[tuple[int, object, str], Assembled] = {}
    for number, node_type in enumerate(types):
        left = Counter({as_key(form.instances): count for form, count in gpus if form.number == number})
        mine = [(form, count) for form, count in nodes if form.number == number]
        for form, count in sorted(mine, key=lambda item: (item[0].cut is None, -len(item[0].gangs), item[0].gangs)):
            if form.cut is not None:
                _add(found, Assembled(number, form.cut, form.today, {form.gangs: count}))
            else:
                for per_gpu, times in _lay(left, form, count, node_type.gpus_per_node):
                    _add(found, Assembled(number, cut_of(per_gpu), None, {form.gangs: times}))
    return list(found.values())


def _add(found: dict[tuple[int, object, str], Assembled], more: Assembled) -> None:
    key = more.number, cut_key(more.cut), more.today.pool if more.today else ""
    known = found.get(key)
    gangs = Counter(known.gangs) + Counter(more.gangs) if known else more.gangs
    found[key] = more._replace(gangs=gangs)


def cut_key(cut: Cut) -> tuple[object, ...]:
    """Equal for cuts that are the same but for which GPU of the node is which."""
    return cut.way, cut.replicas, tuple(sorted(as_key(counts) for counts in cut.per_gpu))


def _lay(left: Counter[Key], form: NodeForm, nodes: int, gpus: int) -> list[tuple[list[InstanceCounts], int]]:
    """GPUs laid onto so many nodes, column by column of all nodes, so that nodes differ only where one kind ends.

    Kinds that many GPUs are of come first. What is spare goes to those that it fills a column of; the rest of it
    repeats the last kind, or stays whole where there is none.
    """
    room = nodes * form.free
    laid = _take(left, room, whole_first=bool(form.gangs))
    spare = room - laid.total()
    for key in sorted(laid, key=lambda key: -laid[key] % nodes):
        if 0 < (lacks := -laid[key] % nodes) <= spare:
            laid[key] += lacks
            spare -= lacks
    order = sorted(laid, key=lambda key: (laid[key] % nodes > 0, -laid[key], key))
    ends = list(accumulate(laid[key] for key in order))
    kinds = [*order, order[-1] if order and not form.gangs else ()]
    breaks = sorted({0, *(end % nodes for end in ends)})
    rows: Counter[tuple[Key, ...]] = Counter()
    for first, after in zip(breaks, [*breaks[1:], nodes], strict=True):
        row = (kinds[bisect_right(ends, first + column * nodes)] for column in range(form.free))
        rows[tuple(sorted(row))] += after - first
    rest = [UNCUT] * (gpus - form.free)
    return [([dict(key) for key in row] + rest, times) for row, times in rows.items()]


def _take(left: Counter[Key], room: int, *, whole_first: bool) -> Counter[Key]:
    taken: Counter[Key] = Counter()
    for key in sorted(left, key=lambda key: (bool(key) is whole_first, -left[key], key)):
        count = min(left[key], room - taken.total())
        if count:
            taken[key] = count
            left[key] -= count
    return taken


def groups(types: Sequence[NodeType], assembled: Sequence[Assembled]) -> list[tuple[Group, Assembled]]:
    """The groups of an answer, each with the pool that it stays or becomes.

    Nodes that are cut as a pool is today are that pool. Others are new pools of nodes that no pool has today, or become
    a pool that has no nodes left as it is, the one with the most nodes first: fewer pools come and go.
    """
    pools: dict[int, list[Today]] = {number: list(node_type.pools) for number, node_type in enumerate(types)}
    named: list[tuple[Assembled, str]] = []
    strangers: dict[int, list[Assembled]] = defaultdict(list)
    for one in sorted(assembled, key=lambda one: (one.today is None, one.number, -one.nodes)):
        today = one.today or next((t for t in pools[one.number] if cut_key(t.cut) == cut_key(one.cut)), None)
        if today is None or today not in pools[one.number]:
            strangers[one.number].append(one)
            continue
        pools[one.number].remove(today)
        named.append((one._replace(cut=today.cut), today.pool))
    for number, others in strangers.items():
        unused = _unused(types[number], [one for one, _ in named if one.number == number])
        free = iter(sorted((t for t in pools[number] if not t.is_kept), key=lambda t: (-t.nodes, t.pool)))
        for one in sorted(others, key=lambda one: -one.nodes):
            if one.nodes <= unused:
                unused -= one.nodes
                named.append((one, ""))
            else:
                named.append((one, next((today.pool for today in free), "")))
    return [
        (Group(types[one.number], one.cut, one.nodes, pool), one)
        for one, pool in sorted(named, key=lambda item: item[0].number)
    ]


def _unused(node_type: NodeType, staying: Sequence[Assembled]) -> int:
    """Nodes that no pool has today, less those that pools grow by which stay."""
    if node_type.nodes is None:
        return 0
    nodes = {cut_key(today.cut): 0 for today in node_type.pools}
    for today in node_type.pools:
        nodes[cut_key(today.cut)] += today.nodes
    grown = sum(max(one.nodes - nodes.get(cut_key(one.cut), 0), 0) for one in staying)
    return max(node_type.nodes - sum(nodes.values()) - grown, 0)
