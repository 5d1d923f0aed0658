"""What teams want of GPUs, as whole repositories: each is valid, builds, and its numbers are as people reckon them."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import Condition, Mechanism, Party, evictions
from tests.compiler.backends.crds import crds

SCENARIOS = Path(__file__).parent / "repositories" / "scenarios"
CLUSTERS = sorted((path.parents[2].name, path.parent.name) for path in SCENARIOS.glob("*/overlays/*/cluster.yaml"))


@pytest.mark.parametrize(("name", "cluster"), CLUSTERS)
def test_scenario_is_valid_and_builds(name: str, cluster: str) -> None:
    built = build(SCENARIOS / name, (cluster,))
    assert [item for item in built.report.diagnostics if item.is_error] == []
    assert any(path.startswith(f"{cluster}/workloads/") for path in built.tree)


@pytest.mark.parametrize(("name", "cluster"), CLUSTERS)
def test_every_object_fits_its_definition(name: str, cluster: str) -> None:
    built = build(SCENARIOS / name, (cluster,), crds=crds())
    assert built.report.is_valid


# --- Three services on one GPU -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["three-by-time-slicing", "three-by-mps"])
@pytest.mark.parametrize("cluster", ["plain", "kueue"])
def test_three_shares_are_three_services(name: str, cluster: str) -> None:
    root = SCENARIOS / name
    [unit] = plan(root, cluster).pools[0].units
    assert (unit.resource, unit.capacity) == ("nvidia.com/gpu.shared", 3)
    deployment = an_object(root, cluster, "workloads/models/deployment-chat.yaml")
    assert deployment["spec"]["replicas"] == 3
    assert limits(deployment) == {"nvidia.com/gpu.shared": "1"}
    if cluster == "kueue":  # whose queue is the cap
        queue = an_object(root, cluster, "scheduling/clusterqueue-models.yaml")
        [group] = queue["spec"]["resourceGroups"]
        [given] = group["flavors"][0]["resources"]
        assert (given["name"], given["nominalQuota"]) == ("nvidia.com/gpu.shared", "3")
    else:
        quota = an_object(root, cluster, "namespaces/models/resourcequota-gpuplan.yaml")
        assert quota["spec"]["hard"]["requests.nvidia.com/gpu.shared"] == "3"


@pytest.mark.parametrize("name", ["three-by-time-slicing", "three-by-mps", "three-by-fractions"])
def test_a_fourth_is_refused(name: str, tmp_path: Path) -> None:
    for cluster in clusters(name):
        root = changed(name, cluster, chat(4), tmp_path / cluster)
        finding = only(root, cluster, "GPU571").finding
        assert finding.help.startswith("write `replicas: 3`, or raise `guaranteed` to ")
        assert finding.help.endswith(" and raise `nodes.count` of pool `shared` to 2")


def test_mps_gives_each_a_third_of_the_memory_and_time_slicing_promises_none() -> None:
    [mps] = plan(SCENARIOS / "three-by-mps", "plain").pools[0].units
    [turns] = plan(SCENARIOS / "three-by-time-slicing", "plain").pools[0].units
    assert (mps.memory_mib, str(mps.isolation)) == (81920 // 3, "MPS memory limit")
    assert str(turns.isolation) == "none"


@pytest.mark.parametrize(("cluster", "scheduler"), [("kai", "kai-scheduler"), ("runai", "runai-scheduler")])
def test_three_fractions_are_three_services(cluster: str, scheduler: str) -> None:
    root = SCENARIOS / "three-by-fractions"
    template = an_object(root, cluster, "workloads/models/deployment-chat.yaml")["spec"]["template"]
    assert template["metadata"]["annotations"] == {"gpu-fraction": "0.33"}
    assert template["spec"]["schedulerName"] == scheduler
    assert "resources" not in template["spec"]["containers"][0]


def test_three_fractions_are_within_a_queue_of_one_gpu() -> None:
    gpu = an_object(SCENARIOS / "three-by-fractions", "kai", "queues/shared/queue-models-shared.yaml")
    assert gpu["spec"]["resources"]["gpu"] == {"quota": 1, "limit": 1, "overQuotaWeight": 1}
    assert 3 * Decimal("0.33") <= 1 < 4 * Decimal("0.33")


@pytest.mark.parametrize(
    ("fraction", "leaving"),
    [
        ("0.5", 2),  # 0.01 is free, one pod less makes that 0.34, two less 0.67
        ("0.34", 1),
        ("0.67", 2),
        ("0.68", 3),
    ],
)
@pytest.mark.parametrize("cluster", ["kai", "runai"])
def test_urgent_training_evicts_as_few_services_as_make_room(
    cluster: str, fraction: str, leaving: int, tmp_path: Path
) -> None:
    root = changed("three-by-fractions", cluster, urgent_training(fraction), tmp_path)
    assert [item for item in validate(root, (cluster,)).diagnostics if item.is_error] == []
    pods = f"{leaving} pod{'s' if leaving > 1 else ''}"
    message = only(root, cluster, "GPU576").finding.message
    assert message == f"a pod of `tune` evicts {pods} of `chat` from a full GPU"
    assert leaving == fewest_that_leave([Decimal("0.33")] * 3, Decimal(fraction))


@pytest.mark.parametrize("cluster", ["kai", "runai"])
def test_urgent_training_may_evict_services_and_they_not_it(cluster: str) -> None:
    serving, urgent = Party("models", "serving"), Party("models", "urgent")
    found = [item for item in evictions(plan(SCENARIOS / "three-by-fractions", cluster)) if item.counted is None]
    assert [item.mechanism for item in found if item.holds(urgent, serving)] == [Mechanism.QUEUE]
    assert not any(item.holds(serving, urgent) for item in found)


def fewest_that_leave(fractions: list[Decimal], wanted: Decimal) -> int:
    """Of pods on one GPU, by trying."""
    return next(count for count in range(len(fractions) + 1) if sum(fractions[count:]) + wanted <= 1)


# --- Whole GPUs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", ["plain", "kueue", "kai", "runai"])
def test_a_service_has_the_whole_gpu(cluster: str) -> None:
    deployment = an_object(SCENARIOS / "whole-gpus", cluster, "workloads/models/deployment-llm.yaml")
    assert limits(deployment) == {"nvidia.com/gpu": "1"}
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0, "a new one needs the GPU of the old one"


@pytest.mark.parametrize("cluster", ["plain", "kueue", "kai", "runai"])
def test_what_a_second_replica_needs_is_said(cluster: str, tmp_path: Path) -> None:
    root = changed("whole-gpus", cluster, two_services_of_a_whole_gpu(), tmp_path)
    finding = only(root, cluster, "GPU571").finding
    assert finding.message == "`llm` asks for up to 2 `gpu` of pool `whole`, and tenant `models` may use 1"
    assert (
        finding.help == "write `replicas: 1`, or raise `guaranteed` to 2 and raise `nodes.count` of pool `whole` to 2"
    )


@pytest.mark.parametrize("cluster", ["plain", "kueue", "kai", "runai"])
def test_with_what_was_said_the_second_replica_fits(cluster: str, tmp_path: Path) -> None:
    more = (
        two_services_of_a_whole_gpu(),
        document("Pool", "whole", "{nodes: {count: 2}}"),
        document("Tenant", "models", "{quotas: [{pool: whole, guaranteed: 2}]}"),
    )
    root = changed("whole-gpus", cluster, "---\n".join(more), tmp_path)
    assert [item for item in validate(root, (cluster,)).diagnostics if item.is_error] == []


# --- Elastic fractions -------------------------------------------------------------------------------------------


def test_runai_keeps_the_range_and_kai_scheduler_says_that_it_keeps_the_least() -> None:
    root = SCENARIOS / "elastic"
    limit = {"kai.scheduler/container.main.gpu-memory.portion.limit": "0.75"}
    assert fraction_annotations(root, "runai") == {"gpu-fraction": "0.25", **limit}
    assert fraction_annotations(root, "kai") == {"gpu-fraction": "0.25"}
    lost = only(root, "kai", "GPU534").finding
    assert lost.message == "KAI-Scheduler keeps only in part: fractions that grow and shrink"
    assert said(root, "runai", "GPU534") == []


@pytest.mark.parametrize("cluster", ["kai", "runai"])
def test_what_counts_of_a_range_is_the_least(cluster: str, tmp_path: Path) -> None:
    assert said(SCENARIOS / "elastic", cluster, "GPU571") == []
    root = changed("elastic", cluster, chat(5), tmp_path)
    assert "up to 1.25 `fraction`" in only(root, cluster, "GPU571").finding.message


def fraction_annotations(root: Path, cluster: str) -> dict[str, str]:
    template = an_object(root, cluster, "workloads/models/deployment-chat.yaml")["spec"]["template"]
    found: dict[str, str] = template["metadata"]["annotations"]
    return found


# --- Gangs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", ["plain", "kueue", "kai", "runai"])
def test_four_pods_of_four_gpus_make_a_job(cluster: str) -> None:
    job = the_job(SCENARIOS / "gang-of-four", cluster)
    assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (4, 4)
    assert limits(job) == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize("cluster", ["kai", "runai"])
def test_the_scheduler_is_told_how_many_start_together(cluster: str) -> None:
    annotations = the_job(SCENARIOS / "gang-of-four", cluster)["metadata"]["annotations"]
    assert annotations["kai.scheduler/batch-min-member"] == "4"


@pytest.mark.parametrize("cluster", ["plain", "kueue", "kai", "runai"])
def test_torchrun_starts_four_processes_in_each_pod_and_finds_the_first(cluster: str) -> None:
    job = the_job(SCENARIOS / "gang-of-four", cluster)
    [container] = job["spec"]["template"]["spec"]["containers"]
    found = {item["name"]: item.get("value") for item in container["env"]}
    assert (found["PET_NNODES"], found["PET_NPROC_PER_NODE"]) == ("4", "4")
    assert found["PET_MASTER_ADDR"] == "{0}-0.{0}".format(job["metadata"]["name"])


def test_kai_keeps_them_together() -> None:
    annotations = the_job(SCENARIOS / "gang-of-four", "kai")["metadata"]["annotations"]
    assert annotations["kai.scheduler/topology"] == "training"
    assert annotations["kai.scheduler/topology-preferred-placement"] == "kubernetes.io/hostname"


def test_kueue_admits_the_whole_job_and_keeps_it_together() -> None:
    root = SCENARIOS / "gang-of-four"
    template = the_job(root, "kueue")["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-preferred-topology": "kubernetes.io/hostname"}
    assert "start together" in only(root, "kueue", "GPU539").finding.message


def test_plain_kubernetes_is_said_to_start_them_one_by_one() -> None:
    root = SCENARIOS / "gang-of-four"
    assert "start together" in only(root, "plain", "GPU535").finding.message
    assert "close together" in only(root, "plain", "GPU536").finding.message


def test_a_gang_that_fits_by_its_sum_alone_is_refused(tmp_path: Path) -> None:
    """Two nodes of eight have room for two pods of five, and 16 GPUs for three."""
    root = changed("gang-of-four", "kai", gang(pods=3, count=5), tmp_path)
    finding = only(root, "kai", "GPU575").finding
    assert finding.label == "2 at most: a gang of 3 never starts"
    assert finding.notes == ("a node has 8 `gpu`: room for 1 pod of 5, 2 nodes for 2",)


# --- Placement ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pool", "strategy"), [("packed", "binpack"), ("spread", "spread")])
def test_kai_scheduler_packs_one_pool_and_spreads_the_other(pool: str, strategy: str) -> None:
    shard = an_object(SCENARIOS / "packed-and-spread", "kai", f"scheduling/schedulingshard-{pool}.yaml")
    assert shard["spec"]["partitionLabelValue"] == pool
    assert shard["spec"]["placementStrategy"]["gpu"] == strategy
    assert said(SCENARIOS / "packed-and-spread", "kai", "GPU537") == []


def test_plain_kubernetes_is_said_to_place_as_it_likes() -> None:
    finding = only(SCENARIOS / "packed-and-spread", "plain", "GPU537").finding
    assert [label.at.path for label in finding.related] == [("spec", "placement"), ("spec", "placement")]


# --- Over quota --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", ["kueue", "kai", "runai"])
def test_what_is_borrowed_is_counted(cluster: str) -> None:
    """Seven of eight, of which four are guaranteed to others: three must be given back when they come."""
    finding = only(SCENARIOS / "reclaimed", cluster, "GPU573").finding
    assert finding.message.startswith("3 of 7 `gpu` of pool `training` that workloads of tenant `research` ask for")
    assert finding.related[1].text == "`product` may want them back"


@pytest.mark.parametrize("cluster", ["kueue", "kai", "runai"])
def test_the_owner_takes_it_back_and_not_the_borrower(cluster: str) -> None:
    told = [item for item in evictions(plan(SCENARIOS / "reclaimed", cluster)) if item.counted is None]
    found = [item for item in told if item.mechanism is Mechanism.RECLAIM]
    research, product = Party("research", "batch"), Party("product", "batch")
    [taken] = [item for item in found if item.holds(product, research)]
    assert taken.when == (Condition.VICTIM_OVER_GUARANTEE, Condition.EVICTOR_WITHIN_GUARANTEE)
    assert not any(item.holds(research, product) for item in found), "`product` may not use more than its guarantee"


def test_plain_kubernetes_is_said_to_take_nothing_back() -> None:
    root = SCENARIOS / "reclaimed"
    assert said(root, "plain", "GPU573") == []
    assert "the guarantee of `product` does not hold" in only(root, "plain", "GPU418").finding.message
    assert not [item for item in evictions(plan(root, "plain")) if item.mechanism is Mechanism.RECLAIM]


def test_within_its_guarantee_nothing_is_borrowed(tmp_path: Path) -> None:
    root = changed("reclaimed", "kai", sweep(4), tmp_path)
    assert said(root, "kai", "GPU573") == []


def test_beyond_the_limit_it_is_refused(tmp_path: Path) -> None:
    root = changed("reclaimed", "kai", sweep(9), tmp_path)
    assert only(root, "kai", "GPU571").finding.help.startswith("write `pods: 8`, or raise `limit` to 9")


# --- Repositories ------------------------------------------------------------------------------------------------


def chat(replicas: int) -> str:
    return document("Workload", "chat", f"{{inference: {{replicas: {replicas}}}}}")


def two_services_of_a_whole_gpu() -> str:
    return document("Workload", "llm", "{inference: {replicas: 2}}")


def sweep(pods: int) -> str:
    return document("Workload", "sweep", f"{{training: {{pods: {pods}}}}}")


def gang(pods: int, count: int) -> str:
    return document("Workload", "pretrain", f"{{count: {count}, training: {{pods: {pods}, gang: {pods}}}}}")


def urgent_training(fraction: str) -> str:
    run = f"tenant: models, pool: shared, fraction: {fraction}, priorityClass: urgent"
    return document("Workload", "tune", f'{{{run}, image: "example.com/tune:2", training: {{pods: 1}}}}')


def document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def changed(name: str, cluster: str, text: str, tmp_path: Path) -> Path:
    """A copy of the scenario whose overlay for one cluster has more documents."""
    root = tmp_path / name
    shutil.copytree(SCENARIOS / name, root)
    (root / "overlays" / cluster / "change.yaml").write_text(text)
    return root


def clusters(name: str) -> list[str]:
    return [cluster for scenario, cluster in CLUSTERS if scenario == name]


def plan(root: Path, cluster: str) -> Plan:
    [found] = validate(root, (cluster,)).plans
    return found


def said(root: Path, cluster: str, code: str) -> list[Diagnostic]:
    return [item for item in validate(root, (cluster,)).diagnostics if item.code == code]


def only(root: Path, cluster: str, code: str) -> Diagnostic:
    [found] = said(root, cluster, code)
    return found


def an_object(root: Path, cluster: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(build(root, (cluster,)).tree[f"{cluster}/{path}"])
    return found


def the_job(root: Path, cluster: str) -> dict[str, Any]:
    [path] = [path for path in build(root, (cluster,)).tree if "/job-" in path]
    return an_object(root, cluster, path.removeprefix(f"{cluster}/"))


def limits(owner: dict[str, Any]) -> dict[str, str]:
    [container] = owner["spec"]["template"]["spec"]["containers"]
    found: dict[str, str] = container["resources"]["limits"]
    return found
