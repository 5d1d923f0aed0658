"""Makes nodes of few cuts out of the forms that were chosen, and hands out what they have."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.placement.placing import Key, as_key
from gpuplan.features.packing.sizing.answers import Cut, Gangs, Grant, Group, NodeType, Today, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, GpuForm, NodeForm, cut_of, node_parts
from gpuplan.features.packing.sizing.choosing.parts import Part, whole
from gpuplan.features.packing.sizing.needs import Link, Need


class Assembled(NamedTuple):
    """Nodes that are cut alike. ``gangs`` has how many of them have room for the same pods with several GPUs."""

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
    """Return the nodes of an answer: those whose cut is given, and those onto which GPU forms are laid."""
    made: dict[tuple[int, object, str], Assembled] = {}
    for number, node_type in enumerate(types):
        free = Counter({as_key(form.instances): count for form, count in gpus if form.number == number})
        mine = [(form, count) for form, count in nodes if form.number == number]
        for form, count in sorted(mine, key=lambda pair: (pair[0].cut is None, -len(pair[0].gangs), pair[0].gangs)):
            laid = [(form.cut, count)] if form.cut else _lay(free, form, count, node_type.gpus_per_node)
            for cut, times in laid:
                key = number, cut.key, form.today.pool if form.today else ""
                before = made[key].gangs if key in made else {}
                made[key] = Assembled(number, cut, form.today, Counter(before) + Counter({form.gangs: times}))
    return list(made.values())


def layouts(
    types: Sequence[NodeType], nodes: Sequence[tuple[NodeForm, int]], gpus: Sequence[tuple[GpuForm, int]]
) -> set[tuple[str, object]]:
    """Return the layouts that an answer makes, but for those of kept pools."""
    return {
        (types[one.number].gpu.id, one.cut.key)
        for one in assemble(types, nodes, gpus)
        if one.cut.way is Way.MIG and not (one.today and one.today.is_kept)
    }


def _lay(free: Counter[Key], form: NodeForm, nodes: int, gpus: int) -> list[tuple[Cut, int]]:
    """Lay GPUs onto so many nodes, column by column of all nodes, so that nodes differ only at the end of a kind.

    Kinds of many GPUs come first. Spare GPUs go to kinds of which they fill a column. The others repeat the last kind,
    or stay whole if there is none. Pods with several GPUs get whole GPUs.
    """
    room = nodes * form.free
    laid: Counter[Key] = Counter()
    for key in sorted(free, key=lambda key: (bool(key) is bool(form.gangs), -free[key], key)):
        if count := min(free[key], room - laid.total()):
            laid[key] = count
            free[key] -= count
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
    return [(cut_of([*map(dict, row), *rest]), times) for row, times in rows.items()]


def groups(types: Sequence[NodeType], assembled: Sequence[Assembled]) -> list[tuple[Group, Assembled]]:
    """Return the groups of an answer, each with the pool that it stays or becomes.

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
        unused = _unused_nodes(types[number], [one for one, _ in named if one.number == number])
        free = iter(sorted((t for t in pools[number] if not t.is_kept), key=lambda t: (-t.nodes, t.pool)))
        for one in sorted(others, key=lambda one: -one.nodes):
            if one.nodes <= unused:
                unused -= one.nodes
                named.append((one, ""))
            else:
                named.append((one, next((today.pool for today in free), "")))
    return [
        (Group(types[one.number], one.cut, one.nodes, pool, one.gangs), one)
        for one, pool in sorted(named, key=lambda pair: pair[0].number)
    ]


def _unused_nodes(node_type: NodeType, staying: Sequence[Assembled]) -> int:
    """Return how many nodes no pool has today, less those by which pools grow that stay."""
    if node_type.nodes is None:
        return 0
    nodes: Counter[object] = Counter()
    for today in node_type.pools:
        nodes[today.cut.key] += today.nodes
    grown = sum(max(one.nodes - nodes[one.cut.key], 0) for one in staying)
    return max(node_type.nodes - nodes.total() - grown, 0)


# --- Who gets what of them -------------------------------------------------------------------------------------------


class Granted:
    """Parts of groups, handed out one need after another."""

    def __init__(self, types: Sequence[NodeType], groups: Sequence[tuple[Group, Assembled]]) -> None:
        self.grants: list[Grant] = []
        self.unmet: list[tuple[Need, int]] = []
        self._free: list[tuple[Group, int, Counter[Part]]] = []
        for group, assembled in groups:
            gpu = types[assembled.number].gpu
            parts: Counter[Part] = Counter()
            for gangs, nodes in assembled.gangs.items():
                held = node_parts(types[assembled.number], assembled.cut)
                held[whole(gpu)] -= sum(gangs)
                held.update(whole(gpu, size) for size in gangs)
                for part, count in held.items():
                    parts[part] += count * nodes
            self._free.append((group, assembled.number, parts))

    def fitted(self, asked: Sequence[Ask], taken: Sequence[Mapping[Place, int]]) -> list[Mapping[Place, int]]:
        """Return the parts that are taken, each exchanged for the smallest spare part that answers as much."""
        spare: Counter[Place] = Counter()
        for _, number, parts in self._free:
            spare.update({(number, part): count for part, count in parts.items()})
        fitting = [dict(places) for places in taken]
        for places in fitting:
            spare.subtract(places)
        while sum(_shrink(ask, places, spare) for ask, places in zip(asked, fitting, strict=True)):
            pass
        return [{place: count for place, count in places.items() if count} for places in fitting]

    def serve(self, ask: Ask, taken: Mapping[Place, int], stood_for: int) -> None:
        """Serve needs in their order; of a need's parts first those that are worth the most to it.

        For so many pods, other parts of the team stand.
        """
        order = {place: at for at, place in enumerate(ask.worth)}
        places = sorted(taken, key=lambda place: (-ask.worth[place], order[place]))
        rest = Counter({place: taken[place] for place in places})
        for need, amount in zip(ask.needs, ask.amounts, strict=True):
            missing = amount - stood_for
            for place in places:
                worth = ask.worth[place]
                wanted = min(rest[place], ceil(missing / worth)) if missing > 0 else 0
                if need.link is Link.ASKED:  # more than it asks for may stand for what is guaranteed
                    wanted = rest[place]
                rest[place] -= wanted
                missing -= worth * self._hand_out(need, place, wanted)
            if missing > 0:
                self.unmet.append((need, pods_for(ask, missing)))

    def _hand_out(self, need: Need, place: Place, wanted: int) -> int:
        number, part = place
        missing = wanted
        for group, at, parts in self._free:
            if at == number and (count := min(parts[part], missing)) > 0:
                parts[part] -= count
                missing -= count
                self.grants.append(Grant(need, group, part.name, count * part.gpus))
        return wanted - missing


def _shrink(ask: Ask, places: dict[Place, int], spare: Counter[Place]) -> bool:
    """Exchange parts for smaller ones that nobody has; return whether any was exchanged."""

    def size(place: Place) -> tuple[int, Fraction]:
        return place[1].memory_mib or 0, place[1].compute

    def is_smaller(other: Place, place: Place) -> bool:
        singles = other[0] == place[0] and other[1].gpus == place[1].gpus == 1
        is_enough = singles and ask.worth[other] >= ask.worth[place]
        return is_enough and size(other) < size(place) and other[1].compute <= place[1].compute

    has_changed = False
    if ask.needs[0].link is not None:  # a smaller part might stand for nothing
        return False
    for place in [place for place, count in places.items() if count]:
        smaller = [other for other in ask.worth if spare[other] > 0 and is_smaller(other, place)]
        for other in sorted(smaller, key=size):
            count = min(places[place], spare[other])
            if count > 0:
                places[place] -= count
                places[other] = places.get(other, 0) + count
                spare[place] += count
                spare[other] -= count
                has_changed = True
    return has_changed


def pods_for(ask: Ask, amount: Fraction) -> int:
    """Return how many more pods it takes: those of a service are counted as its best ones."""
    return ceil(amount / max(ask.worth.values(), default=Fraction(1)))
