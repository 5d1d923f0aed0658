"""Rollouts of pools: from a wish and a repository to small steps that keep all guarantees, and to the text of each."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.documents import Document, read_text
from gpuplan.compiler.documents.listed import find_objects, is_list_of_objects
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.pipeline import Report, validate, writing
from gpuplan.compiler.pipeline.judging import judge_plan
from gpuplan.compiler.pipeline.loading import OVERLAYS
from gpuplan.compiler.planning.node_list import LIST_NODES, NODES, nodes_in
from gpuplan.compiler.planning.node_pattern_syntax import LONGEST_NAME
from gpuplan.compiler.planning.node_patterns import find_pattern
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Amount,
    Exclusive,
    Fraction,
    Layout,
    Mig,
    Mps,
    Plan,
    Pool,
    Retained,
    RetainedDevicePluginConfig,
    Sharing,
    TimeSlicing,
    Total,
    Unit,
)
from gpuplan.compiler.planning.plugin_configs import configuration, has_own
from gpuplan.compiler.planning.pools import clashes, divided, is_alike, is_configured_alike, moved_to, with_meaning
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.compiler.policy.names import DNS_SUBDOMAIN
from gpuplan.features.changes import retaining
from gpuplan.features.changes.edits import (
    PARTS,
    Action,
    Edit,
    changed,
    document_of,
    layer_of,
    parts_of,
    patch_of,
    settled,
    snippet,
)
from gpuplan.features.changes.evidence import named_by
from gpuplan.features.changes.revisions import find_revision, is_in_git, read_revision


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

    ``kept`` is what documents retain: what the pool's own name means in the device plugin's file, as long as the pool
    does otherwise, and what nodes may name that have been led away from it. ``key`` is the key that the pool's policy
    keeps from then on (`names.devicePluginConfig`), None where it says what it said.
    """

    sharing: Sharing
    rollout: Sharing | None
    moved: tuple[str, ...]
    kept: tuple[Left, ...]
    key: str | None = None


class RolloutStep(NamedTuple):
    """One commit: what the policy says after it, and which ``nodes`` are away while it is applied.

    ``becomes`` is the pool as these nodes then have it, None where none is away; then there are no ``levels`` either.
    ``changes_file`` says that the device plugin's file differs. Unless its ConfigMap keeps its name, MPS daemons
    restart with it on all nodes.
    """

    kind: StepKind
    state: RolloutState
    nodes: tuple[str, ...] = ()
    becomes: Pool | None = None
    levels: tuple[Level, ...] = ()
    changes_file: bool = False


class RolloutPlan(NamedTuple):
    """The way of a pool to another sharing; ``target`` is the pool as it is then. No steps: it is there."""

    pool: Pool
    target: Pool
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
    # The units that fall below their guarantees when nodes go one by one, each where it is worst.
    worst: dict[str, Shortage] = {}
    for leg in legs:
        for gone in range(len(leg.nodes)):
            capacity = _capacity(leg, len(leg.nodes) - gone - 1, leg.at_goal + gone)
            for name, total in guarantees.items():
                left = capacity[name]
                if left < total.guaranteed and (name not in worst or left < worst[name].left):
                    holders = ((tenant.name, quota.guaranteed) for tenant, quota in total.quotas if quota.guaranteed)
                    worst[name] = Shortage(name, left, total.guaranteed, gone, tuple(holders))
    if shortages := tuple(worst.values()):
        return Refusal(pool, target, None, shortages)
    way = _Way(pool, home, aim, target, defined)
    return RolloutPlan(pool, target, tuple(_steps(way, legs, max_unavailable, guarantees)))


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
        return RolloutState(self.pool.sharing, rollout and rollout.moved.sharing, moved, self.defined.kept)

    @property
    def known(self) -> set[str]:
        """Keys that nodes find already."""
        return {*self.defined.keys, *(_key(part) for part in self.pool.parts)}

    @property
    def begun(self) -> RolloutState:
        """A rollout without moved nodes. Of one to another end, what its nodes had stays until they have left it."""
        home, aim, rollout = self.home, self.aim, self.pool.rollout
        retains = _has_other_key(home) or not (
            self.pool.keys.by_content or is_configured_alike(home.sharing, aim.sharing)
        )
        own = (Left(DEVICE_PLUGIN_CONFIG_LABEL, self.pool.keys.own),)
        left = (*self.defined.kept, *(_names_of(rollout.moved) if rollout else ()))
        kept = (*(own if retains else ()), *(x for x in left if x not in {*_names_of(home), *_names_of(aim)}))
        return RolloutState(home.sharing, aim.sharing, (), self._retained(kept))

    def ended(self, part: Pool, last: Pool) -> RolloutState:
        """All nodes are as a part of the pool. Up to now they have the names of the ``last``, whatever others had."""
        key = _key(part) if _has_other_key(part) else None
        return RolloutState(
            part.sharing, None, (), self._retained(x for x in _names_of(last) if x not in _names_of(part)), key
        )

    def _retained(self, names: Iterable[Left]) -> tuple[Left, ...]:
        return tuple(dict.fromkeys(left for left in names if left.value not in self.defined.elsewhere))

    def keys(self, state: RolloutState) -> set[str]:
        """Return the keys of the device plugin's file that the pool or its rollout define."""
        parts = [self.home if state.sharing is self.home.sharing else self.target]
        parts += [part for part in (*self.pool.parts[1:], self.aim) if part.sharing is state.rollout][:1]
        kept = {left.value for left in state.kept if left.label == DEVICE_PLUGIN_CONFIG_LABEL}
        return {*map(_key, parts), *kept} - self.defined.elsewhere


def _key(part: Pool) -> str:
    return part.labels[DEVICE_PLUGIN_CONFIG_LABEL]


def _has_other_key(part: Pool) -> bool:
    """Whether a document must say what the pool's own name means, since its nodes have another key."""
    return not part.keys.by_content and _key(part) != part.keys.own


def _names_of(part: Pool) -> tuple[Left, ...]:
    """Return the names in nodes' labels that must be in a file. The entry without MIG is always there."""
    labels = [DEVICE_PLUGIN_CONFIG_LABEL, *([MIG_CONFIG_LABEL] if isinstance(part.sharing, Mig) else [])]
    return tuple(Left(label, part.labels[label]) for label in labels)


# --- Steps -------------------------------------------------------------------------------------------------------


def _steps(
    way: _Way, legs: Sequence[_Leg], max_unavailable: int, guarantees: Mapping[str, Total]
) -> Iterator[RolloutStep]:
    state, known, last = way.start, way.known, way.home
    for leg in legs:
        last = leg.goal
        is_move = leg.kind is StepKind.MOVE
        if is_move and state.rollout is not way.aim.sharing:
            state = way.begun
            if _key(way.aim) not in known:
                yield RolloutStep(StepKind.PREPARE, state, changes_file=True)
        for nodes, levels in _batches(leg, max_unavailable, guarantees):
            moved = (*state.moved, *nodes) if is_move else tuple(name for name in state.moved if name not in nodes)
            state = state._replace(moved=moved)
            yield RolloutStep(leg.kind, state, nodes, leg.goal, levels)
        if is_move and (key := _key(way.target)) not in {*known, _key(way.aim)}:
            state = state._replace(kept=(*state.kept, Left(DEVICE_PLUGIN_CONFIG_LABEL, key)))
            yield RolloutStep(StepKind.PREPARE, state, changes_file=True)
        if is_move:
            ended = way.ended(way.target, last)
            yield RolloutStep(StepKind.SETTLE, ended, changes_file=way.keys(ended) != way.keys(state))
            state, last = ended, way.target
    if state.rollout is not None or state.kept:
        ended = way.ended(way.home if state.sharing is way.home.sharing else way.target, last)._replace(kept=())
        yield RolloutStep(StepKind.FORGET, ended, changes_file=way.keys(ended) != way.keys(state))


def _batches(
    leg: _Leg, max_unavailable: int, guarantees: Mapping[str, Total]
) -> Iterator[tuple[tuple[str, ...], tuple[Level, ...]]]:
    """The nodes that go together, each time as many as is safe: one always is, or there would be no steps."""
    promised = {name: total.guaranteed for name, total in guarantees.items()}
    sent = 0
    while sent < len(leg.nodes):
        at_source, at_goal = len(leg.nodes) - sent, leg.at_goal + sent
        sizes = range(min(max_unavailable, at_source), 1, -1)
        reduced = ((size, _capacity(leg, at_source - size, at_goal)) for size in sizes)
        safe = (one for one in reduced if all(one[1][name] >= number for name, number in promised.items()))
        size, during = next(safe, (1, _capacity(leg, at_source - 1, at_goal)))
        before, after = _capacity(leg, at_source, at_goal), _capacity(leg, at_source - size, at_goal + size)
        levels = (Level(name, before[name], during[name], after[name], promised.get(name, 0)) for name in before)
        yield leg.nodes[sent : sent + size], tuple(levels)
        sent += size


class Wish(NamedTuple):
    """The wish of the user. ``to`` is empty for the target of the rollout under way, and if nodes go ``back``.

    If it ``goes_on``, a rollout that is not under way has ended. ``listed`` are nodes as texts by name, None where the
    pool's own names are to do. ``max_unavailable`` is a number of nodes, or a part of them in percent; ``batch`` is at
    most what the pool's policy allows.
    """

    pool: str
    to: str = ""
    back: bool = False
    batch: int | None = None
    max_unavailable: str = ""
    listed: Mapping[str, str] | None = None
    goes_on: bool = False


class LeftOver(NamedTuple):
    """A quota or a workload on a unit that the pool does not have any more in the end."""

    kind: str
    name: str
    unit: str


class Proposal(NamedTuple):
    """The steps, or why there are none, with the edits of each, and what else must be out of the way by the end.

    ``done`` is the number of steps that were written before, or None if the overlay does not say it.
    """

    plan: Plan
    outcome: RolloutPlan | Refusal
    edits: tuple[tuple[Edit, ...], ...]
    left_over: tuple[LeftOver, ...]
    done: int | None = 0

    @property
    def is_safe(self) -> bool:
        return isinstance(self.outcome, RolloutPlan)


def mps_configs(proposal: Proposal, step: RolloutStep) -> tuple[str, ...]:
    """Return the configurations of nodes whose MPS daemons restart with a step, which ends every CUDA process there."""
    if not step.changes_file or proposal.plan.cluster.gpu_operator.keeps_plugin_file:
        return ()
    pool, target, state = proposal.outcome.pool, proposal.outcome.target, step.state
    own = target if state.sharing is target.sharing else pool.parts[0]
    if state.moved and pool.rollout is not None:
        own = pool.rollout.moved  # a file changes before nodes move, or after all of them
    others = [part for part in proposal.plan.parts if part.name != pool.name and part.runs_mps]
    parts = [*others, *([own] if isinstance(own.sharing, Mps) else [])]
    return tuple(part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in parts)


def propose(root: Path, clusters: Sequence[str], wish: Wish) -> tuple[Report, Proposal | None]:
    """The way of a pool of one cluster to another sharing; no proposal where the cluster's policies have errors."""
    report = validate(root, clusters, kustomize="off")
    if not report.is_valid:
        return report, None
    plan, pool = _find_pool(report.plans, wish.pool)
    defined = _defined(plan, pool)
    is_settled = bool(defined.kept) and pool.rollout is None
    if wish.back or (not wish.to and pool.rollout is None and (is_settled or wish.goes_on)):
        sharing = pool.sharing
    elif wish.to:
        sharing = _named(plan, pool, wish.to)
    elif pool.rollout is None:
        raise GpuplanError(f"pool `{pool.name}` has no rollout to go on with", _ways(plan, pool))
    else:
        sharing = pool.rollout.moved.sharing
    names = _node_names(pool, wish.listed)
    outcome = plan_rollout(pool, sharing, names, _limit(pool, wish), plan.totals, defined)
    if wish.to and isinstance(outcome, RolloutPlan):
        _refuse_wrong_target(plan, pool, outcome, wish)
    done = _find_done(
        root / overlay_path(plan.cluster.name, pool.name), is_begun=is_settled or pool.rollout is not None
    )
    edits = tuple(_edits(root, plan, pool, outcome, done)) if isinstance(outcome, RolloutPlan) else ()
    return report, Proposal(plan, outcome, edits, tuple(_left_over(plan, pool, outcome.target)), done)


def _find_pool(plans: Sequence[Plan], name: str) -> tuple[Plan, Pool]:
    found = [(plan, pool) for plan in plans if (pool := plan.find_pool(name))]
    if len(found) > 1:
        clusters = [plan.cluster.name for plan, _ in found]
        raise GpuplanError(
            f"pool `{name}` is in {len(found)} clusters: {listing(clusters)}",
            f"each goes its own way: type `gpuplan rollout {name} -c {clusters[0]}`, with the other options",
        )
    if not found:
        known = sorted({pool.name for plan in plans for pool in plan.pools})
        close = misspelling(name, known)
        raise GpuplanError(
            f"there is no pool `{name}`", f"did you mean `{close}`?" if close else f"the pools are {listing(known)}"
        )
    return found[0]


def _left_over(plan: Plan, pool: Pool, target: Pool) -> Iterator[LeftOver]:
    handed_out = {unit.name for unit in target.units}
    for tenant in plan.tenants:
        for quota in tenant.quotas:
            if quota.pool is pool and quota.unit.name not in handed_out:
                yield LeftOver("Tenant", tenant.name, quota.unit.name)
    for workload in plan.workloads:
        if workload.pool is pool and workload.unit.name not in handed_out:
            yield LeftOver("Workload", workload.name, workload.unit.name)


# --- How many at once --------------------------------------------------------------------------------------------


def _limit(pool: Pool, wish: Wish) -> int:
    """Return the number of nodes that may be away at once. A percentage is rounded down, but to 1 at least."""
    if wish.max_unavailable:
        number = int(wish.max_unavailable.rstrip("%"))
        return max(number * pool.nodes.count // 100, 1) if wish.max_unavailable.endswith("%") else number
    allowed = pool.spec.disruption.max_unavailable
    if wish.batch is not None and wish.batch > allowed:
        raise GpuplanError(
            f"`--batch {wish.batch}` is more than the {allowed} that `disruption.maxUnavailable` of pool "
            f"`{pool.name}` allows",
            f"write `--batch {allowed}`, or raise it for this rollout: `--max-unavailable {wish.batch}`",
        )
    return wish.batch or allowed


# --- Nodes -------------------------------------------------------------------------------------------------------


def _node_names(pool: Pool, listed: Mapping[str, str] | None) -> tuple[str, ...]:
    """The names of all of the pool's nodes, numbers in them counted: `gpu-2` comes before `gpu-10`."""
    names = sorted(
        {*pool.nodes.names} if listed is None else {name for name, _ in _of_pool(pool, listed)}, key=_natural
    )
    if not names and listed is None:
        raise GpuplanError(
            f"pool `{pool.name}` does not say which nodes it has",
            f"pass them: `{LIST_NODES} | gpuplan rollout {pool.name} ... --nodes -`",
        )
    if len(names) != pool.nodes.count:
        seen = f": {listing(names)}" if names else ""
        raise GpuplanError(
            f"pool `{pool.name}` counts {pool.nodes.count} nodes, and {len(names)} are listed{seen}",
            f"correct `nodes.count`, or list them all: `{LIST_NODES}`",
        )
    lost = [name for name in (pool.rollout.nodes if pool.rollout else ()) if name not in names]
    if lost:
        raise GpuplanError(
            f"{listing(lost)} of the rollout of pool `{pool.name}` cannot be found among the nodes",
            "correct `rollout.nodes`, or list all of the pool's nodes",
        )
    return tuple(names)


def _of_pool(pool: Pool, listed: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str] | None]]:
    """Those of the nodes that are the pool's: by its own names, by its pattern, or by the label that they have."""
    pattern = find_pattern(pool.nodes.name_pattern)
    for name, labels in _listed(listed):
        if pool.nodes.names:
            is_its = name in pool.nodes.names
        elif pattern is not None:
            is_its = pattern.matches(name)
        else:
            is_its = labels is None or labels.get(POOL_LABEL) == pool.name
        if is_its:
            if len(name) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):  # most likely a line of a table
                shown = name if len(name) <= LONGEST_NAME else f"{name[:40]}..."
                raise GpuplanError(f"`{shown}` is no name of a node", f"pass what `{LIST_NODES}` prints")
            yield name, labels


_SUBDOMAIN: Final = regex(DNS_SUBDOMAIN)


def _listed(texts: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str] | None]]:
    """The nodes of lists as `kubectl` writes them, with their labels, or one name a line."""
    lists = {name: text for name, text in texts.items() if is_list_of_objects(text)}
    yield from ((node.name, node.labels) for node in nodes_in(find_objects(lists, NODES)))
    for name, text in texts.items():
        if name not in lists:
            yield from ((line.strip().removeprefix("node/"), None) for line in text.splitlines() if line.strip())


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    parts = re.split(r"([0-9]+)", name)
    return tuple((index % 2 == 1, int(part) if index % 2 else 0, part) for index, part in enumerate(parts))


# --- The target --------------------------------------------------------------------------------------------------

_PLAIN: Final[Mapping[str, type[Exclusive | Fraction]]] = {"exclusive": Exclusive, "fraction": Fraction}
_COUNTED: Final = regex(r"(time-slicing|mps)=([1-9][0-9]{0,3})")


def _named(plan: Plan, pool: Pool, name: str) -> Sharing:
    """The sharing that a word, or the name of a layout, stands for; options that are not wanted stay as they are."""
    at, now = pool.at / "sharing", pool.sharing
    if name in _PLAIN:
        return _PLAIN[name](at)
    if counted := _COUNTED.fullmatch(name):
        replicas = int(counted[2])
        if counted[1] == "mps":
            mps = now.spec if isinstance(now, Mps) else models.Mps(replicas=replicas)
            return Mps(at, mps.model_copy(update={"replicas": replicas}))
        slicing = now.spec if isinstance(now, TimeSlicing) else models.TimeSlicing(replicas=replicas)
        return TimeSlicing(at, slicing.model_copy(update={"replicas": replicas}))
    layout = next((layout for layout in plan.layouts if layout.name == name), None)
    if layout is None:
        known = [layout.name for layout in _layouts(plan, pool)]
        instances = _instances(name)
        shared = [each for each in _layouts(plan, pool) if _content(each) & instances]
        near = max(
            shared,
            key=lambda each: -((instances - _content(each)) + (_content(each) - instances)).total(),
            default=None,
        )
        is_same = near is not None and _content(near) == instances
        close = _meant(name, known) or misspelling(name, known) or (near.name if near and is_same else "")
        like = f"; `--to {near.name}` is nearest: `{_flow(_content(near))}`" if near else ""
        new = f"write a MigLayout with `instances: {_flow(instances)}` and name it{like}" if instances else ""
        raise GpuplanError(
            f"`{name}` is no layout, nor another way of sharing",
            f"did you mean `{close}`?" if close else new or _ways(plan, pool),
        )
    if layout.gpu is not pool.gpu:
        raise GpuplanError(
            f"layout `{name}` is for {layout.gpu.id}, and pool `{pool.name}` has {pool.gpu.id}", _ways(plan, pool)
        )
    is_single = plan.cluster.gpu_operator.spec.mig_strategy is ClusterMigStrategy.SINGLE
    usual = MigStrategy.SINGLE if is_single else MigStrategy.MIXED
    strategy = now.spec.strategy if isinstance(now, Mig) else usual
    return Mig(at, models.Mig(layout=layout.name, strategy=strategy), layout, at, None)


def _meant(text: str, layouts: Sequence[str]) -> str:
    """Return the sharing that a text says as a policy does: ``{timeSlicing: {replicas: 4}}``, or ``mig=two-large``."""
    words = re.findall(r"[a-z0-9][-+.a-z0-9]*", text.lower())
    kinds = {"timeslicing": "time-slicing", "time-slicing": "time-slicing", "mps": "mps"}
    kind = next((kinds[word] for word in words if word in kinds), "")
    replicas = next((word for word in words if word.isdecimal()), "")
    if kind:
        return f"{kind}={replicas or 4}"
    return next((word for word in words if word in (*layouts, *_PLAIN)), "")


_INSTANCES: Final = regex(r"(?:([1-9]) ?x ?)?([0-9]+g\.[0-9]+gb(?:[+-][a-z.]+)*)(?:[ :=x*]+([1-9])(?![0-9g]))?")


def _instances(text: str) -> Counter[str]:
    """Return the instances that a text counts: ``{2g.20gb: 3}``, ``2g.20gb=3``, or ``3x2g.20gb``."""
    found = Counter[str]()
    for before, profile, behind in _INSTANCES.findall(text):
        found[profile] += int(before or behind or 1)
    return found


def _content(layout: Layout) -> Counter[str]:
    """Return the instances on each GPU of a layout that divides all GPUs of a node in one way; else none."""
    return Counter(layout.entries[0].instances if len(layout.entries) == 1 else {})


def _flow(instances: Mapping[str, int]) -> str:
    return f"{{{', '.join(f'{profile}: {number}' for profile, number in instances.items())}}}"


def _refuse_wrong_target(plan: Plan, pool: Pool, outcome: RolloutPlan, wish: Wish) -> None:
    """Stop where the policies would have errors as soon as the first node has the other way of sharing."""
    first = next((step for step in outcome.steps if step.kind is StepKind.MOVE), None)
    if first is None or first.state.rollout is None:
        return
    home = with_meaning(pool.parts[0]._replace(nodes=pool.nodes))
    between = divided(home, pool.at / "rollout", first.state.rollout, first.nodes)
    known = {(item.code, item.finding.message) for item in judge_plan(plan)}
    for item in judge_plan(replace(plan, pools=tuple(between if found is pool else found for found in plan.pools))):
        if item.is_error and (item.code, item.finding.message) not in known:
            raise GpuplanError(
                f"`--to {wish.to}` would be an error: {item.shown.message}",
                "; ".join(filter(None, (item.shown.help, f"`gpuplan explain {item.code}` says more"))),
            )


def _ways(plan: Plan, pool: Pool) -> str:
    names = [f"`--to {layout.name}`" for layout in _layouts(plan, pool)]
    return f"there are {', '.join([*names, '`--to exclusive`', '`--to time-slicing=4`', '`--to mps=4`'])}"


def _layouts(plan: Plan, pool: Pool) -> list[Layout]:
    return [layout for layout in plan.layouts if layout.gpu is pool.gpu]


# --- Edits -------------------------------------------------------------------------------------------------------

_STEP: Final = regex(r"# Step ([0-9]{1,4}) of ([0-9]{1,4}) of `gpuplan rollout`")


def _find_done(path: Path, *, is_begun: bool) -> int | None:
    """Return the number of steps that were written, by the comment in the overlay. None if it does not say it."""
    if not is_begun:
        return 0
    found = _STEP.match(path.read_text(encoding="utf-8")) if path.is_file() else None
    return int(found[1]) if found else None


def overlay_path(cluster: str, pool: str) -> str:
    """The file that steps are written to."""
    return f"{OVERLAYS}/{cluster}/rollout-{pool}.yaml"


def _edits(root: Path, plan: Plan, pool: Pool, outcome: RolloutPlan, done: int | None) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits of each step.

    The overlay has one document for a pool: where that is in a file of the user's own, steps change it there. Otherwise
    it is in a file of the rollout's, up to the step that makes the new sharing the pool's own: that is written where
    people read what the pool is.
    """
    own = overlay_path(plan.cluster.name, pool.name)
    layer = layer_of(plan, pool)
    theirs = layer if layer is not None and layer.file.path != own else None
    # Whether a person wrote what the rollout retains beside the pool, as an earlier gpuplan said.
    retained_in = {item.at.locate().file.path for item in plan.retained if _is_of_rollout(plan, pool, item)}
    is_by_hand = _written_by_hand(root / own, pool) or (theirs is not None and theirs.file.path in retained_in)
    is_there = os.path.lexists(root / own)
    for number, step in enumerate(outcome.steps, (done or 0) + 1):
        state = step.state
        wanted = {"sharing": _spelt(pool, state.sharing)}
        key = {"devicePluginConfig": state.key} if state.key else {}
        if names := {**section(document_of(pool).data["spec"], "names"), **key}:
            wanted["names"] = names
        if state.rollout is not None:
            wanted["rollout"] = {"sharing": _spelt(pool, state.rollout), "nodes": list(state.moved)}
        kept = [*_kept(plan, outcome, state)]
        if is_by_hand:
            place = own if theirs is None else theirs.file.path
            beside = "".join(f"---\n{to_yaml(document)}" for document in kept)
            yield (Edit(place, Action.CHANGE, snippet(pool, layer, patch_of(pool, layer, wanted)) + beside),)
            continue
        edits = list[Edit]()
        if theirs is not None:
            edits += changed(pool, theirs, wanted)
        elif state.rollout is None:
            edits += settled(root, plan, pool, wanted)
        elif patch := patch_of(pool, layer, wanted):
            kept.insert(0, writing.document("Pool", pool.name, patch))
        if kept:
            which = "A step" if done is None else f"Step {number} of {done + len(outcome.steps)}"
            about = f"# {which} of `gpuplan rollout`, which replaces this file by the next one.\n"
            edits.append(Edit(own, Action.WRITE, about + "---\n".join(map(to_yaml, kept))))
        elif is_there:
            edits.append(Edit(own, Action.REMOVE, ""))
        is_there = bool(kept)
        yield tuple(edits)


def _written_by_hand(path: Path, pool: Pool) -> bool:
    """Whether the file says more than steps of a rollout do."""
    if not os.path.lexists(path):
        return False
    for document in read_text(str(path), path.read_text(encoding="utf-8"))[0]:
        spec = document.data.get("spec")
        if not isinstance(spec, dict):
            return True
        key = section(spec, "devicePluginConfig").get("key")
        is_step = document.kind == "Pool" and document.name == pool.name and not set(spec) - set(PARTS)
        is_kept = document.kind == "Retained" and ("migLayout" in spec or has_own(pool, str(key)))
        if not (is_step or is_kept):
            return True
    return False


# --- Sharing as a policy says it ---------------------------------------------------------------------------------


def _spelt(pool: Pool, sharing: Sharing) -> dict[str, Any]:
    """A way of sharing as the policy has it, if it has it, otherwise as short as can be."""
    spec = document_of(pool).data["spec"]
    if sharing is pool.sharing:
        return dict(spec["sharing"])
    if pool.rollout and sharing is pool.rollout.moved.sharing:
        return dict(spec["rollout"]["sharing"])
    kind = type(sharing).__name__
    if isinstance(sharing, Exclusive | Fraction):
        return {kind.lower(): {}}
    return {kind[0].lower() + kind[1:]: sharing.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)}


# --- What is retained on the way ---------------------------------------------------------------------------------


def _defined(plan: Plan, pool: Pool) -> Defined:
    """Return the names that are defined apart from the rollout, and those that earlier steps retain for it."""
    others = [part for part in plan.parts if part.name != pool.name]
    elsewhere = {part.labels[label] for part in others for label in _RETAINED_LABELS if label in part.labels}
    own: list[Left] = []
    for item in plan.retained:
        if (left := _named_by(item)) is None:
            continue
        if not _is_of_rollout(plan, pool, item):
            elsewhere.add(left.value)
        else:
            own.append(left)
    kept = tuple(left for left in own if left.value not in elsewhere)
    return Defined(frozenset(device_plugin.configurations(plan)), frozenset(elsewhere), kept)


_RETAINED_LABELS: Final = (DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL)


def _named_by(retained: Retained) -> Left | None:
    """Return the name that a document retains if labels of nodes name it, or None."""
    label, value = named_by(retained.what)
    return Left(label, str(value)) if label in _RETAINED_LABELS else None


def _is_of_rollout(plan: Plan, pool: Pool, retained: Retained) -> bool:
    """Whether steps wrote a document, or told somebody to write it beside the pool's own."""
    file, layer = retained.at.locate().file.path, layer_of(plan, pool)
    is_its_key = isinstance(retained.what, RetainedDevicePluginConfig) and has_own(pool, retained.what.spec.key)
    is_beside = layer is not None and file == layer.file.path and is_its_key
    return file == overlay_path(plan.cluster.name, pool.name) or is_beside


def _kept(plan: Plan, outcome: RolloutPlan, state: RolloutState) -> Iterator[dict[str, Any]]:
    """The documents of a step that retain something, beside those that other files have."""
    pool = outcome.pool
    known = {_named_by(item): item for item in plan.retained}
    taken = {item.name for item in plan.retained}
    for left in state.kept:
        if (item := known.get(left)) is None:
            name, spec = _retained(plan, outcome, left)
            yield writing.document("Retained", retaining.document_name(name, taken), spec)
        elif _is_of_rollout(plan, pool, item) and isinstance(item.at.source, Document):
            yield dict(item.at.source.data)


def _retained(plan: Plan, outcome: RolloutPlan, kept: Left) -> tuple[str, dict[str, Any]]:
    """Return the name and the spec of the document that retains a name of the pool's nodes."""
    pool = outcome.pool
    parts = (*pool.parts, outcome.target)
    part = next(part for part in parts if part.labels.get(kept.label) == kept.value)
    if kept.label == MIG_CONFIG_LABEL and isinstance(part.sharing, Mig):
        return kept.value, retaining.entry_spec(part.sharing.layout, pool.nodes.gpus_per_node)
    config = configuration(part, plan.cluster.gpu_operator.spec.mig_strategy)
    return retaining.key_document(kept.value), retaining.key_spec(plan, kept.value, config)


# --- Writing -----------------------------------------------------------------------------------------------------


def find_hindrance(root: Path, proposal: Proposal, listed: Mapping[str, str] | None) -> str:
    """Why the first step cannot be written yet; empty where it can. ``listed`` are nodes as texts by name."""
    if find_uncommitted(root, proposal):
        path = overlay_path(proposal.plan.cluster.name, proposal.outcome.pool.name)
        return f"the step before is not committed yet ({path})"
    for left in _dropped(proposal):
        if names := [name for name, labels in _listed(listed or {}) if labels and labels.get(left.label) == left.value]:
            verb = "has" if len(names) == 1 else "have"
            return f"{listing(names)} still {verb} the label `{left.label}: {left.value}`, whose meaning would go"
    late = next(_late(proposal.outcome.pool, listed or {}), "")
    return f"the step before has not come to the nodes yet: {late}" if late else ""


def _late(pool: Pool, listed: Mapping[str, str]) -> Iterator[str]:
    """Yield which nodes do not show yet what the steps up to now have made of them. A list of names shows nothing."""
    if pool.rollout is None:
        return
    moved, home = pool.rollout.moved.labels, pool.parts[0].labels
    for name, labels in _of_pool(pool, listed):
        if labels is None:
            continue
        is_moved = name in pool.rollout.nodes
        for label in _RETAINED_LABELS:
            wanted, other = (moved, home) if is_moved else (home, moved)
            is_other = labels.get(label) == other.get(label) is not None
            if wanted.get(label) not in (None, labels.get(label)) and (is_moved or is_other):
                yield f"{name} has the label `{label}: {labels.get(label)}`, and will have `{wanted[label]}`"
        state = labels.get(_MIG_STATE, "success")
        if is_moved and MIG_CONFIG_LABEL in moved and state != "success":
            yield f"{name} has the label `{_MIG_STATE}: {state}`, and will have `success`"


_MIG_STATE: Final = f"{MIG_CONFIG_LABEL}.state"


def _dropped(proposal: Proposal) -> tuple[Left, ...]:
    """Return the names that the first step no longer defines."""
    plan, pool = proposal.plan, proposal.outcome.pool
    step = next(iter(proposal.outcome.steps), None) if isinstance(proposal.outcome, RolloutPlan) else None
    if step is None or step.kind not in {StepKind.SETTLE, StepKind.FORGET}:
        return ()
    defined = _defined(plan, pool)
    end = proposal.outcome.target if step.kind is StepKind.SETTLE else pool.parts[0]
    stays = {*defined.elsewhere, *end.labels.values(), *(layout.config_name for layout in plan.layouts)}
    stays |= {left.value for left in step.state.kept}
    found = (*defined.kept, *(left for part in pool.parts for left in _names_of(part)))
    return tuple(left for left in found if left.value not in stays)


def find_uncommitted(root: Path, proposal: Proposal) -> bool:
    """Whether no commit has the step of the policies yet, so that no node can have taken it."""
    if shutil.which("git") is None or not is_in_git(root):
        return False
    head = find_revision(root, "HEAD")
    if head is None:
        return False
    cluster, name = proposal.plan.cluster.name, proposal.outcome.pool.name
    plans = read_revision(root, head, (cluster,)).plans
    before = plans[0].find_pool(name) if plans else None
    if before is None:
        return False
    return _written(plans[0], before) != _written(proposal.plan, proposal.outcome.pool)


def _written(plan: Plan, pool: Pool) -> tuple[object, object]:
    """Return what steps have written so far: parts of the pool, and the retained names."""
    kept = {left for item in plan.retained if _is_of_rollout(plan, pool, item) and (left := _named_by(item))}
    return parts_of(document_of(pool).data), kept
