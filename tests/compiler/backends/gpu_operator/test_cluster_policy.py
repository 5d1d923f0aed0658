from __future__ import annotations

import pytest

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends import crds
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, cluster_policy, config_map, objects
from tests.subjects import A_CLUSTER

CLUSTER_POLICIES = "nvidia.com_clusterpolicies.yaml"
TEAM_TAINT = "[{key: example.com/team, value: a, effect: NoExecute}]"
MIG = "{mig: {instances: {1g.10gb: 7}}}"


def names(plan: Plan) -> dict[str, str]:
    return {
        part: str(config_map(plan, prefix)["metadata"]["name"])
        for part, prefix in (("migManager", "gpuplan-mig-parted-"), ("devicePlugin", "gpuplan-device-plugin-"))
    }


# --- A patch over somebody else's --------------------------------------------------------------------------------


def test_a_patch_owns_what_it_must() -> None:
    plan = a_cluster(a_pool(sharing=MIG), install="external")
    assert cluster_policy(plan)["spec"] == {
        "migManager": {"config": {"name": names(plan)["migManager"], "default": "all-disabled"}},
        "devicePlugin": {"config": {"name": names(plan)["devicePlugin"], "default": ""}},
    }


def test_a_patch_sets_the_strategy_that_the_cluster_states_and_reboots() -> None:
    plan = a_cluster(a_pool(sharing=MIG), install="external", more="migStrategy: mixed, rebootOnMigChange: true")
    spec = cluster_policy(plan)["spec"]
    assert spec["mig"] == {"strategy": "mixed"}
    assert spec["migManager"]["env"] == [{"name": "WITH_REBOOT", "value": "true"}]


def test_a_patch_leaves_the_owners_tolerations_alone() -> None:
    assert "daemonsets" not in cluster_policy(a_cluster(a_pool(taints=TEAM_TAINT), install="external"))["spec"]


def test_a_patch_is_a_part_of_the_object_that_the_policy_names() -> None:
    rendered = gpu_operator.render(a_cluster(install="external", more="clusterPolicy: gpus"))
    manifests = [item for item in rendered if isinstance(item, Manifest)]
    found = [(item.name, item.is_partial) for item in manifests if item.kind == "ClusterPolicy"]
    assert found == [("gpus", True)]


def test_who_installs_the_operator_elsewhere_owns_its_namespace() -> None:
    assert objects(a_cluster(install="external"), "Namespace") == []


# --- A whole one -------------------------------------------------------------------------------------------------


def openshift(*pools: str, more: str = "", version: str = "v26.7.0") -> Plan:
    return a_cluster(*pools, install="olm", platform="openshift", version=version, more=more)


def test_a_whole_cluster_policy() -> None:
    plan = openshift(a_pool(sharing=MIG, taints=TEAM_TAINT))
    assert cluster_policy(plan)["metadata"]["name"] == "gpu-cluster-policy"
    assert cluster_policy(plan)["spec"] == {
        "operator": {"runtimeClass": "nvidia", "use_ocp_driver_toolkit": True},
        "daemonsets": {
            "updateStrategy": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "1"},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "example.com/team", "operator": "Exists", "effect": "NoExecute"},
            ],
        },
        "cdi": {"enabled": True, "default": False, "nriPluginEnabled": False},
        "driver": {
            "enabled": True,
            "kernelModuleType": "auto",
            "upgradePolicy": {
                "autoUpgrade": True,
                "maxParallelUpgrades": 1,
                "maxUnavailable": "25%",
                "drain": {"enable": False, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
                "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
            },
        },
        "toolkit": {"enabled": True, "installDir": "/usr/local/nvidia"},
        "migManager": {"enabled": True, "config": {"name": names(plan)["migManager"], "default": "all-disabled"}},
        "devicePlugin": {
            "enabled": True,
            "config": {"name": names(plan)["devicePlugin"], "default": ""},
            "mps": {"root": "/run/nvidia/mps"},
        },
        "gfd": {"enabled": True},
        "dcgm": {"enabled": True},
        "dcgmExporter": {"enabled": True, "serviceMonitor": {"enabled": True}},
        "nodeStatusExporter": {"enabled": True},
        "validator": {"plugin": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}},
    }


def test_a_driver_version_comes_with_its_image_or_would_not_count() -> None:
    driver = cluster_policy(openshift(more="driver: {version: 580.95.05}"))["spec"]["driver"]
    assert (driver["repository"], driver["image"], driver["version"]) == ("nvcr.io/nvidia", "driver", "580.95.05")


def test_fields_that_an_older_definition_does_not_declare_are_left_out() -> None:
    spec = cluster_policy(openshift(version="v24.9.2"))["spec"]
    assert spec["cdi"] == {"enabled": False, "default": False}
    assert "kernelModuleType" not in spec["driver"]


@pytest.mark.parametrize(("version", "is_there"), [("v24.6.2", True), ("v25.10.1", True), ("v26.3.0", False)])
def test_a_runtime_is_named_where_the_definition_requires_one(version: str, *, is_there: bool) -> None:
    """No controller reads it; from v26.3 on the definition calls it deprecated, and gives it no default."""
    operator = cluster_policy(openshift(version=version))["spec"]["operator"]
    assert operator.get("defaultRuntime") == ("crio" if is_there else None)


@pytest.mark.parametrize(
    ("strategy", "written"), [("perPool", None), ("none", {"strategy": "none"}), ("mixed", {"strategy": "mixed"})]
)
def test_the_strategy_is_set_or_absent_but_never_empty(strategy: str, written: object) -> None:
    assert cluster_policy(openshift(more=f"migStrategy: {strategy}"))["spec"].get("mig") == written


# --- The real definition -----------------------------------------------------------------------------------------

WHOLE = (
    openshift(),
    openshift(a_pool(sharing=MIG, taints=TEAM_TAINT), more="driver: {version: 580.95.05}, rebootOnMigChange: true"),
    openshift(a_pool(sharing=MIG), more="migStrategy: mixed, driver: {enabled: false}"),
)
PATCHES = (
    a_cluster(a_pool(), install="external"),
    a_cluster(a_pool(sharing=MIG), install="external", more="migStrategy: mixed, rebootOnMigChange: true"),
)


@pytest.mark.parametrize("plan", WHOLE)
def test_a_whole_cluster_policy_fits_its_definition(plan: Plan) -> None:
    assert crds.problems([Manifest("gpu-operator", cluster_policy(plan), about=A_CLUSTER, trace=None)]) == []


@pytest.mark.parametrize("plan", PATCHES)
def test_a_patch_lacks_nothing_but_what_the_owner_has(plan: Plan) -> None:
    body = cluster_policy(plan)
    required = crds.schema(CLUSTER_POLICIES)["properties"]["spec"]["required"]
    owners: dict[str, object] = {part: {} for part in required if part not in body["spec"]}
    completed = {**body, "spec": {**owners, **body["spec"]}}
    assert crds.problems([Manifest("gpu-operator", completed, about=A_CLUSTER, trace=None)]) == []


@pytest.mark.parametrize("plan", [*WHOLE, *PATCHES])
def test_nothing_appears_in_the_object_after_it_is_applied(plan: Plan) -> None:
    assert list(crds.drift(cluster_policy(plan), crds.schema(CLUSTER_POLICIES))) == []
