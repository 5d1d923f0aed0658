"""The walkthrough of the GPU Operator: one GPU, one service, and a second pod that waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seeds.platforms import an_object, container, document, findings

NAME = "operator-walkthrough"
CLUSTER = "drivers-on-nodes"


@pytest.mark.parametrize(("cluster", "is_installed"), [(CLUSTER, False), ("drivers-by-operator", True)])
def test_the_operator_installs_the_driver_where_nodes_have_none(cluster: str, is_installed: bool) -> None:
    assert an_object(NAME, cluster, "gpu-operator/values.yaml")["driver"]["enabled"] is is_installed


def test_gpus_are_whole() -> None:
    data = an_object(NAME, CLUSTER, "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    assert data == {"gpus": "version: v1\n"}


def test_the_service_asks_for_a_whole_gpu_and_mounts_the_model() -> None:
    body = an_object(NAME, CLUSTER, "workloads/llm/deployment-llm-inference.yaml")
    found = container(body)
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "/model" in {mount["mountPath"] for mount in found["volumeMounts"]}


def test_the_model_is_downloaded_once() -> None:
    claim = an_object(NAME, CLUSTER, "workloads/llm/persistentvolumeclaim-llm-inference-model.yaml")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    job = an_object(NAME, CLUSTER, "workloads/llm/job-llm-inference-download-*.yaml")
    assert container(job)["args"] == ["microsoft/Phi-3-mini-4k-instruct", "/model"]


def test_the_port_is_that_of_the_document() -> None:
    [port] = an_object(NAME, CLUSTER, "workloads/llm/service-llm-inference.yaml")["spec"]["ports"]
    assert port["port"] == 8000


def test_a_second_pod_is_refused_before_it_is_pending(tmp_path: Path) -> None:
    change = document("Workload", "llm-inference", "inference: {replicas: 2}")
    assert "GPU571" in {item.code for item in findings(NAME, CLUSTER, change, tmp_path)}


def test_the_toolkit_finds_containerd_on_k3s() -> None:
    """The operator mounts the folders of both (`transformForRuntime` in its `controllers/object_controls.go`)."""
    env = an_object(NAME, "k3s", "gpu-operator/values.yaml")["toolkit"]["env"]
    assert env == [
        {"name": "CONTAINERD_CONFIG", "value": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"},
        {"name": "CONTAINERD_SOCKET", "value": "/run/k3s/containerd/containerd.sock"},
    ]
