"""A pool between two ways of sharing: its parts, and what both hand out together."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.grants import refuses_more_than_one
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.compiler.planning.pools import is_alike
from tests.plans import a_plan, resolve_text

NODES = "{count: 3, gpusPerNode: 8, namePattern: 'node-[0-9]+'}"
TENANT = """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: t}
spec:
  namespaces: [t]
  quotas: [{pool: p, guaranteed: 4}]
"""


def a_rollout(sharing: str, target: str, moved: str = "[node-1]", nodes: str = NODES, more: str = "") -> Plan:
    return a_plan(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: p}\n"
        f"spec:\n  gpu: A100-80GB\n  nodes: {nodes}\n  sharing: {{{sharing}}}\n"
        f"  rollout: {{sharing: {{{target}}}, nodes: {moved}}}\n{more}"
    )


def a_pool(sharing: str, target: str, moved: str = "[node-1]", nodes: str = NODES) -> Pool:
    (pool,) = a_rollout(sharing, target, moved, nodes).pools
    return pool


SHARED, LARGE = "timeSlicing: {replicas: 3}", "mig: {instances: {3g.40gb: 2}}"
MIXED = "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}"


def test_both_halves_hand_out_their_units() -> None:
    pool = a_pool(SHARED, LARGE)
    assert [(unit.name, unit.per_node, unit.capacity) for unit in pool.units] == [
        ("shared", 24, 48),
        ("3g.40gb", 16, 16),
    ]


def test_a_unit_of_both_is_counted_by_nodes_and_is_the_most_that_a_node_has() -> None:
    pool = a_pool(LARGE, MIXED)
    unit = pool.find_unit("3g.40gb")
    assert unit is not None
    assert (unit.per_gpu[0], unit.per_node, unit.capacity) == (2, 16, 2 * 16 + 8)


def test_each_half_has_its_nodes_and_labels() -> None:
    left, moved = a_pool(SHARED, LARGE).parts
    assert (left.nodes.count, left.nodes.name_pattern, left.nodes.moved) == (2, "node-[0-9]+", ("node-1",))
    assert (moved.nodes.count, moved.nodes.name_pattern, moved.nodes.names) == (1, None, ("node-1",))
    assert left.labels["nvidia.com/mig.config"] == "all-disabled"
    assert moved.labels["nvidia.com/mig.config"].startswith("p-")
    assert left.labels["nvidia.com/device-plugin.config"] == "p"
    assert moved.labels["nvidia.com/device-plugin.config"] == "p.rollout"
    assert left.labels["gpuplan.dev/pool"] == moved.labels["gpuplan.dev/pool"] == "p"


def test_listed_nodes_are_divided_by_their_names() -> None:
    left, moved = a_pool(SHARED, LARGE, "[b]", "{count: 3, gpusPerNode: 8, names: [a, b, c]}").parts
    assert (left.nodes.names, moved.nodes.names) == (("a", "c"), ("b",))


def test_two_layouts_have_one_configuration_of_the_device_plugin() -> None:
    left, moved = a_pool(LARGE, MIXED).parts
    assert left.labels["nvidia.com/device-plugin.config"] == moved.labels["nvidia.com/device-plugin.config"] == "p"
    assert left.labels["nvidia.com/mig.config"] != moved.labels["nvidia.com/mig.config"]


@pytest.mark.parametrize(("moved", "shared", "large"), [("[]", 72, 0), ("[node-1, node-2, node-3]", 0, 48)])
def test_either_half_may_be_empty(moved: str, shared: int, large: int) -> None:
    pool = a_pool(SHARED, LARGE, moved)
    assert [(unit.name, unit.capacity) for unit in pool.units] == [("shared", shared), ("3g.40gb", large)]


def test_who_names_no_unit_means_that_of_the_pools_own_sharing() -> None:
    plan = a_rollout(SHARED, LARGE, more=TENANT)
    (quota,) = plan.tenants[0].quotas
    assert (quota.unit.name, quota.unit.capacity) == ("shared", 48)
    assert [(total.unit.name, total.guaranteed) for total in plan.totals] == [("shared", 4), ("3g.40gb", 0)]


def test_what_a_share_refuses_a_partition_does_not() -> None:
    pool = a_pool(SHARED, LARGE)
    assert [refuses_more_than_one(pool, unit) for unit in pool.units] == [True, False]


def test_layouts_of_both_halves_are_known() -> None:
    assert len(a_rollout(LARGE, MIXED).mig_layouts) == 2


def test_a_rollout_to_an_unknown_layout_is_no_pool() -> None:
    plan, found = resolve_text(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: p}\n"
        f"spec:\n  gpu: A100-80GB\n  nodes: {NODES}\n  sharing: {{{SHARED}}}\n"
        "  rollout: {sharing: {mig: {layout: none}}, nodes: []}\n"
    )
    assert plan is not None
    assert plan.pools == ()
    assert [item.finding.message for item in found] == ["unknown MigLayout `none`"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("exclusive: {}", "exclusive: {}", True),
        ("exclusive: {}", "fraction: {}", False),
        (SHARED, "timeSlicing: {replicas: 3, rename: true}", True),
        (SHARED, "timeSlicing: {replicas: 3, rename: false}", False),
        (SHARED, "mps: {replicas: 3}", False),
        (LARGE, LARGE, True),
        (LARGE, MIXED, False),
        (LARGE, "mig: {instances: {3g.40gb: 2}, strategy: single}", False),
        (LARGE, "mig: {instances: {3g.40gb: 2}, timeSlicing: {replicas: 2}}", False),
    ],
)
def test_alike_is_what_leaves_a_node_the_same(one: str, other: str, alike: bool) -> None:
    left, moved = a_pool(one, other).parts
    assert is_alike(left.sharing, moved.sharing) == alike
