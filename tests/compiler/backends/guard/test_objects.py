"""The objects of a guard: who they are for, what they may do, and in which order Argo CD runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.backends import guard, partitions
from gpuplan.compiler.delivery import Folder, argocd
from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.manifests import Hook, Manifest, check_schemas, render_tree
from gpuplan.compiler.planning.plan import Plan
from tests.kustomizing import kustomize
from tests.plans import a_plan

IMAGE = "registry.example.com/python:3.13"
ARGO_CD = "argocd: {repoURL: https://git.example.com/platform/gpu.git}"
NAMED = "names: [n2, n1]"
MIG = "mig: {instances: {1g.10gb: 7}}"


def a_guard(
    nodes: str = NAMED,
    spec: str = ARGO_CD,
    sharing: str = MIG,
    more: str = "",
    *,
    name: str = "p",
    timeout: str = "",
    operator: str = "install: external, version: v26.7.0",
    gpu: str = "A100-80GB",
) -> Plan:
    return a_plan(f"""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{{operator}}}
  {spec}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: {gpu}
  nodes: {{count: 2, gpusPerNode: 8, {nodes}}}
  sharing: {{{sharing}}}
  disruption: {{guard: {{image: "{IMAGE}"{timeout}}}}}
  {more}
""")


def get(plan: Plan, kind: str, hook: Hook = Hook.SUPPORT) -> dict[str, Any]:
    (body,) = [dict(found.body) for found in guard.render(plan) if (found.kind, found.hook) == (kind, hook)]
    return body


def settings(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(get(plan, "ConfigMap")["data"]["settings.json"])
    return found


def pod(plan: Plan, hook: Hook = Hook.BEFORE) -> dict[str, Any]:
    spec: dict[str, Any] = get(plan, "Job", hook)["spec"]["template"]["spec"]
    return spec


# --- When there is one -------------------------------------------------------------------------------------------


def test_it_lies_with_the_pools_rule() -> None:
    plan = a_guard()
    rules = [found for found in partitions.render(plan) if isinstance(found, Manifest)]
    assert {found.folder for found in (*guard.render(plan), *rules)} == {"partitions/p"}


def test_nothing_is_written_where_nothing_would_run_it_or_nothing_is_to_be_guarded() -> None:
    assert list(guard.render(a_guard(spec="flux: {}"))) == []
    assert list(guard.render(a_guard(spec=""))) == []
    assert list(guard.render(a_guard(spec=f"nodeLabels: external\n  {ARGO_CD}"))) == []
    assert list(guard.render(a_guard(sharing="timeSlicing: {replicas: 4}", gpu="L40S-48GB"))) == []
    assert list(guard.render(a_guard(nodes=""))) == []


def test_its_account_gives_its_token_to_the_guards_pods_alone() -> None:
    plan = a_guard()

    assert get(plan, "ServiceAccount") == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": get(plan, "ConfigMap")["metadata"] | {"name": "gpuplan-guard-p"},
        "automountServiceAccountToken": False,
    }
    assert pod(plan)["serviceAccountName"] == "gpuplan-guard-p"
    assert pod(plan)["automountServiceAccountToken"] is True


def test_its_script_and_settings_are_mounted_to_be_read() -> None:
    [container] = pod(a_guard())["containers"]

    assert container["volumeMounts"] == [{"name": "script", "mountPath": "/gpuplan", "readOnly": True}]


# --- What the script goes by -------------------------------------------------------------------------------------


def config_of(plan: Plan) -> str:
    return plan.pools[0].labels["nvidia.com/mig.config"]


def test_nodes_by_name() -> None:
    plan = a_guard()
    assert settings(plan) == {
        "pool": "p",
        "namespace": "gpu-operator",
        "timeoutSeconds": 1800,
        "targets": [{"config": config_of(plan), "names": ["n1", "n2"]}],
        "leaving": "all-disabled",
    }


def test_settings_can_be_read_by_people() -> None:
    assert get(a_guard(), "ConfigMap")["data"]["settings.json"].startswith('{\n  "pool": "p",\n')


def test_nodes_by_pattern() -> None:
    plan = a_guard("namePattern: 'gpu-[0-9]'", sharing="exclusive: {}")
    assert settings(plan)["targets"] == [{"config": "all-disabled", "pattern": "gpu-[0-9]"}]


def test_halves_of_a_rollout_have_a_target_each() -> None:
    rollout = f"rollout: {{sharing: {{{MIG}}}, nodes: [gpu-2]}}"
    plan = a_guard("namePattern: 'gpu-[0-9]'", sharing="exclusive: {}", more=rollout)
    moved = plan.pools[0].parts[1].labels["nvidia.com/mig.config"]
    assert settings(plan)["targets"] == [
        {"config": "all-disabled", "pattern": "gpu-[0-9]", "except": ["gpu-2"]},
        {"config": moved, "names": ["gpu-2"]},
    ]


def test_labels_of_node_objects_stay_on_nodes_that_leave() -> None:
    assert settings(a_guard(spec=f"nodeLabels: node\n  {ARGO_CD}"))["leaving"] is None


def test_what_the_script_goes_by_is_in_the_name() -> None:
    names = {get(plan, "ConfigMap")["metadata"]["name"] for plan in (a_guard(), a_guard(), a_guard("names: [n1, n3]"))}
    assert len(names) == 2
    (volume,) = pod(a_guard())["volumes"]
    assert volume["configMap"]["name"] == get(a_guard(), "ConfigMap")["metadata"]["name"]


def test_the_script_is_the_packages() -> None:
    assert get(a_guard(), "ConfigMap")["data"]["guard.py"] == Path(guard.__file__).with_name("script.py").read_text()


# --- What it may do ----------------------------------------------------------------------------------------------


def test_it_may_list_and_do_nothing_else() -> None:
    plan = a_guard()
    role, binding = get(plan, "ClusterRole"), get(plan, "ClusterRoleBinding")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list"]},
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    account = get(plan, "ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert pod(plan)["serviceAccountName"] == account["name"]


def test_pods_meet_the_standard_restricted() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted."""
    for hook in (Hook.BEFORE, Hook.AFTER):
        spec = pod(a_guard(), hook)
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert [set(volume) for volume in spec["volumes"]] == [{"name", "configMap"}]


def test_openshift_chooses_the_user() -> None:
    plan = a_guard(spec=f"platform: openshift\n  {ARGO_CD}")
    assert pod(plan)["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_a_job_runs_once_and_not_for_ever() -> None:
    plan = a_guard(timeout=", timeout: 1h30m")
    before, after = (get(plan, "Job", hook)["spec"] for hook in (Hook.BEFORE, Hook.AFTER))
    assert (before["backoffLimit"], after["backoffLimit"]) == (0, 0)
    assert (before["activeDeadlineSeconds"], after["activeDeadlineSeconds"]) == (600, 5400 + 300)
    assert settings(plan)["timeoutSeconds"] == 5400
    assert pod(plan)["containers"][0]["image"] == IMAGE
    assert pod(plan, Hook.AFTER)["containers"][0]["command"][-2:] == ["after", "/gpuplan/settings.json"]


def test_names_fit_into_a_label() -> None:
    one, other = ("-".join(["pool" * 14, last]) for last in ("ab", "cd"))
    names = {found.name for name in (one, other) for found in guard.render(a_guard(name=name)) if found.kind == "Job"}
    assert len(names) == 4
    assert max(map(len, names)) <= 63


# --- How Argo CD runs it -----------------------------------------------------------------------------------------


def told(plan: Plan, kind: str, hook: Hook = Hook.SUPPORT) -> dict[str, str]:
    (found,) = [found for found in guard.render(plan) if (found.kind, found.hook) == (kind, hook)]
    metadata = annotate(found, plan.cluster).body["metadata"]
    return {key.removeprefix("argocd.argoproj.io/"): value for key, value in metadata["annotations"].items()}


def test_what_a_job_needs_is_there_before_it_and_goes_with_the_sync() -> None:
    for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap"):
        assert told(a_guard(), kind) == {
            "hook": "PreSync",
            "hook-delete-policy": "BeforeHookCreation,HookSucceeded,HookFailed",
            "sync-wave": "-1",
        }


def test_jobs_run_before_and_after_and_stay_to_be_read() -> None:
    kept = {"hook-delete-policy": "BeforeHookCreation"}
    assert told(a_guard(), "Job", Hook.BEFORE) == {"hook": "PreSync", **kept}
    assert told(a_guard(), "Job", Hook.AFTER) == {"hook": "PostSync", **kept}


def test_the_project_allows_all_of_it() -> None:
    """Where no chart's kinds are allowed anyway."""
    plan = a_guard()
    identities = tuple(sorted(found.identity for found in guard.render(plan)))
    rendered = argocd.render(plan, [Folder("partitions/p", identities)])
    (project,) = [found.body for found in rendered if isinstance(found, Manifest) and found.kind == "AppProject"]
    allowed = {
        (scope, entry["group"], entry["kind"])
        for scope in ("cluster", "namespace")
        for entry in project["spec"][f"{scope}ResourceWhitelist"]
    }
    assert {("namespace" if item.namespace else "cluster", item.group, item.kind) for item in identities} <= allowed


# --- As files ----------------------------------------------------------------------------------------------------


def written(plan: Plan) -> list[Manifest]:
    return [annotate(found, plan.cluster) for found in guard.render(plan)]


def test_objects_fit_their_schemas() -> None:
    for kubernetes in ("1.31", "1.34"):
        assert check_schemas(written(a_guard()), kubernetes) == ()


def test_kustomize_builds_the_folder_and_keeps_the_script(tmp_path: Path) -> None:
    tree = render_tree("test", written(a_guard()), (), {})
    for path, text in tree.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)
    found = {body["kind"]: body for body in yaml.safe_load_all(kustomize(tmp_path / "test/partitions/p"))}
    assert found["ConfigMap"]["data"] == get(a_guard(), "ConfigMap")["data"]


def test_the_same_policy_makes_the_same_files() -> None:
    one, other = (render_tree("test", written(a_guard(nodes)), (), {}) for nodes in (NAMED, "names: [n1, n2]"))
    assert one.files == other.files
