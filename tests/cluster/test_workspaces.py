"""Workspaces by Kubernetes' own controllers and by Kueue: bound, ended by their time, started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.planning.plan import WORKLOAD_LABEL
from tests.cluster.api import Api
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import API_VERSION, kueue_controller
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, NODE, GPUS = "lab", "gpu-a", 2
SECONDS = 25
"""How long a workspace may run that is to be seen to end."""


def _workspace(name: str, workspace: str, count: int = 1) -> str:
    image = "image: registry.example.com/jupyter/lab:1"
    return document(
        "Workload", name, f"tenant: {LAB}", "pool: gpus", f"count: {count}", f"workspace: {workspace}", image
    )


DOCUMENTS = (
    pool("gpus", "exclusive: {}", gpu="H100-80GB", nodes=f"count: 1, gpusPerNode: 8, names: [{NODE}]"),
    tenant(LAB, "pool: gpus, guaranteed: 8", more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]"),
    _workspace("notebook", "{idle: 2h, storage: {size: 1Gi, storageClass: files, group: 100}}", GPUS),
    _workspace("short", f"{{runTime: {SECONDS}s}}"),
)


@pytest.fixture(scope="module", params=["kubernetes", "kueue"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    repository: Path = tmp_path_factory.mktemp(request.param)
    write_policy(repository, f"kind: {request.param}", DOCUMENTS)
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    beside = partial(kueue_controller, configuration=configuration) if request.param == "kueue" else None
    with ExampleCluster.start(CLUSTER, repository, beside) as started:
        yield started


def test_its_pod_is_bound_with_its_units_and_its_service_finds_it(cluster: ExampleCluster, record: Record) -> None:
    api, scheduler = cluster.api, _scheduler(cluster)
    record(f"{scheduler}: where a workspace runs", [NODE], in_the_end([NODE], _nodes, api, "notebook"))
    [found] = _pods(api, "notebook")
    [container] = found["spec"]["containers"]
    record(f"{scheduler}: GPUs of a workspace", str(GPUS), container["resources"]["limits"]["nvidia.com/gpu"])
    served = in_the_end({found["metadata"]["name"]}, _served, api, "notebook")
    record(f"{scheduler}: what the Service of a workspace leads to", {found["metadata"]["name"]}, served)


@pytest.mark.parametrize("cluster", ["kueue"], indirect=True)
def test_kueue_admits_it_as_a_whole(cluster: ExampleCluster, record: Record) -> None:
    """Its Job waits, suspended, until Kueue has admitted it; the pod itself is in no queue."""
    assert in_the_end([NODE], _nodes, cluster.api, "notebook") == [NODE]
    job = _job(cluster.api, "notebook")
    work = cluster.api.list(f"/apis/{API_VERSION}/namespaces/{LAB}/workloads")
    [own] = [
        item for item in work if job["metadata"]["uid"] in {ref["uid"] for ref in item["metadata"]["ownerReferences"]}
    ]
    admitted = [item["status"] for item in own["status"]["conditions"] if item["type"] == "Admitted"]
    record("kueue: the Job of a workspace is admitted", ["True"], admitted)
    [pod] = _pods(cluster.api, "notebook")
    assert "kueue.x-k8s.io/queue-name" not in pod["metadata"]["labels"]


def test_it_is_ended_by_its_run_time_and_gives_its_units_back(cluster: ExampleCluster, record: Record) -> None:
    reason = in_the_end(["DeadlineExceeded"], _failures, cluster.api, "short")
    record(f"{_scheduler(cluster)}: why a workspace ends after its run time", ["DeadlineExceeded"], reason)
    assert in_the_end([], _pods_left, cluster.api, "short") == []


def test_whoever_deletes_its_job_has_it_back_with_its_volume(cluster: ExampleCluster, record: Record) -> None:
    """What Argo CD and Flux do when the Job is missing: they apply the folder once more."""
    api, scheduler = cluster.api, _scheduler(cluster)
    assert in_the_end([NODE], _nodes, api, "notebook") == [NODE]
    before, claim = _job(api, "notebook"), api.get(_CLAIM)
    api.delete(f"{_JOBS}/{before['metadata']['name']}")
    assert in_the_end([], _pods_left, api, "notebook") == []
    for folder in cluster.folders:
        for body in folder.objects:
            if body["kind"] == "Job" and body["metadata"]["name"] == before["metadata"]["name"]:
                api.apply(body, manager="tests")
    record(f"{scheduler}: where a workspace runs again", [NODE], in_the_end([NODE], _nodes, api, "notebook"))
    assert _job(api, "notebook")["metadata"]["uid"] != before["metadata"]["uid"]
    assert api.get(_CLAIM)["metadata"]["uid"] == claim["metadata"]["uid"]


_JOBS = f"/apis/batch/v1/namespaces/{LAB}/jobs"
_CLAIM = f"/api/v1/namespaces/{LAB}/persistentvolumeclaims/notebook-storage"


def _scheduler(cluster: ExampleCluster) -> str:
    return str(cluster.plan["scheduler"]["kind"])


def _job(api: Api, workload: str) -> dict[str, Any]:
    [found] = [job for job in api.list(_JOBS) if job["metadata"]["labels"][WORKLOAD_LABEL] == workload]
    return found


def _failures(api: Api, workload: str) -> list[str]:
    conditions = _job(api, workload)["status"].get("conditions", ())
    return [found["reason"] for found in conditions if found["type"] == "Failed"]


def _pods(api: Api, workload: str) -> list[dict[str, Any]]:
    pods = api.list(f"/api/v1/namespaces/{LAB}/pods")
    return [pod for pod in pods if pod["metadata"]["labels"].get(WORKLOAD_LABEL) == workload]


def _pods_left(api: Api, workload: str) -> list[str]:
    """Those that hold units: neither ended nor gone."""
    return [pod["metadata"]["name"] for pod in _pods(api, workload) if pod["status"]["phase"] in {"Pending", "Running"}]


def _nodes(api: Api, workload: str) -> list[str]:
    running = (pod for pod in _pods(api, workload) if pod["status"]["phase"] == "Running")
    return [pod["spec"]["nodeName"] for pod in running]


def _served(api: Api, service: str) -> set[str]:
    """The pods in the EndpointSlices of a Service; those without an address are in none."""
    for pod in _pods(api, service):
        path = f"/api/v1/namespaces/{LAB}/pods/{pod['metadata']['name']}/status"
        api.patch(path, {"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}, kind="strategic")
    return {
        endpoint["targetRef"]["name"]
        for found in api.list(f"/apis/discovery.k8s.io/v1/namespaces/{LAB}/endpointslices")
        if found["metadata"]["labels"]["kubernetes.io/service-name"] == service
        for endpoint in found["endpoints"] or ()
    }
