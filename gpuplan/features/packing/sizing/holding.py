"""How an answer holds when demand is not as planned: how many pods find room, on average and at worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.features.packing.sizing.answers import Answer, Objective
from gpuplan.features.packing.sizing.choosing.forms import node_parts
from gpuplan.features.packing.sizing.choosing.parts import Part, holds, size, whole
from gpuplan.features.packing.sizing.needs import Need
from gpuplan.features.packing.sizing.overflow import Law, Overflow, off_by


class Shares(NamedTuple):
    """Which part of all pods finds room: 1 for all of them.

    ``planned`` where demand is as planned, ``off`` on average where each need is off by itself, ``most`` where all have
    as much more as they can.
    """

    planned: float
    off: float
    most: float


class Holding(Value):
    """How an answer holds when each need is off by up to ``tolerance`` of it, all of that being as likely.

    ``own`` are shares where pods keep to the units that they are granted, ``larger`` where they take larger ones, too,
    as soon as theirs are taken. ``teams`` are the parts of each team's pods, of ``own.most``.
    """

    law: Law
    tolerance: float
    own: Shares
    larger: Shares
    teams: Mapping[str, float]


def law_of(objective: Objective) -> Law:
    """Pods are counted at their peak, but where they are to be accepted as they come."""
    return Law.BY_CHANCE if objective is Objective.ACCEPTED else Law.AT_ONCE


def hold(answer: Answer, needs: Sequence[Need], tolerance: float, law: Law) -> Holding:
    """What part of the needs an answer holds; services count as the pods that they are granted.

    Pods with several GPUs have those that they are granted, and nobody else has these.
    """
    room = _Room(answer)
    asked = [_pods(answer, need) for need in needs]
    own = Overflow([room.granted(need) for need in needs])
    larger = Overflow([room.holding(need) for need in needs])
    factors = [*off_by(len(needs), tolerance)]
    most = [1 + tolerance] * len(needs)
    return Holding(
        law=law,
        tolerance=tolerance,
        own=_shares(own, room, asked, factors, most, law),
        larger=_shares(larger, room, asked, factors, most, law),
        teams=_teams(needs, _accepted(own, room, asked, most, law)),
    )


class _Room:
    """The parts that an answer's nodes have, numbered from the smallest on."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        count: Counter[Part] = Counter()
        for group in answer.groups:
            for part, each in node_parts(group.node_type, group.cut).items():
                count[part] += each * group.nodes
        for grant in answer.grants:
            if grant.need.gpus > 1:
                gpu = grant.group.node_type.gpu
                count[whole(gpu)] -= grant.units
                count[whole(gpu, grant.need.gpus)] += grant.units // grant.need.gpus
        self.parts = sorted(count, key=size)
        self.count = [count[part] for part in self.parts]

    def granted(self, need: Need) -> list[int]:
        units = {
            (grant.group.node_type.gpu.id, grant.unit, grant.group.cut.replicas)
            for grant in self._answer.grants
            if grant.need is need
        }
        return [
            at
            for at, part in enumerate(self.parts)
            if (part.gpu.id, part.name, part.replicas) in units and holds(part, need)
        ]

    def holding(self, need: Need) -> list[int]:
        return [at for at, part in enumerate(self.parts) if holds(part, need)]


def _pods(answer: Answer, need: Need) -> float:
    if need.service is None:
        return need.pods
    granted = sum(grant.units for grant in answer.grants if grant.need is need)
    return granted + sum(pods for unmet, pods in answer.unmet if unmet is need)


def _accepted(
    overflow: Overflow, room: _Room, asked: Sequence[float], factors: Sequence[float], law: Law
) -> list[tuple[float, float]]:
    """For each need how many pods there are, and how many of them find room."""
    pods = [count * factor for count, factor in zip(asked, factors, strict=True)]
    away = overflow.turned_away(pods, room.count, law)
    return [(count, count - less) for count, less in zip(pods, away, strict=True)]


def _shares(
    overflow: Overflow,
    room: _Room,
    asked: Sequence[float],
    factors: Sequence[Sequence[float]],
    most: Sequence[float],
    law: Law,
) -> Shares:
    planned = _share(_accepted(overflow, room, asked, [1.0] * len(asked), law))
    off = _share(chain.from_iterable(_accepted(overflow, room, asked, each, law) for each in factors))
    return Shares(planned, off, _share(_accepted(overflow, room, asked, most, law)))


def _share(found: Iterable[tuple[float, float]]) -> float:
    pods = held = 0.0
    for count, accepted in found:
        pods += count
        held += accepted
    return held / pods if pods else 1.0


def _teams(needs: Sequence[Need], found: Sequence[tuple[float, float]]) -> dict[str, float]:
    by_team: dict[str, list[tuple[float, float]]] = {}
    for need, pods in zip(needs, found, strict=True):
        by_team.setdefault(need.team, []).append(pods)
    return {team: _share(pods) for team, pods in by_team.items()}
