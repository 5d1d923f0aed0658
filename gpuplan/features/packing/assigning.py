"""Gives the groups of an answer to pools: pools stay what they are as far as they can, and nodes stay in theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.node_patterns import NodePattern, count_names, find_common_name, parse
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.sizing.answers import Answer, Cut, Group, NodeType, Way


class Place(Value):
    """Nodes of one pool, as they are to be: the pool is ``source``, or ``is_new`` and made like ``source``.

    If the pool lists names, ``names`` has those of all its nodes, and ``unnamed`` is how many more the user must name.
    ``pattern`` is the one that a new pool gets.
    """

    pool: str
    source: Pool
    group: int
    cut: Cut
    nodes: int
    names: tuple[str, ...] = ()
    unnamed: int = 0
    is_new: bool = False
    pattern: str | None = None

    @property
    def is_recut(self) -> bool:
        today = cut_of(self.source)
        return self.is_new or today is None or today.key != self.cut.key

    def units(self) -> Mapping[str, int]:
        """Return how many of each unit the pool hands out."""
        return {unit: count * self.nodes for unit, count in units_of(self.cut).items()}


def units_of(cut: Cut) -> dict[str, int]:
    """Return how many of each unit one node of this cut hands out."""
    if cut.way in (Way.TIME_SLICING, Way.MPS):
        return {"shared": cut.replicas * len(cut.per_gpu)}
    units: Counter[str] = Counter()
    for counts in cut.per_gpu:
        units.update(counts or {"gpu": 1})
    return units


class Departure(NamedTuple):
    """Nodes that no pool needs any more, with their names if the pool lists names."""

    pool: str
    nodes: int
    names: tuple[str, ...] = ()


class Assignment(Value):
    """All pools in scope as they are to be. A pool in scope that has no place is deleted."""

    places: tuple[Place, ...]
    departures: tuple[Departure, ...] = ()

    @property
    def changes_nodes(self) -> bool:
        stays = (not place.is_recut and place.nodes == place.source.nodes.count for place in self.places)
        return bool(self.departures) or not all(stays)

    def find(self, pool: str) -> Place | None:
        return next((place for place in self.places if place.pool == pool), None)


def assign(plan: Plan, fleet: Fleet, answer: Answer) -> Assignment:
    """Give every group of an answer the nodes of pools.

    Pools that are cut so already keep their nodes; pools whose cut goes become another group as a whole; what is left
    of others joins a pool of that cut, or is a new one.
    """
    names = {*(pool.name for pool in plan.pools), *(name for kind, name in plan.removed if kind == "Pool")}
    pull: Counter[tuple[int, str]] = Counter()
    for grant in answer.grants:
        if grant.need.today is not None:
            pull[_index_of(answer, grant.group), grant.need.today[0]] += grant.units
    places: list[Place] = []
    departures: list[Departure] = []
    for node_type in fleet.node_types:
        groups = [(index, group) for index, group in enumerate(answer.groups) if group.node_type.name == node_type.name]
        made = _Assigning(plan, fleet, node_type, names, pull, groups)
        made.assign()
        places += made.places
        departures += made.departures()
    return Assignment(tuple(places), tuple(departures))


def _index_of(answer: Answer, group: Group) -> int:
    """Return the place of a group in its answer. Two groups may be equal, and a grant names the one that it means."""
    same = [index for index, other in enumerate(answer.groups) if other is group]
    return (same or [index for index, other in enumerate(answer.groups) if other == group])[0]


@dataclass
class _Source:
    """A pool, and how many of its nodes no group has yet, with their names if the pool lists names."""

    pool: Pool
    free: int
    names: list[str] = field(default_factory=list)

    def take(self, number: int) -> tuple[int, tuple[str, ...]]:
        """Take so many nodes with their names, or all that are free. Nodes that the policy lists first go first."""
        taken = min(number, self.free)
        names = tuple(self.names[:taken])
        del self.names[:taken]
        self.free -= taken
        return taken, names


class _Assigning:
    """One node type on its way: the groups of that type, what each still needs, and the nodes that are taken.

    ``pull`` is how many units of each group are for needs that a pool serves today.
    """

    def __init__(
        self,
        plan: Plan,
        fleet: Fleet,
        node_type: NodeType,
        names: set[str],
        pull: Mapping[tuple[int, str], int],
        groups: Sequence[tuple[int, Group]],
    ) -> None:
        self._plan = plan
        self._names = names
        self._pull = pull
        self._kept = {today.pool for today in node_type.pools if today.is_kept}
        pools = [pool for today in node_type.pools if (pool := fleet.find(today.pool))]
        self._sources = [_Source(pool, pool.nodes.count, list(pool.nodes.names)) for pool in pools]
        self._taken: set[str] = set()
        self._needed = {index: group.nodes for index, group in groups}
        self._cuts = {index: group.cut for index, group in groups}
        self._wanted = {group.pool: index for index, group in groups if group.pool}
        self.places: list[Place] = []

    def assign(self) -> None:
        self._keep()
        self._leave()
        self._recut()
        self._gather()

    def departures(self) -> Iterator[Departure]:
        for source in self._sources:
            if source.free:
                yield Departure(source.pool.name, source.free, tuple(source.names))

    def _place(self, source: _Source, index: int, cut: Cut, number: int) -> int:
        """Make a pool's nodes a group's, under the pool's own name."""
        taken, names = source.take(number)
        today = cut_of(source.pool)
        same = today if today is not None and today.key == cut.key else cut
        self.places.append(Place(source.pool.name, source.pool, index, same, taken, names))
        self._taken.add(source.pool.name)
        return taken

    def _keep(self) -> None:
        """Leave kept pools as they are. Each is the group that the answer names after it: several may be cut alike."""
        for source in self._sources:
            today = cut_of(source.pool)
            if source.pool.name in self._kept and today is not None:
                alike = [index for index, cut in self._cuts.items() if cut.key == today.key]
                mine = self._wanted.get(source.pool.name)
                index = mine if mine in alike else next(iter(alike), -1)
                taken = self._place(source, index, today, source.free)
                if index in self._needed:
                    self._needed[index] = max(self._needed[index] - taken, 0)

    def _leave(self) -> None:
        """Leave pools that are cut as a group is: those with most work first, then those that the answer names."""
        work: Counter[str] = Counter()
        for (_, name), units in self._pull.items():
            work[name] += units
        for source in sorted(
            self._untaken(), key=lambda one: (-work[one.pool.name], one.pool.name not in self._wanted, -one.free)
        ):
            today, name = cut_of(source.pool), source.pool.name
            alike = [at for at, cut in self._cuts.items() if today and cut.key == today.key and self._needed[at]]
            if alike:
                index = max(
                    alike,
                    key=lambda at: (self._wanted.get(name) == at, self._pull.get((at, name), 0), self._needed[at]),
                )
                self._needed[index] -= self._place(source, index, self._cuts[index], self._needed[index])

    def _recut(self) -> None:
        """Make pools whose cut goes another group, each the group whose work it has most of."""
        while free := [source for source in self._untaken() if source.free]:
            open_ = [index for index, number in self._needed.items() if number]
            if not open_:
                return
            index, source = max(
                ((index, source) for index in open_ for source in free),
                key=lambda pair: (
                    self._wanted.get(pair[1].pool.name) == pair[0],
                    self._pull.get((pair[0], pair[1].pool.name), 0),
                    min(self._needed[pair[0]], pair[1].free),
                    -pair[1].free,
                ),
            )
            self._needed[index] -= self._place(source, index, self._cuts[index], self._needed[index])

    def _untaken(self) -> list[_Source]:
        return [source for source in self._sources if source.pool.name not in self._taken]

    # --- What remains of other pools, and new nodes ---

    def _gather(self) -> None:
        for index, number in self._needed.items():
            missing = number
            for source in sorted(self._sources, key=lambda source: -source.free):
                if missing and source.free:
                    taken, names = source.take(missing)
                    self._join(index, source.pool, taken, names)
                    missing -= taken
            if missing:
                mine = [place.source for place in self.places if place.group == index]
                unnamed = [pool for pool in mine if not pool.nodes.names]
                like = (unnamed or mine or [source.pool for source in self._sources])[0]
                self._join(index, like, missing, ())

    def _join(self, index: int, source: Pool, number: int, names: tuple[str, ...]) -> None:
        """Put nodes into a pool of the group that says as they do which nodes it has, or into a new one."""
        for at, place in enumerate(self.places):
            if place.group == index and self._takes(place, number, names):
                self.places[at] = replace(place, nodes=place.nodes + number, names=(*place.names, *names))
                return
        self.places.append(self._new(index, source, number, names))

    def _takes(self, place: Place, number: int, names: tuple[str, ...]) -> bool:
        if place.source.name in self._kept or bool(place.names) != bool(names):
            return False
        text = place.pattern or (None if place.is_new else place.source.nodes.name_pattern)
        pattern = None if text is None else parse(text)
        return (
            not isinstance(pattern, NodePattern) or count_names(pattern, place.nodes + number) >= place.nodes + number
        )

    def _new(self, index: int, source: Pool, number: int, names: tuple[str, ...]) -> Place:
        numbered = (f"{source.name[:_LONGEST]}-{at}" for at in range(2, len(self._names) + 3))
        name = next(one for one in numbered if one not in self._names)
        self._names.add(name)
        new = Place(name, source, index, self._cuts[index], number, names, is_new=True)
        if names:
            return new
        if self._plan.cluster.spec.node_labels is NodeLabels.NODE:
            return replace(new, unnamed=number)
        pools = self._plan.pools
        texts = [pool.nodes.name_pattern for pool in pools] + [place.pattern for place in self.places]
        listed = [node for pool in pools for node in pool.nodes.names]
        return replace(new, pattern=_pattern_for(name, source, filter(None, texts), listed))


_LONGEST: Final = 50
"""The longest stem of a pool's name: keys of its nodes have the name, with something more."""


def _pattern_for(name: str, source: Pool, patterns: Iterable[str], listed: Sequence[str]) -> str:
    """Return a pattern for the nodes of a new pool, which no other node of the policies matches."""
    old = source.nodes.name_pattern or ""
    others = [other for text in patterns if isinstance(other := parse(text), NodePattern)]
    for text in (old.replace(source.name, name), f"{name}-[0-9]+", f"new-{name}-[0-9]+"):
        pattern = parse(text) if text and text != old else None
        if isinstance(pattern, NodePattern) and not (
            any(find_common_name(pattern, other) for other in others) or any(map(pattern.matches, listed))
        ):
            return text
    return f"new-{name}-[0-9]+"
