"""Each of Red Hat's sharing overlays, said as a policy, makes objects that mean the same; its errors are found.

The policies are those of the page `docs/from-red-hat-overlays.md`. What the overlays mean is read from
https://github.com/rh-aiservices-bu/gpu-partitioning-guide, below `gpu-sharing-instance/instance/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import validate
from tests.compiler.backends import crds
from tests.docs.pages import DOCS, blocks_of
from tests.docs.sessions import Session
from tests.kustomizing import kustomize, need

ERRORS = Path(__file__).parent / "repositories" / "red-hat-overlays"

SHARES = {
    "time-sliced-2": ("timeSlicing", 2),
    "time-sliced-4": ("timeSlicing", 4),
    "mps-2": ("mps", 2),
    "mps-4": ("mps", 4),
    "aws-time-sliced-2": ("timeSlicing", 2),
    "aws-time-sliced-4": ("timeSlicing", 4),
}
PARTITIONS = {"mig-single": ("single", {"1g.10gb": 7}), "mig-mixed": ("mixed", {"3g.40gb": 1, "2g.20gb": 2})}
WHOLE = ("default", "aws")
OVERLAYS = (*WHOLE, *SHARES, *PARTITIONS)

Objects = list[dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader of the page has below `out/` of the folder with the ten, in the end."""
    folder = tmp_path_factory.mktemp("page") / "reader"
    folder.mkdir()
    session = Session(folder)
    for block in blocks_of(DOCS / "from-red-hat-overlays.md"):
        session.follow(block)
    return folder / "gpu-config" / "out"


def objects(built: Path, overlay: str) -> Objects:
    return [body for body in yaml.safe_load_all(kustomize(built / overlay)) if body]


def only(found: Objects, kind: str, name: str = "") -> dict[str, Any]:
    [body] = [body for body in found if body["kind"] == kind and body["metadata"]["name"].startswith(name)]
    return body


def sharing(found: Objects) -> Any:
    """The device plugin's configuration for the pool."""
    return yaml.safe_load(only(found, "ConfigMap", "gpuplan-device-plugin-")["data"]["gpus"])


def layouts(found: Objects) -> Any:
    """The MIG manager's configurations by name."""
    return yaml.safe_load(only(found, "ConfigMap", "gpuplan-mig-parted-")["data"]["config.yaml"])["mig-configs"]


def machine_set(built: Path, overlay: str) -> Mapping[str, Any]:
    """What the pool's MachineSets must set, below `spec.template.spec`."""
    [group] = yaml.safe_load((built / overlay / "partitions" / "node-groups.yaml").read_text())["nodeGroups"]
    found: Mapping[str, Any] = group["machineSet"]["spec"]["template"]["spec"]
    return found


def test_the_page_says_each_of_the_ten(built: Path) -> None:
    assert {path.name for path in built.iterdir() if not path.name.startswith(".")} == set(OVERLAYS)


# --- What all overlays have --------------------------------------------------------------------------------------

BASE = {
    "operator": {"runtimeClass": "nvidia", "use_ocp_driver_toolkit": True},
    "driver": {
        "enabled": True,
        "upgradePolicy": {
            "autoUpgrade": True,
            "maxParallelUpgrades": 1,
            "maxUnavailable": "25%",
            "drain": {"enable": False, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
            "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
        },
    },
    "migManager": {"enabled": True, "config": {"default": "all-disabled"}},
    "devicePlugin": {"enabled": True},
    "daemonsets": {"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "1"}},
    "dcgm": {"enabled": True},
    "dcgmExporter": {"enabled": True, "serviceMonitor": {"enabled": True}},
    "gfd": {"enabled": True},
    "nodeStatusExporter": {"enabled": True},
    "toolkit": {"enabled": True},
    "validator": {"plugin": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}},
}
"""The ClusterPolicy of the overlays' base, less what it names and what differs between overlays.

`operator.defaultRuntime: crio` is left out: no controller reads it, and v26.3 deprecates it.
"""


def differences(wanted: object, found: object, route: str = "") -> list[str]:
    """Where what is found lacks or contradicts what is wanted; more may be there."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return [line for key in wanted for line in differences(wanted[key], found.get(key), f"{route}.{key}")]
    return [] if wanted == found else [f"{route}: {found} instead of {wanted}"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_cluster_policy_is_the_one_of_the_base(built: Path, overlay: str) -> None:
    policy = only(objects(built, overlay), "ClusterPolicy")
    assert policy["metadata"]["name"] == "gpu-cluster-policy"
    assert differences(BASE, policy["spec"]) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_objects_are_where_they_belong(built: Path, overlay: str) -> None:
    found = objects(built, overlay)
    assert "namespace" not in only(found, "ClusterPolicy")["metadata"]
    dashboards = [body for body in found if "console.openshift.io/dashboard" in body["metadata"].get("labels", {})]
    assert {body["metadata"]["namespace"] for body in dashboards} == {"openshift-config-managed"}
    plugin = only(found, "ConfigMap", "gpuplan-device-plugin-")
    assert plugin["metadata"]["namespace"] == "nvidia-gpu-operator"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_both_operators_come_by_olm(built: Path, overlay: str) -> None:
    subscribed = {
        body["spec"]["name"]: body["spec"]["source"]
        for body in objects(built, overlay)
        if body["kind"] == "Subscription"
    }
    assert subscribed == {"gpu-operator-certified": "certified-operators", "nfd": "redhat-operators"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_appears_in_the_cluster_policy_after_it_is_applied(built: Path, overlay: str) -> None:
    definition = crds.schema("nvidia.com_clusterpolicies.yaml")
    assert list(crds.drift(only(objects(built, overlay), "ClusterPolicy"), definition)) == []


# --- What each is for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", WHOLE)
def test_gpus_are_whole(built: Path, overlay: str) -> None:
    assert sharing(objects(built, overlay)) == {"version": "v1"}


@pytest.mark.parametrize("overlay", SHARES)
def test_gpus_are_shared_as_the_overlay_says(built: Path, overlay: str) -> None:
    kind, replicas = SHARES[overlay]
    config = sharing(objects(built, overlay))
    assert list(config["sharing"]) == [kind]
    assert config["sharing"][kind]["resources"] == [{"name": "nvidia.com/gpu", "replicas": replicas}]
    assert config["sharing"][kind]["renameByDefault"] is False


@pytest.mark.parametrize("overlay", PARTITIONS)
def test_gpus_are_partitioned_not_only_named(built: Path, overlay: str) -> None:
    strategy, instances = PARTITIONS[overlay]
    found = objects(built, overlay)
    assert only(found, "ClusterPolicy")["spec"]["mig"] == {"strategy": strategy}
    chosen = machine_set(built, overlay)["metadata"]["labels"]["nvidia.com/mig.config"]
    assert layouts(found)[chosen] == [{"devices": "all", "mig-enabled": True, "mig-devices": instances}]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_node_chooses_a_configuration_that_is_there(built: Path, overlay: str) -> None:
    found = objects(built, overlay)
    labels = machine_set(built, overlay)["metadata"]["labels"]
    assert labels["nvidia.com/device-plugin.config"] in only(found, "ConfigMap", "gpuplan-device-plugin-")["data"]
    assert labels.get("nvidia.com/mig.config", "all-disabled") in layouts(found)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_operator_tolerates_the_taint_that_the_machines_have(built: Path, overlay: str) -> None:
    assert machine_set(built, overlay)["taints"] == [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    tolerated = only(objects(built, overlay), "ClusterPolicy")["spec"]["daemonsets"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerated


@pytest.mark.parametrize("overlay", ["aws", "aws-time-sliced-2", "aws-time-sliced-4"])
def test_the_autoscaler_knows_the_gpus_by_name(built: Path, overlay: str) -> None:
    assert machine_set(built, overlay)["metadata"]["labels"]["cluster-api/accelerator"] == "nvidia-t4-16gb"


# --- What goes wrong in them -------------------------------------------------------------------------------------


def findings(cluster: str, kustomize: str = "off") -> set[tuple[str, str]]:
    """Codes and files of what is worse than a note; kustomize is mostly not asked, it would go to the network."""
    report = validate(ERRORS, [cluster], kustomize=kustomize)
    found = [item for item in report.diagnostics if item.severity != "note" and not item.code.startswith("GPU68")]
    return {(item.code, item.finding.at.locate().file.path.rpartition("/")[2]) for item in found}


@pytest.mark.parametrize(
    ("cluster", "code", "file"),
    [
        ("no-sharing", "GPU630", "device-plugin-config.yaml"),  # `replicas: 0`
        ("patch-by-kind", "GPU643", "kustomization.yaml"),  # Kyverno's, too
        ("remote-dashboard", "GPU644", "kustomization.yaml"),  # another one every day
        ("namespace-for-all", "GPU642", "kustomization.yaml"),  # the ClusterPolicy's as well
        ("dashboard-moved", "GPU669", "dashboard.yaml"),  # out of the console's sight
        ("zero-replicas", "GPU300", "pools.yaml"),  # the same as a policy
        ("no-instances", "GPU034", "pools.yaml"),  # a strategy as a policy
    ],
)
def test_an_error_of_the_overlays_is_found(cluster: str, code: str, file: str) -> None:
    assert (code, file) in findings(cluster)


@pytest.mark.parametrize(
    "cluster",
    [
        "no-layout",  # a strategy, and nothing to name by it
        "other-configuration",  # a default for all nodes
    ],
)
def test_an_error_of_the_overlays_is_found_when_they_are_built(cluster: str) -> None:
    need()
    assert ("GPU627", "patch-gpu-cluster-policy.yaml") in findings(cluster, kustomize="")


def test_the_errors_are_the_only_findings() -> None:
    assert findings("right") == set()
