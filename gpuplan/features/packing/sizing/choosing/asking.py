"""Takes needs together that the same parts of GPUs hold, to be counted before anybody is served."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from gpuplan.compiler.base.values import Value
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
from gpuplan.features.packing.sizing.needs import Link, Need

Place = tuple[int, Part]
"""The number of a node type, and a part of its GPU."""


class Ask(Value, eq=False):
    """Needs that the same parts hold, in their order, with their numbers among all needs.

    ``amounts`` has what each need asks for: pods, or requests a second of a service. ``worth`` is how much of that one
    part answers, for all parts that hold a pod; ``least`` are the parts that new cuts are made of.
    """

    numbers: tuple[int, ...]
    needs: tuple[Need, ...]
    amounts: tuple[Fraction, ...]
    worth: Mapping[Place, Fraction]
    least: frozenset[Place]

    @cached_property
    def amount(self) -> Fraction:
        return sum(self.amounts, Fraction(0))


def in_order(asked: Sequence[Ask]) -> list[tuple[int, int, Fraction]]:
    """Return what each need asks for, in the order of needs: its number, which ask it is part of, and the amount."""
    return sorted(
        (number, at, amount)
        for at, ask in enumerate(asked)
        for number, amount in zip(ask.numbers, ask.amounts, strict=True)
    )


def asks(needs: Sequence[Need], types: Sequence[NodeType], standing: Iterable[Place]) -> list[Ask]:
    """Return all needs, each in the ask of those like it; ``standing`` are the parts of nodes that are cut already."""
    places = frozenset(standing)
    shares = _shares(needs, types)
    like: dict[object, list[int]] = defaultdict(list)
    known: dict[object, tuple[Mapping[Place, Fraction], frozenset[Place]]] = {}
    linked: defaultdict[str, set[Place]] = defaultdict(set)
    for need in needs:
        if need.link is Link.GUARANTEED:
            linked[need.team] |= {*_least(need, types, shares)}
    for number, need in enumerate(needs):
        kind = _kind(need, number)
        if kind not in known:
            least = frozenset(_least(need, types, shares))
            more = linked[need.team] if need.link is Link.ASKED else ()
            usable = sorted(least | {place for place in (*places, *more) if holds(place[1], need)}, key=_order)
            one = {place: requests(need.service, place[1]) if need.service else Fraction(1) for place in usable}
            known[kind] = one, least
        like[number if need.service or need.link else (tuple(known[kind][0]), known[kind][1])].append(number)
    return [
        Ask(
            tuple(numbers),
            tuple(needs[number] for number in numbers),
            tuple(
                Fraction(str(service.requests_per_second))
                if (service := needs[at].service)
                else Fraction(needs[at].pods)
                for at in numbers
            ),
            *known[_kind(needs[numbers[0]], numbers[0])],
        )
        for numbers in like.values()
    ]


def _kind(need: Need, number: int) -> object:
    """Return a value that needs share if their pods can be in the same places; services and linked needs are alone."""
    if need.service is not None or need.link is not None:
        return number
    engines = tuple(sorted(need.engines.items()))
    return need.memory_mib, need.compute, need.gpus, need.isolation, need.models, engines


def _order(place: Place) -> tuple[object, ...]:
    """Return a key that no two places share: equal ones would come in the order of a set, another in each process."""
    number, part = place
    size = part.memory_mib or 0, part.compute, part.name, part.gpus, -part.replicas
    return number, part.way is not Way.MIG, *size, part.way is Way.MPS


def _least(need: Need, types: Sequence[NodeType], shares: Mapping[tuple[int, Way], Sequence[int]]) -> Iterable[Place]:
    """Yield the parts that new cuts are made of for a need.

    A partition is as good as a whole GPU unless it would divide a whole node.
    """
    gpus = max(need.gpus, 1)
    for number, node_type in enumerate(types):
        gpu = node_type.gpu
        profiles = smallest_profiles(gpu, need, node_type.profiles) if Way.MIG in node_type.ways else ()
        yield from ((number, instance(gpu, profile)) for profile in profiles)
        wants_whole = not profiles or need.service is not None or node_type.is_equal_within_node
        is_possible = gpus <= node_type.gpus_per_node and holds(whole(gpu, gpus), need)
        if Way.WHOLE in node_type.ways and wants_whole and is_possible:
            yield number, whole(gpu, gpus)
        for way in (Way.TIME_SLICING, Way.MPS):
            for replicas in shares.get((number, way), ()):
                if most_shares(gpu, way, need) >= replicas:
                    yield number, share(gpu, way, replicas)


def _shares(needs: Sequence[Need], types: Sequence[NodeType]) -> Mapping[tuple[int, Way], Sequence[int]]:
    """Return the numbers of shares that are worth a thought: the most with which some need can do."""
    kinds = {_kind(need, number): need for number, need in enumerate(needs)}
    return {
        (number, way): sorted({most_shares(node_type.gpu, way, need) for need in kinds.values()} - {0})
        for number, node_type in enumerate(types)
        for way in (Way.TIME_SLICING, Way.MPS)
        if way in node_type.ways
    }
