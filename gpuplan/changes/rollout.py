"""Rollouts: one repartition of a pool as small steps, none of which takes what tenants are guaranteed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import ceil

from gpuplan.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, Amount, Pool, Sharing, Total, Unit
from gpuplan.planning.pools import clashes, is_alike, moved_to
from gpuplan.values import NamedTuple


class StepKind(StrEnum):
    """What a step does."""

    PREPARE = "prepare"
    """The other way of sharing is made known; no node uses it yet."""
    MOVE = "move"
    """Some nodes get the other way of sharing, and are away meanwhile."""
    RETURN = "return"
    """Some nodes get the pool's own way of sharing back, and are away meanwhile."""
    SETTLE = "settle"
    """All nodes have been moved: the other way becomes the pool's own."""
    FORGET = "forget"
    """Nothing names what was kept for the rollout: it goes."""


class Level(NamedTuple):
    """How many units a pool has before a step, while its nodes are away, and after it."""

    unit: str
    before: int
    during: int
    after: int
    guaranteed: Amount


class RolloutState(NamedTuple):
    """What the policy says of a pool: its own sharing and, during a rollout, that of the nodes ``moved``.

    ``keeps_config`` says that the device plugin's configuration of a rollout that has ended is still defined.
    """

    sharing: Sharing
    rollout: Sharing | None
    moved: tuple[str, ...]
    keeps_config: bool


class RolloutStep(NamedTuple):
    """One commit: what the policy says after it, and which ``nodes`` are away while it is applied.

    ``becomes`` is the pool as these nodes then have it, None where none is away; then there are no ``levels`` either.
    ``changes_file`` says that the device plugin's file differs, with which MPS daemons restart on all nodes.
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
        """How many more nodes would make up for a shortage; None where nodes on the way have none of the unit."""
        units = [part.find_unit(shortage.unit) for part in (*self.pool.parts, self.target)]
        least = min(0 if unit is None else unit.per_node for unit in units)
        return ceil(shortage.guaranteed / least) + 1 - self.pool.nodes.count if least else None


def plan_rollout(
    pool: Pool,
    sharing: Sharing,
    nodes: Sequence[str],
    max_unavailable: int,
    totals: Sequence[Total],
    *,
    keeps_config: bool = False,
) -> RolloutPlan | Refusal:
    """The steps from where the pool is to another sharing; ``nodes`` are the names of all of its nodes, in order.

    While nodes are away, the others have what is guaranteed of every unit. A batch is the largest that is safe, and at
    most ``max_unavailable``. Nodes are alike, so where batches of one fail, every other order does. A rollout under way
    is continued; if it is to another sharing, its nodes go back first. ``keeps_config`` is said of an earlier one, as
    in `RolloutState`.
    """
    home = pool.parts[0]._replace(nodes=pool.nodes)
    if pool.rollout and is_alike(pool.rollout.moved.sharing, sharing):
        sharing = pool.rollout.moved.sharing
    aim = home if is_alike(home.sharing, sharing) else moved_to(pool, sharing)
    clash = next(clashes(home.units, aim.units), None) if aim is not home else None
    if clash:
        return Refusal(pool, aim, clash, ())
    legs = tuple(_legs(pool, home, aim, nodes))
    guarantees = {total.unit.name: total for total in totals if total.pool.name == pool.name}
    if shortages := _shortages(legs, guarantees):
        return Refusal(pool, aim, None, shortages)
    steps = _steps(_state(pool, keeps_config=keeps_config), home, aim, legs, max_unavailable, guarantees)
    return RolloutPlan(pool, aim, max_unavailable, tuple(steps))


def _state(pool: Pool, *, keeps_config: bool) -> RolloutState:
    rollout = pool.rollout
    return RolloutState(pool.sharing, rollout and rollout.moved.sharing, rollout.nodes if rollout else (), keeps_config)


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


# --- Steps -------------------------------------------------------------------------------------------------------


def _steps(
    state: RolloutState,
    home: Pool,
    aim: Pool,
    legs: Sequence[_Leg],
    max_unavailable: int,
    guarantees: Mapping[str, Total],
) -> Iterator[RolloutStep]:
    has_config = aim.labels[DEVICE_PLUGIN_CONFIG_LABEL] != home.labels[DEVICE_PLUGIN_CONFIG_LABEL]
    for leg in legs:
        is_move = leg.kind is StepKind.MOVE
        if is_move and has_config and state.rollout is not aim.sharing:
            state = RolloutState(home.sharing, aim.sharing, (), keeps_config=False)
            yield RolloutStep(StepKind.PREPARE, (), None, state, (), changes_file=True)
        for nodes, levels in _batches(leg, max_unavailable, guarantees):
            moved = (*state.moved, *nodes) if is_move else tuple(name for name in state.moved if name not in nodes)
            state = state._replace(rollout=leg.goal.sharing if is_move else state.rollout, moved=moved)
            yield RolloutStep(leg.kind, nodes, leg.goal, state, levels)
        if is_move:
            state = RolloutState(aim.sharing, None, (), keeps_config=has_config)
            yield RolloutStep(StepKind.SETTLE, (), None, state, (), changes_file=has_config)
    if state.rollout is not None or state.keeps_config:
        forgets = state.keeps_config or (state.rollout is not None and _has_config(home, state.rollout))
        yield RolloutStep(
            StepKind.FORGET,
            (),
            None,
            RolloutState(state.sharing, None, (), keeps_config=False),
            (),
            changes_file=forgets,
        )


def _has_config(home: Pool, sharing: Sharing) -> bool:
    """Whether nodes that go to another way of sharing have a configuration of the device plugin apart."""
    key = DEVICE_PLUGIN_CONFIG_LABEL
    return moved_to(home, sharing).labels[key] != home.labels[key]


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
