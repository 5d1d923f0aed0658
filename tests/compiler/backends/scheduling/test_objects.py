"""The objects of the stage `scheduling`."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.compiler.backends import scheduling
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.platform import platform
from tests.plans import CLUSTER, a_cluster, a_plan


def a_class(spec: str) -> Plan:
    return a_plan(f"apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {{name: urgent}}\nspec: {{{spec}}}\n")


def priority_class(plan: Plan) -> Any:
    (found,) = [item.body for item in scheduling.render(plan) if item.kind == "PriorityClass"]
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


def names(plan: Plan) -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in scheduling.render(plan)]


def test_a_priority_class_preempts_unless_it_says_otherwise() -> None:
    assert priority_class(a_class("value: 500")) == {
        "metadata": {"name": "urgent"},
        "value": 500,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def test_a_priority_class_has_what_the_policy_says() -> None:
    body = priority_class(a_class("value: 0, preempts: false, default: true, description: everything else"))
    assert (body["preemptionPolicy"], body["globalDefault"], body["description"]) == ("Never", True, "everything else")


def test_with_kueue_no_class_preempts_by_itself() -> None:
    spec = "apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nspec: {value: 500}\n"
    plan = a_plan(f"{a_cluster('kind: kueue')}---\n{spec}")
    assert priority_class(plan)["preemptionPolicy"] == "Never"


def test_the_stage_holds_the_policies_and_one_binding_for_all_tenants() -> None:
    assert sorted(names(platform())) == [
        ("Namespace", "gpuplan-system"),
        ("PriorityClass", "production"),
        ("PriorityClass", "research"),
        ("PriorityClass", "training"),
        ("ValidatingAdmissionPolicy", "gpuplan-devices"),
        ("ValidatingAdmissionPolicy", "gpuplan-grace"),
        ("ValidatingAdmissionPolicy", "gpuplan-grants"),
        ("ValidatingAdmissionPolicy", "gpuplan-node-features"),
        ("ValidatingAdmissionPolicy", "gpuplan-pod-security"),
        ("ValidatingAdmissionPolicyBinding", "gpuplan-devices"),
        ("ValidatingAdmissionPolicyBinding", "gpuplan-grace"),
        ("ValidatingAdmissionPolicyBinding", "gpuplan-grants"),
        ("ValidatingAdmissionPolicyBinding", "gpuplan-node-features"),
        ("ValidatingAdmissionPolicyBinding", "gpuplan-pod-security"),
    ]
    assert {item.folder for item in scheduling.render(platform())} == {"scheduling"}


def test_the_stage_does_not_grow_with_tenants() -> None:
    tenants = [
        f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: t{index}}}\nspec: {{namespaces: [n{index}]}}\n"
        for index in range(20)
    ]
    assert names(a_plan("---\n".join(tenants))) == names(a_plan(tenants[0]))


def binding(name: str) -> dict[str, Any]:
    kind = "ValidatingAdmissionPolicyBinding"
    [spec] = [item.body["spec"] for item in scheduling.render(platform()) if (item.kind, item.name) == (kind, name)]
    return dict(spec)


def test_the_policy_on_devices_holds_for_namespaces_of_tenants_alone() -> None:
    assert binding("gpuplan-devices") == {
        "policyName": "gpuplan-devices",
        "matchResources": {
            "namespaceSelector": {"matchExpressions": [{"key": "gpuplan.dev/tenant", "operator": "Exists"}]}
        },
        "validationActions": ["Deny", "Audit"],
    }


def test_rules_in_place_of_a_level_are_there_before_any_tenant_needs_them() -> None:
    """In namespaces that have their label: it comes with the level that forbids nothing."""
    labels = [{"key": key, "operator": "Exists"} for key in ("gpuplan.dev/tenant", "gpuplan.dev/rdma")]
    assert binding("gpuplan-pod-security")["matchResources"] == {"namespaceSelector": {"matchExpressions": labels}}


def test_the_policy_with_parameters_is_bound_without_tenants_to_no_namespace() -> None:
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}
    found = binding("gpuplan-grants")
    assert found["matchResources"] == {"namespaceSelector": selector}
    assert found["paramRef"]["parameterNotFoundAction"] == "Deny"


def test_an_old_cluster_has_priority_classes_alone() -> None:
    spec = "apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: a}\nspec: {value: 1}\n"
    plan = a_plan(f"{CLUSTER.replace('1.34', '1.29')}---\n{spec}")
    assert names(plan) == [("PriorityClass", "a")]


def test_a_default_class_bounds_what_pods_may_have_unasked() -> None:
    plan = a_class("value: 50, default: true")
    grants, _ = [item.body for item in scheduling.render(plan) if item.name == "gpuplan-grants"]
    assert any("object.spec.priority <= 50)" in rule["expression"] for rule in grants["spec"]["validations"])


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
@pytest.mark.parametrize("minor", ["1.30", "1.37"])
def test_objects_have_the_shape_that_kubernetes_wants(scheduler: str, minor: str) -> None:
    for manifest in scheduling.render(platform(scheduler)):
        kubernetes_validate.validate(dict(manifest.body), minor, strict=True)
