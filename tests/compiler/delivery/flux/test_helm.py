"""The chart is installed by a HelmRelease that nothing but a person removes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.delivery.flux.rendered import Platform, a_cluster, objects


def release(plan: Plan) -> dict[str, Any]:
    return objects(plan)["HelmRelease/gpu-operator-prod"]


def repository(plan: Plan) -> dict[str, Any]:
    return objects(plan)["HelmRepository/gpu-operator-prod"]


def test_a_release() -> None:
    body = release(a_cluster())
    assert body.pop("apiVersion") == "helm.toolkit.fluxcd.io/v2"
    assert body["metadata"] == {
        "name": "gpu-operator-prod",
        "namespace": "flux-system",
        "annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"},
    }
    spec = body["spec"]
    assert spec.pop("values")
    assert spec.pop("postRenderers")
    action = {
        "crds": "CreateReplace",
        "disableWait": True,
        "strategy": {"name": "RetryOnFailure", "retryInterval": "1m"},
    }
    assert spec == {
        "interval": "10m",
        "releaseName": "gpu-operator",
        "targetNamespace": "gpu-operator",
        "storageNamespace": "gpu-operator",
        "chart": {
            "spec": {
                "chart": "gpu-operator",
                "version": "v26.7.0",
                "sourceRef": {"kind": "HelmRepository", "name": "gpu-operator-prod"},
            }
        },
        "install": {"createNamespace": True, **action},
        "upgrade": action,
        "driftDetection": {"mode": "enabled"},
    }


def test_what_the_chart_renders_as_null_is_patched() -> None:
    [renderer] = release(a_cluster())["spec"]["postRenderers"]
    [patch] = renderer["kustomize"]["patches"]
    assert patch["target"] == {"group": "nvidia.com", "kind": "ClusterPolicy"}
    body = yaml.safe_load(patch["patch"])
    assert (body["kind"], body["metadata"]["name"]) == ("ClusterPolicy", "cluster-policy")
    assert body["spec"] == {"devicePlugin": {"config": {"default": ""}}, "mig": {}, "validator": {"plugin": {}}}


def test_a_default_of_the_device_plugin_is_not_patched_away() -> None:
    [renderer] = release(a_cluster(operator=", defaultDevicePluginConfig: any"))["spec"]["postRenderers"]
    body = yaml.safe_load(renderer["kustomize"]["patches"][0]["patch"])
    assert body["spec"]["devicePlugin"] == {"config": {"default": "any"}}


def test_its_repository() -> None:
    assert repository(a_cluster()) == {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": {
            "name": "gpu-operator-prod",
            "namespace": "flux-system",
            "annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"},
        },
        "spec": {"interval": "10m", "url": "https://helm.ngc.nvidia.com/nvidia"},
    }


def test_a_registry_is_of_another_type() -> None:
    spec = repository(a_cluster(operator=", chartRepoURL: 'oci://registry.example.com/charts'"))["spec"]
    assert spec == {"type": "oci", "interval": "10m", "url": "oci://registry.example.com/charts"}


def test_what_the_policy_says_of_flux() -> None:
    plan = a_cluster(
        "namespace: gitops, interval: 1h, labels: {team: gpu}, serviceAccountName: applier, kubeConfigSecret: remote",
        operator=", namespace: nvidia",
    )
    body = release(plan)
    assert body["metadata"]["namespace"] == "gitops"
    assert body["metadata"]["labels"] == repository(plan)["metadata"]["labels"] == {"team": "gpu"}
    assert {key: body["spec"][key] for key in ("interval", "serviceAccountName", "kubeConfig", "targetNamespace")} == {
        "interval": "1h",
        "serviceAccountName": "applier",
        "kubeConfig": {"secretRef": {"name": "remote"}},
        "targetNamespace": "nvidia",
    }


@pytest.mark.parametrize("install", ["olm", "external"])
def test_no_release_where_helm_does_not_install(install: str) -> None:
    assert objects(a_cluster(install=install)) == {}


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_the_values_are_those_of_the_file(tmp_path: Path, cluster: str) -> None:
    built = Platform(tmp_path).build(cluster)
    values = built.flux[f"HelmRelease/gpu-operator-{cluster}"]["spec"]["values"]
    assert values == yaml.safe_load(built.tree[f"{cluster}/gpu-operator/values.yaml"])
