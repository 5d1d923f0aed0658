"""What claims change for others: nodes, the GPU Operator, alerts, evictions, workloads."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.backends import monitoring, namespaces, scheduling, workloads
from gpuplan.compiler.checks import run
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.grants import QUEUES_POLICY
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import evictions
from tests.compiler.backends.dra.platform import A100, SMALL, platform
from tests.compiler.backends.gpu_operator.rendered import a_cluster as an_operator, a_pool, cluster_policy
from tests.compiler.backends.scheduling.cel import refusals
from tests.plans import CLUSTER, a_plan

CONTENDED = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: H100-80GB
  allocation: dra
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: patient}
spec: {value: 100}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: urgent}
spec: {value: 500}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: lab}
spec:
  namespaces: [lab]
  priorityClasses: [patient, urgent]
  quotas: [{pool: whole, guaranteed: 8}]
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: run}
spec:
  tenant: lab
  pool: whole
  count: 2
  priorityClass: urgent
  image: registry.example.com/train:1
  training: {pods: 2}
"""


def contended(scheduler: str = "kubernetes", more: str = "") -> Plan:
    return a_plan(f"{CLUSTER}  scheduler: {{kind: {scheduler}}}\n{more}---\n{CONTENDED}")


def test_units_are_asked_for_by_class() -> None:
    mixed = next(pool for pool in platform().pools if pool.name == "mixed")
    assert [(unit.resource, unit.device_class, unit.asked_as) for unit in mixed.units] == [
        (None, SMALL, SMALL),
        (None, A100, A100),
    ]


def test_nodes_are_labelled_for_the_driver() -> None:
    assert {pool.labels["nvidia.com/dra-kubelet-plugin"] for pool in platform().pools} == {"true"}


@pytest.mark.parametrize("install", ["olm", "external"])
def test_the_device_plugin_is_off_wherever_the_cluster_policy_is_written(install: str) -> None:
    pool = a_pool(sharing="{mig: {instances: {1g.10gb: 7}}}")
    kind = "openshift" if install == "olm" else "kubernetes"
    assert cluster_policy(an_operator(pool, install=install, platform=kind))["spec"]["devicePlugin"].get("enabled") in (
        True,
        None,
    )
    claimed = pool.rstrip() + "\n  allocation: dra\n"
    assert (
        cluster_policy(an_operator(claimed, install=install, platform=kind))["spec"]["devicePlugin"]["enabled"] is False
    )


def test_nobody_is_evicted_for_a_claim() -> None:
    plans = contended(), a_plan(CONTENDED.replace("  allocation: dra\n", "")), contended("kueue")

    assert [any(item.counted is None for item in evictions(plan)) for plan in plans] == [False, True, True]


def test_nothing_is_said_of_what_nodes_publish() -> None:
    """What the device plugin publishes all the same is in no plan, which an alert says."""
    plan = contended(more="  monitoring: {}\n")
    found = [item for item in monitoring.render(plan) if isinstance(item, Manifest) and item.kind == "PrometheusRule"]
    rules = [rule for item in found for group in item.body["spec"]["groups"] for rule in group["rules"]]
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    assert "GpuUnitsDrift" in alerts
    assert "GpuDevicePluginNoDevices" not in alerts
    assert not [rule for rule in rules if rule.get("record") == "pool:gpuplan_planned_units:sum"]


def test_pools_of_one_model_share_a_cap() -> None:
    (found,) = (item.finding for item in run(platform()) if item.code == "GPU416")
    assert found.message == (
        f"a quota cannot tell pools `parts` and `mixed` apart for tenant `research`: both hand out `{SMALL}`"
    )


def pods(plan: Plan) -> list[dict[str, Any]]:
    """Of the workload, as a Job's controller makes them."""
    jobs = [item for item in workloads.render(plan) if item.kind == "Job"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "run", "uid": "1", "controller": True}
    found = []
    for job in jobs:
        template = job.body["spec"]["template"]
        metadata = {**template["metadata"], "name": "pod", "namespace": "lab", "ownerReferences": [owner]}
        spec = {**template["spec"], "priority": 500}
        if "kueue.x-k8s.io/queue-name" in job.body["metadata"].get("labels", {}):
            spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        found.append({"metadata": metadata, "spec": spec})
    return found


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai"])
def test_workloads_are_let_in(scheduler: str) -> None:
    plan = contended(scheduler)
    (given,) = (item.body["data"] for item in namespaces.render(plan) if item.kind == "ConfigMap")
    written = [item for item in scheduling.render(plan) if item.kind == "ValidatingAdmissionPolicy"]
    policies = [item.body for item in written if item.name != QUEUES_POLICY]  # which judges no pods
    user = "system:serviceaccount:kube-system:job-controller"
    (found,) = pods(plan)
    assert len(found["spec"]["resourceClaims"]) == 2
    assert [text for policy in policies for text in refusals(policy, found, given, user=user)] == []
