"""Which pods of a tenant are let in on a cluster with Run:ai."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from gpuplan.compiler.admission.policies import policy
from gpuplan.compiler.backends import scheduling
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.runai.test_requests import a_tenant, plan_of
from tests.compiler.backends.scheduling.cel import CONTROLLERS, refusals
from tests.compiler.backends.scheduling.pods import asking, pod

PROJECT = "labels runai/queue and project must name the project of the namespace, research, or be left out"
SCHEDULER = "pods that ask for GPUs must set schedulerName to runai-scheduler"


@cache
def platform() -> Plan:
    return plan_of(
        a_tenant("research", "{pool: whole, guaranteed: 4}"), a_tenant("alice", "{pool: whole, guaranteed: 4}")
    )


def judge(made: dict[str, Any], old: dict[str, Any] | None = None, user: str = "jane") -> list[str]:
    tenant = next(tenant for tenant in platform().tenants if tenant.name == "research")
    data = dict(parameters(tenant, "research", platform().scheduler))
    policies = {item.name: item.body for item in scheduling.render(platform()) if item.kind[-6:] == "Policy"}
    return [
        message
        for name, given in (("gpuplan-grants", data), ("gpuplan-devices", None))
        for message in refusals(policies[name], made, given, old=old, user=user)
    ]


def gpu_pod(**changes: Any) -> dict[str, Any]:
    return pod(asking("nvidia.com/gpu"), **{"schedulerName": "runai-scheduler", **changes})


@pytest.mark.parametrize("labels", [{}, {"runai/queue": "research"}, {"project": "research"}])
def test_a_pod_of_its_own_project_is_let_in(labels: dict[str, str]) -> None:
    assert judge(gpu_pod(labels=labels)) == []


@pytest.mark.parametrize("label", ["runai/queue", "project"])
@pytest.mark.parametrize("made", [gpu_pod, pod], ids=["with-gpus", "without"])
def test_no_pod_names_the_project_of_others(label: str, made: Any) -> None:
    assert judge(made(labels={label: "alice"})) == [PROJECT]


def test_only_controllers_change_the_project_of_a_pod_that_is_there() -> None:
    own, others = gpu_pod(labels={"project": "research"}), gpu_pod(labels={"project": "alice"})
    [told] = judge(others, own)
    assert told.startswith(
        "labels runai/queue, project and runai/node-pool, and annotations kai.scheduler/node-pools and "
    )
    assert judge(others, own, user=min(CONTROLLERS)) == []
    assert judge(others, others) == []


def test_gpus_are_for_pods_of_run_ais_scheduler() -> None:
    assert judge(gpu_pod(schedulerName="default-scheduler")) == [SCHEDULER]
    assert judge(pod(schedulerName="default-scheduler")) == []


def test_both_rules_may_be_left_out_by_name() -> None:
    names = {rule.name for rule in policy(platform(), "gpuplan-grants").rules if rule.optional}
    assert {"no-project-of-others", "gpu-pods-name-runai-scheduler"} <= names
