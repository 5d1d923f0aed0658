"""What each namespace's folder holds, and that it caps and bans what the policy says."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.backends import namespaces
from gpuplan.manifests import Manifest
from gpuplan.planning.plan import Plan
from tests.plans import CLUSTER, a_cluster, a_plan

POOLS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {timeSlicing: {replicas: 4}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: split}
spec:
  gpu: A100-80GB
  nodes: {count: 200, gpusPerNode: 8}
  sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: split-too}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {mig: {instances: {2g.20gb: 3}}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: planned}
spec: {gpu: A100-80GB, instances: {1g.10gb+me: 1, 1g.10gb: 6}}
---
"""

NOTHING = {
    "requests.nvidia.com/gpu": "0",
    "requests.nvidia.com/gpu.shared": "0",
    "requests.nvidia.com/mig-1g.10gb": "0",
    "requests.nvidia.com/mig-1g.10gb.me": "0",
    "requests.nvidia.com/mig-2g.20gb": "0",
    "requests.nvidia.com/mig-3g.40gb": "0",
}


def tenant(spec: str, *, cluster: str = "", more: str = "") -> Plan:
    """A plan with one tenant, `research`, in namespace `research` unless the spec says otherwise."""
    head = f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: research}}\nspec: {{{spec}}}\n"
    return a_plan(f"{CLUSTER}{cluster}---\n{POOLS}{more}{head}")


def render(plan: Plan) -> list[Manifest]:
    return list(namespaces.render(plan))


def only(plan: Plan, kind: str, namespace: str = "research") -> Any:
    found = [item for item in render(plan) if item.kind == kind and item.folder == f"namespaces/{namespace}"]
    assert len(found) == 1
    return found[0].body


def hard(plan: Plan, namespace: str = "research") -> dict[str, str]:
    quota = only(plan, "ResourceQuota", namespace)
    assert (quota["metadata"]["namespace"], list(quota["spec"])) == (namespace, ["hard"])
    return dict(quota["spec"]["hard"])


# --- The folder --------------------------------------------------------------------------------------------------


def test_a_folder_holds_all_that_is_about_its_namespace() -> None:
    plan = tenant("namespaces: [one, two], members: [lab]")
    found = [(item.folder, item.kind, item.namespace, item.name) for item in render(plan)]
    assert found == [
        (folder, kind, namespace, name)
        for folder, own in (("namespaces/one", "one"), ("namespaces/two", "two"))
        for kind, namespace, name in (
            ("Namespace", "", own),
            ("ResourceQuota", own, "gpuplan"),
            ("RoleBinding", own, "gpuplan-edit"),
            ("ConfigMap", "gpuplan-system", f"grants-{own}"),
            ("ValidatingAdmissionPolicyBinding", "", f"gpuplan-grants-{own}"),
        )
    ]


def test_a_tenant_without_namespaces_has_no_folder() -> None:
    assert render(tenant("quotas: [{pool: shared, guaranteed: 4}]")) == []


def test_a_namespace_names_its_tenant_and_its_level() -> None:
    namespace = only(tenant("namespaces: [research], allow: {podSecurity: restricted}"), "Namespace")
    assert namespace["metadata"] == {
        "name": "research",
        "labels": {
            "gpuplan.dev/tenant": "research",
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/warn": "restricted",
        },
    }


def test_baseline_is_the_level_unless_the_policy_says_otherwise() -> None:
    labels = only(tenant("namespaces: [research]"), "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"


# --- Quotas ------------------------------------------------------------------------------------------------------


def test_a_tenant_without_quotas_gets_no_gpu_of_any_kind() -> None:
    assert hard(tenant("namespaces: [research]")) == NOTHING


def test_what_is_granted_is_capped_and_the_rest_is_banned() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 8}]")
    assert hard(plan) == NOTHING | {"requests.nvidia.com/gpu.shared": "8"}


def test_the_cap_is_the_limit() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 8, limit: 16}]")
    assert hard(plan)["requests.nvidia.com/gpu.shared"] == "16"


def test_the_cap_is_the_guarantee_where_the_cluster_says_so() -> None:
    plan = tenant(
        "namespaces: [research], quotas: [{pool: shared, guaranteed: 8, limit: 16}]",
        cluster="  scheduler: {cap: guaranteed}\n",
    )
    assert hard(plan)["requests.nvidia.com/gpu.shared"] == "8"


def test_an_unbounded_quota_has_no_key() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 8, limit: none}]")
    assert "requests.nvidia.com/gpu.shared" not in hard(plan)


def test_pools_that_share_a_resource_share_a_cap() -> None:
    quotas = "{pool: split, unit: 2g.20gb, guaranteed: 8}, {pool: split-too, guaranteed: 4}"
    plan = tenant(f"namespaces: [research], quotas: [{quotas}]")
    assert hard(plan)["requests.nvidia.com/mig-2g.20gb"] == "12"


@pytest.mark.parametrize("bounded_first", [True, False])
def test_one_unbounded_pool_unbounds_the_shared_cap(bounded_first: bool) -> None:
    quotas = ["{pool: split, unit: 2g.20gb, guaranteed: 8}", "{pool: split-too, guaranteed: 4, limit: none}"]
    plan = tenant(f"namespaces: [research], quotas: [{', '.join(quotas if bounded_first else reversed(quotas))}]")
    assert "requests.nvidia.com/mig-2g.20gb" not in hard(plan)


def test_a_split_quota_is_divided_among_namespaces() -> None:
    plan = tenant("namespaces: [one, two, three], quotas: [{pool: shared, guaranteed: 8, split: {one: 6, two: 2}}]")
    key = "requests.nvidia.com/gpu.shared"
    assert [hard(plan, namespace)[key] for namespace in ("one", "two", "three")] == ["6", "2", "0"]


def test_numbers_are_written_as_the_api_server_writes_them_back() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: split, unit: 2g.20gb, guaranteed: 3000}]")
    assert hard(plan)["requests.nvidia.com/mig-2g.20gb"] == "3k"


def test_nothing_inert_is_written() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 8}]")
    assert all(key.startswith("requests.nvidia.com/") for key in hard(plan))


def test_a_fraction_is_no_resource() -> None:
    pool = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: fractions}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8}
  sharing: {fraction: {}}
---
"""
    plan = tenant(
        "namespaces: [research], quotas: [{pool: fractions, guaranteed: 1.5}]",
        cluster="  scheduler: {kind: kai}\n",
        more=pool,
    )
    assert hard(plan) == NOTHING
    assert only(plan, "ConfigMap")["data"]["grants"] == "fractions fraction any\n"


# --- Members -----------------------------------------------------------------------------------------------------


def test_each_role_binds_its_groups() -> None:
    plan = tenant(
        "namespaces: [research], members: [b-lab, a-lab, {group: oncall, role: admin}, {group: audit, role: view}]"
    )
    found = {item.name: item.body for item in render(plan) if item.kind == "RoleBinding"}
    assert {
        name: (body["roleRef"]["kind"], body["roleRef"]["name"], [subject["name"] for subject in body["subjects"]])
        for name, body in found.items()
    } == {
        "gpuplan-admin": ("ClusterRole", "admin", ["oncall"]),
        "gpuplan-edit": ("ClusterRole", "edit", ["a-lab", "b-lab"]),
        "gpuplan-view": ("ClusterRole", "view", ["audit"]),
    }


def test_a_group_named_twice_is_bound_once() -> None:
    (subject,) = only(tenant("namespaces: [research], members: [lab, lab]"), "RoleBinding")["subjects"]
    assert subject == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "lab"}


def test_a_namespace_of_run_ai_says_which_project_it_is() -> None:
    text = f"{a_cluster('kind: runai')}---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: a}}\n"
    labels = only(a_plan(f"{text}spec: {{namespaces: [research]}}"), "Namespace")["metadata"]["labels"]

    assert labels["runai/queue"] == "research"
    assert "runai/queue" not in only(tenant("namespaces: [research]"), "Namespace")["metadata"]["labels"]


# --- Admission ---------------------------------------------------------------------------------------------------


def test_the_binding_reads_the_parameters_where_no_tenant_may_write() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 8}]")
    parameters, binding = only(plan, "ConfigMap"), only(plan, "ValidatingAdmissionPolicyBinding")
    assert binding["spec"]["paramRef"] == {
        "name": parameters["metadata"]["name"],
        "namespace": parameters["metadata"]["namespace"],
        "parameterNotFoundAction": "Deny",
    }
    assert parameters["metadata"]["namespace"] == "gpuplan-system"


def test_the_binding_holds_for_its_namespace_alone_and_refuses() -> None:
    binding = only(tenant("namespaces: [research]"), "ValidatingAdmissionPolicyBinding")
    assert binding["spec"]["policyName"] == "gpuplan-grants"
    assert binding["spec"]["matchResources"] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}}
    }
    assert "Deny" in binding["spec"]["validationActions"]


def test_an_old_cluster_has_quotas_alone() -> None:
    text = CLUSTER.replace('"1.34"', '"1.29"')
    plan = a_plan(
        f"{text}---\n{POOLS}apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: a}}\nspec: {{namespaces: [a]}}"
    )
    assert [item.kind for item in render(plan)] == ["Namespace", "ResourceQuota"]


# --- Schemas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minor", ["1.30", "1.34", "1.37"])
def test_objects_have_the_shape_that_kubernetes_wants(minor: str) -> None:
    plan = tenant("namespaces: [research], members: [lab], quotas: [{pool: shared, guaranteed: 8}]")
    for manifest in render(plan):
        kubernetes_validate.validate(dict(manifest.body), minor, strict=True)
