"""With `nodeLabels: node`, a partial Node labels each named node."""

from __future__ import annotations

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.partitions.rendered import objects, table
from tests.plans import a_plan

POOL = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  nodeLabels: node
  gpuOperator: {install: helm, version: v26.7.0}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: L4-24GB
  nodes: {count: 2, gpusPerNode: 1, names: [gpu-b, gpu-a]}
  sharing: {timeSlicing: {replicas: 2}}
"""
TAINTS = "  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]\n"


def a_node_plan(more: str = "") -> Plan:
    return a_plan(POOL + more)


def test_each_node_gets_its_labels() -> None:
    assert [body["metadata"]["name"] for body in objects(a_node_plan())] == ["gpu-a", "gpu-b"]
    body = objects(a_node_plan())[0]
    assert (body["apiVersion"], body["kind"]) == ("v1", "Node")
    assert body["metadata"]["labels"] == {"gpuplan.dev/pool": "shared", "nvidia.com/device-plugin.config": "shared"}


def test_a_node_object_has_no_spec_and_so_owns_no_taints() -> None:
    assert all("spec" not in body for body in objects(a_node_plan(TAINTS)))


def test_taints_are_in_a_table_for_whoever_registers_the_nodes() -> None:
    assert table(a_node_plan(TAINTS))["nodeGroups"][0]["taints"] == [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    assert table(a_node_plan()) is None
