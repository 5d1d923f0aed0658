"""Guarantees of today come before all else that teams ask for, and are cut only if asked to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Isolation, Mps, Plan
from gpuplan.features.packing.sizing.answers import Way
from gpuplan.features.packing.sizing.choosing.parts import Part, holds, instance, requests, share, whole
from gpuplan.features.packing.sizing.needs import Need, Service


class Order(NamedTuple):
    """Needs in the order in which they are met, and the teams that ask for less than they are guaranteed."""

    needs: tuple[Need, ...]
    spared: tuple[str, ...]


def guaranteed_first(plan: Plan, asked: Sequence[Need], guaranteed: Sequence[Need], *, may_cut: bool) -> Order:
    """Return what is guaranteed today, then what is asked for beyond it.

    A pod that a guaranteed unit is enough for has that unit, the smallest such one; the largest pods choose first. Pods
    with several GPUs have guaranteed GPUs of one pool, which are those of one node from then on. If guarantees
    ``may_cut``, teams that ask for something keep of them what they ask for alone. Teams that ask for nothing keep all.
    """
    teams = {need.team for need in asked}
    mine: defaultdict[str, list[Need]] = defaultdict(list)
    for need in guaranteed:
        mine[need.team].append(need)
    kept: list[Need] = []
    more: list[Need] = []
    spared = []
    for team in dict.fromkeys(need.team for need in (*asked, *guaranteed)):
        if team not in teams:
            kept += mine[team]
            continue
        holding = _Holding(plan, mine[team])
        wanted = [need for need in asked if need.team == team]
        for need in sorted(wanted, key=lambda need: (-need.gpus, -need.memory_mib, -need.compute)):
            rest = holding.rest_of(need)
            held = replace(need, pods=need.pods - rest.pods) if need.service is None else need
            if may_cut and (held.pods or need.service):
                kept.append(held)
            if rest.pods or (rest.service and not may_cut):
                more.append(rest)
        if not may_cut:
            kept += holding.needs()
            spared += [team] if holding.has_rest else []
    order = {id(need): at for at, need in enumerate(asked)}
    return Order((*kept, *sorted(more, key=lambda need: order.get(id(need), 0))), tuple(spared))


class _Holding:
    """The units that a team is guaranteed, and how many of them the pods that it asks for have taken."""

    def __init__(self, plan: Plan, guaranteed: Iterable[Need]) -> None:
        self._plan = plan
        self._needs = list(guaranteed)
        self._free = [Counter({max(need.gpus, 1): need.pods}) for need in self._needs]
        """For each need how many of its pods have so many units that nobody has taken."""
        self._joined: list[Need] = []

    @property
    def has_rest(self) -> bool:
        return any(size and number for free in self._free for size, number in free.items())

    def needs(self) -> Iterator[Need]:
        yield from self._joined
        yield from (need for need in self._needs if need.pods)

    def rest_of(self, need: Need) -> Need:
        """Take units for a need; return it with the pods, or requests, for which there are none."""
        parts = [(part, at) for at, one in enumerate(self._needs) if (part := self._part(one, need)) is not None]
        parts.sort(key=lambda pair: (pair[0].memory_mib or 0, pair[0].compute))
        if need.service is not None:
            return self._rest_of_service(need, need.service, parts)
        size, pods = max(need.gpus, 1), need.pods
        for _, at in parts:
            free = self._free[at]
            while pods and (rooms := [room for room, number in free.items() if number and room >= size]):
                room = min(rooms)
                taken = min(pods, free[room])
                free[room] -= taken
                free[room - size] += taken
                pods -= taken
        for _, at in parts if size > 1 else ():
            pods -= self._join(at, size, pods)
        return replace(need, pods=pods)

    def _join(self, at: int, size: int, pods: int) -> int:
        """Make GPUs of a need those of one node, for as many pods as there are; return for how many."""
        one = self._needs[at]
        pool = self._plan.find_pool(one.today[0]) if one.today else None
        if one.gpus != 1 or pool is None or pool.nodes.gpus_per_node < size:
            return 0
        joined = min(pods, self._free[at][1] // size)
        if joined:
            self._free[at][1] -= joined * size
            self._needs[at] = replace(one, pods=one.pods - joined * size)
            self._joined.append(replace(one, pods=joined, gpus=size))
        return joined

    def _rest_of_service(self, need: Need, service: Service, parts: Iterable[tuple[Part, int]]) -> Need:
        missing = Fraction(str(service.requests_per_second))
        for part, at in parts:
            each = requests(service, part)
            while missing > 0 and each and self._free[at][1]:
                self._free[at][1] -= 1
                missing -= each
        if missing <= 0:
            return replace(need, service=None)
        return replace(need, service=replace(service, requests_per_second=float(missing)))

    def _part(self, guaranteed: Need, need: Need) -> Part | None:
        """Return the part of a GPU that a guaranteed unit is, if it is enough for a pod of the need."""
        pool = self._plan.find_pool(guaranteed.today[0]) if guaranteed.today else None
        if pool is None or guaranteed.today is None:
            return None
        profile = pool.gpu.find_profile(guaranteed.today[1])
        replicas = getattr(getattr(pool.sharing, "spec", None), "replicas", 1)
        match guaranteed.isolation:
            case Isolation.WHOLE_GPU:
                part = whole(pool.gpu, max(need.gpus, 1))
            case Isolation.HARDWARE if profile is not None:
                part = instance(pool.gpu, profile)
            case Isolation.MPS | Isolation.NONE:
                part = share(pool.gpu, Way.MPS if isinstance(pool.sharing, Mps) else Way.TIME_SLICING, replicas)
            case _:
                return None
        return part if holds(part, need) else None
