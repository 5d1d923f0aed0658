"""What a list of nodes makes of a step: patterns are names, and what no node names is gone in peace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.node_list import Node
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.model import Comparison
from gpuplan.features.changes.nodes import departures
from gpuplan.features.changes.orders import Hazard, bad_orders
from gpuplan.features.changes.states import ClusterState, compare
from gpuplan.features.changes.step import Step
from tests.plans import CLUSTER, a_plan

LAYOUTS = """\
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""
POOL = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: {count}, gpusPerNode: 8, {chosen}}}
  sharing: {sharing}
"""
MIG = "{mig: {layout: large}}"
FOUR = ("pool0-1", "pool0-2", "pool0-3", "pool0-4")
MODES = pytest.mark.parametrize("mode", ["nfd", "external"])


def a_pool(name: str, pattern: str, count: int, sharing: str = MIG) -> str:
    return POOL.format(name=name, count=count, chosen=f'namePattern: "{pattern}"', sharing=sharing)


def a_cluster(*pools: str, layouts: str = LAYOUTS, mode: str = "nfd") -> Plan:
    return a_plan(f"{CLUSTER}  nodeLabels: {mode}\n{layouts}{''.join(pools)}")


def listed(plan: Plan, names: Sequence[str] = FOUR) -> tuple[Node, ...]:
    """Nodes of the first pool, with its labels."""
    return tuple(Node(name, plan.pools[0].labels) for name in names)


def codes(before: Plan, after: Plan, nodes: Sequence[Node] | None) -> set[str]:
    return {item.code for item in run(Step.of(before, after, nodes=nodes))}


def compared(before: Plan, after: Plan, nodes: Sequence[Node] | None) -> Comparison:
    sides = ([ClusterState.of(plan, artifacts(plan))] for plan in (before, after))
    return compare(*sides, nodes=nodes)


# --- Patterns ----------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("pattern", ["pool0-[0-9]", "pool0-[1-9][0-9]*"])
def test_another_pattern_for_the_same_nodes_moves_none(pattern: str, mode: str) -> None:
    before, after = (a_cluster(a_pool("x", text, 4), mode=mode) for text in ("pool0-[0-9]+", pattern))
    nodes = listed(before)

    assert "GPU704" in codes(before, after, None)
    assert compared(before, after, None).worst is ChangeClass.DESTRUCTIVE
    assert codes(before, after, nodes) == set()
    found = compared(before, after, nodes)
    assert found.worst is ChangeClass.QUOTA
    assert found.objects == ()


def test_a_pattern_that_leaves_a_node_out_names_it() -> None:
    before, after = a_cluster(a_pool("x", "pool0-[0-9]+", 4)), a_cluster(a_pool("x", "pool0-[0-3]", 3))
    nodes = listed(before)

    (finding,) = (item.finding for item in run(Step.of(before, after, nodes=nodes)) if item.code == "GPU704")
    assert finding.message.startswith("1 node loses the label")
    found = compared(before, after, nodes)
    assert found.worst is ChangeClass.DESTRUCTIVE
    (left,) = (item.nodes for item in found.changes if "leaves the pool" in item.what)
    assert left is not None
    assert (left.count, left.names) == (1, ("pool0-4",))


def test_a_split_whose_parts_have_all_nodes_loses_none() -> None:
    before = a_cluster(a_pool("x", "pool0-[0-9]+", 4))
    after = a_cluster(a_pool("x", "pool0-[1-2]", 2), a_pool("z", "pool0-[3-4]", 2))
    nodes = listed(before)

    assert "GPU704" in codes(before, after, None)
    assert "GPU704" not in codes(before, after, nodes)
    (leaving,) = departures(step := Step.of(before, after, nodes=nodes), step.before.pools[0], step.after.pools[0])
    assert leaving.to is not None
    assert (leaving.to.name, leaving.nodes.names) == ("z", ("pool0-3", "pool0-4"))
    assert compared(before, after, nodes).worst is not ChangeClass.DESTRUCTIVE


def test_a_split_that_forgets_a_node_loses_it() -> None:
    before = a_cluster(a_pool("x", "pool0-[0-9]+", 4))
    after = a_cluster(a_pool("x", "pool0-[1-2]", 2), a_pool("z", "pool0-3", 1))

    assert "GPU704" in codes(before, after, listed(before))
    assert compared(before, after, listed(before)).worst is ChangeClass.DESTRUCTIVE


def test_nodes_are_counted_as_they_are_listed() -> None:
    before, after = (a_cluster(a_pool("x", "pool0-[0-9]+", 2, text)) for text in ("{exclusive: {}}", MIG))
    nodes = tuple(Node(name, before.pools[0].labels) for name in FOUR)

    (finding,) = (item.finding for item in run(Step.of(before, after, nodes=nodes)) if item.code == "GPU708")
    assert finding.message.startswith("4 nodes of pool `x` are repartitioned at once")


def test_a_pool_that_is_renamed_with_its_pattern_is_known_by_its_nodes() -> None:
    before, after = a_cluster(a_pool("x", "pool0-[0-9]+", 4)), a_cluster(a_pool("z", "pool0-[1-4]", 4))

    assert Step.of(before, after, nodes=listed(before)).renamed_pools == {"x": "z"}
    assert Step.of(before, after).renamed_pools == {}


# --- Doubt -------------------------------------------------------------------------------------------------------


def test_a_list_that_lacks_nodes_of_a_pool_proves_nothing_of_it() -> None:
    before, after = a_cluster(a_pool("x", "pool0-[0-9]+", 4)), a_cluster(a_pool("x", "pool0-[0-9]", 4))

    assert "GPU704" in codes(before, after, listed(before, FOUR[:3]))
    assert "GPU704" not in codes(before, after, listed(before))


def test_a_list_that_has_more_nodes_than_the_policies_count_is_whole() -> None:
    before, after = a_cluster(a_pool("x", "pool0-[0-9]+", 3)), a_cluster(a_pool("x", "pool0-[0-9]", 3))

    assert "GPU704" not in codes(before, after, listed(before))


def test_a_list_of_nodes_without_our_labels_proves_nothing() -> None:
    before, after = (
        a_cluster(a_pool("x", "pool0-[0-9]+", 4), layouts=LAYOUTS),
        a_cluster(a_pool("x", "pool0-[0-9]+", 4), layouts=LAYOUTS.replace("3g.40gb: 2", "1g.10gb: 7")),
    )
    bare = tuple(Node(name, {}) for name in FOUR)

    assert codes(before, after, bare) >= {"GPU700", "GPU749"}


# --- Entries -----------------------------------------------------------------------------------------------------


def edited() -> tuple[Plan, Plan]:
    pool = a_pool("x", "pool0-[0-9]+", 4)
    return a_cluster(pool), a_cluster(pool, layouts=LAYOUTS.replace("3g.40gb: 2", "1g.10gb: 7"))


def test_an_entry_that_no_node_names_goes_in_one_step() -> None:
    """The label of all nodes lags at another one."""
    before, after = edited()
    elsewhere = {**before.pools[0].labels, "nvidia.com/mig.config": "other-01234567"}
    nodes = tuple(Node(name, elsewhere) for name in FOUR)

    assert "GPU700" not in codes(before, after, nodes)
    assert {bad.hazard for bad in bad_orders(Step.of(before, after))} == {Hazard.DANGLING, Hazard.EARLY}
    assert {bad.hazard for bad in bad_orders(Step.of(before, after, nodes=nodes))} == {Hazard.EARLY}
    assert compared(before, after, None).worst is ChangeClass.TWO_STEP
    assert compared(before, after, nodes).worst is ChangeClass.REPARTITION


def test_an_entry_that_one_node_names_is_told_with_it() -> None:
    before, after = edited()
    elsewhere = {**before.pools[0].labels, "nvidia.com/mig.config": "other-01234567"}
    nodes = (*(Node(name, elsewhere) for name in FOUR[1:]), Node(FOUR[0], before.pools[0].labels))

    (finding,) = (item.finding for item in run(Step.of(before, after, nodes=nodes)) if item.code == "GPU700")
    assert finding.notes[0].startswith("`pool0-1` has the label `nvidia.com/mig.config: large-")
    found = compared(before, after, nodes)
    assert found.worst is ChangeClass.TWO_STEP
    (change,) = (change for change in found.changes if "is edited" in change.what)
    assert "vanishes while `pool0-1` still names it" in change.effect


def test_an_unused_layout_that_no_node_names_restarts_the_mig_manager_alone() -> None:
    pool = a_pool("x", "pool0-[0-9]+", 4, "{exclusive: {}}")
    before, after = a_cluster(pool), a_cluster(pool, layouts="")

    assert compared(before, after, None).worst is ChangeClass.TWO_STEP
    assert compared(before, after, listed(before)).worst is ChangeClass.PLUGIN_RESTART


RETAINED = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: old}
spec:
  migLayout: {configName: large-d9c2814c, gpu: A100-80GB, instances: {3g.40gb: 2}}
  until: no node names it
"""


def test_what_is_retained_goes_quietly_where_no_node_names_it() -> None:
    pool = a_pool("x", "pool0-[0-9]+", 4, "{exclusive: {}}")
    before, after = a_cluster(pool, layouts=RETAINED), a_cluster(pool, layouts="")
    naming = (*listed(before, FOUR[1:]), Node(FOUR[0], {"nvidia.com/mig.config": "large-d9c2814c"}))

    assert compared(before, after, listed(before)).worst is ChangeClass.PLUGIN_RESTART
    found = compared(before, after, naming)
    assert found.worst is ChangeClass.TWO_STEP
    assert any(change.effect == "it is gone while `pool0-1` still names it" for change in found.changes)


KEPT = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: kept}
spec:
  nodes:
    pool: x
    namePattern: "pool0-[0-9]+"
    labels: {gpuplan.dev/pool: x, nvidia.com/device-plugin.config: x, nvidia.com/mig.config: large-d9c2814c}
  until: no node has the label of pool x but those of pool x
"""


def test_what_nodes_keep_by_a_pattern_goes_quietly_once_each_has_another_pools_label() -> None:
    pools = a_pool("x", "pool0-[1-2]", 2), a_pool("z", "pool0-[3-4]", 2)
    before, after = a_cluster(*pools, layouts=LAYOUTS + KEPT), a_cluster(*pools)
    arrived = tuple(
        Node(name, pool.labels) for name, pool in zip(FOUR, [*before.pools[:1] * 2, *before.pools[1:] * 2], strict=True)
    )

    found = compared(before, after, arrived)
    assert found.worst is ChangeClass.ADMISSION
    assert found.objects == ()
    assert compared(before, after, (*arrived[:3], Node(FOUR[3], before.pools[0].labels))).worst is (
        ChangeClass.DESTRUCTIVE
    )
