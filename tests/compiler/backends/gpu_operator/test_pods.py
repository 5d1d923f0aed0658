"""What the operator is told of its pods: their environment, and where their images come from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.backends.gpu_operator.rendered import a_cluster, helm_values, objects

TOOLKIT = "toolkit: {CONTAINERD_SOCKET: /run/k3s/containerd/containerd.sock}"
ENV = f"env: {{{TOOLKIT}, devicePlugin: {{PASS_DEVICE_SPECS: 'true'}}}}"
SOCKET = {"name": "CONTAINERD_SOCKET", "value": "/run/k3s/containerd/containerd.sock"}
SPECS = {"name": "PASS_DEVICE_SPECS", "value": "true"}


def policy(more: str) -> Any:
    (found,) = objects(a_cluster(install="olm", platform="openshift", more=more), "ClusterPolicy")
    return found["spec"]


def test_helm_has_the_environment() -> None:
    values = helm_values(a_cluster(more=ENV))
    assert (values["toolkit"]["env"], values["devicePlugin"]["env"]) == ([SOCKET], [SPECS])


def test_a_cluster_policy_has_it_too() -> None:
    spec = policy(ENV)
    assert (spec["toolkit"]["env"], spec["devicePlugin"]["env"]) == ([SOCKET], [SPECS])


def test_it_stands_beside_that_of_the_values_and_above_it() -> None:
    values = "values: {toolkit: {env: [{name: A, value: a}, {name: CONTAINERD_SOCKET, value: elsewhere}]}}"
    assert helm_values(a_cluster(more=f"{ENV}, {values}"))["toolkit"]["env"] == [{"name": "A", "value": "a"}, SOCKET]


def test_what_closes_devices_goes_before_it() -> None:
    found = helm_values(a_cluster(version="v25.3.4", more=f"{ENV}, closeVisibleDevices: true"))["toolkit"]["env"]
    assert [item["name"] for item in found][:2] == [
        "CONTAINERD_SOCKET",
        "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED",
    ]


MIRROR = "registry: registry.example.com/nvcr, imagePullSecrets: [mirror]"


@pytest.mark.parametrize(
    ("release", "operand", "repository"),
    [
        ("v26.7.0", "toolkit", "nvidia/k8s"),
        ("v26.7.0", "validator", "nvidia"),
        ("v25.3.4", "validator", "nvidia/cloud-native"),
        ("v26.7.0", "migManager", "nvidia/cloud-native"),
    ],
)
def test_images_come_from_the_mirror(release: str, operand: str, repository: str) -> None:
    block = helm_values(a_cluster(version=release, more=MIRROR))[operand]
    assert block["repository"] == f"registry.example.com/nvcr/{repository}"
    assert block["imagePullSecrets"] == ["mirror"]


def test_what_prepares_a_driver_comes_from_the_mirror() -> None:
    driver = helm_values(a_cluster(more=MIRROR))["driver"]
    assert driver["manager"] == {"repository": "registry.example.com/nvcr/nvidia/cloud-native"}


def test_values_of_the_policy_are_above_the_mirror() -> None:
    values = helm_values(a_cluster(more=f"{MIRROR}, values: {{toolkit: {{repository: elsewhere.example.com}}}}"))
    assert values["toolkit"]["repository"] == "elsewhere.example.com"


def test_all_operands_of_a_cluster_policy_have_the_secrets() -> None:
    spec = policy("imagePullSecrets: [mirror]")
    found = {key for key, block in spec.items() if block.get("imagePullSecrets") == ["mirror"]}
    assert found == {
        "driver",
        "toolkit",
        "devicePlugin",
        "dcgm",
        "dcgmExporter",
        "gfd",
        "migManager",
        "nodeStatusExporter",
        "validator",
    }
