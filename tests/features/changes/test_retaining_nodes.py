"""Nodes that go to another pool keep what they had: a document for each part of a pool that lets some go."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.retaining import keepers, leftovers
from gpuplan.features.changes.states import ClusterState, compare
from gpuplan.features.changes.step import Step
from tests.plans import CLUSTER, a_plan

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
MIG = "{mig: {layout: large}}"
SHARES = "{timeSlicing: {replicas: 4}}"
WHOLE = "{exclusive: {}}"


def a_pool(name: str, nodes: str, sharing: str = MIG, more: str = "") -> str:
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


def named(*names: str) -> str:
    return f"count: {len(names)}, names: [{', '.join(names)}]"


def platform(pools: str, way: str = "nfd") -> Plan:
    return a_plan(f"{CLUSTER}  nodeLabels: {way}\n---\n{LAYOUTS}{pools}")


def kept(old: Plan, new: Plan) -> list[dict[str, Any]]:
    specs = (yaml.safe_load(keeper.text)["spec"] for keeper in keepers(old, new))
    return [spec["nodes"] | {"until": spec["until"]} for spec in specs if "nodes" in spec]


AB_AND_C = a_pool("left", named("a", "b")) + a_pool("right", named("c"))
A_AND_BC = a_pool("left", named("a")) + a_pool("right", named("b", "c"))


def test_a_node_that_moves_keeps_the_labels_of_the_pool_that_it_leaves() -> None:
    old = platform(AB_AND_C)
    [found] = kept(old, platform(A_AND_BC))
    assert found == {
        "pool": "left",
        "names": ["b"],
        "labels": dict(old.pools[0].labels),
        "until": "`kubectl get nodes -l gpuplan.dev/pool=left` lists none of `b`",
    }


def test_of_a_pattern_all_nodes_are_kept() -> None:
    """Which of them go, only the cluster knows; a pool's own rule comes after the one that keeps them."""
    old = platform(a_pool("left", "count: 3, namePattern: 'n-[1-3]'"))
    split = a_pool("left", "count: 1, namePattern: 'n-1'") + a_pool("right", "count: 2, namePattern: 'n-[2-3]'")
    [found] = kept(old, platform(split))
    assert (found["namePattern"], "names" in found) == ("n-[1-3]", False)
    assert found["until"] == "`kubectl get nodes -l gpuplan.dev/pool=left` lists no node but those of pool `left`"


def test_each_part_of_a_rollout_keeps_what_it_had() -> None:
    rollout = "  rollout: {sharing: {mig: {layout: small}}, nodes: [b]}\n"
    old = platform(a_pool("left", named("a", "b"), more=rollout))
    found = kept(old, platform(a_pool("right", named("a", "b"))))
    assert [item["names"] for item in found] == [["a"], ["b"]]
    assert [item["labels"] for item in found] == [dict(part.labels) for part in old.parts]


def test_a_pattern_under_a_rollout_is_kept_without_the_nodes_that_it_has_moved() -> None:
    rollout = "  rollout: {sharing: {mig: {layout: small}}, nodes: [n-2]}\n"
    pattern = "count: 3, namePattern: 'n-[1-3]'"
    old, new = platform(a_pool("left", pattern, more=rollout)), platform(a_pool("right", pattern))
    found = kept(old, new)
    assert [item.get("exceptNames") for item in found] == [["n-2"], None]
    assert found[1]["names"] == ["n-2"]


@pytest.mark.parametrize("way", ["node", "external"])
def test_where_nothing_takes_labels_away_nothing_is_kept(way: str) -> None:
    old, new = platform(AB_AND_C, way), platform(A_AND_BC, way)
    assert kept(old, new) == []
    assert "GPU728" not in {found.code for found in run(Step(old, new))}


@pytest.mark.parametrize(
    ("first", "second", "is_kept"),
    [
        (MIG, MIG, True),
        (MIG, "{mig: {layout: small}}", True),
        (MIG, WHOLE, False),
        (SHARES, SHARES, True),
        (SHARES, "{timeSlicing: {replicas: 2}}", True),
        (SHARES, MIG, True),
        (SHARES, WHOLE, False),
        (WHOLE, SHARES, False),
        (WHOLE, WHOLE, False),
        (WHOLE, MIG, False),
        ("{mps: {replicas: 4}}", "{mps: {replicas: 4}}", True),
    ],
)
def test_what_is_kept_is_what_a_node_would_miss(first: str, second: str, *, is_kept: bool) -> None:
    """Without labels GPUs are whole: whoever has them whole before or afterwards can do without for a moment."""
    old = platform(a_pool("left", named("a", "b"), first) + a_pool("right", named("c"), second))
    new = platform(a_pool("left", named("a"), first) + a_pool("right", named("b", "c"), second))
    assert bool(kept(old, new)) == is_kept
    assert any(found.code == "GPU728" for found in run(Step(old, new))) == is_kept


MOVES = {
    "move": (AB_AND_C, A_AND_BC),
    "rename": (a_pool("left", named("a")), a_pool("right", named("a"))),
    "split": (a_pool("left", named("a", "b")), a_pool("left", named("a")) + a_pool("right", named("b"))),
    "merge": (AB_AND_C, a_pool("right", named("a", "b", "c"))),
    "split by a pattern": (
        a_pool("left", "count: 3, namePattern: 'n-[1-3]'"),
        a_pool("left", "count: 1, namePattern: 'n-1'") + a_pool("right", "count: 2, namePattern: 'n-[2-3]'"),
    ),
    "names in place of a pattern": (
        a_pool("left", "count: 3, namePattern: 'n-[1-3]'"),
        a_pool("left", named("n-1")) + a_pool("right", named("n-2", "n-3")),
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_with_what_is_kept_nothing_is_refused_and_nothing_more_is_missing(move: str) -> None:
    old, new = map(platform, MOVES[move])
    texts = [keeper.text for keeper in keepers(old, new)]
    step = platform("".join((MOVES[move][1], *(f"---\n{text}" for text in texts))))
    assert {found.code for found in run(Step(old, new)) if found.is_error} >= {"GPU728"}
    assert [found.code for found in run(Step(old, step)) if found.is_error] == []
    assert list(keepers(old, step)) == []
    assert [left.title for left in leftovers(old, step)] == []


def test_in_one_commit_it_takes_two_steps_and_with_what_is_kept_it_is_admission() -> None:
    old, new = platform(AB_AND_C), platform(A_AND_BC)
    texts = [f"---\n{keeper.text}" for keeper in keepers(old, new)]
    step = platform("".join((A_AND_BC, *texts)))
    states = [(ClusterState.of(plan, artifacts(plan)),) for plan in (old, new, step)]
    assert compare(states[0], states[1]).worst is ChangeClass.TWO_STEP
    assert compare(states[0], states[2]).worst is ChangeClass.ADMISSION
    assert compare(states[2], states[1]).worst is ChangeClass.ADMISSION


def test_once_it_is_committed_it_is_left_over_until_the_cluster_has_done_with_it() -> None:
    old, new = platform(AB_AND_C), platform(A_AND_BC)
    step = platform("".join((A_AND_BC, *(f"---\n{keeper.text}" for keeper in keepers(old, new)))))
    [left] = leftovers(step, step)
    assert left.until == "`kubectl get nodes -l gpuplan.dev/pool=left` lists none of `b`"


def test_what_a_rule_that_keeps_nodes_names_is_not_left_over() -> None:
    """The key of a pool that is gone stays for as long as nodes keep the label that names it."""
    old, new = map(platform, MOVES["rename"])
    step = platform("".join((MOVES["rename"][1], *(f"---\n{keeper.text}" for keeper in keepers(old, new)))))
    assert {left.title for left in leftovers(step, step)} == {"`gpuplan.dev/pool: left (a)`"}
