"""The tutorial on Run:ai: three services on one GPU, and what goes beyond its quota."""

from __future__ import annotations

import json
from fractions import Fraction as Ratio
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.prices import costs, saved
from tests.platforms.seeds.platforms import SEEDS, an_object, built, container, document, findings, with_change

NAME = "runai-tutorial"


def request(path: str) -> Any:
    return json.loads(built(NAME, "runai").tree[f"runai/scheduling/runai/{path}"])


def test_the_project_has_the_quota_of_the_command() -> None:
    """`--gpu-quota 1 --cpu-quota 8 --memory-quota 32Gi`: thousandths of a CPU, and megabytes."""
    project = request("projects/runai-llm-inference.json")
    [found] = [item for item in project["resources"] if item["nodePool"]["name"] == "inference"]
    assert found["gpu"]["deserved"] == 1
    assert found["cpu"]["deserved"] == 8000
    assert found["memory"]["deserved"] == pytest.approx(32 * 1024**3 / 1e6, abs=1)


@pytest.mark.parametrize(("cluster", "scheduler"), [("runai", "runai-scheduler"), ("kai", "kai-scheduler")])
def test_three_pods_ask_for_a_third_of_a_gpu(cluster: str, scheduler: str) -> None:
    body = an_object(NAME, cluster, "workloads/runai-llm-inference/deployment-llm-inference-runai.yaml")
    assert body["spec"]["replicas"] == 3
    template = body["spec"]["template"]
    assert template["metadata"]["annotations"]["gpu-fraction"] == "0.33"
    assert template["spec"]["schedulerName"] == scheduler
    assert {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "max_split_size_mb:512"} in container(body)["env"]


def test_a_dynamic_pod_has_a_quarter_and_may_use_three() -> None:
    body = an_object(NAME, "runai", "workloads/elastic/deployment-dynamic-inference.yaml")
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"gpu-fraction": "0.25", "kai.scheduler/container.main.gpu-memory.portion.limit": "0.75"}
    assert {"name": "RUNAI_GPU_MEMORY_LIMIT", "value": "0.75"} in container(body)["env"]


@pytest.mark.parametrize(
    ("namespace", "name", "port"),
    [("runai-llm-inference", "llm-inference-runai", 30081), ("elastic", "dynamic-inference", 30082)],
)
def test_services_are_reached_at_the_ports_of_the_document(namespace: str, name: str, port: int) -> None:
    spec = an_object(NAME, "runai", f"workloads/{namespace}/service-{name}.yaml")["spec"]
    [found] = spec["ports"]
    assert (spec["type"], found["port"], found["nodePort"]) == ("NodePort", 8000, port)


def test_the_autoscaler_has_the_numbers_of_the_command() -> None:
    spec = an_object(NAME, "runai", "workloads/elastic/horizontalpodautoscaler-autoscale-inference.yaml")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 6)
    assert spec["metrics"][0]["pods"]["target"]["averageValue"] == "100"


@pytest.mark.parametrize("pool", ["inference", "training"])
def test_nodes_have_the_label_of_the_gpu_pool(pool: str) -> None:
    rule = an_object(NAME, "kai", f"partitions/{pool}/nodefeaturerule-gpuplan-pool-{pool}.yaml")
    assert rule["spec"]["rules"][0]["labels"]["runai/gpu-pool"] == pool


def test_the_training_job_in_the_pool_of_the_three_evicts_two(tmp_path: Path) -> None:
    """Not one, as the document has it: 2 x 0.33 and 0.5 are still more than a GPU."""
    #: it evicts what is less urgent
    change = document("Workload", "training-job", "pool: inference")
    [finding] = [item.finding for item in findings(NAME, "kai", change, tmp_path) if item.code == "GPU576"]
    assert "2 pods" in f"{finding.message} {finding.label} {' '.join(finding.notes)}"


def test_three_halves_do_not_fit_on_a_board(tmp_path: Path) -> None:
    """The document makes 3 of `3g.20gb`; it has neither 9 compute slices nor 12 memory slices."""
    #: 3x 3g.20gb
    change = document("Pool", "mig", "sharing: {mig: {instances: {3g.20gb: 3}}}")
    assert "GPU208" in {item.code for item in findings(NAME, "kai", change, tmp_path)}


def test_an_empty_cluster_gets_the_scheduler_that_shares_gpus() -> None:
    #: allow-fractions
    values = an_object(NAME, "kai", "scheduler/values.yaml")
    assert values["global"] == {"gpuSharing": True}


def test_a_training_beyond_what_there_is_is_told(tmp_path: Path) -> None:
    """Of 1 GPU, with a class that evicts nobody: it would wait for ever."""
    #: 1.49 of 1
    change = document("Workload", "training-job", "pool: inference, priorityClass: serving")
    found = [item.finding for item in findings(NAME, "kai", change, tmp_path) if item.code == "GPU571"]
    assert any("1.49" in f"{finding.message} {finding.label} {' '.join(finding.notes)}" for finding in found)


def test_three_services_are_all_that_fit(tmp_path: Path) -> None:
    """3 x 0.33 of 1; a fourth is beyond the quota."""
    #: all on 1 GPU
    #: beyond the quota
    [plan] = validate(SEEDS / NAME, ("kai",), kustomize="off").plans
    [service] = [found for found in plan.workloads if found.name == "llm-inference-runai"]
    assert float(service.most_pods * service.amount_per_pod) == pytest.approx(0.99)
    change = document("Workload", "llm-inference-runai", "inference: {replicas: 4}")
    assert "GPU571" in {item.code for item in findings(NAME, "kai", change, tmp_path)}


def test_runai_is_told_of_the_cluster_by_a_placeholder() -> None:
    """Its name and the address of the control plane are in the command that this makes."""
    #: runai.clusterName
    #: runai.controlPlane.url
    page = built(NAME, "runai").tree["runai/scheduling/runai/README.md"].decode()
    assert "clusterId" in page


def test_a_new_model_gets_a_part_of_the_requests(tmp_path: Path) -> None:
    #: Implement model versioning
    serving = "replicas: 2, canary: {weight: 10, image: registry.example.com/llm:2}, route: {hosts: [llm.example.com]}"
    root = with_change(NAME, "kai", document("Workload", "llm-inference-runai", f"inference: {{{serving}}}"), tmp_path)
    with (root / "overlays" / "kai" / "cluster.yaml").open("a", encoding="utf-8") as cluster:
        cluster.write("  apis: [HTTPRoute]\n  gateway: {name: public, namespace: gateways}\n")
    made = build(root, ("kai",), kustomize="off")
    assert [item for item in made.report.diagnostics if item.is_error] == []
    [route] = [yaml.safe_load(text) for path, text in made.tree.items() if "/httproute-llm" in path]
    [rule] = route["spec"]["rules"]
    assert [backend["weight"] for backend in rule["backendRefs"]] == [90, 10]


# --- What it saves -----------------------------------------------------------------------------------------------


def test_three_pods_cost_what_the_document_reckons() -> None:
    """Three GPUs become one: 66.7 % less, and 67.0 % without the hundredth of the GPU that no pod can have."""
    [plan] = validate(SEEDS / NAME, ("runai",), kustomize="off").plans
    found = costs(plan)
    assert found is not None
    [pods] = [cost for cost in found.workloads if cost.workload.name == "llm-inference-runai"]
    [pool] = [cost for cost in found.pools if cost.pool.name == "inference"]
    assert pods.whole_gpus == 3  #: 3 GPUs without sharing
    assert saved(pool.total, pods.whole_gpus) == Ratio(2, 3)  #: 67 % less
    assert (pods.most, saved(pods.most, pods.whole_gpus)) == (Ratio(99, 100), Ratio(67, 100))
