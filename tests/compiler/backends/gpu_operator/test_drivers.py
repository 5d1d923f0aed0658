"""NVIDIADrivers: which nodes each is for, and what it takes over of what is said for all nodes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends.gpu_operator import render
from gpuplan.compiler.manifests import File, Manifest
from tests.plans import a_plan

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec:
  kubernetes: "1.34"
  platform: %s
  gpuOperator: {install: %s, version: v26.7.0, driver: {version: 580.95.05}%s}
"""
POOLS = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: old}
spec:
  gpu: V100-16GB
  nodes: {count: 2, gpusPerNode: 4, namePattern: "old-[0-9]+"}
  sharing: {exclusive: {}}
  taints: [{key: special, effect: NoSchedule}]
%s
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: new}
spec:
  gpu: H100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "new-[0-9]+"}
  sharing: {exclusive: {}}
"""
OWN = "  driver: {version: 570.195.03, kernelModules: proprietary}"
HELM, OLM = ("kubernetes", "helm"), ("openshift", "olm")


def written(way: tuple[str, str] = HELM, more: str = "", own: str = OWN) -> Any:
    return list(render(a_plan(CLUSTER % (*way, more) + POOLS % own)))


def drivers(found: Any) -> dict[str, Any]:
    bodies = [item.body for item in found if isinstance(item, Manifest) and item.body["kind"] == "NVIDIADriver"]
    return {body["metadata"]["name"]: body["spec"] for body in bodies}


def helm(found: Any) -> Any:
    return yaml.safe_load(
        next(item.data for item in found if isinstance(item, File) and item.path.endswith("values.yaml"))
    )


TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "special", "operator": "Exists", "effect": "NoSchedule"},
]
UPGRADES = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "25%"}
USUAL = {"driverType": "gpu", "image": "driver", "repository": "nvcr.io/nvidia", "usePrecompiled": False}


@pytest.mark.parametrize("way", [HELM, OLM])
def test_a_pool_has_its_own_and_one_is_for_the_rest(way: tuple[str, str]) -> None:
    told = {
        "drain": {"enable": False, "force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
        "podDeletion": {"force": False, "timeoutSeconds": 300, "deleteEmptyDir": False},
    }
    upgrades = {**UPGRADES, **(told if way is OLM else {})}
    shared = {**USUAL, "tolerations": TOLERATIONS, "upgradePolicy": upgrades}
    assert drivers(written(way=way)) == {
        "gpuplan-old": {
            **shared,
            "default": False,
            "kernelModuleType": "proprietary",
            "nodeSelector": {"gpuplan.dev/pool": "old"},
            "version": "570.195.03",
        },
        "gpuplan": {**shared, "default": True, "kernelModuleType": "auto", "version": "580.95.05"},
    }


def test_the_operator_is_told_to_look_at_them() -> None:
    assert helm(written())["driver"] == {
        "enabled": True,
        "version": "580.95.05",
        "nvidiaDriverCRD": {"enabled": True, "deployDefaultCR": False},
    }
    (policy,) = (
        item.body for item in written(way=OLM) if isinstance(item, Manifest) and item.body["kind"] == "ClusterPolicy"
    )
    assert policy["spec"]["driver"]["useNvidiaDriverCRD"] is True


@pytest.mark.parametrize("way", [HELM, OLM])
def test_without_a_pool_that_names_one_nothing_is_said(way: tuple[str, str]) -> None:
    found = written(way=way, own="")

    assert drivers(found) == {}
    assert "NvidiaDriverCRD" not in str(found)
    assert way is OLM or "nvidiaDriverCRD" not in helm(found)["driver"]


VALUES = """, values: {
  driver: {
    licensingConfig: {secretName: license}, virtualTopology: {config: topology}, repoConfig: {configMapName: mirror},
    certConfig: {name: ""}, upgradePolicy: {maxParallelUpgrades: 3, gpuPodDeletion: {force: true}},
    manager: {env: [{name: ENABLE_AUTO_DRAIN, value: "false"}]}, kernelModuleType: open},
  gds: {enabled: false, version: 2.26.6}, daemonsets: {labels: {team: gpu}}}, imagePullSecrets: [pull],
  registry: registry.example.com/nvcr"""


def test_values_of_the_chart_hold_for_each() -> None:
    found = drivers(written(more=VALUES))

    assert found["gpuplan-old"] == {
        **USUAL,
        "default": False,
        "imagePullSecrets": ["pull"],
        "kernelModuleType": "proprietary",
        "labels": {"team": "gpu"},
        "licensingConfig": {"secretName": "license"},
        "manager": {
            "env": [{"name": "ENABLE_AUTO_DRAIN", "value": "false"}],
            "repository": "registry.example.com/nvcr/nvidia/cloud-native",
        },
        "nodeSelector": {"gpuplan.dev/pool": "old"},
        "repoConfig": {"name": "mirror"},
        "repository": "registry.example.com/nvcr/nvidia",
        "tolerations": TOLERATIONS,
        "upgradePolicy": {**UPGRADES, "maxParallelUpgrades": 3, "podDeletion": {"force": True}},
        "version": "570.195.03",
        "virtualTopologyConfig": {"name": "topology"},
    }
    assert found["gpuplan"]["kernelModuleType"] == "open"


@pytest.mark.parametrize(("stated", "written_"), [("", "open"), (", kernelModules: auto", "auto")])
def test_a_pool_that_says_nothing_of_kernel_modules_has_the_clusters(stated: str, written_: str) -> None:
    own = f"  driver: {{version: 570.195.03{stated}}}"
    found = drivers(written(more=", values: {driver: {kernelModuleType: open}}", own=own))

    assert found["gpuplan-old"]["kernelModuleType"] == written_
    assert found["gpuplan"]["kernelModuleType"] == "open"


def test_gpudirect_storage_comes_with_each_driver() -> None:
    gds = "{enabled: true, repository: nvcr.io/nvidia/cloud-native, image: nvidia-fs, version: 2.26.6}"
    found = drivers(written(more=f", values: {{gds: {gds}}}"))

    assert found["gpuplan"]["gds"] == found["gpuplan-old"]["gds"] == yaml.safe_load(gds)


def test_nodes_can_carry_the_name_of_each_as_a_label() -> None:
    """A pool's name may have the 63 characters of a label itself."""
    names = ["a" * 62 + end for end in "bc"] + ["a" * 55, "a" * 56]
    pools = (POOLS % OWN).split("---\n")[1]
    policies = [pools.replace("name: old", f"name: {name}").replace("old-", f"{name}-") for name in names]
    found = drivers(list(render(a_plan(CLUSTER % (*HELM, "") + "".join(f"---\n{text}" for text in policies)))))
    assert len(found) == len(names) + 1
    assert max(map(len, found)) == 63
    assert f"gpuplan-{'a' * 55}" in found
