"""The GPU Operator's folder is healthy when the operator works with the ConfigMaps that are in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends.gpu_operator import config_map_names
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.delivery.flux.cel import WAITING, health
from tests.compiler.delivery.flux.rendered import (
    CLUSTER,
    POOL,
    Platform,
    a_cluster,
    folder,
    identify,
    kustomization,
    objects,
)
from tests.kustomizing import kustomize
from tests.plans import a_plan

HELM = a_cluster(pools={"a100": "manual"})
NAMES = config_map_names(HELM)
DRIVER = Identity("nvidia.com", "NVIDIADriver", "", "a100")
CONFIG_MAP = Identity("", "ConfigMap", "gpu-operator", NAMES.mig_parted)
RULE = Identity("nfd.k8s-sigs.io", "NodeFeatureRule", "", "a100")


def check(kind: str, *identities: Identity) -> dict[str, str]:
    expressions = kustomization(HELM, "gpu-operator", *identities)["spec"]["healthCheckExprs"]
    (found,) = [item for item in expressions if item["kind"] == kind]
    return dict(found)


# --- ClusterPolicy -----------------------------------------------------------------------------------------------

SPEC = {
    "migManager": {"config": {"name": NAMES.mig_parted}},
    "devicePlugin": {"config": {"name": NAMES.device_plugin, "default": ""}},
}


def policy_health(spec: Mapping[str, Any], **status: Any) -> str:
    body = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"generation": 2}, "spec": spec}
    return health(check("ClusterPolicy"), body | status)


def a_status(state: str, reason: str = "Reconciled", *, is_ready: bool = True) -> dict[str, Any]:
    """As the operator writes it (`internal/conditions` of NVIDIA/gpu-operator, v24.6.2 to v26.7.0)."""
    ready, error = ("True", "False") if is_ready else ("False", "True")
    conditions = [
        {"type": "Ready", "status": ready, "reason": reason if is_ready else "Error"},
        {"type": "Error", "status": error, "reason": "Ready" if is_ready else reason},
    ]
    return {"state": state, "namespace": "gpu-operator", "conditions": conditions}


def test_a_cluster_policy_is_healthy_when_it_is_ready() -> None:
    assert policy_health(SPEC, status=a_status("ready")) == "Current"
    assert policy_health(SPEC, status=a_status("ready", "NoGPUNodes")) == "Current"
    assert policy_health(SPEC, status=a_status("notReady", "OperandNotReady", is_ready=False)) == WAITING


def test_nodes_without_labels_of_nfd_are_waited_for() -> None:
    """The operator calls itself ready, and has no DaemonSet."""
    assert policy_health(SPEC, status=a_status("ready", "NFDLabelsMissing")) == WAITING


def test_a_cluster_policy_that_nobody_has_looked_at_is_waited_for() -> None:
    assert policy_health(SPEC) == WAITING
    assert policy_health(SPEC, status={}) == WAITING
    assert policy_health(SPEC, status={"state": "ready"}) == WAITING
    assert policy_health({}, status=a_status("ready")) == WAITING


@pytest.mark.parametrize("part", ["migManager", "devicePlugin"])
def test_ready_with_another_config_map_is_not_ready(part: str) -> None:
    """Helm has not upgraded yet: labels that name new layouts would find the old file."""
    old = SPEC | {part: {"config": {"name": "gpuplan-00000000"}}}
    assert policy_health(old, status=a_status("ready")) == WAITING


def test_without_pools_the_device_plugin_has_no_config_map() -> None:
    (expression,) = kustomization(a_cluster(), "gpu-operator")["spec"]["healthCheckExprs"]
    assert "devicePlugin" not in expression["current"]
    names = config_map_names(a_cluster())
    body = {"spec": {"migManager": {"config": {"name": names.mig_parted}}}, "status": a_status("ready")}
    assert health(expression, body) == "Current"


# --- NVIDIADriver ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (a_status("ready"), "Current"),
        (a_status("disabled", is_ready=False), "Current"),
        (a_status("notReady", "DriverNotReady", is_ready=False), WAITING),
        (a_status("ready", "DriverNotReady", is_ready=False), WAITING),
    ],
    ids=["ready", "disabled", "not ready", "not ready, with an old state"],
)
def test_a_driver_is_as_healthy_as_it_says(status: dict[str, Any], expected: str) -> None:
    assert health(check("NVIDIADriver", DRIVER), {"status": status}) == expected


def test_a_driver_that_nobody_has_looked_at_is_waited_for() -> None:
    assert health(check("NVIDIADriver", DRIVER), {"kind": "NVIDIADriver"}) == WAITING


# --- What is checked ---------------------------------------------------------------------------------------------


def test_with_helm_the_charts_cluster_policy_is_checked() -> None:
    """It is not in the folder, and `wait` checks nothing else."""
    spec = kustomization(HELM, "gpu-operator", DRIVER)["spec"]
    assert "wait" not in spec
    assert spec["healthChecks"] == [
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"},
        {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "name": "a100"},
    ]
    assert spec["timeout"] == "15m"


def test_with_somebody_elses_cluster_policy_all_that_is_applied_is_checked() -> None:
    spec = kustomization(a_cluster(install="external"), "gpu-operator")["spec"]
    assert spec["wait"] is True
    assert "healthChecks" not in spec
    assert [item["kind"] for item in spec["healthCheckExprs"]] == ["ClusterPolicy"]


def test_where_its_owner_merges_the_patch_pools_wait_for_that() -> None:
    """Nothing of the ClusterPolicy is in the folder; it is healthy with the ConfigMaps that are."""
    merged = a_cluster(pools={"a100": "manual"}, install="external", operator=", clusterPolicyPatch: snippet")
    spec = kustomization(merged, "gpu-operator")["spec"]
    assert "wait" not in spec
    assert spec["healthChecks"] == [{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"}]
    (expression,) = spec["healthCheckExprs"]
    assert NAMES.mig_parted in expression["current"]
    found = objects(merged, folder("gpu-operator", CONFIG_MAP), folder("partitions/a100", RULE))
    assert found["Kustomization/gpu-partitions-prod-a100"]["spec"]["dependsOn"] == [{"name": "gpu-operator-prod"}]


# --- OLM ---------------------------------------------------------------------------------------------------------

OLM = a_cluster(install="olm")
BY_OLM = folder(
    "gpu-operator",
    Identity("", "ConfigMap", "nvidia-gpu-operator", "gpuplan-mig-parted-00000000"),
    Identity("", "Namespace", "", "nvidia-gpu-operator"),
    Identity("nvidia.com", "ClusterPolicy", "", "gpu-cluster-policy"),
    Identity("operators.coreos.com", "OperatorGroup", "nvidia-gpu-operator", "gpu-operator-certified"),
    Identity("operators.coreos.com", "Subscription", "nvidia-gpu-operator", "gpu-operator-certified"),
)


def test_by_olm_the_subscription_goes_first() -> None:
    """Flux applies nothing of a folder that has an object of an unknown kind."""
    found = {name: body["spec"] for name, body in objects(OLM, BY_OLM).items()}
    assert list(found) == ["Kustomization/gpu-subscriptions-prod", "Kustomization/gpu-operator-prod"]
    first, second = found.values()
    assert "dependsOn" not in first
    assert second["dependsOn"] == [{"name": "gpu-subscriptions-prod"}]
    assert [patch["target"] for patch in first["patches"]] == [{"group": r"nvidia\.com", "kind": "ClusterPolicy"}]
    assert [patch["target"] for patch in second["patches"]] == [
        {"kind": "ConfigMap|Namespace"},
        {"group": r"operators\.coreos\.com", "kind": "OperatorGroup|Subscription"},
    ]


def test_a_subscription_is_healthy_when_something_is_installed() -> None:
    first, _ = objects(OLM, BY_OLM).values()
    (expression,) = first["spec"]["healthCheckExprs"]
    assert expression["kind"] == "Subscription"
    assert health(expression, {"status": {"installedCSV": "gpu-operator-certified.v26.7.0"}}) == "Current"
    assert health(expression, {"status": {"state": "UpgradePending"}}) == WAITING
    assert health(expression, {"spec": {}}) == WAITING


def test_by_olm_each_object_is_in_one_of_the_two(tmp_path: Path) -> None:
    """Flux adds the patches to the folder's kustomization."""
    built = Platform(tmp_path).build("openshift")
    for path, data in built.tree.items():
        file = tmp_path / "out" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    operator = tmp_path / "out/openshift/gpu-operator"
    whole = {identify(body) for body in yaml.safe_load_all(kustomize(operator))}
    text = (operator / "kustomization.yaml").read_text()
    parts = []
    for name in ("gpu-subscriptions-openshift", "gpu-operator-openshift"):
        body = built.kustomizations[name]
        (operator / "kustomization.yaml").write_text(text + yaml.safe_dump({"patches": body["spec"]["patches"]}))
        parts.append({identify(body) for body in yaml.safe_load_all(kustomize(operator))})
        assert parts[-1] == built.applied(body).keys()
    first, second = parts
    assert first | second == whole
    assert not first & second
    assert {name.partition("/")[0] for name in second} == {"ClusterPolicy", "NodeFeatureDiscovery"}


# --- Approval ----------------------------------------------------------------------------------------------------


def suspended(plan: Plan) -> set[str]:
    policy = Identity("nvidia.com", "ClusterPolicy", "", "cluster-policy")
    found = objects(plan, folder("gpu-operator", policy))
    return {key for key, body in found.items() if body["spec"].get("suspend")}


@pytest.mark.parametrize(
    ("install", "waits"),
    [
        ("helm", {"HelmRelease/gpu-operator-prod"}),
        ("external", {"Kustomization/gpu-operator-prod"}),
        ("olm", {"Kustomization/gpu-operator-prod"}),
    ],
)
def test_what_makes_the_operator_act_waits_for_a_person(install: str, waits: set[str]) -> None:
    """ConfigMaps do nothing until a release names them, and subscriptions until there is a ClusterPolicy."""
    assert suspended(a_cluster("operatorApproval: manual", install=install)) == waits
    assert suspended(a_cluster(install=install)) == set()


def test_with_mps_a_person_starts_the_operator_unless_the_policy_says_otherwise() -> None:
    pool = POOL.format(name="a", approval="manual").replace("exclusive: {}", "mps: {replicas: 4}")
    for flux, waits in (("", True), ("operatorApproval: automatic", False)):
        cluster = CLUSTER.format(name="prod", platform="kubernetes", install="helm", operator="", flux=flux)
        assert bool(suspended(a_plan(cluster + pool))) == waits
