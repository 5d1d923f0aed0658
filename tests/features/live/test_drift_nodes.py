"""Nodes that are not as their pools say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.live.drifting import Differs, Drift, NextSync, compare_with
from gpuplan.features.live.drifting.nodes import home_of
from tests.features.live.dumps import Body, compared, dump_of, example, find, nodes
from tests.plans import a_plan

MIXED = "gpu-a100-mixed-1"
SHARED = "gpu-a100-shared-1"
A100 = "NVIDIA-A100-SXM4-80GB"


def drifts(bodies: list[Body]) -> tuple[Drift, ...]:
    return compared(bodies).drifts


def one(bodies: list[Body]) -> Drift:
    [found] = drifts(bodies)
    assert found.differs is Differs.NODE
    return found


def lines(found: Drift) -> set[str]:
    return {f"{source.title} {source.path}" for source in found.sources}


def test_nodes_as_planned_do_not_differ() -> None:
    for cluster in ("dev", "openshift", "prod"):
        assert compared(nodes(example(cluster)), cluster).drifts == ()


def test_a_layout_that_somebody_chose_by_hand() -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["metadata"]["labels"]["nvidia.com/mig.config"] = "all-1g.10gb"

    found = one(bodies)

    assert (found.title, found.live, found.written) == (f"Node {MIXED}", "all-1g.10gb", "one-large-two-medium-5f9ccffc")
    assert "Pool a100-mixed spec.sharing.mig.layout" in lines(found)
    assert found.change_class is ChangeClass.REPARTITION
    assert found.next_sync is NextSync.RELABELS
    assert found.note == "no entry of the MIG manager's file is called so"


def test_a_label_that_is_gone() -> None:
    bodies = nodes(example("prod"))
    del find(bodies, "Node", MIXED)["metadata"]["labels"]["nvidia.com/device-plugin.config"]

    found = one(bodies)

    assert found.path == 'metadata.labels["nvidia.com/device-plugin.config"]'
    assert not found.has_live


def test_a_taint_that_is_gone() -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", "gpu-a100-production-1")["spec"]["taints"] = [{"key": "theirs", "effect": "PreferNoSchedule"}]

    found = one(bodies)

    assert (found.path, found.written) == ("spec.taints", "nvidia.com/gpu=a100-production:NoSchedule")
    assert "Pool a100-production spec.taints[0]" in lines(found)
    assert found.change_class is ChangeClass.TAINT


def test_a_taint_with_another_value() -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", "gpu-a100-production-1")["spec"]["taints"][0]["value"] = "x"

    assert (one(bodies).path, one(bodies).live) == ("spec.taints[0].value", "x")


def test_another_board() -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H200"

    found = one(bodies)

    assert (found.live, found.note) == ("NVIDIA-H200", "the board is no A100-80GB")
    assert lines(found) == {"Pool a100-mixed spec.gpu"}


@pytest.mark.parametrize(
    ("node", "key", "value", "written"),
    [
        (MIXED, "nvidia.com/gpu.product", f"{A100}-SHARED", A100),
        (MIXED, "nvidia.com/gpu.product", f"{A100}-MIG-1g.10gb", A100),
        (MIXED, "nvidia.com/gpu.replicas", "4", "1"),
        (MIXED, "nvidia.com/mig-3g.40gb.replicas", "2", "1"),
        (SHARED, "nvidia.com/gpu.replicas", "1", "3"),
        (SHARED, "nvidia.com/gpu.sharing-strategy", "mps", "time-slicing"),
        (SHARED, "nvidia.com/gpu.product", f"{A100}-SHARED", A100),
    ],
)
def test_labels_tell_how_gpus_are_shared_and_divided(node: str, key: str, value: str, written: str) -> None:
    bodies = nodes(example("prod"))
    labels = find(bodies, "Node", node)["metadata"]["labels"]
    labels[key] = value

    found = one(bodies)

    assert (found.path, found.live, found.written) == (f'metadata.labels["{key}"]', value, written)
    assert any(line.endswith("spec.sharing") or "spec.sharing." in line for line in lines(found))
    assert found.note == "the device plugin shares or divides the GPUs otherwise"
    del labels[key]  # as before feature discovery runs
    assert drifts(bodies) == ()


@pytest.mark.parametrize("value", ["0", "1"])
def test_what_is_not_shared_has_one_replica_or_none(value: str) -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["metadata"]["labels"]["nvidia.com/gpu.replicas"] = value

    assert drifts(bodies) == ()


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_pods_of_the_pool_do_not_tolerate(effect: str) -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["spec"]["taints"].append({"key": "theirs", "value": "x", "effect": effect})

    found = one(bodies)

    assert (found.path, found.live, found.is_written) == ("spec.taints", f"theirs=x:{effect}", False)
    assert found.note == "pods of pool `a100-mixed` do not tolerate it"
    assert found.next_sync is NextSync.NOTHING


@pytest.mark.parametrize(
    "taint",
    [
        {"key": "theirs", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ],
)
def test_taints_that_pass_or_keep_nobody_off(taint: dict[str, str]) -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["spec"]["taints"].append(taint)

    assert drifts(bodies) == ()


def test_pods_tolerate_the_taint_of_gke_itself() -> None:
    plan = example("prod")
    plan = replace(plan, pools=tuple(pool._replace(taints=()) for pool in plan.pools))
    bodies = nodes(plan)
    node = find(bodies, "Node", MIXED)
    node["spec"]["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]

    assert [found.path for found in compare_with(plan, dump_of(bodies)).drifts] == ["spec.taints"]
    node["metadata"]["labels"]["cloud.google.com/gke-accelerator"] = "nvidia-tesla-a100"
    assert compare_with(plan, dump_of(bodies)).drifts == ()


@pytest.mark.parametrize("operand", ["device-plugin", "operands", "gpu-feature-discovery", "mig-manager", "driver"])
def test_an_operand_that_a_label_switches_off(operand: str) -> None:
    bodies = nodes(example("prod"))
    labels = find(bodies, "Node", MIXED)["metadata"]["labels"]
    labels[f"nvidia.com/gpu.deploy.{operand}"] = "false"

    found = one(bodies)

    assert (found.path, found.live) == (f'metadata.labels["nvidia.com/gpu.deploy.{operand}"]', "false")
    assert found.note
    labels[f"nvidia.com/gpu.deploy.{operand}"] = "paused-for-mig-change"
    assert drifts(bodies) == ()


def test_an_operand_that_the_pool_does_not_need() -> None:
    bodies = nodes(example("prod"))
    find(bodies, "Node", MIXED)["metadata"]["labels"]["nvidia.com/gpu.deploy.sandbox-device-plugin"] = "false"

    assert drifts(bodies) == ()


def test_a_node_that_was_not_divided() -> None:
    bodies = nodes(example("prod"))
    labels = find(bodies, "Node", MIXED)["metadata"]["labels"]
    labels["nvidia.com/mig.config.state"] = "failed"

    found = one(bodies)

    assert (found.written, found.live) == ("success", "failed")
    assert "does not try again" in found.note
    labels["nvidia.com/mig.config.state"] = "success"
    assert drifts(bodies) == ()


def test_fewer_units_than_planned() -> None:
    bodies = nodes(example("prod"))
    allocatable = find(bodies, "Node", MIXED)["status"]["allocatable"]
    allocatable["nvidia.com/mig-3g.40gb"] = "7"

    found = one(bodies)

    assert (found.path, found.written, found.live) == ('status.allocatable["nvidia.com/mig-3g.40gb"]', 8, "7")
    assert "Pool a100-mixed spec.sharing" in lines(found)


def test_units_of_another_layout() -> None:
    bodies = nodes(example("prod"))
    status = find(bodies, "Node", MIXED)["status"]
    for field in ("capacity", "allocatable"):
        status[field]["nvidia.com/mig-7g.80gb"] = "8"

    found = one(bodies)

    assert (found.path, found.is_written, found.live) == ('status.capacity["nvidia.com/mig-7g.80gb"]', False, "8")


def test_a_node_of_a_pool_that_there_is_not() -> None:
    bodies = nodes(example("prod"))
    stray = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "labels": {"gpuplan.dev/pool": "gone"}}}

    assert one([*bodies, stray]).note == "there is no pool `gone`"


def test_a_node_of_nobody_is_not_told() -> None:
    other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu-1", "labels": {"a": "b"}}}

    assert drifts([*nodes(example("prod")), other]) == ()


def test_fewer_nodes_than_a_pool_counts() -> None:
    bodies = [body for body in nodes(example("prod")) if body["metadata"]["name"] != MIXED]

    found = one(bodies)

    assert (found.title, found.written, found.live) == ("Pool a100-mixed", 2, 1)
    assert "Pool a100-mixed spec.nodes.count" in lines(found)


def test_one_node_alone_is_no_list_of_all() -> None:
    body = find(nodes(example("prod")), "Node", MIXED)

    assert compare_with(example("prod"), dump_of([body], alone=True)).drifts == ()


BY_BOARD = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: boards}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, matchBoards: true}
  sharing: {timeSlicing: {replicas: 2, rename: false}}
"""


@pytest.mark.parametrize(
    ("product", "home"),
    [(A100, "boards"), (f"{A100}-SHARED", "boards"), (f"{A100}-MIG-1g.10gb", "boards"), ("Tesla-T4", None)],
)
def test_a_node_is_in_a_pool_by_its_board_however_that_is_shared(product: str, home: str | None) -> None:
    metadata = {"name": "any", "labels": {"nvidia.com/gpu.product": product}}
    [node] = dump_of([{"apiVersion": "v1", "kind": "Node", "metadata": metadata}]).objects

    pool = home_of(a_plan(BY_BOARD), node)

    assert (pool and pool.name) == home
