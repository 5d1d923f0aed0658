"""Nodes that are not as their pools say."""

from __future__ import annotations

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.live.drifting import Differs, Drift, NextSync, compare_with
from tests.features.live.dumps import Body, compared, dump_of, example, find, nodes

MIXED = "gpu-a100-mixed-1"


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
    find(bodies, "Node", "gpu-a100-production-1")["spec"]["taints"] = [{"key": "theirs", "effect": "NoExecute"}]

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


def test_the_label_of_a_board_that_is_shared_is_that_of_the_board() -> None:
    bodies = nodes(example("prod"))
    labels = find(bodies, "Node", MIXED)["metadata"]["labels"]
    for ending in ("-SHARED", "-MIG-1g.10gb"):
        labels["nvidia.com/gpu.product"] = f"NVIDIA-A100-SXM4-80GB{ending}"
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
