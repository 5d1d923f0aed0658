"""Needs that the same parts of GPUs hold, taken together: what is counted before anybody is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.features.packing.sizing.answers import NodeType, Way
from gpuplan.features.packing.sizing.choosing.parts import (
    Part,
    holds,
    instance,
    most_shares,
    requests,
    share,
    smallest_profiles,
    whole,
)
from gpuplan.features.packing.sizing.needs import Need

Place = tuple[int, Part]
"""A part of a GPU of one node type, which is told by its number."""


class Ask(Value, eq=False):
    """Needs that are the same to whoever cuts GPUs, in their order, with their numbers among all.

    ``amounts`` is what each asks for: pods, or requests a second of a service. ``worth`` is how much of it one part
    answers, for all parts that hold a pod; ``least`` are those that new cuts are made of.
    """

    numbers: tuple[int, ...]
    needs: tuple[Need, ...]
    amounts: tuple[Fraction, ...]
    worth: Mapping[Place, Fraction]
    least: frozenset[Place]

    @cached_property
    def amount(self) -> Fraction:
        return sum(self.amounts, Fraction(0))


class Wish(NamedTuple):
    """A need by itself: what it asks for, and which parts hold it."""

    number: int
    need: Need
    amount: Fraction
    worth: Mapping[Place, Fraction]
    least: frozenset[Place]


def asks(needs: Sequence[Need], types: Sequence[NodeType], standing: Iterable[Place]) -> list[Ask]:
    """All needs, each in the ask of those like it; ``standing`` are the parts of nodes that are cut already."""
    places = frozenset(standing)
    offered = _shares(needs, types)
    like: dict[object, list[Wish]] = {}
    wishes: dict[object, tuple[Mapping[Place, Fraction], frozenset[Place]]] = {}
    for number, need in enumerate(needs):
        kind = _kind(need, number)
        if kind not in wishes:
            least = frozenset(_least(need, types, offered))
            held = sorted(least | {place for place in places if holds(place[1], need)}, key=_order)
            wishes[kind] = {place: _worth(need, place[1]) for place in held}, least
        worth, least = wishes[kind]
        key = number if need.service else (tuple(worth), least)
        like.setdefault(key, []).append(Wish(number, need, _amount(need), worth, least))
    return [
        Ask(
            tuple(wish.number for wish in same),
            tuple(wish.need for wish in same),
            tuple(wish.amount for wish in same),
            same[0].worth,
            same[0].least,
        )
        for same in like.values()
    ]


def _kind(need: Need, number: int) -> object:
    """What decides where a pod of the need can be; a service is like no other."""
    if need.service is not None:
        return number
    engines = tuple(sorted(need.engines.items()))
    return need.memory_mib, need.compute, need.gpus, need.isolation, need.models, engines


def _amount(need: Need) -> Fraction:
    return Fraction(need.pods) if need.service is None else Fraction(str(need.service.requests_per_second))


def _worth(need: Need, part: Part) -> Fraction:
    return Fraction(1) if need.service is None else requests(need.service, part)


def _order(place: Place) -> tuple[object, ...]:
    """What no two places share: those that did would come in the order of a set, another one in each process."""
    number, part = place
    size = part.memory_mib or 0, part.compute, part.name, part.gpus, -part.replicas
    return number, part.way is not Way.MIG, *size, part.way is Way.MPS


def _least(need: Need, types: Sequence[NodeType], shares: Mapping[tuple[int, Way], Sequence[int]]) -> Iterable[Place]:
    for number, node_type in enumerate(types):
        gpu = node_type.gpu
        profiles = smallest_profiles(gpu, need, node_type.profiles) if Way.MIG in node_type.ways else ()
        yield from ((number, instance(gpu, profile)) for profile in profiles)
        if Way.WHOLE in node_type.ways and _wants_whole(need, node_type, has_profiles=bool(profiles)):
            yield number, whole(gpu, max(need.gpus, 1))
        for way in (Way.TIME_SLICING, Way.MPS):
            for replicas in shares.get((number, way), ()):
                if most_shares(gpu, way, need) >= replicas:
                    yield number, share(gpu, way, replicas)


def _wants_whole(need: Need, node_type: NodeType, *, has_profiles: bool) -> bool:
    """Whether whole GPUs are worth a thought: a partition is as good, but where it would divide a whole node."""
    gpus = max(need.gpus, 1)
    if gpus > node_type.gpus_per_node or not holds(whole(node_type.gpu, gpus), need):
        return False
    return not has_profiles or need.service is not None or node_type.is_equal_within_node


def _shares(needs: Sequence[Need], types: Sequence[NodeType]) -> Mapping[tuple[int, Way], Sequence[int]]:
    """Numbers of shares that are worth a thought: the most that some need can do with."""
    kinds = {_kind(need, number): need for number, need in enumerate(needs)}
    found: dict[tuple[int, Way], Sequence[int]] = {}
    for number, node_type in enumerate(types):
        for way in (Way.TIME_SLICING, Way.MPS):
            if way in node_type.ways:
                most = {most_shares(node_type.gpu, way, need) for need in kinds.values()}
                found[number, way] = sorted(most - {0})
    return found
