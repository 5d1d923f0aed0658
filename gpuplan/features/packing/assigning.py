"""Which pool each group of an answer becomes: pools stay what they are as far as they can, and nodes stay in theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.node_patterns import NodePattern, count_names, find_common_name, parse
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.sizing.answers import Answer, Cut, Group, NodeType, Way


class Place(Value):
    """Nodes of one pool, as they are to be: it is ``source``, or ``is_new`` and made like it.

    ``names`` are those of all its nodes where the pool lists them; ``unnamed`` is how many more it needs and nobody can
    name. ``pattern`` is one that a new pool gets.
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
        """What it hands out, by unit."""
        return {unit: count * self.nodes for unit, count in units_of(self.cut).items()}


def units_of(cut: Cut) -> dict[str, int]:
    """What one node of this cut hands out, by unit."""
    if cut.way in (Way.TIME_SLICING, Way.MPS):
        return {"shared": cut.replicas * len(cut.per_gpu)}
    found: dict[str, int] = {}
    for counts in cut.per_gpu:
        for profile, number in (counts or {WHOLE: 1}).items():
            found[profile] = found.get(profile, 0) + number
    return found


WHOLE: Final = "gpu"


class Departure(NamedTuple):
    """Nodes that no pool needs any more: those named, or so many of a pool that names none."""

    pool: str
    nodes: int
    names: tuple[str, ...] = ()


class Assignment(Value):
    """All pools in scope as they are to be; what is not here goes."""

    places: tuple[Place, ...]
    departures: tuple[Departure, ...] = ()

    def of_group(self, index: int) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.group == index)

    def find(self, pool: str) -> Place | None:
        return next((place for place in self.places if place.pool == pool), None)

    @property
    def unnamed(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.unnamed)


def assign(plan: Plan, fleet: Fleet, answer: Answer) -> Assignment:
    """Give every group of an answer the nodes of pools, in this order.

    Pools that are cut so already keep their nodes; pools whose cut goes become another group as a whole; what is left
    of others joins a pool of that cut, or is a new one.
    """
    names = {*(pool.name for pool in plan.pools), *(name for kind, name in plan.removed if kind == "Pool")}
    places: list[Place] = []
    departures: list[Departure] = []
    for node_type in fleet.node_types:
        groups = [(index, group) for index, group in enumerate(answer.groups) if group.node_type.name == node_type.name]
        made = _Assigning(plan, fleet, node_type, names, _pull(answer))
        made.assign(groups)
        places += made.places
        departures += made.departures()
    return Assignment(tuple(places), tuple(departures))


def _pull(answer: Answer) -> Mapping[tuple[int, str], int]:
    """How many units of each group are for needs that a pool serves today."""
    found: dict[tuple[int, str], int] = {}
    for grant in answer.grants:
        if grant.need.today is not None:
            key = index_of(answer, grant.group), grant.need.today[0]
            found[key] = found.get(key, 0) + grant.units
    return found


def index_of(answer: Answer, group: Group) -> int:
    """Where a group stands in its answer: two may be equal, and a grant names the one that it means."""
    return next((index for index, found in enumerate(answer.groups) if found is group), None) or next(
        index for index, found in enumerate(answer.groups) if found == group
    )


@dataclass
class _Source:
    """A pool and its nodes that no group has yet."""

    pool: Pool
    left: int
    names: list[str] = field(default_factory=list)

    @property
    def is_named(self) -> bool:
        return bool(self.pool.nodes.names)

    def take(self, number: int) -> tuple[int, tuple[str, ...]]:
        """Take so many nodes, or what is left, with their names; those that come first in the policy go first."""
        taken = min(number, self.left)
        names = tuple(self.names[:taken])
        del self.names[:taken]
        self.left -= taken
        return taken, names


class _Assigning:
    """One node type on its way: which of its pools' nodes are taken, and what each group still needs."""

    def __init__(
        self, plan: Plan, fleet: Fleet, node_type: NodeType, names: set[str], pull: Mapping[tuple[int, str], int]
    ) -> None:
        self._plan = plan
        self._names = names
        self._pull = pull
        self._kept = {today.pool for today in node_type.pools if today.is_kept}
        pools = [pool for today in node_type.pools if (pool := fleet.find(today.pool))]
        self._sources = [_Source(pool, pool.nodes.count, list(pool.nodes.names)) for pool in pools]
        self._taken: set[str] = set()
        self.places: list[Place] = []

    def assign(self, groups: Sequence[tuple[int, Group]]) -> None:
        needed = {index: group.nodes for index, group in groups}
        cuts = {index: group.cut for index, group in groups}
        wanted = {group.pool: index for index, group in groups if group.pool}
        self._keep(needed, cuts, wanted)
        self._leave(needed, cuts, wanted)
        self._recut(needed, cuts, wanted)
        self._gather(needed, cuts)

    def departures(self) -> Iterator[Departure]:
        for source in self._sources:
            if source.left:
                yield Departure(source.pool.name, source.left, tuple(source.names))

    def _place(self, source: _Source, index: int, cut: Cut, number: int) -> int:
        """Make a pool's nodes a group's, under the pool's own name."""
        taken, names = source.take(number)
        today = cut_of(source.pool)
        same = today if today is not None and today.key == cut.key else cut
        self.places.append(Place(source.pool.name, source.pool, index, same, taken, names))
        self._taken.add(source.pool.name)
        return taken

    def _keep(self, needed: dict[int, int], cuts: Mapping[int, Cut], wanted: Mapping[str, int]) -> None:
        """Pools that stay are the groups that the answer names after them: several may be cut alike."""
        for source in self._sources:
            today = cut_of(source.pool)
            if source.pool.name in self._kept and today is not None:
                alike = [index for index, cut in cuts.items() if cut.key == today.key]
                mine = wanted.get(source.pool.name)
                index = mine if mine in alike else next(iter(alike), -1)
                taken = self._place(source, index, today, source.left)
                if index in needed:
                    needed[index] = max(needed[index] - taken, 0)

    def _leave(self, needed: dict[int, int], cuts: Mapping[int, Cut], wanted: Mapping[str, int]) -> None:
        """Pools that are cut as a group is stay so: those with most work first, then those that the answer names."""
        for source in sorted(
            self._free(),
            key=lambda found: (-self._work_of(found.pool.name), found.pool.name not in wanted, -found.left),
        ):
            today = cut_of(source.pool)
            found = [index for index, cut in cuts.items() if today and cut.key == today.key and needed[index]]
            if found:
                name = source.pool.name
                index = max(found, key=lambda at: (wanted.get(name) == at, self._pull.get((at, name), 0), needed[at]))
                needed[index] -= self._place(source, index, cuts[index], needed[index])

    def _recut(self, needed: dict[int, int], cuts: Mapping[int, Cut], wanted: Mapping[str, int]) -> None:
        """Pools whose cut goes become another group, the one whose work they have most of."""
        while free := [source for source in self._free() if source.left]:
            open_ = [index for index, number in needed.items() if number]
            if not open_:
                return
            index, source = max(
                ((index, source) for index in open_ for source in free),
                key=lambda pair: (
                    wanted.get(pair[1].pool.name) == pair[0],
                    self._pull.get((pair[0], pair[1].pool.name), 0),
                    min(needed[pair[0]], pair[1].left),
                    -pair[1].left,
                ),
            )
            needed[index] -= self._place(source, index, cuts[index], needed[index])

    def _work_of(self, pool: str) -> int:
        """How many units of the answer are for needs that the pool serves today."""
        return sum(units for (_, name), units in self._pull.items() if name == pool)

    def _free(self) -> list[_Source]:
        return [source for source in self._sources if source.pool.name not in self._taken]

    # --- What is left of other pools, and new nodes ---

    def _gather(self, needed: dict[int, int], cuts: Mapping[int, Cut]) -> None:
        for index, number in needed.items():
            missing = number
            for source in sorted(self._sources, key=lambda found: -found.left):
                if missing and source.left:
                    taken, names = source.take(missing)
                    self._join(index, cuts[index], source.pool, taken, names)
                    missing -= taken
            if missing:
                self._join(index, cuts[index], self._like(index), missing, ())

    def _like(self, index: int) -> Pool:
        """The pool that new nodes are made like."""
        mine = [place.source for place in self.places if place.group == index]
        unnamed = [pool for pool in mine if not pool.nodes.names]
        return (unnamed or mine or [source.pool for source in self._sources])[0]

    def _join(self, index: int, cut: Cut, source: Pool, number: int, names: tuple[str, ...]) -> None:
        """Put nodes into a pool of the group that says as they do which nodes it has, or into a new one."""
        for at, place in enumerate(self.places):
            if place.group == index and self._takes(place, number, names):
                self.places[at] = _with_more(place, number, names)
                return
        self.places.append(self._new(index, cut, source, number, names))

    def _takes(self, place: Place, number: int, names: tuple[str, ...]) -> bool:
        if place.source.name in self._kept or bool(place.names) != bool(names):
            return False
        text = place.pattern or (None if place.is_new else place.source.nodes.name_pattern)
        pattern = None if text is None else parse(text)
        return (
            not isinstance(pattern, NodePattern) or count_names(pattern, place.nodes + number) >= place.nodes + number
        )

    def _new(self, index: int, cut: Cut, source: Pool, number: int, names: tuple[str, ...]) -> Place:
        name = _fresh(source.name, self._names)
        self._names.add(name)
        if names:
            return Place(name, source, index, cut, number, names, is_new=True)
        if self._plan.cluster.spec.node_labels is NodeLabels.NODE:
            return Place(name, source, index, cut, number, unnamed=number, is_new=True)
        pattern = _pattern_for(name, source, (*_patterns(self._plan), *_given(self.places)), _listed(self._plan))
        return Place(name, source, index, cut, number, is_new=True, pattern=pattern)


def _with_more(place: Place, number: int, names: tuple[str, ...]) -> Place:
    from dataclasses import replace

    return replace(place, nodes=place.nodes + number, names=(*place.names, *names))


_LONGEST: Final = 50
"""Of a pool's name: keys of its nodes have it, with something more."""


def _fresh(name: str, taken: Iterable[str]) -> str:
    """A name like another one's that nothing has."""
    known = set(taken)
    numbers = (f"{name[:_LONGEST]}-{number}" for number in range(2, len(known) + 3))
    return next(found for found in numbers if found not in known)


# --- Patterns ----------------------------------------------------------------------------------------------------


def _pattern_for(name: str, source: Pool, patterns: Iterable[str], listed: Iterable[str]) -> str:
    """A pattern for the nodes of a new pool, which no other node of the policies matches."""
    old = source.nodes.name_pattern or ""
    others = [found for text in patterns if isinstance(found := parse(text), NodePattern)]
    names = [*listed]
    for text in (old.replace(source.name, name), f"{name}-[0-9]+", f"new-{name}-[0-9]+"):
        pattern = parse(text) if text and text != old else None
        if isinstance(pattern, NodePattern) and not (
            any(find_common_name(pattern, other) for other in others) or any(map(pattern.matches, names))
        ):
            return text
    return f"new-{name}-[0-9]+"


def _patterns(plan: Plan) -> Iterator[str]:
    yield from (pool.nodes.name_pattern for pool in plan.pools if pool.nodes.name_pattern)


def _given(places: Iterable[Place]) -> Iterator[str]:
    yield from (place.pattern for place in places if place.pattern)


def _listed(plan: Plan) -> Iterator[str]:
    yield from (name for pool in plan.pools for name in pool.nodes.names)
