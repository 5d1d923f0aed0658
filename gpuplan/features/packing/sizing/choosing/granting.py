"""Who gets what of the nodes of an answer, and what remains unmet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

from gpuplan.features.packing.sizing.answers import Grant, Group, NodeType
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place
from gpuplan.features.packing.sizing.choosing.assembling import Assembled
from gpuplan.features.packing.sizing.choosing.forms import node_parts
from gpuplan.features.packing.sizing.choosing.parts import Part, whole
from gpuplan.features.packing.sizing.needs import Need


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
