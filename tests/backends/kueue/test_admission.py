"""Which Workloads of a tenant are let in on a cluster with Kueue."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.backends import namespaces
from gpuplan.planning.grants import parameters
from gpuplan.planning.plan import Plan, SchedulerKind
from tests.backends.kueue.platform import document, manifests, platform, team, tenant
from tests.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.plans import a_cluster, a_plan

CLASSES = (
    document("PriorityClass", "urgent", "value: 1000"),
    document("PriorityClass", "normal", "value: 500"),
    document("PriorityClass", "idle", "value: 0"),
)


def a_platform(*more: str) -> Plan:
    return platform(
        *CLASSES,
        *more,
        team("research", "pool: shared, guaranteed: 8", more=", priorityClasses: [normal, idle]"),
        tenant("web", "namespaces: [web]"),
    )


def policy(plan: Plan) -> Any:
    (body,) = [item.body for item in manifests(plan) if item.kind == "ValidatingAdmissionPolicy"]
    return body


def workload(priority: int | None, name: str = "", kind: str = "WorkloadPriorityClass") -> dict[str, Any]:
    """A Workload as Kueue makes it of a job."""
    group = "kueue.x-k8s.io" if kind == "WorkloadPriorityClass" else "scheduling.k8s.io"
    spec: dict[str, Any] = {"queueName": "default", "podSets": [{"name": "main", "count": 1}]}
    if name:
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    if priority is not None:
        spec["priority"] = priority
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "research"},
        "spec": spec,
    }


def judge(
    made: dict[str, Any], name: str = "research", old: dict[str, Any] | None = None, plan: Plan | None = None
) -> list[str]:
    plan = plan or a_platform()
    found = next(tenant for tenant in plan.tenants if tenant.name == name)
    return refusals(policy(plan), made, dict(parameters(found, name, SchedulerKind.KUEUE)), old=old)


@pytest.mark.parametrize(
    "made",
    [
        workload(500, "normal"),
        workload(500, "normal", kind="PriorityClass"),
        workload(0, "idle"),
        workload(0),
        workload(None),
        workload(-5, "low"),
    ],
)
def test_work_of_the_tenants_own_classes_or_of_none_is_let_in(made: dict[str, Any]) -> None:
    assert judge(made) == []


NOT_OPEN = "is not open to tenant research; set the label kueue.x-k8s.io/priority-class to normal or idle"


@pytest.mark.parametrize("kind", ["WorkloadPriorityClass", "PriorityClass"])
def test_the_class_of_another_tenant_is_refused(kind: str) -> None:
    assert judge(workload(1000, "urgent", kind)) == [f"priority class urgent {NOT_OPEN}"]
    assert judge(workload(1000, "urgent", kind), "web") == [
        "priority class urgent is not open to tenant web; set the label kueue.x-k8s.io/priority-class to nothing"
    ]


def test_a_priority_that_no_class_gives_is_refused() -> None:
    assert judge(workload(1)) == [f"a priority without a class {NOT_OPEN}"]


def test_work_may_have_what_work_without_a_class_has() -> None:
    plan = a_platform(document("PriorityClass", "usual", "value: 50, default: true"))
    assert judge(workload(50, "usual"), plan=plan) == []
    assert judge(workload(51, "other"), plan=plan) != []


def test_work_that_was_let_in_can_be_finished_when_its_class_is_withdrawn() -> None:
    assert judge(workload(1000, "urgent"), old=workload(1000, "urgent")) == []
    assert judge(workload(1000, "urgent"), old=workload(500, "normal")) != []
    assert judge(workload(1000, "urgent"), old=workload(None)) != []


def test_each_namespace_is_bound_with_its_parameters() -> None:
    plan = a_platform()
    bindings = [
        (item.folder, item.body["spec"]["policyName"], item.body["spec"]["paramRef"]["name"])
        for item in namespaces.render(plan)
        if item.kind == "ValidatingAdmissionPolicyBinding"
    ]
    assert bindings == [
        ("namespaces/research", "gpuplan-grants", "grants-research"),
        ("namespaces/research", "gpuplan-queues", "grants-research"),
        ("namespaces/web", "gpuplan-grants", "grants-web"),
        ("namespaces/web", "gpuplan-queues", "grants-web"),
    ]


def test_the_policy_is_one_that_kubernetes_takes() -> None:
    body = policy(a_platform())
    kubernetes_validate.validate(body, "1.30", strict=True)
    expressions = [item["expression"] for item in (*body["spec"]["variables"], *body["spec"]["validations"])]
    for expression in expressions:
        assert functions_of(expression) <= STANDARD_FUNCTIONS | set(KUBERNETES_FUNCTIONS)


def test_a_cluster_without_admission_policies_has_none() -> None:
    plan = a_plan(a_cluster("kind: kueue").replace("1.34", "1.29"))
    assert [item.kind for item in manifests(plan)] == ["Cohort"]
