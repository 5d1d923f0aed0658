"""What is taken for a list of nodes, and what is told of what is none."""

from __future__ import annotations

import json

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.documents.listed import is_list_of_objects
from gpuplan.compiler.planning.node_list import Node, NodeTaint, read_nodes

YAML = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    labels:
      gpuplan.dev/pool: large
      nvidia.com/gpu.count: "8"
    name: gpu-2
  spec:
    taints:
    - effect: NoSchedule
      key: nvidia.com/gpu
- apiVersion: v1
  kind: Node
  metadata:
    name: gpu-10
kind: List
metadata:
  resourceVersion: ""
"""
A_NODE = {"kind": "Node", "metadata": {"name": "gpu-2"}}


def test_yaml_of_kubectl_gives_names_labels_and_taints() -> None:
    assert read_nodes(YAML) == (
        Node("gpu-10", {}),
        Node(
            "gpu-2",
            {"gpuplan.dev/pool": "large", "nvidia.com/gpu.count": "8"},
            (NodeTaint("nvidia.com/gpu", "", "NoSchedule"),),
        ),
    )


@pytest.mark.parametrize(
    "body",
    [
        A_NODE,
        {"kind": "List", "items": [A_NODE]},
        {"items": [A_NODE]},
        {"kind": "List", "items": [{"kind": "List", "items": [A_NODE]}, {"kind": "Secret", "data": {"a": "b"}}]},
        {"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "notebook-0"}}, A_NODE]},
        {"kind": "NodeList", "items": [{"metadata": {"name": "gpu-2"}}]},  # as `kubectl get --raw` prints it
    ],
    ids=["one node", "a list", "of jq", "lists in one", "pods beside nodes", "from the API"],
)
def test_json_of_kubectl_is_read_whatever_was_asked_for(body: object) -> None:
    assert [node.name for node in read_nodes(json.dumps(body))] == ["gpu-2"]


def test_lists_behind_one_another_are_one() -> None:
    json_ = json.dumps({"kind": "List", "items": [A_NODE]})

    assert read_nodes(json_ + "\n" + json_) == read_nodes(json_)
    assert [node.name for node in read_nodes(f"kind: Pod\n---\n{YAML}\n---\n{YAML}")] == ["gpu-10", "gpu-2"]


def test_a_list_of_no_node_is_a_list() -> None:
    assert read_nodes('{"kind": "List", "items": []}') == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("NAME    STATUS   ROLES\ngpu-2   Ready    <none>\n", "a table or names alone show no labels"),
        ("node/gpu-2\n", "a table or names alone show no labels"),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "it lists Pod, and no Node"),
        ('{"items": [{"kind": "Node", "meta', "it is not JSON: "),
        (YAML[: YAML.index("kind: List")], "it has no `kind` beside `items`, as one that was cut off"),
        (YAML[: YAML.index('"8') + 2], "is no YAML: "),
        (YAML.replace("kind: Node", "kind: Pod"), "it lists Pod, and no Node"),
        (YAML + "---\n- kind: Node\n", "it is no object and no list of objects"),
        (YAML.replace('"8"', "8"), "labels of node `gpu-2` are no texts"),
        (YAML.replace("name: gpu-10", "name: gpu-2"), "it lists node `gpu-2` twice, as two lists in one do"),
        (YAML.replace("name: gpu-10", "name: GPU 10"), "a node in it has no name that a node can have"),
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "a table or names alone show no labels"),
        ("[1, 2]", "it is no object and no list of objects"),
    ],
)
def test_what_is_no_list_of_nodes_is_trouble_that_says_what_to_pass(text: str, why: str) -> None:
    with pytest.raises(GpuplanError) as trouble:
        read_nodes(text, "nodes.yaml")

    assert trouble.value.message.startswith("`nodes.yaml` is no list of nodes: ")
    assert why in trouble.value.message
    assert trouble.value.hint == "write it with `kubectl get nodes -o json`"


def test_aliases_that_stand_for_more_than_a_list_can_hold_are_trouble() -> None:
    levels = ["items:", "- &l0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"- &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 9)]
    with pytest.raises(GpuplanError, match="aliases stand for more than 10,000 values"):
        read_nodes("\n".join([*levels, "kind: List"]))


def test_yaml_that_is_too_large_is_asked_for_as_json() -> None:
    with pytest.raises(GpuplanError, match="as YAML it may have 8 MiB") as trouble:
        read_nodes(YAML + "#" * 2**23)

    assert trouble.value.hint == "pass JSON: `kubectl get nodes -o json`"


@pytest.mark.parametrize(
    ("text", "is_so"), [(YAML, True), ("# of today\n\n" + YAML, True), ("gpu-2\ngpu-10\n", False), ("kind-1\n", False)]
)
def test_names_are_told_from_objects(text: str, is_so: bool) -> None:
    assert is_list_of_objects(text) is is_so
