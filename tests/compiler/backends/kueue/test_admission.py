"""Which work of a tenant is let in on a cluster with Kueue: Workloads by their priority, all else by its label."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.compiler.backends import namespaces, scheduling
from gpuplan.compiler.planning.grants import parameters
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.kueue.platform import platform, policy, team, tenant
from tests.compiler.backends.scheduling.cel import KUBERNETES_FUNCTIONS, STANDARD_FUNCTIONS, functions_of, refusals
from tests.plans import a_cluster, a_plan
from tests.platforms import document

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
    return refusals(policy(plan).body, made, dict(parameters(found, name, SCHEDULERS["kueue"])), old=old)


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


KINDS = {
    "Pod": ("v1", "pods"),
    "Deployment": ("apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "Job": ("batch/v1", "jobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
}
"""What Kueue makes Workloads of, or of whose pods it does."""


def labelled(name: str | None, kind: str = "Job", finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    """Work as a tenant writes it; None is no label at all."""
    metadata: dict[str, Any] = {"name": "train", "namespace": "research", "finalizers": list(finalizers)}
    metadata |= {} if name is None else {"labels": {"kueue.x-k8s.io/priority-class": name}}
    return {"apiVersion": KINDS[kind][0], "kind": kind, "metadata": metadata, "spec": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_label_is_judged_where_it_is_written(kind: str) -> None:
    assert judge(labelled("urgent", kind)) == [f"priority class urgent {NOT_OPEN}"]
    assert judge(labelled("normal", kind)) == judge(labelled(None, kind)) == []


def test_label_and_workload_are_refused_with_the_same_words() -> None:
    assert judge(labelled("urgent")) == judge(workload(1000, "urgent"))
    assert judge(labelled("urgent"), "web") == judge(workload(1000, "urgent"), "web")


def test_a_class_that_nobody_has_is_refused_in_a_label() -> None:
    """Kueue would not find it, and say so in its log alone."""
    assert judge(labelled("nromal")) == [f"priority class nromal {NOT_OPEN}"]


@pytest.mark.parametrize("name", ["", "idle"])
def test_a_label_that_gives_no_power_over_others_is_open_to_all(name: str) -> None:
    assert judge(labelled(name), "web") == []


def test_a_label_may_name_what_work_without_one_has() -> None:
    usual = document("PriorityClass", "usual", "value: 50, default: true")
    more = document("PriorityClass", "more", "value: 51")
    plan = a_platform(usual, more)
    assert judge(labelled("usual"), "web", plan=plan) == []
    assert judge(labelled("more"), "web", plan=plan) != []


def test_the_class_that_kueue_gives_to_all_is_judged_by_its_number() -> None:
    """Its webhook writes the label, whoever made the class."""
    assert judge(labelled("default"), "web") == []
    assert judge(workload(1, "default"), "web") != []
    assert judge(labelled("default"), "web", plan=a_platform(document("PriorityClass", "default", "value: 1"))) != []


def test_a_label_is_judged_again_when_it_changes() -> None:
    assert judge(labelled("urgent"), old=labelled("normal")) == [f"priority class urgent {NOT_OPEN}"]
    assert judge(labelled("urgent"), old=labelled(None)) == [f"priority class urgent {NOT_OPEN}"]
    assert judge(labelled("idle"), old=labelled("normal")) == []


def test_work_that_has_its_label_can_be_finished_when_the_class_is_withdrawn() -> None:
    assert judge(labelled("urgent"), old=labelled("urgent", finalizers=("batch.kubernetes.io/job-tracking",))) == []


def test_no_label_makes_a_workload_of_a_class_harmless() -> None:
    made = workload(1000, "urgent")
    made["metadata"]["labels"] = {"kueue.x-k8s.io/priority-class": "normal"}
    assert judge(made) == [f"priority class urgent {NOT_OPEN}"]


def test_the_policy_sees_workloads_and_what_they_are_made_of() -> None:
    rules = policy(a_platform()).body["spec"]["matchConstraints"]["resourceRules"]
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in rules)
    seen = {
        ("/".join(filter(None, (group, version))), resource)
        for rule in rules
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    }
    assert seen == {("kueue.x-k8s.io/v1beta2", "workloads"), *KINDS.values()}


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
    body = policy(a_platform()).body
    kubernetes_validate.validate(body, "1.30", strict=True)
    expressions = [item["expression"] for item in (*body["spec"]["variables"], *body["spec"]["validations"])]
    for expression in expressions:
        assert functions_of(expression) <= STANDARD_FUNCTIONS | set(KUBERNETES_FUNCTIONS)


def test_a_cluster_without_admission_policies_has_none() -> None:
    plan = a_plan(a_cluster("kind: kueue").replace("1.34", "1.29"))
    assert [item.name for item in scheduling.render(plan)] == []
