"""What each namespace's folder holds, and that it caps and bans what the policy says."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from gpuplan.compiler.backends import namespaces
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.plans import CLUSTER, a_cluster, a_plan
from tests.platforms import a_platform, pool, tenant as tenant_of

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


def tenant(spec: str, *, cluster: str = "", more: str = "", kubernetes: str = "1.34") -> Plan:
    """A plan with one tenant, `research`, in namespace `research` unless the spec says otherwise."""
    head = f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: research}}\nspec: {{{spec}}}\n"
    start = CLUSTER.replace("1.34", kubernetes)
    return a_plan(f"{start}{cluster}---\n{POOLS}{more}{head}")


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


def test_a_level_that_others_decide_is_on_no_namespace() -> None:
    namespace = only(tenant("namespaces: [research], allow: {podSecurity: external}"), "Namespace")
    assert namespace["metadata"]["labels"] == {"gpuplan.dev/tenant": "research"}


RDMA = "allow: {rdma: [rdma/hca_shared_devices_a, nvidia.com/hostdev]}"


def test_where_rdma_is_granted_rules_stand_in_for_the_level() -> None:
    namespace = only(tenant(f"namespaces: [research], {RDMA}"), "Namespace")
    assert namespace["metadata"]["labels"] == {
        "gpuplan.dev/rdma": "true",
        "gpuplan.dev/tenant": "research",
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/warn": "privileged",
    }


def test_privileged_pods_are_held_by_nothing_whatever_network_they_have() -> None:
    spec = "namespaces: [research], allow: {podSecurity: privileged, rdma: [rdma/hca_shared_devices_a]}"
    labels = only(tenant(spec), "Namespace")["metadata"]["labels"]
    assert "gpuplan.dev/rdma" not in labels


def test_network_resources_are_for_whom_they_are_granted_to() -> None:
    plan = a_platform(tenant_of("research", more=RDMA), tenant_of("web"))
    hard = {
        item.body["metadata"]["namespace"]: item.body["spec"]["hard"]
        for item in namespaces.render(plan)
        if item.kind == "ResourceQuota"
    }
    keys = ("requests.nvidia.com/hostdev", "requests.rdma/hca_shared_devices_a")
    assert [hard["web"].get(key) for key in keys] == ["0", "0"]
    assert [hard["research"].get(key) for key in keys] == [None, None]


def test_admission_takes_network_resources_of_nvidia_for_no_gpus() -> None:
    parameters = only(tenant(f"namespaces: [research], {RDMA}"), "ConfigMap")
    assert parameters["data"]["otherResources"] == "nvidia.com/hostdev\n"


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


KAI = "  scheduler: {kind: kai}\n"
KUEUE = "  scheduler: {kind: kueue}\n"
BORROWS = "namespaces: [research], quotas: [{pool: split-too, guaranteed: 2, limit: 4}]"
BORROWED = "requests.nvidia.com/mig-2g.20gb"


@pytest.mark.parametrize("cluster", [KAI, KUEUE])
def test_where_there_are_queues_they_are_the_cap_and_only_the_rest_is_banned(cluster: str) -> None:
    quotas = "{pool: split-too, guaranteed: 2, limit: 4}, {pool: split, unit: 3g.40gb, guaranteed: 0}"
    plan = tenant(f"namespaces: [research], quotas: [{quotas}]", cluster=cluster)
    assert hard(plan) == {key: number for key, number in NOTHING.items() if key != BORROWED}


def test_where_queues_cap_all_that_there_is_the_quota_says_nothing() -> None:
    """The API server drops an empty mapping."""
    pools = pool("whole"), pool("parts", "timeSlicing: {replicas: 4}")
    quotas = "pool: whole, guaranteed: 1", "pool: parts, guaranteed: 1"
    plan = a_platform(*pools, tenant_of("research", *quotas), scheduler="kueue")
    assert only(plan, "ResourceQuota")["spec"] == {}


def test_what_a_queue_caps_has_a_quota_where_it_is_divided() -> None:
    quotas = "{pool: split-too, guaranteed: 4, split: {one: 3, two: 1}}"
    plan = tenant(f"namespaces: [one, two, three], quotas: [{quotas}]", cluster=KAI)
    assert [hard(plan, namespace)[BORROWED] for namespace in ("one", "two", "three")] == ["3", "1", "0"]


@pytest.mark.parametrize("kind", ["kai", "kueue"])
def test_a_line_of_policy_keeps_the_quota_beside_the_queue(kind: str) -> None:
    assert hard(tenant(BORROWS, cluster=f"  scheduler: {{kind: {kind}, cap: limit}}\n"))[BORROWED] == "4"


@pytest.mark.parametrize("cluster", [KAI, KUEUE])
@pytest.mark.parametrize(("kubernetes", "is_capped"), [("1.29", True), ("1.30", False)])
def test_no_queue_is_the_cap_where_nothing_keeps_pods_behind_it(cluster: str, kubernetes: str, is_capped: bool) -> None:
    plan = tenant(BORROWS, cluster=cluster, kubernetes=kubernetes)
    assert (BORROWED in hard(plan)) is is_capped


@pytest.mark.parametrize(("cluster", "devices"), [(KUEUE, "4"), (KAI, None)])
def test_claims_have_a_quota_beside_kueue_which_counts_templates(cluster: str, devices: str | None) -> None:
    """A tenant may write a template once more, after Kueue has counted it; KAI-Scheduler counts claims."""
    claimed = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: claimed}
spec:
  gpu: H100-80GB
  allocation: dra
  nodes: {count: 1, gpusPerNode: 8}
  sharing: {exclusive: {}}
---
"""
    quotas = "namespaces: [research], quotas: [{pool: claimed, guaranteed: 2, limit: 4}]"
    found = hard(tenant(quotas, more=claimed, cluster=cluster))
    assert found.get("gpuplan-h100-80gb-gpu.deviceclass.resource.k8s.io/devices") == devices


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


CPU_POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: sized}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, cpu: 136, memory: 1088Gi, reserve: {cpu: 8, memory: 64Gi}}
  sharing: {mps: {replicas: 2}}
  followUnits: true
---
"""


def test_cpu_memory_and_pods_are_capped_and_containers_that_say_nothing_ask_for_little() -> None:
    quota = "pool: shared, guaranteed: 4, cpu: {guaranteed: 8, limit: 16500m}, memory: 65536Mi, pods: 20"
    plan = tenant(f"namespaces: [research], quotas: [{{{quota}}}]")
    found = hard(plan)
    assert (found["requests.cpu"], found["requests.memory"], found["pods"]) == ("16500m", "64Gi", "20")
    assert only(plan, "LimitRange")["spec"] == {
        "limits": [{"type": "Container", "defaultRequest": {"cpu": "100m", "memory": "128Mi"}}]
    }


@pytest.mark.parametrize(
    ("scheduler", "is_capped"), [("kubernetes", True), ("kueue", False), ("kai", False), ("runai", False)]
)
def test_queues_count_cpu_by_themselves(scheduler: str, is_capped: bool) -> None:
    quota = "{pool: shared, guaranteed: 4, cpu: 8, memory: 8Gi}"
    plan = tenant(f"namespaces: [research], quotas: [{quota}]", cluster=f"  scheduler: {{kind: {scheduler}}}\n")
    assert ("requests.cpu" in hard(plan)) is is_capped
    assert ("LimitRange" in {item.kind for item in render(plan)}) is is_capped


def test_what_no_quota_counts_is_not_asked_of_containers() -> None:
    plan = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 4, memory: 64Gi, pods: 3}]")
    assert only(plan, "LimitRange")["spec"]["limits"][0]["defaultRequest"] == {"memory": "128Mi"}
    without = tenant("namespaces: [research], quotas: [{pool: shared, guaranteed: 4, pods: 3}]")
    assert "LimitRange" not in {item.kind for item in render(without)}


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
def test_containers_that_say_nothing_have_what_the_tenant_says(scheduler: str) -> None:
    said = "containers: {cpu: {request: 500m, limit: 2000m, maxRatio: 2.5}, memory: {limit: 4096Mi}}"
    plan = tenant(f"namespaces: [research], {said}", cluster=f"  scheduler: {{kind: {scheduler}}}\n")
    assert only(plan, "LimitRange")["spec"]["limits"] == [
        {
            "type": "Container",
            "default": {"cpu": "2", "memory": "4Gi"},
            "defaultRequest": {"cpu": "500m", "memory": "4Gi"},
            "maxLimitRequestRatio": {"cpu": "2500m"},
        }
    ]


def test_what_the_tenant_says_goes_before_what_a_quota_needs() -> None:
    said = "quotas: [{pool: shared, guaranteed: 4, cpu: 8, memory: 64Gi}], containers: {cpu: {request: 250m}}"
    plan = tenant(f"namespaces: [research], {said}")
    assert only(plan, "LimitRange")["spec"]["limits"] == [
        {"type": "Container", "defaultRequest": {"cpu": "250m", "memory": "128Mi"}}
    ]


def of_labelled(plan: Plan) -> dict[str, Any]:
    return {item.name: item.body for item in render(plan) if item.folder == "scheduling"}


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
def test_namespaces_by_label_are_held_to_what_the_tenant_has(scheduler: str) -> None:
    quota = "{pool: shared, guaranteed: 8}"
    plan = tenant(f"labelledNamespaces: true, quotas: [{quota}]", cluster=f"  scheduler: {{kind: {scheduler}}}\n")
    found = of_labelled(plan)
    has_queues = scheduler in ("kueue", "kai")
    queues = {"gpuplan-queues.research"} if has_queues else set()
    assert found.keys() == {"grants.research", "gpuplan-grants.research", "gpuplan-pod-security.research"} | queues
    assert found["grants.research"]["data"]["grants"] == "shared nvidia.com/gpu.shared 1\n"
    assert found["gpuplan-grants.research"]["spec"] == {
        "policyName": "gpuplan-grants",
        "paramRef": {"name": "grants.research", "namespace": "gpuplan-system", "parameterNotFoundAction": "Deny"},
        "matchResources": {"namespaceSelector": {"matchLabels": {"gpuplan.dev/tenant": "research"}}},
        "validationActions": ["Deny", "Audit"],
    }


@pytest.mark.parametrize("level", ["privileged", "external"])
def test_namespaces_that_are_listed_keep_their_own_binding(level: str) -> None:
    plan = tenant(f"namespaces: [one, two], labelledNamespaces: true, allow: {{podSecurity: {level}}}")
    found = of_labelled(plan)
    assert "gpuplan-pod-security.research" not in found
    assert found["gpuplan-grants.research"]["spec"]["matchResources"]["namespaceSelector"] == {
        "matchLabels": {"gpuplan.dev/tenant": "research"},
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["one", "two"]}],
    }


@pytest.mark.parametrize("quota", ["guaranteed: 8, split: {one: 8}", "guaranteed: 0, limit: 0"])
def test_what_is_divided_or_nothing_is_not_granted_by_label(quota: str) -> None:
    plan = tenant(f"namespaces: [one], labelledNamespaces: true, quotas: [{{pool: shared, {quota}}}]")
    assert of_labelled(plan)["grants.research"]["data"]["grants"] == ""


CLASSES = """\
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: batch}
spec: {value: 10}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: online}
spec: {value: 100}
---
"""


def limits_of_classes(spec: str, cluster: str = "", namespace: str = "research") -> dict[str, Any]:
    plan = tenant(f"priorityClasses: [batch, online], {spec}", cluster=cluster, more=CLASSES)
    quotas = [item for item in render(plan) if item.kind == "ResourceQuota" and item.namespace == namespace]
    return {item.name: item.body["spec"] for item in quotas if item.name != "gpuplan"}


def test_a_class_has_a_quota_of_its_own_where_it_has_a_limit() -> None:
    quota = "{pool: shared, guaranteed: 8, limit: 12, classLimits: {batch: 4}}"
    assert limits_of_classes(f"namespaces: [research], quotas: [{quota}]") == {
        "gpuplan-batch": {
            "hard": {"requests.nvidia.com/gpu.shared": "4"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["batch"]}]
            },
        }
    }


def test_limits_of_a_class_add_up_by_resource_with_what_others_let_it_use() -> None:
    quotas = (
        "{pool: split, unit: 2g.20gb, guaranteed: 8, classLimits: {batch: 4, online: 6}}, "
        "{pool: split-too, unit: 2g.20gb, guaranteed: 3}, {pool: shared, guaranteed: 2}"
    )
    found = limits_of_classes(f"namespaces: [research], quotas: [{quotas}]")
    assert {name: spec["hard"] for name, spec in found.items()} == {
        "gpuplan-batch": {"requests.nvidia.com/mig-2g.20gb": "7"},
        "gpuplan-online": {"requests.nvidia.com/mig-2g.20gb": "9"},
    }


def test_a_limit_of_a_class_is_split_as_the_cap_is_and_never_above_it() -> None:
    quota = "{pool: shared, guaranteed: 8, split: {one: 6, two: 2}, classLimits: {batch: 4}}"
    found = [limits_of_classes(f"namespaces: [one, two], quotas: [{quota}]", namespace=name) for name in ("one", "two")]
    assert [item["gpuplan-batch"]["hard"] for item in found] == [
        {"requests.nvidia.com/gpu.shared": "3"},
        {"requests.nvidia.com/gpu.shared": "1"},
    ]
    capped = "{pool: shared, guaranteed: 2, limit: 8, classLimits: {batch: 4}}"
    found_below = limits_of_classes(
        f"namespaces: [research], quotas: [{capped}]", "  scheduler: {kind: kubernetes, cap: guaranteed}\n"
    )
    assert found_below["gpuplan-batch"]["hard"] == {"requests.nvidia.com/gpu.shared": "2"}


@pytest.mark.parametrize(("settings", "is_kept"), [("kind: kueue", False), ("kind: kueue, cap: limit", True)])
def test_no_quota_for_a_class_stands_beside_queues_that_cap(settings: str, is_kept: bool) -> None:
    quota = "{pool: shared, guaranteed: 8, classLimits: {batch: 4}}"
    spec = f"namespaces: [research], quotas: [{quota}]"
    assert bool(limits_of_classes(spec, f"  scheduler: {{{settings}}}\n")) is is_kept


def test_cpu_follows_the_units_of_a_namespace() -> None:
    quota = "pool: sized, guaranteed: 8, split: {one: 6, two: 2}"
    plan = tenant(f"namespaces: [one, two], quotas: [{{{quota}}}]", more=CPU_POOL)
    caps = [(hard(plan, name)["requests.cpu"], hard(plan, name)["requests.memory"]) for name in ("one", "two")]
    assert caps == [("48", "384Gi"), ("16", "128Gi")]


def test_pools_of_which_one_has_no_bound_on_cpu_leave_the_namespace_none() -> None:
    quotas = "{pool: shared, guaranteed: 4, cpu: 8, memory: 8Gi}, {pool: split-too, guaranteed: 2, memory: 8Gi}"
    found = hard(tenant(f"namespaces: [research], quotas: [{quotas}]"))
    assert "requests.cpu" not in found
    assert found["requests.memory"] == "16Gi"


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


def test_users_and_groups_of_one_cluster_role_share_a_binding() -> None:
    members = "[{group: lab, clusterRole: gpu-user}, {user: jane, clusterRole: gpu-user}, {user: jane, role: view}]"
    found = {
        item.name: item.body
        for item in render(tenant(f"namespaces: [research], members: {members}"))
        if item.kind == "RoleBinding"
    }
    assert {
        name: (body["roleRef"]["name"], [(subject["kind"], subject["name"]) for subject in body["subjects"]])
        for name, body in found.items()
    } == {
        "gpuplan-gpu-user": ("gpu-user", [("Group", "lab"), ("User", "jane")]),
        "gpuplan-view": ("view", [("User", "jane")]),
    }


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
