"""Fractions of GPUs on clusters whose scheduler hands them out: who may ask for one, and how the pod then looks."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.compiler.backends.scheduling.platform import parameters_of, policy
from tests.compiler.backends.scheduling.pods import asking, container, pod
from tests.every import every
from tests.plans import CLUSTER, a_plan

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: parts}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {fraction: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec: {gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: research}
spec: {value: 50}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  namespaces: [research]
  priorityClasses: [research]
  quotas: [{pool: parts, guaranteed: 1.5}]
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: training}
spec:
  namespaces: [training]
  quotas: [{pool: whole, guaranteed: 8}]
"""
QUEUED: dict[str, Any] = {
    "pool": "parts",
    "labels": {"kai.scheduler/queue": "research-parts", "kai.scheduler/node-pool": "parts"},
    "schedulerName": "kai-scheduler",
}
HALF: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}, "priority_class": "research"}
OF_RUNAI: dict[str, Any] = {"schedulerName": "runai-scheduler"}
QUEUED_HALF: dict[str, Any] = {**QUEUED, **HALF}
BY_WEBHOOK = [
    {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"configMapKeyRef": {"name": "gpus", "key": "VISIBLE_DEVICES"}}}
]


@cache
def platform(scheduler: str) -> Plan:
    return a_plan(f"{CLUSTER}  scheduler: {{kind: {scheduler}}}\n---\n{POLICIES}")


def judge(made: dict[str, Any], tenant: str = "research", scheduler: str = "kai") -> list[str]:
    plan = platform(scheduler)
    grants = refusals(policy("gpuplan-grants", plan), made, parameters_of(tenant, plan))
    return grants + refusals(policy("gpuplan-devices", plan), made)


NO_FRACTIONS = "tenant training has no quota on fractions of GPUs; it may ask for none"


@pytest.mark.parametrize(("scheduler", "made"), [("kai", QUEUED_HALF), ("runai", {**HALF, **OF_RUNAI})])
def test_a_fraction_is_for_tenants_with_a_quota_on_fractions(scheduler: str, made: dict[str, Any]) -> None:
    assert judge(pod(**made), scheduler=scheduler) == []
    assert NO_FRACTIONS in judge(pod(annotations={"gpu-fraction": "0.5"}), "training", scheduler)


@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory", "nvidia.com/container.main.gpu-memory.request"])
def test_every_way_to_ask_for_a_fraction_is_seen(annotation: str) -> None:
    assert judge(pod(annotations={annotation: "1"}, **OF_RUNAI), "training", "runai") == [NO_FRACTIONS]


def test_a_fraction_may_be_asked_for_in_its_pool_and_in_no_other() -> None:
    assert judge(pod(**QUEUED_HALF)) == []
    assert (
        judge(pod(**{**QUEUED_HALF, "pool": "whole"}))[0]
        == "tenant research has no quota in pool whole; it may use parts"
    )


def test_a_quota_on_fractions_is_none_on_whole_gpus() -> None:
    found = judge(pod(asking("nvidia.com/gpu"), priority_class="research"))
    assert found[0] == "tenant research has no quota on nvidia.com/gpu; it may ask for fraction in pool parts"


def test_a_fraction_needs_a_class_as_any_gpu_does() -> None:
    (message,) = judge(pod(annotations={"gpu-fraction": "0.5"}, **QUEUED))
    assert message.startswith("pods that ask for GPUs must name a priority class of tenant research")


def test_what_the_schedulers_webhook_adds_to_a_fraction_is_let_in() -> None:
    made = pod(container(env=BY_WEBHOOK), runtimeClassName="nvidia", **QUEUED_HALF)
    assert judge(made) == []


def test_what_the_schedulers_webhook_adds_is_for_fractions_alone() -> None:
    made = pod(container(env=BY_WEBHOOK), runtimeClassName="nvidia")
    assert judge(made)[:2] == [
        "NVIDIA_VISIBLE_DEVICES must not be set: the device plugin chooses devices; ask for GPUs in resources.limits",
        "a runtimeClassName of NVIDIA is for pods that ask for GPUs in resources.limits or for a fraction of one",
    ]


def test_a_fraction_chooses_no_devices_by_itself() -> None:
    made = pod(container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]), **QUEUED_HALF)
    assert judge(made)[0].startswith("NVIDIA_VISIBLE_DEVICES must not be set")


def expressions() -> list[str]:
    found: list[str] = []
    for name in ("gpuplan-grants", "gpuplan-devices"):
        spec = policy(name, platform("kai"))["spec"]
        found += [item["expression"] for item in (*spec["variables"], *spec["validations"])]
        found += [rule["messageExpression"] for rule in spec["validations"] if "messageExpression" in rule]
    return found


@every(expressions())
def test_expressions_call_only_what_kubernetes_1_30_knows(expression: str) -> None:
    assert functions_of(expression) <= STANDARD_FUNCTIONS | KUBERNETES_FUNCTIONS.keys()
