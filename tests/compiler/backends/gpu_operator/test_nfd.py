"""With `install: olm`, Node Feature Discovery comes by OLM too, fit for what the pools need of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.gpu_operator.rendered import a_pool, objects
from tests.plans import a_plan

CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "{kubernetes}"
  platform: openshift
  nodeLabels: {node_labels}
  gpuOperator: {{install: {install}, version: v26.7.0, nfd: {nfd}}}
"""
GPU_TAINT = "[{key: nvidia.com/gpu, value: a, effect: NoSchedule}]"
TEAM_TAINT = "[{key: example.com/team, value: a, effect: NoExecute}]"
TOLERATES_TEAM = {"key": "example.com/team", "operator": "Exists", "effect": "NoExecute"}


def a_cluster(
    *pools: str, kubernetes: str = "1.33", node_labels: str = "nfd", install: str = "olm", nfd: str = "true"
) -> Plan:
    cluster = CLUSTER.format(kubernetes=kubernetes, node_labels=node_labels, install=install, nfd=nfd)
    return a_plan("---".join((cluster, *pools)))


def in_nfds_namespace(plan: Plan, kind: str) -> dict[str, Any]:
    (found,) = [body for body in objects(plan, kind) if body["metadata"].get("namespace") == "openshift-nfd"]
    return found


def instance(plan: Plan) -> dict[str, Any]:
    return in_nfds_namespace(plan, "NodeFeatureDiscovery")


def test_the_operator_comes_from_red_hats_catalog_into_a_namespace_of_its_own() -> None:
    plan = a_cluster()
    assert [body["metadata"]["name"] for body in objects(plan, "Namespace")] == ["nvidia-gpu-operator", "openshift-nfd"]
    assert in_nfds_namespace(plan, "OperatorGroup")["spec"] == {"targetNamespaces": ["openshift-nfd"]}
    assert in_nfds_namespace(plan, "Subscription")["spec"] == {
        "channel": "stable",
        "installPlanApproval": "Automatic",
        "name": "nfd",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
    }


def test_no_namespace_has_two_operator_groups_or_olm_would_install_nothing_in_it() -> None:
    namespaces = [body["metadata"]["namespace"] for body in objects(a_cluster(), "OperatorGroup")]
    assert sorted(namespaces) == ["nvidia-gpu-operator", "openshift-nfd"]


def test_the_workers_label_nodes_by_the_vendors_that_the_gpu_operator_looks_for() -> None:
    config = yaml.safe_load(instance(a_cluster())["spec"]["workerConfig"]["configData"])
    assert config == {"sources": {"pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]}}}


def test_the_instance_of_a_cluster_whose_nodes_others_label_does_nothing_more() -> None:
    plan = a_cluster(a_pool(taints=GPU_TAINT), node_labels="external")
    assert set(instance(plan)["spec"]) == {"workerConfig"}


def test_the_instance_sets_the_pools_labels_and_taints() -> None:
    spec = instance(a_cluster(a_pool(taints=GPU_TAINT)))["spec"]
    assert spec["extraLabelNs"] == ["gpuplan.dev", "nvidia.com"]
    assert spec["enableTaints"] is True
    assert "operand" not in spec  # the workers tolerate every taint that only keeps new pods away


def test_the_workers_stay_on_nodes_whose_taint_drives_others_away() -> None:
    assert instance(a_cluster(a_pool(taints=TEAM_TAINT)))["spec"]["operand"] == {"workerTolerations": [TOLERATES_TEAM]}


@pytest.mark.parametrize(
    ("kubernetes", "operand", "sets_taints"),
    [
        ("1.29", {"image": "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9:v4.16"}, None),
        ("1.30", {"image": "registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9:v4.17"}, True),
        ("1.32", None, True),
        ("1.33", {"workerTolerations": [TOLERATES_TEAM]}, True),
    ],
)
def test_fields_are_those_of_the_release(kubernetes: str, operand: object, sets_taints: bool | None) -> None:
    spec = instance(a_cluster(a_pool(taints=TEAM_TAINT), kubernetes=kubernetes))["spec"]
    assert (spec.get("operand"), spec.get("enableTaints")) == (operand, sets_taints)


@pytest.mark.parametrize(("install", "nfd"), [("olm", "false"), ("external", "true"), ("helm", "true")])
def test_nfd_of_somebody_else_is_left_alone(install: str, nfd: str) -> None:
    assert objects(a_cluster(install=install, nfd=nfd), "NodeFeatureDiscovery") == []
