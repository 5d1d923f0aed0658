"""On OpenShift the table says what goes into a MachineSet, and where."""

from __future__ import annotations

from typing import Any

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.manifests import File
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.partitions.rendered import table
from tests.plans import a_plan

CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.33"
  platform: {platform}
  nodeLabels: external
  gpuOperator: {{install: olm, version: v26.7.0}}
---
"""
POOL = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: a}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8}}
  sharing: {sharing}
"""
TAINTS = "  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]\n"


def on(platform: str, sharing: str, more: str = "") -> Plan:
    return a_plan(CLUSTER.format(platform=platform) + POOL.format(sharing=sharing) + more)


def template(sharing: str, more: str = "") -> dict[str, Any]:
    """What comes below `spec.template.spec` of the pool's MachineSet."""
    machine_set = table(on("openshift", sharing, more))["nodeGroups"][0]["machineSet"]
    assert list(machine_set["spec"]) == ["template"]
    return dict(machine_set["spec"]["template"]["spec"])


def accelerator(sharing: str) -> str | None:
    labels: dict[str, str] = template(sharing)["metadata"]["labels"]
    return labels.get("cluster-api/accelerator")


def test_labels_and_taints_are_where_the_machine_api_hands_them_to_nodes() -> None:
    assert template("{exclusive: {}}", TAINTS) == {
        "metadata": {
            "labels": {
                "cluster-api/accelerator": "nvidia-a100-80gb",
                "gpuplan.dev/pool": "a",
                "nvidia.com/device-plugin.config": "a",
                "nvidia.com/mig.config": "all-disabled",
            }
        },
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    }


def test_a_pool_without_taints_leaves_the_machine_sets_own() -> None:
    assert "taints" not in template("{exclusive: {}}")


def test_the_autoscaler_is_not_told_to_wait_for_a_resource_that_never_appears() -> None:
    assert accelerator("{timeSlicing: {replicas: 2, rename: false}}") == "nvidia-a100-80gb"
    assert accelerator("{timeSlicing: {replicas: 2, rename: true}}") is None
    assert accelerator("{mig: {instances: {1g.10gb: 7}}}") is None
    assert accelerator("{mig: {instances: {1g.10gb: 7}, strategy: single}}") == "nvidia-a100-80gb"


def test_the_table_says_that_existing_machines_stay_as_they_are() -> None:
    [file] = [item for item in partitions.render(on("openshift", "{exclusive: {}}")) if isinstance(item, File)]
    assert b"oc delete machine -n openshift-machine-api MACHINE" in file.data
    assert b"oc label node NODE KEY=VALUE --overwrite" in file.data


def test_elsewhere_there_are_no_machine_sets() -> None:
    plan = on("kubernetes", "{exclusive: {}}")
    [file] = [item for item in partitions.render(plan) if isinstance(item, File)]
    assert "machineSet" not in table(plan)["nodeGroups"][0]
    assert b"OpenShift" not in file.data
