"""What is left while nodes or single GPUs are away, by nodes that policies name, match or only count."""

from __future__ import annotations

import pytest

from gpuplan.cli.views.outages import outage_page
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.outages import find_away, levels
from gpuplan.compiler.planning.plan import Plan
from gpuplan.terminal.text import PLAIN
from tests.plans import a_plan

PLAN = a_plan("""
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: named}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4, names: [n1, n2]}
  sharing: {mig: {layout: uneven}}
  fallback: counted
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: counted}
spec:
  gpu: A100-80GB
  nodes: {count: 3, gpusPerNode: 8}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: moving}
spec:
  gpu: H100-80GB
  nodes: {count: 4, gpusPerNode: 8, namePattern: 'h[0-9]'}
  sharing: {timeSlicing: {replicas: 2}}
  rollout: {sharing: {mig: {instances: {1g.10gb: 7}}}, nodes: [h1]}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: uneven}
spec:
  gpu: A100-80GB
  devices:
  - {gpus: [0], instances: {3g.40gb: 2}}
  - {gpus: [1, 2, 3], instances: {1g.10gb: 7}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: t}
spec:
  namespaces: [t]
  quotas:
  - {pool: named, unit: 3g.40gb, guaranteed: 3}
  - {pool: named, unit: 1g.10gb, guaranteed: 21}
""")


def left(*asked: str, plan: Plan = PLAN) -> dict[str, tuple[int, object]]:
    """Unit by unit: what is left, and how much more is guaranteed."""
    ((found, aways),) = find_away([plan], asked)
    return {f"{level.pool.name} {level.unit}": (level.left, level.short) for level in levels(found, aways)}


def test_a_node_that_is_away_takes_all_of_its_units() -> None:
    assert left("n1") == {"named 1g.10gb": (21, 0), "named 3g.40gb": (2, 1)}


def test_a_gpu_takes_what_the_layout_gives_to_its_index() -> None:
    assert left("n2:0") == {"named 1g.10gb": (42, 0), "named 3g.40gb": (2, 1)}
    assert left("n2:1") == {"named 1g.10gb": (35, 0), "named 3g.40gb": (4, 0)}


def test_gpus_of_one_node_add_up_and_count_once() -> None:
    assert left("n1:1", "n1:1", "n1:2") == {"named 1g.10gb": (28, 0), "named 3g.40gb": (4, 0)}
    assert left("n1:1", "n1") == left("n1")


def test_a_pools_name_stands_for_another_node_each_time() -> None:
    assert left("counted") == {"counted gpu": (16, 0)}
    assert left("counted", "counted") == {"counted gpu": (8, 0)}


def test_a_node_that_a_rollout_has_moved_takes_its_new_units() -> None:
    assert left("h1") == {"moving shared": (48, 0), "moving 1g.10gb": (0, 0)}
    assert left("h2") == {"moving shared": (32, 0), "moving 1g.10gb": (56, 0)}


@pytest.mark.parametrize(
    ("asked", "message", "help_"),
    [
        ("countd", "no pool has a node `countd`", "did you mean `counted`?"),
        ("somewhere", "no pool has a node `somewhere`", "write a node's name"),
        ("n1:4", "`n1:4` is no GPU of the node", "its GPUs are 0 to 3"),
        ("n1:-1", "`n1:-1` is no GPU of the node", "its GPUs are 0 to 3"),
        ("n1:", "`n1:` is no GPU of the node", "its GPUs are 0 to 3"),
    ],
)
def test_what_is_no_node_or_gpu_is_refused(asked: str, message: str, help_: str) -> None:
    with pytest.raises(GpuplanError) as refused:
        left(asked)
    assert str(refused.value) == message
    assert (refused.value.hint).startswith(help_)


def test_no_more_nodes_can_be_away_than_a_pool_counts() -> None:
    with pytest.raises(GpuplanError, match="pool `counted` counts 3 such nodes, and 4 would be away"):
        left(*["counted"] * 4)


def test_only_clusters_that_have_the_node_are_told_of() -> None:
    other = a_plan("""
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {name: other}
        spec:
          gpu: A100-80GB
          nodes: {count: 1, gpusPerNode: 8, names: [n9]}
          sharing: {exclusive: {}}
    """)
    assert [plan for plan, _ in find_away([other, PLAN], ["n1"])] == [PLAN]


def test_the_page_says_who_is_not_given_what_and_what_to_type() -> None:
    ((plan, aways),) = find_away([PLAN], ["n1"])
    page = outage_page(plan, aways, PLAIN)
    assert "3g.40gb of pool named: 2 left of `t` 3 guaranteed" in page
    assert "workloads of pool named may go to its fallback, pool counted" in page
    assert "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data" in page
    assert "={.status.allocatable" not in page
    assert "}'=21 node/n1" in page
    assert "write `nodes.count: 1` in pool named, and take n1 out of `nodes.names`" in page
    assert "lower guarantees on 3g.40gb of pool named by 1" in page


def test_for_good_a_gpu_takes_its_node_with_it() -> None:
    """Nodes of a pool are equal: one with a GPU less is none of them."""
    ((plan, aways),) = find_away([PLAN], ["n2:1"])
    page = outage_page(plan, aways, PLAIN)
    assert "all of them hold" in page
    assert "lower guarantees on 3g.40gb of pool named by 1" in page


def test_what_is_made_on_demand_is_counted_as_far_as_it_is_certain() -> None:
    """Of the four GPUs that are left two `1g.10gb` may keep both halves off one; eight halves are all four of them."""
    plan = a_plan("""
    apiVersion: gpuplan.dev/v1
    kind: Pool
    metadata: {name: parts}
    spec:
      gpu: H100-80GB
      nodes: {count: 2, gpusPerNode: 4, names: [n1, n2]}
      sharing: {dynamicMig: {profiles: [1g.10gb, 3g.40gb]}}
      allocation: dra
    ---
    apiVersion: gpuplan.dev/v1
    kind: Tenant
    metadata: {name: lab}
    spec:
      namespaces: [lab]
      quotas: [{pool: parts, unit: 1g.10gb, guaranteed: 2}, {pool: parts, unit: 3g.40gb, guaranteed: 8}]
    """)
    [(_, aways)] = find_away([plan], ["n1"])
    found = [(level.unit, level.capacity, level.left, level.short) for level in levels(plan, aways)]
    assert found == [("1g.10gb", 24, 0, 2), ("3g.40gb", 14, 6, 2)]
