"""Trainings by their real controllers: pods of a gang resolve one another, and trials come a few at once.

A set starts again together, and pods that come and go need not all be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from gpuplan.compiler.planning.plan import WORKLOAD_LABEL
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.example import ExampleCluster
from tests.cluster.framework_controllers import JOB_SET, TRAINER, framework_controllers
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, PODS = "lab", 4
AT_ONCE, TRIALS, FATAL = 2, 5, 2
IN_SET = 2

DOCUMENTS = (
    pool("gpus", "exclusive: {}", gpu="H100-80GB", nodes="count: 3, gpusPerNode: 8, names: [gpu-a, gpu-b, gpu-c]"),
    tenant(LAB, "pool: gpus, guaranteed: 24", more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]"),
    document(
        "Workload",
        "pretrain",
        f"tenant: {LAB}",
        "pool: gpus",
        "count: 2",
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
    *(
        document(
            "Workload",
            name,
            f"tenant: {LAB}",
            "pool: gpus",
            f"training: {{{training}}}",
            f"image: registry.example.com/lab/{name}:1",
        )
        for name, training in (
            ("align", f"kind: JobSet, pods: {IN_SET}, gang: {IN_SET}, peers: {{}}, backoffLimit: 1"),
            ("distil", f"kind: TrainJob, pods: {IN_SET}, gang: {IN_SET}, peers: {{}}"),
            ("adapt", "pods: 3, peers: {}, elastic: {minPods: 2}"),
        )
    ),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    need_go()
    repository = tmp_path_factory.mktemp("repository")
    write_policy(repository, "kind: kubernetes", DOCUMENTS, "apis: [JobSet, TrainJob]")
    with ExampleCluster.start(CLUSTER, repository, _controllers) as cluster:
        yield cluster.api


def _controllers(control_plane: ControlPlane) -> AbstractContextManager[object]:
    return framework_controllers(control_plane, JOB_SET, TRAINER)


def test_a_gang_of_four_resolves_its_peers_before_they_are_ready(api: Api, record: Record) -> None:
    """A name that DNS knows is the host name of an endpoint, and the Service's: CoreDNS answers from EndpointSlices.

    The pods have an address, which a kubelet gives them, and are not ready.
    """
    name = _job(api, "pretrain")["metadata"]["name"]
    assert in_the_end(PODS, lambda: len(_running(api, "pretrain"))) == PODS
    for number, pod in enumerate(_running(api, "pretrain")):
        _give_address(api, pod["metadata"]["name"], f"10.0.0.{number + 1}")
    planned = {f"{name}-{index}.{name}" for index in range(PODS)}
    record("kubernetes: names of a gang of four that DNS knows", planned, in_the_end(planned, _known, api, name))
    first = {_variable(pod, "MASTER_ADDR") for pod in _running(api, "pretrain")}
    record("kubernetes: where its pods look for the first one", {f"{name}-0.{name}"}, first)


@pytest.mark.parametrize(("workload", "kind", "address"), [("align", "JobSet", 1), ("distil", "TrainJob", 2)])
def test_pods_of_a_set_resolve_one_another(api: Api, record: Record, workload: str, kind: str, address: int) -> None:
    """By the Service that the controller of JobSets makes, under the names that its pods are told."""
    assert in_the_end(IN_SET, lambda: len(_running(api, workload))) == IN_SET
    name = _set(api, workload)["metadata"]["name"]
    for number, pod in enumerate(_running(api, workload)):
        _give_address(api, pod["metadata"]["name"], f"10.0.{address}.{number + 1}")
    planned = {f"{name}-node-0-{index}.{name}" for index in range(IN_SET)}
    record(f"kubernetes: names of a {kind} of two that DNS knows", planned, in_the_end(planned, _known, api, name))
    first = {_variable(pod, "PET_MASTER_ADDR") for pod in _running(api, workload)}
    record(f"kubernetes: where pods of a {kind} look for the first one", {f"{name}-node-0-0.{name}"}, first)


def test_a_set_starts_again_together_as_often_as_it_may(api: Api, record: Record) -> None:
    before = {pod["metadata"]["uid"] for pod in _running(api, "align")}
    _end(api, _running(api, "align")[1], 1)
    in_the_end(IN_SET, lambda: len(_uids(api, "align") - before))
    observed = (
        _set(api, "align")["status"]["restarts"],
        len(_uids(api, "align") - before),
        _uids(api, "align") & before,
    )
    record("kubernetes: a pod of a JobSet fails: starts again, new pods, old pods", (1, IN_SET, set()), observed)
    _end(api, _running(api, "align")[0], 1)
    ended = in_the_end("Failed", lambda: _set(api, "align")["status"].get("terminalState"))
    record("kubernetes: a pod fails again, and there are no more tries", "Failed", ended)


def test_an_elastic_training_ends_with_its_first_pod(api: Api, record: Record) -> None:
    """One that never came is not waited for."""
    assert in_the_end(3, lambda: len(_running(api, "adapt"))) == 3
    [first] = [pod for pod in _running(api, "adapt") if _index(pod) == 0]
    _end(api, first, 0)
    ended = in_the_end("SuccessPolicy", lambda: _reason(api, "adapt"))
    record("kubernetes: an elastic training whose first pod has succeeded: ended by", "SuccessPolicy", ended)


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


def _set(api: Api, workload: str) -> dict[str, Any]:
    sets = api.list(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{LAB}/jobsets")
    [found] = [item for item in sets if item["metadata"]["labels"][WORKLOAD_LABEL] == workload]
    return found


def _uids(api: Api, workload: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in _running(api, workload)}


def _reason(api: Api, workload: str) -> str:
    conditions = _job(api, workload)["status"].get("conditions", ())
    return next((found["reason"] for found in conditions if found["type"] == "Complete"), "")


def _job(api: Api, workload: str) -> dict[str, Any]:
    jobs = api.list(f"/apis/batch/v1/namespaces/{LAB}/jobs")
    [found] = [job for job in jobs if job["metadata"]["labels"].get(WORKLOAD_LABEL) == workload]
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


def _known(api: Api, service: str) -> set[str]:
    """The names of a Service's endpoints that are served: those that count as ready, for the Service publishes all."""
    return {
        f"{endpoint['hostname']}.{found['metadata']['labels']['kubernetes.io/service-name']}"
        for found in api.list(f"/apis/discovery.k8s.io/v1/namespaces/{LAB}/endpointslices")
        for endpoint in found["endpoints"] or ()
        if found["metadata"]["labels"]["kubernetes.io/service-name"] == service
        and endpoint["conditions"]["ready"]
        and "hostname" in endpoint
    }


def _variable(pod: Mapping[str, Any], name: str) -> str:
    [container] = pod["spec"]["containers"]
    [value] = [item["value"] for item in container["env"] if item["name"] == name]
    return str(value)
