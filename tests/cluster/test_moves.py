"""Node Feature Discovery's own rule engine follows nodes from one pool to another, in every order of two folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import pytest

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.retaining import keepers
from tests.cluster.parsers import features, run_rules
from tests.plans import a_plan

POOL = "gpuplan.dev/pool"
MIG = "nvidia.com/mig.config"
PLUGIN = "nvidia.com/device-plugin.config"

# --- Moves -------------------------------------------------------------------------------------------------------

LAYOUTS = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""


def _pool(name: str, nodes: str, sharing: str = "{mig: {layout: large}}", more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{gpusPerNode: 8, {nodes}}}
  sharing: {sharing}
{more}"""


A, B, C = (f"count: 1, names: [{name}]" for name in "abc")
AB, BC, AC = (f"count: 2, names: [{one}, {other}]" for one, other in ("ab", "bc", "ac"))
ABC = "count: 3, names: [a, b, c]"
PATTERN, ONE, TWO = "count: 3, namePattern: '[abc]'", "count: 1, namePattern: 'a'", "count: 2, namePattern: '[bc]'"
TAINTED = "  taints: [{key: example.com/left, effect: NoSchedule}]\n"
SHARED = "{timeSlicing: {replicas: 4}}"
ROLLOUT = "  rollout: {sharing: {mig: {layout: small}}, nodes: [b]}\n"

MOVES = {
    "move": (_pool("left", AB) + _pool("right", C), _pool("left", A) + _pool("right", BC)),
    "move to an earlier name": (_pool("right", AB) + _pool("left", C), _pool("right", A) + _pool("left", BC)),
    "move to another layout": (
        _pool("left", AB) + _pool("right", C, "{mig: {layout: small}}"),
        _pool("left", A) + _pool("right", BC, "{mig: {layout: small}}"),
    ),
    "move to a pool without partitions": (
        _pool("left", AB) + _pool("right", C, SHARED),
        _pool("left", A) + _pool("right", BC, SHARED),
    ),
    "move of shares": (
        _pool("left", AB, SHARED) + _pool("right", C, SHARED),
        _pool("left", A, SHARED) + _pool("right", BC, SHARED),
    ),
    "move with a taint": (
        _pool("left", AB, more=TAINTED) + _pool("right", C),
        _pool("left", A, more=TAINTED) + _pool("right", BC),
    ),
    "move in a rollout": (_pool("left", AB, more=ROLLOUT) + _pool("right", C), _pool("left", A) + _pool("right", BC)),
    "rename": (_pool("left", AB), _pool("right", AB)),
    "rename to an earlier name": (_pool("right", AB), _pool("left", AB)),
    "rename by a pattern": (_pool("right", PATTERN), _pool("left", PATTERN)),
    "split": (_pool("left", AB), _pool("left", A) + _pool("right", B)),
    "split by a pattern": (_pool("right", PATTERN), _pool("right", ONE) + _pool("left", TWO)),
    "merge": (_pool("left", AB) + _pool("right", C), _pool("right", ABC)),
    "exchange": (_pool("left", AB) + _pool("right", C), _pool("left", AC) + _pool("right", B)),
}
"""The pools before and after, without what keeps labels."""
NODES = ("a", "b", "c")

# --- Folders -----------------------------------------------------------------------------------------------------

Objects = frozenset[tuple[str, str]]
"""The rules of a folder: the name of each object, and what it says."""
Folders = Mapping[str, Objects]


class Commits(NamedTuple):
    """What each commit has in the folders of node rules; the last is made once each node has its new pool's label."""

    folders: tuple[Folders, ...]
    moved: Mapping[str, str]
    """The nodes that go to another pool, with the one that they leave."""


def _folders(plan: Plan) -> Folders:
    found: dict[str, set[tuple[str, str]]] = {}
    for _, artifact in artifacts(plan):
        if isinstance(artifact, Manifest) and artifact.body["kind"] == "NodeFeatureRule":
            found.setdefault(artifact.folder, set()).add((artifact.name, json.dumps(artifact.body)))
    return {folder: frozenset(objects) for folder, objects in found.items()}


def _commits(before: str, after: str, *, keeps: bool = True) -> Commits:
    """Before, after with what `gpuplan retain --write` writes, and after without what keeps nodes."""
    old, new = a_plan(LAYOUTS + before), a_plan(LAYOUTS + after)
    documents = [keeper.text for keeper in keepers(old, new)]
    lasting = [text for text in documents if "\n  nodes:\n" not in text]
    kept, last = (a_plan("---\n".join([LAYOUTS + after, *texts])) for texts in (documents, lasting))
    assert len(documents) > len(lasting)
    folders = (_folders(old), _folders(kept), _folders(last)) if keeps else (_folders(old), _folders(last))
    homes, next_homes = _labels(folders[0]), _labels(folders[-1])
    moved = {node: homes[node][POOL] for node in NODES if POOL in homes[node] != next_homes[node]}
    return Commits(folders, {node: pool for node, pool in moved.items() if next_homes[node][POOL] != pool})


def _steps(old: Objects, new: Objects, *, prunes: bool) -> Iterator[Objects]:
    """What a sync makes of a folder, object by object in the order of their names; then it deletes, or does not."""
    now = dict(old)
    for name, body in sorted(new):
        now[name] = body
        yield frozenset(now.items())
    if prunes:
        yield new


State = tuple[tuple[str, Objects], ...]


def _reachable(commits: Commits, *, prunes: bool) -> Iterator[State]:
    """Every state that some order of syncs leads to, object by object.

    The last commit is made in any state that shows that each node has arrived, and is there from then on.
    """
    names = sorted({*chain.from_iterable(commits.folders)})
    first = tuple((name, commits.folders[0].get(name, frozenset())) for name in names)
    waiting = [(first, False)]
    seen = set(waiting)
    for state, was_shown in waiting:
        yield state
        is_shown = was_shown or _has_arrived(commits, state)
        target = commits.folders[-1 if is_shown else 1]
        for index, (name, objects) in enumerate(state):
            after = state
            for step in _steps(objects, target.get(name, frozenset()), prunes=prunes):
                after = (*state[:index], (name, step), *state[index + 1 :])
                yield after
            if (after, is_shown) not in seen:
                seen.add((after, is_shown))
                waiting.append((after, is_shown))


def _has_arrived(commits: Commits, state: State) -> bool:
    labels = _labels(dict(state))
    return all(labels[node].get(POOL) not in (None, pool) for node, pool in commits.moved.items())


# --- Labels ------------------------------------------------------------------------------------------------------


def _labels(folders: Folders) -> Mapping[str, Mapping[str, str]]:
    return dict(zip(NODES, _run(frozenset(chain.from_iterable(folders.values()))), strict=True))


@cache
def _run(rules: Objects) -> list[Mapping[str, str]]:
    """What Node Feature Discovery's rule engine gives to each node."""
    bodies: list[Any] = [json.loads(body) for _, body in sorted(rules)]
    found = run_rules(bodies, [features(node) for node in NODES], extra_label_namespaces=("nvidia.com", "gpuplan.dev"))
    return [item.labels for item in found]


def _with_default(labels: Mapping[str, str]) -> Mapping[str, str]:
    """A port, not the operator's own: what it writes where it finds no label.

    `updateGPUStateLabels`, lines 306-317 of `controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator v26.7.0,
    for a node with GPUs that can be divided and `migManager.config.default: all-disabled`, as gpuplan sets it.
    """
    return labels if MIG in labels else {**labels, MIG: "all-disabled"}


@pytest.mark.parametrize("prunes", [True, False], ids=["pruned", "left behind"])
@pytest.mark.parametrize("move", MOVES)
def test_a_node_has_the_labels_of_one_of_its_pools_in_every_order(move: str, *, prunes: bool) -> None:
    commits = _commits(*MOVES[move])
    before, after = (_labels(folders) for folders in (commits.folders[0], commits.folders[-1]))
    states = {*_reachable(commits, prunes=prunes)}
    assert len(states) > len(commits.folders)
    for state in states:
        for node, labels in _labels(dict(state)).items():
            for label in (MIG, PLUGIN) if before[node] else ():
                assert _with_default(labels)[label] in {before[node][label], after[node][label]}, (node, state)


@pytest.mark.parametrize("move", MOVES)
def test_all_nodes_reach_their_pool(move: str) -> None:
    """Also where nothing deletes the rule of a pool that is gone."""
    commits = _commits(*MOVES[move])
    *_, last = _reachable(commits, prunes=False)
    for node, labels in _labels(dict(last)).items():
        assert labels.get(POOL) == _labels(commits.folders[-1])[node].get(POOL)


@pytest.mark.parametrize("move", MOVES)
def test_in_one_commit_some_order_leaves_a_node_without(move: str) -> None:
    commits = _commits(*MOVES[move], keeps=False)
    bare = [
        (node, held)
        for state in _reachable(commits, prunes=True)
        for node, labels in _labels(dict(state)).items()
        if PLUGIN not in (held := _with_default(labels)) and node in commits.moved
    ]
    assert bare
    assert {held[MIG] for _, held in bare} == {"all-disabled"}
