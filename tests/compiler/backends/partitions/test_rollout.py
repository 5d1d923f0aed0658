"""While a rollout is under way, each node of a pool gets the labels of one half."""

from __future__ import annotations

from typing import Any

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.partitions.rendered import objects, table
from tests.plans import a_plan


def a_rollout(nodes: str, moved: str, node_labels: str = "nfd") -> Plan:
    return a_plan(f"""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec: {{kubernetes: "1.34", nodeLabels: {node_labels}, gpuOperator: {{install: helm, version: v26.7.0}}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: p}}
spec:
  gpu: A100-80GB
  nodes: {{count: 3, gpusPerNode: 8, {nodes}}}
  sharing: {{timeSlicing: {{replicas: 3}}}}
  taints: [{{key: nvidia.com/gpu, value: p, effect: NoSchedule}}]
  rollout: {{sharing: {{mig: {{instances: {{1g.10gb: 7}}}}}}, nodes: {moved}}}
""")


def rules(plan: Plan) -> list[dict[str, Any]]:
    (body,) = objects(plan)
    return list(body["spec"]["rules"])


def names(rule: dict[str, Any]) -> list[Any]:
    return [term["matchExpressions"]["nodename"] for term in rule["matchFeatures"] if term["feature"] == "system.name"]


def test_one_object_has_a_rule_for_each_half() -> None:
    left, moved = rules(a_rollout("namePattern: 'n[0-9]+'", "[n2, n1]"))
    assert names(left) == [{"op": "InRegexp", "value": ["^(?:n[0-9]+)$"]}, {"op": "NotIn", "value": ["n1", "n2"]}]
    assert names(moved) == [{"op": "In", "value": ["n1", "n2"]}]
    assert [rule["name"] for rule in (left, moved)] == ["p", "p.rollout"]
    assert left["taints"] == moved["taints"] == [{"key": "nvidia.com/gpu", "value": "p", "effect": "NoSchedule"}]


def test_listed_nodes_stand_in_one_rule_each() -> None:
    left, moved = rules(a_rollout("names: [a, b, c]", "[b]"))
    assert (names(left), names(moved)) == ([{"op": "In", "value": ["a", "c"]}], [{"op": "In", "value": ["b"]}])


def test_a_half_without_nodes_has_no_rule() -> None:
    """A rule without names would match every node."""
    assert [rule["name"] for rule in rules(a_rollout("names: [a, b, c]", "[]"))] == ["p"]
    assert [rule["name"] for rule in rules(a_rollout("names: [a, b, c]", "[a, b, c]"))] == ["p.rollout"]
    assert [rule["name"] for rule in rules(a_rollout("namePattern: 'n[0-9]+'", "[]"))] == ["p"]


def test_a_pattern_without_moved_nodes_leaves_nobody_out() -> None:
    (rule,) = rules(a_rollout("namePattern: 'n[0-9]+'", "[]"))
    assert names(rule) == [{"op": "InRegexp", "value": ["^(?:n[0-9]+)$"]}]


def test_nodes_as_objects_have_the_labels_of_their_half() -> None:
    plan = a_rollout("names: [a, b, c]", "[b]", "node")
    found = {
        body["metadata"]["name"]: body["metadata"]["labels"]["nvidia.com/device-plugin.config"]
        for body in objects(plan)
    }
    assert found == {"a": "p", "b": "p.rollout", "c": "p"}


def test_the_table_has_a_row_for_each_half() -> None:
    rows = table(a_rollout("namePattern: 'n[0-9]+'", "[n1]", "external"))["nodeGroups"]
    assert [
        (row["pool"], row["nodes"], row.get("namePattern"), row.get("names"), row.get("exceptNames")) for row in rows
    ] == [("p", 2, "n[0-9]+", None, ["n1"]), ("p", 1, None, ["n1"], None)]
    assert len(table(a_rollout("namePattern: 'n[0-9]+'", "[]", "external"))["nodeGroups"]) == 1
