"""What the operator is told so that no image chooses GPUs, for each line of releases."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, helm_values, objects
from tests.compiler.backends.gpu_operator.traces import own

CLOSED = "closeVisibleDevices: true"
IGNORED = {"ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED": "false"}
MOUNTED = {**IGNORED, "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS": "true"}
WITHOUT_CDI = (MOUNTED, {"DEVICE_LIST_STRATEGY": "volume-mounts"})
NATIVE_CDI: tuple[dict[str, str], dict[str, str]] = (IGNORED, {})


def variables(settings: dict[str, Any], operand: str) -> dict[str, str]:
    items = settings.get(operand, {}).get("env", [])
    names = [item["name"] for item in items]
    assert len(names) == len(set(names))
    return {item["name"]: item["value"] for item in items}


def told(settings: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    return variables(settings, "toolkit"), variables(settings, "devicePlugin")


def by_helm(version: str, values: str = "{}") -> tuple[dict[str, str], dict[str, str]]:
    return told(helm_values(a_cluster(version=version, more=f"{CLOSED}, values: {values}")))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v24.6.2", WITHOUT_CDI),
        ("v24.9.2", WITHOUT_CDI),
        ("v25.3.4", WITHOUT_CDI),
        ("v25.10.1", NATIVE_CDI),
        ("v26.3.3", NATIVE_CDI),
        ("v26.7.0", NATIVE_CDI),
    ],
)
@pytest.mark.parametrize("install", ["helm", "olm"])
def test_what_each_release_is_told(version: str, install: str, expected: tuple[dict[str, str], dict[str, str]]) -> None:
    if install == "helm":
        assert by_helm(version) == expected
    else:
        (policy,) = objects(
            a_cluster(install="olm", platform="openshift", version=version, more=CLOSED), "ClusterPolicy"
        )
        assert told(policy["spec"]) == expected


@pytest.mark.parametrize(
    ("version", "enabled", "strategy"),
    [("v25.3.4", "true", "volume-mounts,cdi-annotations"), ("v26.7.0", "false", "volume-mounts")],
)
def test_where_the_policy_says_whether_there_is_cdi(version: str, enabled: str, strategy: str) -> None:
    assert by_helm(version, f"{{cdi: {{enabled: {enabled}}}}}") == (MOUNTED, {"DEVICE_LIST_STRATEGY": strategy})


def test_nothing_is_told_unasked() -> None:
    assert told(helm_values(a_cluster(version="v25.3.4"))) == ({}, {})


def test_variables_of_the_policy_stay_and_none_is_there_twice() -> None:
    values = """{
      toolkit: {env: [{name: CONTAINERD_SOCKET, value: /run/k3s/containerd/containerd.sock},
                      {name: ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED, value: "false"}]},
      devicePlugin: {env: [{name: DEVICE_LIST_STRATEGY, value: volume-mounts},
                           {name: PASS_DEVICE_SPECS, value: "true"}]}}"""
    toolkit, plugin = by_helm("v25.3.4", values)
    assert toolkit == {"CONTAINERD_SOCKET": "/run/k3s/containerd/containerd.sock", **MOUNTED}
    assert plugin == {"PASS_DEVICE_SPECS": "true", "DEVICE_LIST_STRATEGY": "volume-mounts"}


def test_a_device_plugin_that_is_off_is_told_nothing() -> None:
    pool = a_pool(sharing="{mig: {instances: {1g.10gb: 7}}}") + "  allocation: dra\n"
    assert told(helm_values(a_cluster(pool, version="v25.3.4", more=CLOSED)))[1] == {}


def traced(plan: Plan) -> list[str]:
    return own(plan, "gpu-operator/values.yaml", "toolkit", "env", 0, "value")


def test_they_come_from_the_field_and_the_release() -> None:
    assert traced(a_cluster(version="v25.3.4", more=f"{CLOSED}, values: {{cdi: {{enabled: false}}}}")) == [
        "chosen by Cluster test spec.gpuOperator.closeVisibleDevices",
        "chosen by Cluster test spec.gpuOperator.version",
        "chosen by Cluster test spec.gpuOperator.values.cdi.enabled",
    ]
