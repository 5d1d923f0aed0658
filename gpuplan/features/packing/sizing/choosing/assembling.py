"""Makes nodes of few cuts out of the forms that were chosen, and hands out what they have."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.placement.arrangement import InstanceCounts, Key, as_key
from gpuplan.features.packing.sizing.answers import Cut, Grant, Group, NodeType, Today, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, GpuForm, NodeForm, cut_of, node_parts
from gpuplan.features.packing.sizing.choosing.parts import Part, whole
from gpuplan.features.packing.sizing.needs import Need

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
    key = more.number, more.cut.key, more.today.pool if more.today else ""
    known = found.get(key)
    gangs = Counter(known.gangs) + Counter(more.gangs) if known else more.gangs
    found[key] = more._replace(gangs=gangs)


def layouts(
    types: Sequence[NodeType], nodes: Sequence[tuple[NodeForm, int]], gpus: Sequence[tuple[GpuForm, int]]
) -> set[tuple[str, object]]:
    """The layouts that an answer makes, but for those of kept pools."""
    return {
        (types[one.number].gpu.id, one.cut.key)
        for one in assemble(types, nodes, gpus)
        if one.cut.way is Way.MIG and not (one.today and one.today.is_kept)
    }


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
        today = one.today or next((t for t in pools[one.number] if t.cut.key == one.cut.key), None)
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
    nodes = {today.cut.key: 0 for today in node_type.pools}
    for today in node_type.pools:
        nodes[today.cut.key] += today.nodes
    grown = sum(max(one.nodes - nodes.get(one.cut.key, 0), 0) for one in staying)
    return max(node_type.nodes - sum(nodes.values()) - grown, 0)


# --- Who gets what of them -------------------------------------------------------------------------------------------


class Granted:
    """Parts of groups, handed out one need after another."""

    def __init__(self, types: Sequence[NodeType], groups: Sequence[tuple[Group, Assembled]]) -> None:
        self.grants: list[Grant] = []
        self.unmet: list[tuple[Need, int]] = []
        self._left: list[tuple[Group, int, Counter[Part]]] = []
        for group, assembled in groups:
            self._left.append((group, assembled.number, _parts(types[assembled.number], assembled)))

    def fitted(self, asked: Sequence[Ask], taken: Sequence[Mapping[Place, int]]) -> list[Mapping[Place, int]]:
        """What is taken, but of parts that would be spare the smallest that answer as much."""
        spare: Counter[Place] = Counter()
        for _, number, parts in self._left:
            spare.update({(number, part): count for part, count in parts.items()})
        found = [dict(places) for places in taken]
        for places in found:
            spare.subtract(places)
        while sum(_shrink(ask, places, spare) for ask, places in zip(asked, found, strict=True)):
            pass
        return [{place: count for place, count in places.items() if count} for places in found]

    def serve(self, ask: Ask, taken: Mapping[Place, int]) -> None:
        """Needs in their order; of a need's parts first those that are worth the most to it."""
        order = {place: at for at, place in enumerate(ask.worth)}
        places = sorted(taken, key=lambda place: (-ask.worth[place], order[place]))
        left = Counter({place: taken[place] for place in places})
        for need, amount in zip(ask.needs, ask.amounts, strict=True):
            missing = amount
            for place in places:
                worth = ask.worth[place]
                wanted = min(left[place], ceil(missing / worth)) if missing > 0 else 0
                got = self._hand_out(need, place, wanted)
                left[place] -= wanted
                missing -= worth * got
            if missing > 0:
                self.unmet.append((need, pods_for(ask, missing)))

    def _hand_out(self, need: Need, place: Place, wanted: int) -> int:
        number, part = place
        missing = wanted
        for group, at, parts in self._left:
            if at == number and (count := min(parts[part], missing)) > 0:
                parts[part] -= count
                missing -= count
                self.grants.append(Grant(need, group, part.name, count * part.gpus))
        return wanted - missing


def _shrink(ask: Ask, places: dict[Place, int], spare: Counter[Place]) -> bool:
    """Whether something that is taken could be exchanged for smaller parts that nobody has."""
    found = False
    for place in [place for place, count in places.items() if count]:
        smaller = [other for other in ask.worth if spare[other] > 0 and _is_smaller(ask, other, place)]
        for other in sorted(smaller, key=lambda other: _size(other[1])):
            count = min(places[place], spare[other])
            if count > 0:
                places[place] -= count
                places[other] = places.get(other, 0) + count
                spare[place] += count
                spare[other] -= count
                found = True
    return found


def _is_smaller(ask: Ask, place: Place, than: Place) -> bool:
    part, other = place[1], than[1]
    is_part = place[0] == than[0] and part.gpus == other.gpus == 1 and ask.worth[place] >= ask.worth[than]
    return is_part and _size(part) < _size(other) and part.compute <= other.compute


def _size(part: Part) -> tuple[int, Fraction]:
    return part.memory_mib or 0, part.compute


def pods_for(ask: Ask, amount: Fraction) -> int:
    """How many more pods it takes: those of a service are counted as its best ones."""
    return ceil(amount / max(ask.worth.values(), default=Fraction(1)))


def _parts(node_type: NodeType, assembled: Assembled) -> Counter[Part]:
    parts: Counter[Part] = Counter()
    one = whole(node_type.gpu)
    for gangs, nodes in assembled.gangs.items():
        held = node_parts(node_type, assembled.cut)
        held[one] -= sum(gangs)
        held.update(whole(node_type.gpu, size) for size in gangs)
        for part, count in held.items():
            parts[part] += count * nodes
    return parts
