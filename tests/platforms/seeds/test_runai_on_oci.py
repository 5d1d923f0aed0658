"""The article on Run:ai in Oracle's cloud: projects, over-quota, fractions, gangs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.platforms.seeds.platforms import an_object, built, document, findings

NAME = "runai-on-oci"


def project() -> Any:
    return json.loads(built(NAME, "runai").tree["runai/scheduling/runai/projects/runai-user-agm.json"])


def resources(pool: str) -> Any:
    [found] = [item for item in project()["resources"] if item["nodePool"]["name"] == pool]
    return found


def test_a_project_has_gpus_cpus_and_memory() -> None:
    found = resources("a10")
    assert (found["gpu"]["deserved"], found["cpu"]["deserved"]) == (1, 16000)
    assert found["memory"]["deserved"] > 0


def test_what_is_idle_may_be_used_beyond_the_quota() -> None:
    assert resources("a10")["gpu"]["limit"] == 2
    queue = an_object(NAME, "kai", "queues/a10/queue-user-agm-a10.yaml")["spec"]["resources"]["gpu"]
    assert (queue["quota"], queue["limit"]) == (1, 2)


def test_a_researcher_is_a_member() -> None:
    binding = an_object(NAME, "kai", "namespaces/runai-user-agm/rolebinding-gpuplan-edit.yaml")
    [subject] = binding["subjects"]
    assert (subject["kind"], subject["name"]) == ("User", "anand.manian@example.com")


def test_two_jobs_share_a_gpu() -> None:
    #: a Train job
    asked = [
        an_object(NAME, "kai", f"workloads/runai-user-agm/job-{name}-*.yaml")["spec"]["template"]["metadata"][
            "annotations"
        ]["gpu-fraction"]
        for name in ("frac05-3", "frac03-3")
    ]
    assert asked == ["0.5", "0.3"]


def test_pods_fill_a_gpu_before_the_next() -> None:
    #: fill a GPU before the next
    shard = an_object(NAME, "kai", "scheduling/schedulingshard-a10.yaml")
    assert shard["spec"]["placementStrategy"]["gpu"] == "binpack"


def test_all_parts_of_a_job_start_together() -> None:
    job = an_object(NAME, "kai", "workloads/runai-user-agm/job-distributed-*.yaml")
    assert job["metadata"]["annotations"]["kai.scheduler/batch-min-member"] == "2"


def test_a_training_ends_after_its_time() -> None:
    #: a training's deadline
    job = an_object(NAME, "kai", "workloads/runai-user-agm/job-distributed-*.yaml")
    assert job["spec"]["activeDeadlineSeconds"] == 12 * 3600


def test_a_search_has_more_trials_than_run_at_once() -> None:
    #: a search
    job = an_object(NAME, "kai", "workloads/runai-user-agm/job-search-*.yaml")
    assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (4, 12)


def test_a_service_has_so_much_gpu_memory() -> None:
    for cluster in ("kai", "runai"):
        service = an_object(NAME, cluster, "workloads/runai-vision/deployment-gpu-ram.yaml")
        assert service["spec"]["template"]["metadata"]["annotations"] == {"gpu-memory": "4096"}


def test_more_memory_than_the_board_has_is_refused(tmp_path: Path) -> None:
    change = document("Workload", "gpu-ram", "fraction: {memory: 40Gi}")
    assert "GPU592" in {item.code for item in findings(NAME, "kai", change, tmp_path)}


def test_who_may_be_evicted_is_what_the_classes_say() -> None:
    #: who may be evicted
    job = an_object(NAME, "kai", "workloads/runai-user-agm/job-frac05-3-*.yaml")
    assert job["spec"]["template"]["metadata"]["labels"]["kai.scheduler/preemptibility"] == "preemptible"
    assert an_object(NAME, "kai", "scheduling/priorityclass-interactive.yaml")["value"] == 110


def test_queues_hold_what_the_tenant_is_guaranteed() -> None:
    #: quota of user-agm
    #: GPUs beyond the quota
    queue = an_object(NAME, "kai", "queues/a100/queue-user-agm-a100.yaml")["spec"]["resources"]
    assert (queue["gpu"]["quota"], queue["gpu"]["limit"]) == (8, 16)


def test_parts_of_a_job_share_a_rack() -> None:
    #: zone and rack
    annotations = an_object(NAME, "kai", "workloads/runai-user-agm/job-distributed-*.yaml")["metadata"]["annotations"]
    assert annotations["kai.scheduler/topology-required-placement"] == "oci.oraclecloud.com/rack"
    levels = an_object(NAME, "kai", "scheduling/topology-a100.yaml")["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == ["topology.kubernetes.io/zone", "oci.oraclecloud.com/rack"]


def test_workspaces_end_when_their_time_is_over() -> None:
    rules = {"interactiveJobTimeLimitSeconds": 12 * 3600, "interactiveJobMaxIdleDurationSeconds": 3600}
    assert project()["schedulingRules"] == rules


def test_a_workspace_is_a_jupyter_session_on_a_tenth_of_a_gpu() -> None:
    for cluster in ("kai", "runai"):
        job = an_object(NAME, cluster, "workloads/runai-user-agm/job-anand-workspace-*.yaml")["spec"]
        assert job["template"]["metadata"]["annotations"]["gpu-fraction"] == "0.1"
        assert job["activeDeadlineSeconds"] == 12 * 3600
        claim = an_object(NAME, cluster, "workloads/runai-user-agm/persistentvolumeclaim-anand-workspace-storage.yaml")
        assert claim["spec"]["resources"]["requests"] == {"storage": "20Gi"}


def test_nobody_evicts_a_workspace_of_people() -> None:
    job = an_object(NAME, "kai", "workloads/runai-user-agm/job-anand-workspace-*.yaml")
    assert job["spec"]["template"]["metadata"]["labels"]["kai.scheduler/preemptibility"] == "non-preemptible"


def test_a_workspace_that_is_longer_than_the_rules_of_its_project_is_told_of(tmp_path: Path) -> None:
    change = document("Workload", "anand-workspace", "workspace: {idle: 3h, runTime: 24h}")
    assert "GPU437" in {item.code for item in findings(NAME, "runai", change, tmp_path)}


def test_ports_of_an_interactive_build_are_open_to_people() -> None:
    service = an_object(NAME, "runai", "workloads/runai-user-agm/service-build.yaml")["spec"]
    assert [port["port"] for port in service["ports"]] == [8080]
    assert service["selector"] == {"gpuplan.dev/workload": "build"}


def test_a_pod_claims_a_partition_that_is_made_for_it() -> None:
    job = an_object(NAME, "on-demand", "workloads/runai-user-agm/job-anand-*.yaml")
    [claim] = job["spec"]["template"]["spec"]["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == "gpuplan-a100-80gb-1g.10gb"
    values = an_object(NAME, "on-demand", "gpu-operator/dra-driver-values.yaml")
    assert values["featureGates"] == {"DynamicMIG": True}
