"""Rollouts: one repartition of a pool as small steps, none of which takes what tenants are guaranteed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import ceil

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    Amount,
    Mig,
    Pool,
    Sharing,
    Total,
    Unit,
)
from gpuplan.compiler.planning.pools import clashes, is_alike, is_configured_alike, moved_to, with_meaning


class StepKind(StrEnum):
    """The purpose of a step."""

    PREPARE = "prepare"
    """The other way of sharing is made known; no node uses it yet."""
    MOVE = "move"
    """Some nodes get the other way of sharing, and are away meanwhile."""
    RETURN = "return"
    """Some nodes get the pool's own way of sharing back, and are away meanwhile."""
    SETTLE = "settle"
    """All nodes have been moved: the other way becomes the pool's own."""
    FORGET = "forget"
    """No node names what was kept for the rollout: it goes."""


class Level(NamedTuple):
    """The number of a pool's units before a step, while its nodes are away, and after the step."""

    unit: str
    before: int
    during: int
    after: int
    guaranteed: Amount


class Left(NamedTuple):
    """A key of the device plugin's file, or a MIG entry, that nodes name until their label moves."""

    label: str
    value: str


class Defined(NamedTuple):
    """The names that are defined when a rollout is planned.

    ``keys`` are those of the device plugin's file. ``elsewhere`` are keys and entries that other pools have, or other
    documents retain. ``kept`` is what an earlier rollout, or this one up to now, has retained.
    """

    keys: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    kept: tuple[Left, ...] = ()


class RolloutState(NamedTuple):
    """The policy of a pool in a step: its own sharing and, during a rollout, that of the nodes ``moved``.

    ``retains_name`` says that a document tells what the pool's own name means in the device plugin's file, as long as
    the pool does otherwise; ``kept`` is what nodes may name that have been led away from it.
    """

    sharing: Sharing
    rollout: Sharing | None
    moved: tuple[str, ...]
    retains_name: bool
    kept: tuple[Left, ...]


class RolloutStep(NamedTuple):
    """One commit: what the policy says after it, and which ``nodes`` are away while it is applied.

    ``becomes`` is the pool as these nodes then have it, None where none is away; then there are no ``levels`` either.
    ``changes_file`` says that the device plugin's file differs. Unless its ConfigMap keeps its name, MPS daemons
    restart with it on all nodes.
    """

    kind: StepKind
    nodes: tuple[str, ...]
    becomes: Pool | None
    state: RolloutState
    levels: tuple[Level, ...]
    changes_file: bool = False


class RolloutPlan(NamedTuple):
    """The way of a pool to another sharing; ``target`` is the pool as it is then. No steps: it is there."""

    pool: Pool
    target: Pool
    max_unavailable: int
    steps: tuple[RolloutStep, ...]


class Shortage(NamedTuple):
    """A unit that falls below its guarantees though nodes go one by one: ``left`` when ``moved`` nodes have gone."""

    unit: str
    left: int
    guaranteed: Amount
    moved: int
    holders: tuple[tuple[str, Amount], ...]


class Refusal(NamedTuple):
    """Why there is no way: units that one pool cannot hand out at once, or guarantees that every order breaks."""

    pool: Pool
    target: Pool
    clash: tuple[Unit, Unit] | None
    shortages: tuple[Shortage, ...]

    def find_nodes_missing(self, shortage: Shortage) -> int | None:
        """Return the number of nodes that would make up for a shortage, or None if nodes on the way lack the unit."""
        units = [part.find_unit(shortage.unit) for part in (*self.pool.parts, self.target)]
        least = min(0 if unit is None else unit.per_node for unit in units)
        return ceil(shortage.guaranteed / least) + 1 - self.pool.nodes.count if least else None


def plan_rollout(
    pool: Pool,
    sharing: Sharing,
    nodes: Sequence[str],
    max_unavailable: int,
    totals: Sequence[Total],
    defined: Defined = Defined(),  # noqa: B008 - a value
) -> RolloutPlan | Refusal:
    """The steps from where the pool is to another sharing; ``nodes`` are the names of all of its nodes, in order.

    While nodes are away, the others have what is guaranteed of every unit. A batch is the largest that is safe, and at
    most ``max_unavailable``. Nodes are alike, so where batches of one fail, every other order does. A rollout under way
    is continued; if it is to another sharing, its nodes go back first.
    """
    home = pool.parts[0]._replace(nodes=pool.nodes)
    is_under_way = pool.rollout is not None and is_alike(pool.rollout.moved.sharing, sharing)
    if pool.rollout and is_under_way:
        sharing = pool.rollout.moved.sharing
    aim = home if is_alike(home.sharing, sharing) else moved_to(pool if is_under_way else with_meaning(home), sharing)
    target = home if aim is home else moved_to(with_meaning(home), sharing)
    clash = next(clashes(home.units, aim.units), None) if aim is not home else None
    if clash:
        return Refusal(pool, target, clash, ())
    legs = tuple(_legs(pool, home, aim, nodes))
    guarantees = {total.unit.name: total for total in totals if total.pool.name == pool.name}
    if shortages := _shortages(legs, guarantees):
        return Refusal(pool, target, None, shortages)
    way = _Way(pool, home, aim, target, defined)
    return RolloutPlan(pool, target, max_unavailable, tuple(_steps(way, legs, max_unavailable, guarantees)))


class _Leg(NamedTuple):
    """Nodes that go one way, in this order, with how many are ``at_goal`` before."""

    kind: StepKind
    source: Pool
    goal: Pool
    nodes: tuple[str, ...]
    at_goal: int


def _legs(pool: Pool, home: Pool, aim: Pool, nodes: Sequence[str]) -> Iterator[_Leg]:
    moved: tuple[str, ...] = ()
    if pool.rollout:
        moved = tuple(name for name in nodes if name in pool.rollout.nodes)
        if aim is home or aim.sharing is not pool.rollout.moved.sharing:
            yield _Leg(StepKind.RETURN, pool.rollout.moved, home, moved[::-1], len(nodes) - len(moved))
            moved = ()
    if aim is not home:
        remaining = tuple(name for name in nodes if name not in moved)
        yield _Leg(StepKind.MOVE, home, aim, remaining, len(moved))


# --- Capacity ----------------------------------------------------------------------------------------------------


def _capacity(leg: _Leg, at_source: int, at_goal: int) -> Counter[str]:
    """Units while so many nodes are in service on each side."""
    found: Counter[str] = Counter()
    for part, count in ((leg.source, at_source), (leg.goal, at_goal)):
        found.update({unit.name: unit.per_node * count for unit in part.units})
    return found


def _shortages(legs: Sequence[_Leg], guarantees: Mapping[str, Total]) -> tuple[Shortage, ...]:
    """The units that fall below their guarantees when nodes go one by one, each where it is worst."""
    worst: dict[str, Shortage] = {}
    for leg in legs:
        for gone in range(len(leg.nodes)):
            capacity = _capacity(leg, len(leg.nodes) - gone - 1, leg.at_goal + gone)
            for name, total in guarantees.items():
                left = capacity[name]
                if left < total.guaranteed and (name not in worst or left < worst[name].left):
                    holders = ((tenant.name, quota.guaranteed) for tenant, quota in total.quotas if quota.guaranteed)
                    worst[name] = Shortage(name, left, total.guaranteed, gone, tuple(holders))
    return tuple(worst.values())


# --- Names -------------------------------------------------------------------------------------------------------


class _Way(NamedTuple):
    """A pool as it is, and what becomes of its nodes: ``home`` as none is moved, ``aim`` as they are moved, ``target``.

    The last two differ in the key of a rollout that began before a document said what the pool's own name means.
    """

    pool: Pool
    home: Pool
    aim: Pool
    target: Pool
    defined: Defined

    @property
    def start(self) -> RolloutState:
        rollout = self.pool.rollout
        moved = rollout.nodes if rollout else ()
        retains = self.pool.keys.meaning is not None
        return RolloutState(self.pool.sharing, rollout and rollout.moved.sharing, moved, retains, self.defined.kept)

    @property
    def known(self) -> set[str]:
        """Keys that nodes find already."""
        return {*self.defined.keys, *(_key(part) for part in self.pool.parts)}

    @property
    def begun(self) -> RolloutState:
        """A rollout without moved nodes. Of one to another end, what its nodes had stays until they have left it."""
        is_alike_known = is_configured_alike(self.home.sharing, self.aim.sharing)
        retains = _has_other_key(self.home) or not (self.pool.keys.by_content or is_alike_known)
        gone = [self.pool.rollout.moved] if self.pool.rollout else []
        return RolloutState(
            self.home.sharing, self.aim.sharing, (), retains, self._gone(gone, (self.home, self.aim), retains=retains)
        )

    @property
    def settled(self) -> RolloutState:
        retains = _has_other_key(self.target)
        kept = self._gone((*self.begun_parts, self.aim), (self.target,), retains=retains)
        return RolloutState(self.aim.sharing, None, (), retains, kept)

    @property
    def begun_parts(self) -> tuple[Pool, ...]:
        """The parts that nodes come from."""
        rollout = self.pool.rollout
        is_other = rollout is not None and rollout.moved.sharing is not self.aim.sharing
        return (rollout.moved, self.home) if rollout is not None and is_other else (self.home,)

    def _gone(self, gone: Sequence[Pool], stay: Sequence[Pool], *, retains: bool) -> tuple[Left, ...]:
        """Return the names of the parts that go, without those of the parts that stay or of other documents."""
        there = {left for part in stay for left in _named(part)}
        there |= {Left(DEVICE_PLUGIN_CONFIG_LABEL, self.pool.keys.own)} if retains else set()
        found = (*self.defined.kept, *(left for part in gone for left in _named(part)))
        return tuple(dict.fromkeys(x for x in found if x not in there and x.value not in self.defined.elsewhere))


def _key(part: Pool) -> str:
    return part.labels[DEVICE_PLUGIN_CONFIG_LABEL]


def _has_other_key(part: Pool) -> bool:
    """Whether a document must say what the pool's own name means, since its nodes have another key."""
    return not part.keys.by_content and _key(part) != part.keys.own


def _named(part: Pool) -> tuple[Left, ...]:
    """Return the names in nodes' labels that must be in a file. The entry without MIG is always there."""
    labels = [DEVICE_PLUGIN_CONFIG_LABEL, *([MIG_CONFIG_LABEL] if isinstance(part.sharing, Mig) else [])]
    return tuple(Left(label, part.labels[label]) for label in labels)


# --- Steps -------------------------------------------------------------------------------------------------------


def _steps(
    way: _Way, legs: Sequence[_Leg], max_unavailable: int, guarantees: Mapping[str, Total]
) -> Iterator[RolloutStep]:
    state, known = way.start, way.known
    for leg in legs:
        is_move = leg.kind is StepKind.MOVE
        if is_move and state.rollout is not way.aim.sharing:
            state = way.begun
            if _key(way.aim) not in known:
                yield _quiet(StepKind.PREPARE, state, changes_file=True)
        for nodes, levels in _batches(leg, max_unavailable, guarantees):
            moved = (*state.moved, *nodes) if is_move else tuple(name for name in state.moved if name not in nodes)
            state = state._replace(moved=moved)
            yield RolloutStep(leg.kind, nodes, leg.goal, state, levels)
        if is_move:
            if (key := _key(way.target)) not in {*known, _key(way.aim)}:
                made_known = (*state.kept, Left(DEVICE_PLUGIN_CONFIG_LABEL, key))
                yield _quiet(StepKind.PREPARE, state._replace(kept=made_known), changes_file=True)
            state = way.settled
            yield _quiet(StepKind.SETTLE, state)
    if state.rollout is not None or state.kept:
        part = way.home if state.sharing is way.home.sharing else way.target
        retains = _has_other_key(part)
        gone = {left.value for left in state.kept if left.label == DEVICE_PLUGIN_CONFIG_LABEL}
        if state.rollout is not None and way.pool.rollout is not None:
            gone.add(_key(way.pool.rollout.moved))
        stay = {_key(part), *way.defined.elsewhere, *([way.pool.keys.own] if retains else [])}
        end = RolloutState(state.sharing, None, (), retains, ())
        yield _quiet(StepKind.FORGET, end, changes_file=not gone <= stay)


def _quiet(kind: StepKind, state: RolloutState, *, changes_file: bool = False) -> RolloutStep:
    return RolloutStep(kind, (), None, state, (), changes_file)


def _batches(
    leg: _Leg, max_unavailable: int, guarantees: Mapping[str, Total]
) -> Iterator[tuple[tuple[str, ...], tuple[Level, ...]]]:
    """The nodes that go together, each time as many as is safe: one always is, or there would be no steps."""
    promised = {name: total.guaranteed for name, total in guarantees.items()}
    sent = 0
    while sent < len(leg.nodes):
        at_source, at_goal = len(leg.nodes) - sent, leg.at_goal + sent
        sizes = range(min(max_unavailable, at_source), 1, -1)
        size = next((size for size in sizes if _holds(_capacity(leg, at_source - size, at_goal), promised)), 1)
        during = _capacity(leg, at_source - size, at_goal)
        before, after = _capacity(leg, at_source, at_goal), _capacity(leg, at_source - size, at_goal + size)
        levels = (Level(name, before[name], during[name], after[name], promised.get(name, 0)) for name in before)
        yield leg.nodes[sent : sent + size], tuple(levels)
        sent += size


def _holds(capacity: Counter[str], promised: Mapping[str, Amount]) -> bool:
    return all(capacity[name] >= number for name, number in promised.items())
