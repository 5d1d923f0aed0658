"""Workspaces: a Job of one pod, a Service that leads to it, and a volume that outlives both."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from gpuplan.compiler.manifests import check_schemas
from gpuplan.compiler.policy.models import SchedulerKind
from tests.compiler.backends.workloads.rendered import container_of, get, manifests, planned, pod_of
from tests.laws.tracing.told import find, told

SMALL = "workspace: {}"
WHOLE = "workspace: {port: 8080, idle: 90m, runTime: 12h, storage: {size: 50Gi, storageClass: fast, group: 100}}"
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers[0]"


# --- What runs -----------------------------------------------------------------------------------------------------


def test_one_pod_runs_until_its_program_ends() -> None:
    spec = get("Job", SMALL)["spec"]
    assert (spec["parallelism"], spec["completions"], spec["template"]["spec"]["restartPolicy"]) == (1, 1, "Never")
    assert planned(SMALL).workloads[0].most_pods == 1


def test_a_pod_that_makes_way_comes_again_and_one_that_fails_a_few_times() -> None:
    spec = get("Job", SMALL)["spec"]
    evicted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert (spec["backoffLimit"], spec["podFailurePolicy"]) == (3, {"rules": [evicted]})


def test_it_stays_when_it_has_ended_so_that_nobody_starts_it_again() -> None:
    assert "ttlSecondsAfterFinished" not in get("Job", SMALL)["spec"]


def test_its_time_is_the_job_s() -> None:
    assert get("Job", WHOLE)["spec"]["activeDeadlineSeconds"] == 12 * 3600
    assert "activeDeadlineSeconds" not in get("Job", SMALL)["spec"]


def test_a_service_of_its_name_leads_to_the_pod() -> None:
    service = get("Service", WHOLE)
    assert service["metadata"] == {"name": "app", "namespace": "lab", "labels": LABELS}
    assert service["spec"] == {
        "selector": {"gpuplan.dev/workload": "app"},
        "ports": [{"name": "workspace", "port": 8080, "targetPort": "workspace"}],
    }
    assert container_of("Job", WHOLE)["ports"] == [{"name": "workspace", "containerPort": 8080}]
    assert container_of("Job", SMALL)["ports"] == [{"name": "workspace", "containerPort": 8888}]


def test_whether_somebody_can_reach_it_is_asked_by_no_request() -> None:
    """A server that ends itself when nobody asks it anything would never do."""
    assert container_of("Job", SMALL)["readinessProbe"] == {"tcpSocket": {"port": "workspace"}}


# --- What stays ----------------------------------------------------------------------------------------------------


def test_the_volume_outlives_the_job() -> None:
    """Its name says nothing of what runs, so that another Job has the same one."""
    others = {get("Job", WHOLE)["metadata"]["name"], get("Job", WHOLE.replace("12h", "6h"))["metadata"]["name"]}
    assert len(others) == 2
    for spec in (WHOLE, WHOLE.replace("12h", "6h")):
        claim = get("PersistentVolumeClaim", spec)
        assert claim["metadata"]["name"] == "app-storage"
        assert claim["spec"] == {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "50Gi"}},
        }


def test_the_program_writes_into_the_volume_by_its_group() -> None:
    pod = pod_of("Job", WHOLE)["spec"]
    assert {"name": "storage", "persistentVolumeClaim": {"claimName": "app-storage"}} in pod["volumes"]
    assert {"name": "storage", "mountPath": "/work"} in pod["containers"][0]["volumeMounts"]
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 100}


def test_without_storage_there_is_no_volume() -> None:
    assert {manifest.kind for manifest in manifests(SMALL)} == {"Job", "Service"}
    assert "volumes" not in pod_of("Job", SMALL)["spec"]


# --- What ends it when it is idle ----------------------------------------------------------------------------------


def test_a_jupyter_server_finds_what_ends_it() -> None:
    """With these names, and in this folder before all others, `jupyter-server` 2.21.1 with `jupyter-core` 5.9.1 ended a
    kernel and then itself, with the exit code 0, though its home directory said that it should not."""
    config = get("ConfigMap", WHOLE)
    assert json.loads(config["data"]["jupyter_server_config.json"]) == {
        "ServerApp": {"shutdown_no_activity_timeout": 5400},
        "MappingKernelManager": {"cull_idle_timeout": 5400, "cull_interval": 60, "cull_connected": True},
        "TerminalManager": {"cull_inactive_timeout": 5400, "cull_interval": 60},
    }
    container = container_of("Job", WHOLE)
    assert container["env"] == [{"name": "JUPYTER_CONFIG_PATH", "value": "/etc/workload"}]
    assert {"name": "config", "mountPath": "/etc/workload", "readOnly": True} in container["volumeMounts"]


def test_another_idle_time_is_another_file_and_another_job() -> None:
    pairs = [(get("ConfigMap", spec), get("Job", spec)) for spec in (WHOLE, WHOLE.replace("90m", "2h"))]
    (config, job), (other_config, other_job) = pairs
    assert config["metadata"]["name"] != other_config["metadata"]["name"]
    assert job["metadata"]["name"] != other_job["metadata"]["name"]


def test_it_stands_beside_the_files_of_the_policy() -> None:
    config = get("ConfigMap", f"{WHOLE}\nconfig: {{notes.txt: hello}}")
    assert [*config["data"]] == ["notes.txt", "jupyter_server_config.json"]


def test_without_an_idle_time_nothing_is_told_to_jupyter() -> None:
    assert "env" not in container_of("Job", SMALL)


def test_what_the_policy_says_of_the_variable_counts() -> None:
    said = f"{WHOLE}\nenv: {{JUPYTER_CONFIG_PATH: '/etc/workload:/opt'}}"
    assert container_of("Job", said)["env"] == [{"name": "JUPYTER_CONFIG_PATH", "value": "/etc/workload:/opt"}]


# --- Schedulers ----------------------------------------------------------------------------------------------------


def test_kueue_queues_it_as_a_whole() -> None:
    job = get("Job", WHOLE, scheduler="kueue")
    queued = {"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "urgent"}
    assert job["metadata"]["labels"] == {**LABELS, **queued}
    assert job["spec"]["template"]["metadata"]["labels"] == LABELS


def test_kai_scheduler_is_told_that_nobody_may_evict_it() -> None:
    pod = pod_of("Job", WHOLE, scheduler="kai")
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert pod["metadata"]["labels"] == {
        **LABELS,
        "kai.scheduler/queue": "research-gpus",
        "kai.scheduler/node-pool": "gpus",
        "kai.scheduler/preemptibility": "non-preemptible",
    }


def test_run_ai_has_it_in_its_node_pool() -> None:
    pod = pod_of("Job", WHOLE, scheduler="runai")
    assert pod["spec"]["schedulerName"] == "runai-scheduler"
    assert pod["metadata"]["labels"] == {**LABELS, "runai/node-pool": "gpus"}


def test_a_part_of_a_gpu_is_asked_by_an_annotation() -> None:
    pod = pod_of("Job", f"{SMALL}\nfraction: 0.25", scheduler="kai", sharing="fraction: {}")
    assert pod["metadata"]["annotations"] == {"gpu-fraction": "0.25"}


@pytest.mark.parametrize("scheduler", SchedulerKind)
@pytest.mark.parametrize("kubernetes", ["1.30", "1.34"])
def test_objects_fit_their_schemas(scheduler: SchedulerKind, kubernetes: str) -> None:
    assert check_schemas(manifests(WHOLE, scheduler=scheduler, security="restricted"), kubernetes) == ()


# --- Where it comes from -------------------------------------------------------------------------------------------


def leaves(kind: str, spec: str = WHOLE) -> Mapping[str, list[str]]:
    return told(planned(spec), find(manifests(spec), kind))


def test_what_it_is_comes_from_its_fields() -> None:
    job = leaves("Job", WHOLE.replace("size: 50Gi", "size: 50Gi, mountPath: /home/me"))
    assert job["spec.activeDeadlineSeconds"] == ["product of Workload/app spec.workspace.runTime"]
    assert job[f"{CONTAINER}.ports[0].containerPort"] == ["copied Workload/app spec.workspace.port"]
    assert job[f"{CONTAINER}.volumeMounts[1].mountPath"] == ["copied Workload/app spec.workspace.storage.mountPath"]
    assert job[f"{CONTAINER}.env[0].value"] == ["chosen by Workload/app spec.workspace.idle"]
    assert "copied Workload/app spec.workspace.storage.group" in job[f"{POD}.securityContext.fsGroup"]
    assert leaves("Service")["spec.ports[0].port"] == ["copied Workload/app spec.workspace.port"]
    size = leaves("PersistentVolumeClaim")["spec.resources.requests.storage"]
    assert size == ["copied Workload/app spec.workspace.storage.size"]


def test_the_file_for_jupyter_comes_from_the_idle_time() -> None:
    data = leaves("ConfigMap")['data["jupyter_server_config.json"]']
    assert data == ["product of Workload/app spec.workspace.idle"]
    assert "hash of Workload/app spec.workspace.idle" in leaves("ConfigMap")["metadata.name"]
