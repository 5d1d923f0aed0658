"""With `nodeLabels: external`, nodes may be chosen by labels, and a cloud's node pool gets a command."""

from __future__ import annotations

import json
import shlex

import pytest

from gpuplan.compiler.planning.node_pools import node_pool_command
from tests.compiler.backends.partitions.rendered import table
from tests.plans import CLUSTER, a_plan

POOL = """
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec:
  gpu: T4-16GB
  nodes: {count: 2, gpusPerNode: 1, selector: {%s}}
  sharing: {timeSlicing: {replicas: 2}}
  taints: [{key: nvidia.com/gpu, value: p, effect: NoSchedule}, {key: example.com/team, effect: NoExecute}]
"""
LABELS = {"gpuplan.dev/pool": "p", "nvidia.com/device-plugin.config": "p"}
TAINTS = [
    {"key": "example.com/team", "effect": "NoExecute"},
    {"key": "nvidia.com/gpu", "value": "p", "effect": "NoSchedule"},
]


def row(selector: str) -> dict[str, object]:
    (found,) = table(a_plan(f"{CLUSTER}  nodeLabels: external\n{POOL % selector}"))["nodeGroups"]
    return dict(found)


def typed(selector: str) -> list[list[str]]:
    """The commands of a row as a shell reads them."""
    return [shlex.split(command) for command in str(row(selector)["command"]).split(" && ")]


def test_a_row_has_the_labels_that_choose_its_nodes() -> None:
    found = row("node.kubernetes.io/instance-type: g4dn.xlarge, example.com/rack: r1")

    assert found["selector"] == {"example.com/rack": "r1", "node.kubernetes.io/instance-type": "g4dn.xlarge"}
    assert "command" not in found


def test_a_node_pool_of_google() -> None:
    labels, taints = typed("cloud.google.com/gke-nodepool: gpus")

    assert labels[:5] == ["gcloud", "container", "node-pools", "update", "gpus"]
    assert labels[5] == "--node-labels=gpuplan.dev/pool=p,nvidia.com/device-plugin.config=p"
    assert taints[5] == "--node-taints=example.com/team=:NoExecute,nvidia.com/gpu=p:NoSchedule"


def test_a_node_group_of_amazon() -> None:
    ((*call, labels, _, taints),) = typed("eks.amazonaws.com/nodegroup: gpus")

    assert call == ["aws", "eks", "update-nodegroup-config", "--nodegroup-name", "gpus", "--labels"]
    assert json.loads(labels) == {"addOrUpdateLabels": LABELS}
    assert [taint["effect"] for taint in json.loads(taints)["addOrUpdateTaints"]] == ["NO_EXECUTE", "NO_SCHEDULE"]


def test_a_node_pool_of_azure() -> None:
    (call,) = typed("kubernetes.azure.com/agentpool: gpus")

    assert call == [
        *("az", "aks", "nodepool", "update", "--name", "gpus"),
        *("--labels", "gpuplan.dev/pool=p", "nvidia.com/device-plugin.config=p"),
        *("--node-taints", "example.com/team=:NoExecute,nvidia.com/gpu=p:NoSchedule"),
    ]


@pytest.mark.parametrize(
    "label", ["cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool"]
)
def test_without_taints_none_are_set(label: str) -> None:
    assert "taints" not in node_pool_command({label: "gpus"}, LABELS, ())


def test_what_is_odd_in_a_name_is_quoted() -> None:
    command = node_pool_command({"kubernetes.azure.com/agentpool": "a; rm -rf b"}, LABELS, TAINTS)

    assert "a; rm -rf b" in shlex.split(command)
