"""What nodes hand out while a step has arrived by half, and which moves of nodes hang on an order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.meanwhile import halves, may_labels_come_first, published
from gpuplan.features.changes.nodes import Transition, impact
from gpuplan.features.changes.states import ClusterState, compare
from gpuplan.features.changes.step import Step
from tests.plans import a_plan

LAYOUTS = """
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: half}
spec: {gpu: A100-80GB, devices: [{gpus: [0, 1, 2, 3], instances: {1g.10gb: 7}}, {gpus: [4, 5, 6, 7], enabled: false}]}
"""
POOL = """
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: {count}, gpusPerNode: 8, names: [{nodes}]}}
  sharing: {sharing}
"""
SHARINGS = (
    "{exclusive: {}}",
    "{timeSlicing: {replicas: 3}}",
    "{timeSlicing: {replicas: 3, rename: false}}",
    "{mps: {replicas: 4}}",
    "{mig: {layout: large}}",
    "{mig: {layout: half}}",
    "{mig: {layout: large, strategy: single}}",
    "{mig: {layout: large, timeSlicing: {replicas: 2}}}",
    "{mig: {layout: half, timeSlicing: {replicas: 2}}}",
)


def a_pool(sharing: str, name: str = "p", nodes: tuple[str, ...] = ("n1",)) -> str:
    return POOL.format(name=name, count=len(nodes), nodes=", ".join(nodes), sharing=sharing)


def a_state(sharing: str) -> Plan:
    return a_plan(LAYOUTS + a_pool(sharing))


def between(old: str, new: str) -> tuple[str | None, str | None]:
    before, after = a_state(old), a_state(new)
    moved = Transition(before.pools[0], after.pools[0], impact(before.pools[0].nodes))
    found = halves(Step(before, after), moved)
    return found.files_first and str(found.files_first), found.labels_first and str(found.labels_first)


# --- Which half comes first --------------------------------------------------------------------------------------

CLUSTER = """
---
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v26.7.0}}
  argocd: {{repoURL: "https://git.example.com/gpu.git", {argocd}}}
"""


def a_synced(argocd: str = "", disruption: str = "approval: automatic") -> Plan:
    return a_plan(CLUSTER.format(argocd=argocd) + a_pool("{exclusive: {}}") + f"  disruption: {{{disruption}}}")


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        (a_synced(), a_synced(), True),
        (a_synced("root: true"), a_synced("root: true"), False),
        # The one side's Applications are there while the other's are not yet.
        (a_synced(), a_synced("root: true"), True),
        (a_synced("root: true"), a_synced(), True),
        (a_synced("root: true, operatorApproval: manual"), a_synced("root: true, operatorApproval: manual"), True),
        (a_synced(disruption="approval: manual"), a_synced(disruption="approval: manual"), False),
    ],
)
def test_a_root_orders_labels_after_files_when_there_is_one_on_both_sides(before: Plan, after: Plan, may: bool) -> None:
    assert may_labels_come_first(Step(before, after), "p") is may


def test_a_root_does_not_order_what_waits_for_a_window() -> None:
    plan = a_synced("root: true", "approval: automatic, windows: [{schedule: 0 2 * * 6, duration: 4h}]")
    assert may_labels_come_first(Step(plan, plan), "p")


@pytest.mark.parametrize(("argocd", "codes"), [("", {"GPU738"}), ("root: true", set())])
def test_under_a_root_no_label_names_an_entry_that_is_not_there_yet(argocd: str, codes: set[str]) -> None:
    """A pool goes to a layout that is new as well."""
    new = LAYOUTS.replace("name: large", "name: new").replace("3g.40gb: 2", "2g.20gb: 3").partition("---")[0]
    cluster, automatic = CLUSTER.format(argocd=argocd), "  disruption: {approval: automatic}"
    before = a_plan(f"{cluster}---{LAYOUTS}{a_pool('{mig: {layout: large}}')}{automatic}")
    after = a_plan(f"{cluster}---{LAYOUTS}---{new}{a_pool('{mig: {layout: new}}')}{automatic}")
    found = {item.code for item in run(Step(before, after))}
    assert found & {"GPU738", "GPU729"} == codes


# --- Published ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", SHARINGS)
def test_nodes_at_rest_publish_what_the_plan_counts(sharing: str) -> None:
    """From a state to itself there is nothing in between."""
    plan = a_state(sharing)
    (pool,) = plan.pools
    found = published(plan, pool, pool)
    assert found is not None
    counted: Counter[str] = Counter()
    for (resource, _), number in found.units.items():
        counted[resource] += number
    assert counted == {unit.resource: unit.per_node for unit in pool.units}
    assert between(sharing, sharing) == (None, None)


WHOLE_IN_MIG_MODE = "(GPUs in MIG mode as if they were whole)"


@pytest.mark.parametrize(
    ("old", "new", "files_first", "labels_first"),
    [
        # A new file on old partitions, and an old file on new ones.
        (
            "{timeSlicing: {replicas: 3}}",
            "{mig: {layout: large}}",
            "8 `nvidia.com/gpu`",
            f"24 `nvidia.com/gpu.shared` {WHOLE_IN_MIG_MODE}",
        ),
        (
            "{mig: {layout: large}}",
            "{timeSlicing: {replicas: 3}}",
            f"24 `nvidia.com/gpu.shared` {WHOLE_IN_MIG_MODE}",
            "8 `nvidia.com/gpu`",
        ),
        ("{mig: {layout: large}}", "{exclusive: {}}", f"8 `nvidia.com/gpu` {WHOLE_IN_MIG_MODE}", None),
        ("{exclusive: {}}", "{mig: {layout: large}}", None, f"8 `nvidia.com/gpu` {WHOLE_IN_MIG_MODE}"),
        ("{mig: {layout: large}}", "{mig: {layout: half}}", None, None),
        ("{mig: {layout: large}}", "{mig: {layout: large, strategy: single}}", None, None),
        (
            "{mig: {layout: large, timeSlicing: {replicas: 2}}}",
            "{mig: {layout: half, timeSlicing: {replicas: 2}}}",
            "16 `nvidia.com/mig-3g.40gb`",
            None,
        ),
        ("{timeSlicing: {replicas: 3}}", "{timeSlicing: {replicas: 4}}", None, None),
        ("{timeSlicing: {replicas: 3}}", "{mps: {replicas: 4}}", None, None),
    ],
)
def test_what_is_published_in_between(old: str, new: str, files_first: str | None, labels_first: str | None) -> None:
    found = between(old, new)
    assert found[0] == files_first
    if labels_first is not None:
        assert found[1] == labels_first


# --- From one pool to another ------------------------------------------------------------------------------------

NODES = ("n1", "n2", "n3", "n4")
KINDS = {"a": "{mig: {layout: large}}", "b": "{mig: {layout: large}}", "c": "{exclusive: {}}"}
_HOMES = st.lists(st.sampled_from(sorted(KINDS)), min_size=len(NODES), max_size=len(NODES))


def a_platform(homes: list[str]) -> Plan:
    pools = {name: tuple(node for node, home in zip(NODES, homes, strict=True) if home == name) for name in KINDS}
    return a_plan(LAYOUTS + "".join(a_pool(KINDS[name], name, nodes) for name, nodes in pools.items() if nodes))


@settings(max_examples=60)
@given(_HOMES, _HOMES)
def test_partitions_that_hang_on_an_order_are_never_a_small_matter(old: list[str], new: list[str]) -> None:
    before, after = a_platform(old), a_platform(new)
    hangs = any({one, other} == {"a", "b"} for one, other in zip(old, new, strict=True))
    found = [item for item in run(Step(before, after)) if item.code == "GPU728"]
    assert bool(found) == hangs
    assert all(item.is_error for item in found)
    if hangs:
        states = (ClusterState.of(plan, artifacts(plan)) for plan in (before, after))
        assert compare(*((state,) for state in states)).worst.rank >= ChangeClass.TWO_STEP.rank


@pytest.mark.parametrize(
    ("nodes", "change_class"),
    [
        (("n2",), ChangeClass.ADMISSION),  # all of them are another pool's, which tells of them
        (("n2", "n3"), ChangeClass.REPARTITION),  # nobody knows what n3 was
    ],
)
def test_a_pool_that_is_added_tells_of_nodes_that_no_pool_had(
    nodes: tuple[str, ...], change_class: ChangeClass
) -> None:
    sharing = "{mig: {layout: large}}"
    before = a_plan(LAYOUTS + a_pool(sharing, "p", ("n1", "n2")))
    after = a_plan(LAYOUTS + a_pool(sharing, "p") + a_pool(sharing, "q", nodes))
    found = compare(*([ClusterState.of(plan, artifacts(plan))] for plan in (before, after)))
    assert {item.change_class for item in found.changes if item.what == "pool is added"} == {change_class}
