"""What looks worse than it is: files that nothing applies, layouts of another name, and pools that are not divided."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.model import Comparison
from gpuplan.features.changes.states import ClusterState, compare
from gpuplan.features.changes.step import Step
from tests.plans import CLUSTER, a_plan

POOL = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: {count}, gpusPerNode: 8, names: [{nodes}]}}
  sharing: {sharing}
  taints: [{taints}]
"""
LAYOUT = """\
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: big}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""
RETAINED = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: old}
spec:
  migLayout: {configName: x-d9c2814c, gpu: A100-80GB, instances: {3g.40gb: 2}}
  until: no node names it
"""
KEY = """\
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: key}
spec:
  devicePluginConfig: {key: x, config: {version: v1}}
  until: no node names it
"""
INLINE = "{mig: {instances: {3g.40gb: 2}}}"
NAMED = "{mig: {layout: big}}"
TAINT = "{key: example.com/gpu, effect: NoSchedule}"


def a_pool(name: str = "x", nodes: tuple[str, ...] = ("a",), sharing: str = INLINE, taints: str = "") -> str:
    return POOL.format(name=name, count=len(nodes), nodes=", ".join(nodes), sharing=sharing, taints=taints)


def a_cluster(*documents: str, mode: str = "nfd") -> Plan:
    return a_plan(f"{CLUSTER}  nodeLabels: {mode}\n{''.join(documents)}")


def compared(before: Plan, after: Plan) -> Comparison:
    return compare(*([ClusterState.of(plan, artifacts(plan))] for plan in (before, after)))


# --- The table of node groups ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "will", "worst"),
    [(TAINT, "", ChangeClass.ADMISSION), ("", TAINT, ChangeClass.TAINT)],
    ids=["goes", "comes"],
)
def test_a_table_that_nothing_applies_comes_and_goes_with_its_taints(was: str, will: str, worst: ChangeClass) -> None:
    before, after = (a_cluster(a_pool(taints=taints), mode="node") for taints in (was, will))
    found = compared(before, after)

    assert found.worst is worst
    assert found.objects == ()


@pytest.mark.parametrize(("mode", "worst"), [("node", ChangeClass.ADMISSION), ("external", ChangeClass.DESTRUCTIVE)])
def test_a_node_that_leaves_a_table_loses_labels_where_the_table_has_them(mode: str, worst: ChangeClass) -> None:
    before, after = (a_cluster(a_pool(nodes=nodes, taints=TAINT), mode=mode) for nodes in (("a", "b"), ("a",)))

    assert compared(before, after).worst is worst


def test_the_table_that_others_apply_is_judged_by_its_rows() -> None:
    before = a_cluster(a_pool(), a_pool("z", ("b",), "{exclusive: {}}"), mode="external")
    after = a_cluster(a_pool("z", ("b",), "{exclusive: {}}"), mode="external")

    assert compared(before, after).worst is ChangeClass.DESTRUCTIVE


# --- Layouts of another name -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nfd", "node", "external"])
def test_a_layout_of_another_name_divides_nothing(mode: str) -> None:
    before = a_cluster(a_pool(), mode=mode)
    found = compared(before, a_cluster(LAYOUT, RETAINED, a_pool(sharing=NAMED), mode=mode))

    assert found.worst is ChangeClass.PLUGIN_RESTART
    assert found.objects == ()


@pytest.mark.parametrize("mode", ["nfd", "node", "external"])
def test_a_layout_that_says_something_else_divides_again(mode: str) -> None:
    before = a_cluster(a_pool(), mode=mode)
    other = LAYOUT.replace("3g.40gb: 2", "1g.10gb: 7")

    assert compared(before, a_cluster(other, RETAINED, a_pool(sharing=NAMED), mode=mode)).worst is (
        ChangeClass.REPARTITION
    )


@pytest.mark.parametrize(
    ("division", "worst"),
    [("{3g.40gb: 2}", ChangeClass.ADMISSION), ("{1g.10gb: 7}", ChangeClass.REPARTITION)],
    ids=["divided alike", "divided otherwise"],
)
def test_a_node_that_goes_to_a_pool_of_the_same_division_is_not_divided_again(
    division: str, worst: ChangeClass
) -> None:
    """Its labels are somebody else's, so that none is ever absent."""
    other = f"{{mig: {{instances: {division}}}}}"
    before = a_cluster(a_pool(nodes=("a", "b")), a_pool("z", ("c",), other), mode="external")
    after = a_cluster(a_pool(nodes=("a",)), a_pool("z", ("b", "c"), other), mode="external")

    assert compared(before, after).worst is worst


# --- Pools that are not divided ----------------------------------------------------------------------------------


def removed(*kept: str, release: str = "v26.7.0") -> tuple[Plan, Plan]:
    """A pool of shares that is removed, and what is retained of it."""
    other = a_pool("z", ("b",), "{exclusive: {}}")
    sides = (a_pool(sharing="{timeSlicing: {replicas: 3}}"), other), (*kept, other)
    before, after = (a_plan(f"{CLUSTER.replace('v26.7.0', release)}{''.join(side)}") for side in sides)
    return before, after


def test_nodes_of_a_removed_pool_hand_out_whole_gpus_at_once_with_a_newer_operator() -> None:
    (change,) = (change for change in compared(*removed()).changes if change.what == "pool is removed")
    assert change.effect.endswith("before: they hand out whole GPUs, beside pods that still share some")


def test_nodes_of_a_removed_pool_hand_out_nothing_until_their_label_goes() -> None:
    before, after = removed(release="v25.10.1")

    (finding,) = (item.finding for item in run(Step(before, after)) if item.code == "GPU704")
    assert finding.notes[0].startswith(
        "the operator's sync takes their configuration away first: they hand out no GPUs"
    )
    (change,) = (change for change in compared(before, after).changes if change.what == "pool is removed")
    assert "they hand out no GPUs until the label goes" in change.effect


def test_where_the_configuration_is_retained_they_hand_out_whole_gpus_without_the_label() -> None:
    before, after = removed(KEY)

    (finding,) = (item.finding for item in run(Step(before, after)) if item.code == "GPU704")
    assert finding.notes[0] == "without it they hand out whole GPUs, beside pods that still share some"
    (change,) = (change for change in compared(before, after).changes if change.what == "pool is removed")
    assert "hand out" not in change.effect
