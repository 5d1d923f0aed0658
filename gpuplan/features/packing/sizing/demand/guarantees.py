"""Guarantees of today come before all else that teams ask for, and are cut only if asked to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Isolation, Mps, Plan, TimeSlicing
from gpuplan.features.packing.sizing.answers import Way
from gpuplan.features.packing.sizing.choosing.parts import Part, holds, instance, requests, share, whole
from gpuplan.features.packing.sizing.needs import Link, Need, Service


class Order(NamedTuple):
    """Needs in the order in which they are met.

    An answer must hold each of ``claims``, by itself: what is asked for, and what is guaranteed. ``spared`` are the
    teams that ask for less than they are guaranteed, and keep that.
    """

    needs: tuple[Need, ...]
    claims: tuple[tuple[Need, ...], ...]
    spared: tuple[str, ...] = ()


def beyond(plan: Plan, asked: Sequence[Need], guaranteed: Sequence[Need]) -> tuple[Need, ...]:
    """Return what is asked for without what teams are guaranteed already, in pools that are not in question."""
    mine = _by_team(guaranteed)
    holding = {team: _Holding(plan, mine[team]) for team in {need.team for need in asked}}
    rests = {}
    for at, need in sorted(enumerate(asked), key=lambda pair: _largest_first(pair[1])):
        team = holding[need.team]
        rests[at] = team.answer(need, need.service) if need.service else team.take(need, may_join=True)[1]
    return tuple(rests[at] for at in sorted(rests) if rests[at].pods or rests[at].service)


def _by_team(needs: Iterable[Need]) -> defaultdict[str, list[Need]]:
    by_team: defaultdict[str, list[Need]] = defaultdict(list)
    for need in needs:
        by_team[need.team].append(need)
    return by_team


def _largest_first(need: Need) -> tuple[object, ...]:
    return -need.gpus, -need.memory_mib, -need.compute


def guaranteed_first(plan: Plan, asked: Sequence[Need], guaranteed: Sequence[Need], *, may_cut: bool) -> Order:
    """Return what is guaranteed today, then what is asked for beyond it.

    A unit that a pod asks for may stand for a guaranteed one of its team that it is enough for, but for those that
    workloads of the policies use. If guarantees ``may_cut``, teams that ask for something keep of them what they ask
    for alone. Teams that ask for nothing keep all.
    """
    teams = grouped((need.team, (at, need)) for at, need in enumerate(asked))
    mine = _by_team(guaranteed)
    linked = _by_team(_linked(plan, guaranteed))
    others = [need for need in guaranteed if need.team not in teams]
    kept: list[Need] = []
    more: dict[int, Need] = {}
    spared = []
    for team, wanted in teams.items():
        holding = _Holding(plan, mine[team])
        rests = {}
        for at, need in sorted(wanted, key=lambda pair: _largest_first(pair[1])):
            held, rests[at] = holding.take(need, may_join=may_cut)
            kept += held if may_cut else ()
        if may_cut:
            more |= rests
        elif any(rest.pods or rest.service for rest in rests.values()):
            more |= {at: replace(need, link=Link.ASKED) for at, need in wanted}
            kept += linked[team]
        else:
            kept += mine[team]
            spared += [team] if holding.has_rest else []
    needs = (*kept, *others, *(more[at] for at in sorted(more)))
    claims = ((*asked, *others),) if may_cut else ((*asked, *others), tuple(guaranteed))
    return Order(tuple(need for need in needs if need.pods or need.service), claims, tuple(spared))


def _linked(plan: Plan, guaranteed: Iterable[Need]) -> Iterator[Need]:
    """Yield guaranteed needs, with a link as far as no workload of the policies has them."""
    places = {work.at for work in plan.workloads}
    running: Counter[object] = Counter()
    for work in plan.workloads:
        running[work.tenant.name, work.key] += work.most_pods * work.spec.count
    for need in guaranteed:
        is_counted = need.gpus == 0  # whole GPUs of workloads are needs of their own
        used = min(need.pods, running[need.team, need.today]) if is_counted else need.pods * (need.at in places)
        yield replace(need, pods=used)
        yield replace(need, pods=need.pods - used, link=Link.GUARANTEED)


class _Holding:
    """The units that a team is guaranteed, and how many of them the pods that it asks for have taken."""

    def __init__(self, plan: Plan, guaranteed: Iterable[Need]) -> None:
        self._plan = plan
        self._needs = list(guaranteed)
        self._free = [Counter({max(need.gpus, 1): need.pods}) for need in self._needs]
        """For each need how many of its pods have so many units that nobody has taken."""

    @property
    def has_rest(self) -> bool:
        return any(size and number for free in self._free for size, number in free.items())

    def take(self, need: Need, *, may_join: bool) -> tuple[list[Need], Need]:
        """Take units for the pods of a need, the smallest that are enough; return what they are, and the rest of it.

        If GPUs ``may_join``, as many guaranteed GPUs of one pool as a pod has count as those of one node. A service
        takes none: the number of its pods is not known yet.
        """
        held: list[Need] = []
        size, pods = max(need.gpus, 1), need.pods
        for at, _ in self._parts(need) if pods else ():
            free, before = self._free[at], pods
            while pods and (rooms := [room for room, number in free.items() if number and room >= size]):
                room = min(rooms)
                taken = min(pods, free[room])
                free[room] -= taken
                free[room - size] += taken
                pods -= taken
            joined = min(pods, free[1] // size) if may_join and size > 1 else 0
            free[1] -= joined * size
            pods -= joined
            held.append(replace(need, pods=before - pods, today=self._needs[at].today))
        return held, replace(need, pods=pods)

    def answer(self, need: Need, service: Service) -> Need:
        """Take units for a service, those that answer most; return it with the requests that remain, or with none."""
        missing = Fraction(str(service.requests_per_second))
        worth = [(requests(service, part), at) for at, part in self._parts(need)]
        for each, at in sorted(worth, reverse=True):
            taken = min(self._free[at][1], max(ceil(missing / each), 0)) if each else 0
            self._free[at][1] -= taken
            missing -= each * taken
        rest = replace(service, requests_per_second=float(missing)) if missing > 0 else None
        return replace(need, service=rest)

    def _parts(self, need: Need) -> list[tuple[int, Part]]:
        """Return the guaranteed needs whose units are enough for a pod of a need, smallest first."""
        parts = [(at, part) for at, one in enumerate(self._needs) if (part := self._part(one, need)) is not None]
        return sorted(parts, key=lambda pair: (pair[1].memory_mib or 0, pair[1].compute))

    def _part(self, guaranteed: Need, need: Need) -> Part | None:
        """Return the part of a GPU that a guaranteed unit is, if it is enough for a pod of the need."""
        pool = self._plan.find_pool(guaranteed.today[0]) if guaranteed.today else None
        if pool is None or guaranteed.today is None or pool.nodes.gpus_per_node < need.gpus:
            return None
        profile = pool.gpu.find_profile(guaranteed.today[1])
        if guaranteed.isolation is Isolation.WHOLE_GPU:
            part = whole(pool.gpu, max(need.gpus, 1))
        elif guaranteed.isolation is Isolation.HARDWARE and profile is not None:
            part = instance(pool.gpu, profile)
        elif isinstance(pool.sharing, TimeSlicing | Mps):
            way = Way.MPS if isinstance(pool.sharing, Mps) else Way.TIME_SLICING
            part = share(pool.gpu, way, pool.sharing.spec.replicas)
        else:  # a fraction, or a share of a partition
            return None
        return part if holds(part, need) else None
