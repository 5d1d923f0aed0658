"""Trainings by Kubernetes' own controllers: pods of a gang resolve one another, and trials come a few at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from gpuplan.planning.plan import WORKLOAD_LABEL
from tests.cluster.api import Api
from tests.cluster.example import ExampleCluster
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, PODS = "lab", 4
AT_ONCE, TRIALS, FATAL = 2, 5, 2

DOCUMENTS = (
    pool("gpus", "exclusive: {}", gpu="H100-80GB", nodes="count: 3, gpusPerNode: 8, names: [gpu-a, gpu-b, gpu-c]"),
    tenant(LAB, "pool: gpus, guaranteed: 24", more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]"),
    document(
        "Workload",
        "pretrain",
        f"tenant: {LAB}",
        "pool: gpus",
        "count: 4",
        f"training: {{pods: {PODS}, gang: {PODS}, peers: {{}}}}",
        "image: registry.example.com/lab/pretrain:1",
    ),
    document(
        "Workload",
        "search",
        f"tenant: {LAB}",
        "pool: gpus",
        f"training: {{pods: {AT_ONCE}, trials: {TRIALS}, backoffLimitPerIndex: 1, fatalExitCodes: [{FATAL}]}}",
        "image: registry.example.com/lab/search:1",
    ),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    need_go()
    repository = tmp_path_factory.mktemp("repository")
    write_policy(repository, "kind: kubernetes", DOCUMENTS)
    with ExampleCluster.start(CLUSTER, repository) as cluster:
        yield cluster.api


def test_a_gang_of_four_resolves_its_peers_before_they_are_ready(api: Api, record: Record) -> None:
    """A name that DNS knows is the host name of an endpoint, and the Service's: CoreDNS answers from EndpointSlices.

    The pods have an address, which a kubelet gives them, and are not ready.
    """
    name = _job(api, "pretrain")["metadata"]["name"]
    assert in_the_end(PODS, lambda: len(_running(api, "pretrain"))) == PODS
    for number, pod in enumerate(_running(api, "pretrain")):
        _give_address(api, pod["metadata"]["name"], f"10.0.0.{number + 1}")
    planned = {f"{name}-{index}.{name}" for index in range(PODS)}
    record("kubernetes: names of a gang of four that DNS knows", planned, in_the_end(planned, _known, api))
    first = {_variable(pod, "MASTER_ADDR") for pod in _running(api, "pretrain")}
    record("kubernetes: where its pods look for the first one", {f"{name}-0.{name}"}, first)


def test_trials_come_a_few_at_once_and_go_on_when_one_has_failed_for_good(api: Api, record: Record) -> None:
    """The first ends with a fatal exit code, and is not tried again though it has a try left."""
    at_once, deadline = {0}, time.monotonic() + 60
    while not _has_ended(api) and time.monotonic() < deadline:
        running = _running(api, "search")
        at_once.add(len(running))
        for pod in running:
            _end(api, pod, FATAL if _index(pod) == 0 else 0)
        time.sleep(0.1)
    record("kubernetes: most trials at once", AT_ONCE, max(at_once))
    status = _job(api, "search")["status"]
    ended = {"failed": status["failedIndexes"], "completed": status["completedIndexes"], "tries": status["failed"]}
    record(
        "kubernetes: trials that failed, and that came to their end",
        {"failed": "0", "completed": "1-4", "tries": 1},
        ended,
    )


def _job(api: Api, workload: str) -> dict[str, Any]:
    jobs = api.list(f"/apis/batch/v1/namespaces/{LAB}/jobs")
    [found] = [job for job in jobs if job["metadata"]["labels"][WORKLOAD_LABEL] == workload]
    return found


def _has_ended(api: Api) -> bool:
    conditions = _job(api, "search")["status"].get("conditions", ())
    return any(found["type"] in {"Complete", "Failed"} for found in conditions)


def _index(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def _end(api: Api, pod: Mapping[str, Any], code: int) -> None:
    """Its container ends with the exit code."""
    now = pod["status"]["startTime"]
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
    containers = [
        {**container, "ready": False, "started": False, "state": {"terminated": ended}}
        for container in pod["status"]["containerStatuses"]
    ]
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": containers}
    api.patch(f"/api/v1/namespaces/{LAB}/pods/{pod['metadata']['name']}/status", {"status": status})


def _running(api: Api, workload: str) -> list[dict[str, Any]]:
    pods = api.list(f"/api/v1/namespaces/{LAB}/pods")
    own = (pod for pod in pods if pod["metadata"]["labels"].get(WORKLOAD_LABEL) == workload)
    return [pod for pod in own if pod["status"].get("phase") == "Running"]


def _give_address(api: Api, pod: str, address: str) -> None:
    conditions = [{"type": kind, "status": "False"} for kind in ("ContainersReady", "Ready")]
    status = {"podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    api.patch(f"/api/v1/namespaces/{LAB}/pods/{pod}/status", {"status": status}, kind="strategic")


def _known(api: Api) -> set[str]:
    """The names of endpoints that are served: those that count as ready, for the Service publishes all."""
    return {
        f"{endpoint['hostname']}.{found['metadata']['labels']['kubernetes.io/service-name']}"
        for found in api.list(f"/apis/discovery.k8s.io/v1/namespaces/{LAB}/endpointslices")
        for endpoint in found["endpoints"]
        if endpoint["conditions"]["ready"] and "hostname" in endpoint
    }


def _variable(pod: Mapping[str, Any], name: str) -> str:
    [container] = pod["spec"]["containers"]
    [value] = [item["value"] for item in container["env"] if item["name"] == name]
    return str(value)
