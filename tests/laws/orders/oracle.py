"""Judge the way of every node through all orders in which folders of several commits can be synced.

A folder goes from any commit to any later one, by itself. What leaves a folder may stay in the cluster until a person
consents to prune it. Nothing of gpuplan is imported here: two trees are all that is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from tests.laws.orders.publishing import Geometry, Published, counts, divided, publish, whole
from tests.laws.orders.rules import Body, labels_of
from tests.laws.orders.trees import Folder, Labels, Operator, Tree

MIG: Final = "nvidia.com/mig.config"
PLUGIN: Final = "nvidia.com/device-plugin.config"
POOL: Final = "gpuplan.dev/pool"
OPERATOR: Final = "gpu-operator"


class Kind(StrEnum):
    """What is wrong with a node in some order."""

    STRIPPED = "stripped"
    """It is divided by MIG before and after, and has no label that says so in between."""
    THIRD = "third"
    """It publishes what it does at no commit."""
    DANGLES = "dangles"
    """A label names what the operator's file has no longer."""
    EARLY = "early"
    """A label names what the operator's file has not yet."""
    UNREAD = "unread"
    """Its label names what is there, and config-manager cannot replace its link, which leads to what is gone."""
    LEFT = "left"
    """It has no labels at the end any more, and publishes something else: its partitions are dissolved."""
    UNCOVERED = "uncovered"
    """Of a resource there is less than is granted before and after."""


UNSAFE: Final = frozenset({Kind.STRIPPED, Kind.THIRD, Kind.DANGLES, Kind.UNREAD, Kind.LEFT})


class Verdict(NamedTuple):
    """What is wrong with a node, and in which order: the commit that each folder is at."""

    kind: Kind
    node: str
    order: str
    what: str
    pools: frozenset[str] = frozenset()
    """Those that the node is in at some commit."""
    is_ahead: bool = False
    """Whether labels have come before the operator's files, which an order between the two prevents."""


class State(NamedTuple):
    """Where a node is on its way: the commit of the operator's folder and of each other, and whether old rules stay."""

    operator: int
    folders: tuple[tuple[int, bool], ...]


class Condition(NamedTuple):
    """What a node is like: its labels, how its GPUs are divided, and the key that its device plugin's link leads to."""

    labels: tuple[tuple[str, str], ...]
    geometry: Geometry
    link: str = ""


@dataclass(frozen=True)
class Way:
    """One node, and all conditions that it can be in."""

    name: str
    ends: tuple[Condition, ...]
    """At each commit, where everything is synced before the next."""
    published: tuple[Published, ...]
    verdicts: tuple[Verdict, ...]
    fewest: Mapping[str, int]
    """Of each resource, what it publishes at least in any order; nothing of what is made anew."""

    @property
    def is_repartitioned(self) -> bool:
        return len({end.geometry for end in self.ends}) > 1

    @property
    def pools(self) -> frozenset[str]:
        return frozenset(dict(end.labels).get(POOL, "") for end in self.ends) - {""}


@dataclass(frozen=True)
class Judgement:
    """The ways of all nodes."""

    ways: tuple[Way, ...]
    uncovered: tuple[Verdict, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return (*(verdict for way in self.ways for verdict in way.verdicts), *self.uncovered)

    def of(self, *kinds: Kind) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.kind in kinds)

    @property
    def repartitioned(self) -> tuple[Way, ...]:
        return tuple(way for way in self.ways if way.is_repartitioned)


def judge(trees: Sequence[Tree], nodes: Mapping[str, int], start: Mapping[str, int] | None = None) -> Judgement:
    """``trees`` are commits, oldest first; ``nodes`` are how many GPUs each node has, by its name.

    ``start`` says which commit a folder, or `gpu-operator`, is at when the last is made; the others are at the first.
    Whatever is synced from then on is synced to the last.
    """
    ways = tuple(_way(trees, name, gpus, start) for name, gpus in nodes.items())
    return Judgement(ways, tuple(_uncovered(trees, ways)))


def labels_at(trees: Sequence[Tree], nodes: Mapping[str, int], at: Mapping[str, int]) -> dict[str, Labels]:
    """The labels of each node when folders are at these commits."""
    return {name: dict(_begin(_node(trees, name, gpus), at)[1].labels) for name, gpus in nodes.items()}


def _uncovered(trees: Sequence[Tree], ways: Sequence[Way]) -> Iterator[Verdict]:
    """Only what every commit grants and has by itself can be lost on the way."""
    least = sum((Counter(way.fewest) for way in ways), Counter[str]())
    ends = [sum((Counter(counts(way.published[index])) for way in ways), Counter[str]()) for index in range(len(trees))]
    for resource in sorted(set.intersection(*(set(tree.guarantees) for tree in trees))):
        needed = min(tree.guarantees[resource] for tree in trees)
        if least[resource] < needed <= min(end[resource] for end in ends):
            pools = frozenset().union(*(way.pools for way in ways if way.verdicts or len(set(way.ends)) > 1))
            what = f"{least[resource]} of {resource} where {needed} are granted"
            yield Verdict(Kind.UNCOVERED, "", "", what, pools)


# --- One node ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Node:
    name: str
    gpus: int
    operators: tuple[Operator, ...]
    names: tuple[str, ...]
    folders: tuple[tuple[Folder, ...], ...]
    """Of each folder, what it is at each commit."""


def _node(trees: Sequence[Tree], name: str, gpus: int) -> _Node:
    paths = sorted({path for tree in trees for path in tree.folders})
    folders = {path: tuple(_about(tree.folders.get(path, Folder()), name) for tree in trees) for path in paths}
    kept = {path: found for path, found in folders.items() if found != (Folder(),) * len(trees)}
    return _Node(name, gpus, tuple(tree.operator for tree in trees), tuple(kept), tuple(kept.values()))


def _way(trees: Sequence[Tree], name: str, gpus: int, start: Mapping[str, int] | None) -> Way:
    node = _node(trees, name, gpus)
    last = len(trees) - 1
    ends = tuple(_ends(node, last))
    published = tuple(_published(node, index, end) or {} for index, end in enumerate(ends))
    versions = range(last + 1) if start is None else range(last, last + 1)
    walking = node if start is None else _arrived(node, start)
    walked = _walk(walking, versions, *_begin(node, start or {}))
    verdicts = {
        (found.kind, found.what): found
        for state, conditions in walked.items()
        for condition in sorted(conditions, key=repr)
        for found in _verdicts(walking, state, condition, ends, published)
    }
    if _is_left(ends) and published[0] != published[-1]:
        pools = _pools(ends)
        verdicts[Kind.LEFT, ""] = Verdict(Kind.LEFT, name, "at the end", "no pool's labels any more", pools)
    return Way(name, ends, published, tuple(verdicts.values()), _fewest(node, walked, ends))


def _about(folder: Folder, node: str) -> Folder:
    """What of a folder is about a node."""
    rules = {name: body for name, body in folder.rules.items() if labels_of({name: body}, node)}
    groups = tuple(group for group in folder.groups if is_in_row(group, node))
    nodes = {node: folder.nodes[node]} if node in folder.nodes else {}
    return Folder(rules, nodes, groups)


def is_in_row(group: Body, node: str) -> bool:
    """Whether a row of the table of node groups is about a node."""
    pattern = group.get("namePattern")
    is_matched = pattern is not None and re.fullmatch(pattern, node) is not None
    return node in group.get("names", ()) or (is_matched and node not in group.get("exceptNames", ()))


def _ends(node: _Node, last: int) -> Iterator[Condition]:
    """The node at each commit, where the operator's files and all that comes are there before anything goes."""
    condition = Condition((), whole(node.gpus))
    before: dict[str, str] = {}
    for index in range(last + 1):
        state = State(index, ((index, False),) * len(node.folders))
        ruled = _ruled(node, state)
        own = next((found for folder in node.folders if (found := _set(folder[index], node.name)) is not None), None)
        labels = {key: value for key, value in condition.labels if key not in before}
        labels = _owned(node, labels, own) | ruled
        before, condition = ruled, _divide(node, index, labels, condition.geometry)
        yield condition


def _owned(node: _Node, labels: Labels, own: Labels | None) -> dict[str, str]:
    """Labels with those that an object, or hands that follow a table, set now; they take their earlier ones along."""
    if own is None:
        return dict(labels)
    known = {key for found in node.folders for folder in found for key in _set(folder, node.name) or ()}
    return {key: value for key, value in labels.items() if key not in known} | dict(own)


def _set(folder: Folder, name: str) -> dict[str, str] | None:
    """The labels that a folder sets by itself, without a rule: by an object, or by hands that follow a table."""
    if name in folder.nodes:
        return dict(folder.nodes[name])
    return dict(folder.groups[0]["labels"]) if folder.groups else None


def _ruled(node: _Node, state: State) -> dict[str, str]:
    objects: dict[str, Body] = {}
    for found, (version, stays) in zip(node.folders, state.folders, strict=True):
        if stays:
            for earlier in found[:version]:
                objects |= earlier.rules
        objects |= found[version].rules
    return labels_of(objects, node.name)


def _divide(node: _Node, operator: int, labels: Labels, geometry: Geometry) -> Condition:
    """The MIG manager follows a label that its file has; without one the operator writes the default."""
    entries = node.operators[operator].entries
    entry = labels.get(MIG, node.operators[operator].default_entry)
    done = divided(entries[entry], node.gpus) if entry in entries else geometry
    key = labels.get(PLUGIN, node.operators[operator].default_config)
    return Condition(tuple(sorted(labels.items())), done, key if key in node.operators[operator].configs else "")


def _linked(node: _Node, state: State, successor: State, before: Condition, after: Condition) -> Condition:
    """A pod that runs goes on with its link, and config-manager replaces none that leads to what is gone.

    (`updateSymlink` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin: `os.Stat` takes it for absent, and
    `os.Symlink` finds it there.) Pods are new where the ConfigMap has another name, or where the MIG manager has
    stopped them to divide GPUs.
    """
    old, new = node.operators[state.operator], node.operators[successor.operator]
    if old.config_name != new.config_name or before.geometry != after.geometry:
        return after
    key = dict(after.labels).get(PLUGIN, new.default_config)
    is_gone = bool(before.link) and before.link not in new.configs
    return after._replace(link=before.link) if is_gone or (key and key not in new.configs) else after


def _begin(node: _Node, at: Mapping[str, int]) -> tuple[State, Condition]:
    """The node when folders are at these commits, to which they came from the first; what is old was pruned."""
    state = State(at.get(OPERATOR, 0), tuple((at.get(name, 0), False) for name in node.names))
    first = State(0, ((0, False),) * len(node.folders))
    condition = next(_ends(node, 0))
    labels = {key: value for key, value in condition.labels if key not in _ruled(node, first)}
    for found, (version, _) in zip(node.folders, state.folders, strict=True):
        labels = _owned(node, labels, _set(found[version], node.name) if version else None)
    return state, _divide(node, state.operator, labels | _ruled(node, state), condition.geometry)


def _arrived(node: _Node, at: Mapping[str, int]) -> _Node:
    """Without what a folder was before and after the commit that it is at, but for the last one."""
    folders = tuple(
        (*(found[at.get(name, 0)],) * (len(found) - 1), found[-1])
        for name, found in zip(node.names, node.folders, strict=True)
    )
    return replace(node, folders=folders)


def _walk(node: _Node, versions: range, start: State, first: Condition) -> dict[State, set[Condition]]:
    found: dict[State, set[Condition]] = {start: {first}}
    # Each transition makes a state greater, so that one that comes up is complete.
    pending = [start]
    while pending:
        state = min(pending, key=_progress)
        pending.remove(state)
        for successor, changed in _successors(node, state, versions):
            if successor not in found:
                found[successor] = set()
                pending.append(successor)
            for condition in found[state]:
                found[successor].add(_step(node, state, successor, changed, condition))
    return found


def _progress(state: State) -> int:
    return 2 * state.operator + sum(2 * version + (not stays) for version, stays in state.folders)


def _successors(node: _Node, state: State, versions: range) -> Iterator[tuple[State, int | None]]:
    """Each state that one sync or one pruning leads to, and which folder was synced."""
    for operator in versions[max(0, state.operator + 1 - versions.start) :]:
        yield state._replace(operator=operator), None
    for position, (version, stays) in enumerate(state.folders):
        found = node.folders[position]
        for later in versions[max(0, version + 1 - versions.start) :]:
            gone = any(set(folder.rules) - set(found[later].rules) for folder in found[:later])
            for lingers in (False, True) if gone else (False,):
                yield _with(state, position, (later, lingers)), position
        if stays:
            yield _with(state, position, (version, False)), position


def _with(state: State, position: int, moved: tuple[int, bool]) -> State:
    folders = [*state.folders]
    folders[position] = moved
    return state._replace(folders=tuple(folders))


def _step(node: _Node, state: State, successor: State, changed: int | None, before: Condition) -> Condition:
    labels = dict(before.labels)
    if changed is not None:
        version, _ = successor.folders[changed]
        is_synced = state.folders[changed][0] != version
        own = _set(node.folders[changed][version], node.name) if is_synced else None
        ruled = _ruled(node, successor)
        labels = _owned(node, labels, own)
        gone = set(_ruled(node, state)) - set(ruled)
        labels = {key: value for key, value in labels.items() if key not in gone} | ruled
    return _linked(node, state, successor, before, _divide(node, successor.operator, labels, before.geometry))


# --- What is wrong -----------------------------------------------------------------------------------------------


def _published(node: _Node, operator: int, condition: Condition) -> Published | None:
    """None where the plugin's file lacks what the label names: nothing new is handed out."""
    known = node.operators[operator]
    key = dict(condition.labels).get(PLUGIN, known.default_config)
    if key and key not in known.configs:
        return None
    return publish(condition.geometry, known.configs.get(key, {}), known.strategy)


def _verdicts(
    node: _Node, state: State, condition: Condition, ends: Sequence[Condition], published: Sequence[Published]
) -> Iterator[Verdict]:
    labels, order, pools = dict(condition.labels), _order(node, state), _pools(ends)
    is_ahead = any(version > state.operator for version, _ in state.folders)
    if _is_mig(node, ends) and MIG not in labels:
        yield Verdict(Kind.STRIPPED, node.name, order, f"no {MIG}", pools)
        return
    lacking = [*_lacking(node, state.operator, labels)]
    for kind, what in lacking:
        yield Verdict(kind, node.name, order, what, pools, is_ahead)
    if not lacking and condition.link and condition.link != labels.get(PLUGIN, ""):
        yield Verdict(Kind.UNREAD, node.name, order, f"its link leads to {condition.link}", pools)
    if not lacking and all(POOL in dict(end.labels) for end in ends):
        found = _published(node, state.operator, condition)
        if found not in published:
            yield Verdict(Kind.THIRD, node.name, order, f"publishes {_said(found or {})}", pools, is_ahead)


def _lacking(node: _Node, operator: int, labels: Labels) -> Iterator[tuple[Kind, str]]:
    known: Mapping[str, Sequence[Mapping[str, object]]] = {
        MIG: [found.entries for found in node.operators],
        PLUGIN: [found.configs for found in node.operators],
    }
    for label, files in known.items():
        name = labels.get(label)
        if name is not None and name not in files[operator]:
            kind = Kind.DANGLES if any(name in file for file in files[:operator]) else Kind.EARLY
            yield kind, f"{label}={name} is in no file"


def _is_mig(node: _Node, ends: Sequence[Condition]) -> bool:
    """Whether it has partitions at every commit."""
    return all(any(gpu is not None for gpu in end.geometry) and MIG in dict(end.labels) for end in ends)


def _is_left(ends: Sequence[Condition]) -> bool:
    return POOL in dict(ends[0].labels) and POOL not in dict(ends[-1].labels)


def _pools(ends: Sequence[Condition]) -> frozenset[str]:
    return frozenset(dict(end.labels).get(POOL, "") for end in ends) - {""}


def _fewest(node: _Node, walked: Mapping[State, set[Condition]], ends: Sequence[Condition]) -> dict[str, int]:
    """A node whose GPUs are divided anew is away. Where labels come early, it hands out nothing new, but keeps it."""
    if len({condition.geometry for conditions in walked.values() for condition in conditions}) > 1:
        return {}
    found = [
        counts(published)
        for state, conditions in walked.items()
        for condition in conditions
        if (published := _published(node, state.operator, condition)) is not None
    ]
    return {
        resource: min(one.get(resource, 0) for one in found) for resource in {name for one in found for name in one}
    }


def _said(published: Published) -> str:
    return ", ".join(f"{count} {resource.name} ({resource.kind})" for resource, count in sorted(published.items()))


def _order(node: _Node, state: State) -> str:
    places = [(OPERATOR, state.operator, False)]
    places += [(name, *at) for name, at in zip(node.names, state.folders, strict=True)]
    return ", ".join(f"{name} at {version}{', unpruned' if stays else ''}" for name, version, stays in places)
