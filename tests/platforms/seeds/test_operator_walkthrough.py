"""The walkthrough of the GPU Operator: one GPU, one service, and a second pod that waits."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.pipeline import build
from tests.platforms.seeds.platforms import an_object, container, document, findings, with_change

NAME = "operator-walkthrough"
CLUSTER = "drivers-on-nodes"
TAINT = "{key: nvidia.com/gpu, effect: NoSchedule}"


@pytest.mark.parametrize(("cluster", "is_installed"), [(CLUSTER, False), ("drivers-by-operator", True)])
def test_the_operator_installs_the_driver_where_nodes_have_none(cluster: str, is_installed: bool) -> None:
    assert an_object(NAME, cluster, "gpu-operator/values.yaml")["driver"]["enabled"] is is_installed


def test_the_operator_has_its_namespace() -> None:
    #: -n gpu-operator --create-namespace
    assert an_object(NAME, CLUSTER, "gpu-operator/namespace-gpu-operator.yaml")["kind"] == "Namespace"


def test_gpus_are_whole() -> None:
    data = an_object(NAME, CLUSTER, "gpu-operator/configmap-gpuplan-device-plugin-*.yaml")["data"]
    assert data == {"gpus": "version: v1\n"}


def test_the_service_asks_for_a_whole_gpu_and_mounts_the_model() -> None:
    body = an_object(NAME, CLUSTER, "workloads/llm/deployment-llm-inference.yaml")
    found = container(body)
    assert found["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "/model" in {mount["mountPath"] for mount in found["volumeMounts"]}


def test_the_model_is_downloaded_once() -> None:
    #: it completes once
    claim = an_object(NAME, CLUSTER, "workloads/llm/persistentvolumeclaim-llm-inference-model.yaml")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    job = an_object(NAME, CLUSTER, "workloads/llm/job-llm-inference-download-*.yaml")
    assert container(job)["args"] == ["microsoft/Phi-3-mini-4k-instruct", "/model"]
    [token] = container(job)["env"]
    assert token == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}


def test_the_port_is_that_of_the_document() -> None:
    spec = an_object(NAME, CLUSTER, "workloads/llm/service-llm-inference.yaml")["spec"]
    [port] = spec["ports"]
    assert (spec["type"], port["port"], port["nodePort"]) == ("NodePort", 8000, 30080)


def test_a_second_pod_is_refused_before_it_is_pending(tmp_path: Path) -> None:
    #: 2 replicas on 1 GPU
    change = document("Workload", "llm-inference", "inference: {replicas: 2}")
    assert "GPU571" in {item.code for item in findings(NAME, CLUSTER, change, tmp_path)}


def test_the_toolkit_finds_containerd_on_k3s() -> None:
    """The operator mounts the folders of both (`transformForRuntime` in its `controllers/object_controls.go`)."""
    env = an_object(NAME, "k3s", "gpu-operator/values.yaml")["toolkit"]["env"]
    assert env == [
        {"name": "CONTAINERD_CONFIG", "value": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"},
        {"name": "CONTAINERD_SOCKET", "value": "/run/k3s/containerd/containerd.sock"},
    ]


def test_on_minikube_containerd_is_where_the_toolkit_looks() -> None:
    values = an_object(NAME, "minikube", "gpu-operator/values.yaml")
    assert values["driver"]["enabled"] is False
    assert "toolkit" not in values


def test_a_second_pod_is_taken_with_a_second_gpu(tmp_path: Path) -> None:
    #: 2 replicas on 2 GPUs
    change = (
        document("Workload", "llm-inference", "inference: {replicas: 2}, model: {accessMode: ReadWriteMany}")
        + document("Pool", "gpus", "nodes: {gpusPerNode: 2}")
        + document("Tenant", "llm", "quotas: [{pool: gpus, guaranteed: 2}]")
    )
    assert [item for item in findings(NAME, CLUSTER, change, tmp_path) if item.is_error] == []


def test_three_pods_have_a_share_each(tmp_path: Path) -> None:
    """The document has them wait for ever."""
    #: 3 pods on 1 GPU
    change = (
        document("Workload", "llm-inference", "inference: {replicas: 3}")
        + document("Pool", "gpus", "sharing: {exclusive: null, timeSlicing: {replicas: 3}}")
        + document("Tenant", "llm", "quotas: [{pool: gpus, guaranteed: 3}]")
    )
    assert [item for item in findings(NAME, CLUSTER, change, tmp_path) if item.is_error] == []


def test_an_autoscaler_goes_no_further_than_its_gpus(tmp_path: Path) -> None:
    #: an autoscaler beyond the GPUs
    change = document("Workload", "llm-inference", "inference: {autoscaling: {maxReplicas: 4, requestsPerSecond: 1}}")
    assert "GPU571" in {item.code for item in findings(NAME, CLUSTER, change, tmp_path)}


def test_limits_equal_requests() -> None:
    """The document asks what happens without limits: the API server refuses the pod."""
    #: requests without limits
    resources = container(an_object(NAME, CLUSTER, "workloads/llm/deployment-llm-inference.yaml"))["resources"]
    assert resources["limits"] == resources["requests"]


def test_pods_go_to_the_pool_and_tolerate_its_taints(tmp_path: Path) -> None:
    #: taints and tolerations
    #: the node selector
    root = with_change(NAME, CLUSTER, document("Pool", "gpus", f"taints: [{TAINT}]"), tmp_path)
    tree = build(root, (CLUSTER,), kustomize="off").tree
    pod = yaml.safe_load(tree[f"{CLUSTER}/workloads/llm/deployment-llm-inference.yaml"])["spec"]["template"]
    assert pod["spec"]["nodeSelector"] == {"gpuplan.dev/pool": "gpus"}
    assert pod["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_pods_carry_the_name_of_the_service() -> None:
    #: app=llm-inference
    spec = an_object(NAME, CLUSTER, "workloads/llm/deployment-llm-inference.yaml")["spec"]
    assert spec["selector"]["matchLabels"] == {"gpuplan.dev/workload": "llm-inference"}


def test_two_pods_are_kept_on_one_node(tmp_path: Path) -> None:
    #: Exercise 3: Pod Affinity
    near = (
        "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname,"
        " labelSelector: {matchLabels: {gpuplan.dev/workload: llm-inference}}}]}"
    )
    change = (
        document(
            "Workload",
            "llm-inference",
            f"inference: {{replicas: 2}}, podPatch: {{spec: {{affinity: {{podAffinity: {near}}}}}}}",
        )
        + document("Pool", "gpus", "nodes: {gpusPerNode: 2}")
        + document("Tenant", "llm", "quotas: [{pool: gpus, guaranteed: 2}]")
    )
    root = with_change(NAME, CLUSTER, change, tmp_path)
    made = build(root, (CLUSTER,), kustomize="off")
    assert [item for item in made.report.diagnostics if item.is_error] == []
    pod = yaml.safe_load(made.tree[f"{CLUSTER}/workloads/llm/deployment-llm-inference.yaml"])["spec"]["template"]
    [term] = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
