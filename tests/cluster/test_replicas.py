"""Services of several pods to a replica, by the real controller of LeaderWorkerSets: bound, found and admitted.

KServe is played: what it makes of an InferenceService has the shape of `createRawDefaultDeployment` in
`pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/deployment_reconciler.go` of kserve/kserve v0.20.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.planning.plan import WORKLOAD_LABEL
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.example import ExampleCluster
from tests.cluster.framework_controllers import LEADER_WORKER_SET, framework_controllers
from tests.cluster.kueue_controller import API_VERSION, kueue_controller
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, REPLICAS, SIZE = "lab", 2, 2
DOCUMENTS = (
    pool("gpus", "exclusive: {}", gpu="H100-80GB", nodes="count: 2, gpusPerNode: 8, names: [gpu-a, gpu-b]"),
    tenant(LAB, "pool: gpus, guaranteed: 16", more=f"parent: {EVERYBODY}"),
    document(
        "Workload",
        "large",
        f"tenant: {LAB}",
        "pool: gpus",
        "count: 3",
        f"inference: {{replicas: {REPLICAS}, podsPerReplica: {SIZE}, worker: {{args: [--join]}}}}",
        "image: registry.example.com/lab/large:1",
    ),
    document(
        "Workload",
        "chat",
        f"tenant: {LAB}",
        "pool: gpus",
        "cpu: '1'",
        "memory: 1Gi",
        f"inference: {{kind: InferenceService, replicas: {REPLICAS}}}",
        "image: registry.example.com/lab/chat:1",
    ),
)
SERVED = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"namespace": LAB}}
SCHEDULERS = {"kubernetes": "kind: kubernetes", "kueue": "kind: kueue, kueue: {frameworks: [LeaderWorkerSet]}"}


@pytest.fixture(scope="module", params=sorted(SCHEDULERS))
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    repository: Path = tmp_path_factory.mktemp(request.param)
    write_policy(repository, SCHEDULERS[request.param], DOCUMENTS, "apis: [InferenceService, LeaderWorkerSet]")
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"

    @contextmanager
    def beside(control_plane: ControlPlane) -> Iterator[object]:
        """The kind is there before Kueue, which looks for it as it starts."""
        define(control_plane.api, [SERVED])
        with ExitStack() as running:
            running.enter_context(framework_controllers(control_plane, LEADER_WORKER_SET))
            if request.param == "kueue":
                running.enter_context(kueue_controller(control_plane, configuration))
            yield None

    with ExampleCluster.start(CLUSTER, repository, beside) as started:
        yield started


def test_its_pods_are_let_in_and_bound_and_know_their_leader(cluster: ExampleCluster, record: Record) -> None:
    """What the admission policies refuse would be missing here: the StatefulSet of workers, which a pod owns, too."""
    scheduler = cluster.plan["scheduler"]["kind"]
    running = in_the_end(REPLICAS * SIZE, lambda: len(_running(cluster.api)))
    record(f"{scheduler}: pods of two replicas of two that run", REPLICAS * SIZE, running)
    name = _name(cluster.api)
    planned = {
        (f"{name}-{group}{suffix}", f"{name}-{group}.{name}-{group}.{LAB}", str(SIZE), index)
        for group in range(REPLICAS)
        for suffix, index in (("", "0"), ("-1", "1"))
    }
    told = {(pod["metadata"]["name"], *_told(pod)) for pod in _running(cluster.api)}
    record(f"{scheduler}: leader, size and number that pods of replicas are told", planned, told)


def test_its_service_leads_to_leaders_alone(cluster: ExampleCluster, record: Record) -> None:
    assert in_the_end(REPLICAS * SIZE, lambda: len(_running(cluster.api))) == REPLICAS * SIZE
    for number, pod in enumerate(_running(cluster.api), start=1):
        _give_address(cluster.api, pod, f"10.0.0.{number}")
    name = _name(cluster.api)
    leaders = {f"{name}-{group}" for group in range(REPLICAS)}
    found = in_the_end(leaders, lambda: _served(cluster.api))
    record(f"{cluster.plan['scheduler']['kind']}: what the Service of such a service leads to", leaders, found)


@pytest.mark.parametrize("cluster", ["kueue"], indirect=True)
def test_kueue_admits_each_replica_as_a_whole(cluster: ExampleCluster, record: Record) -> None:
    def admitted() -> list[dict[str, int]]:
        work = cluster.api.list(f"/apis/{API_VERSION}/namespaces/{LAB}/workloads")
        return [
            {part["name"]: part["count"] for part in item["spec"]["podSets"]}
            for item in work
            if len(item["spec"]["podSets"]) > 1
            and any(
                found["type"] == "Admitted" and found["status"] == "True"
                for found in item.get("status", {}).get("conditions", ())
            )
        ]

    planned = [{"leader": 1, "worker": SIZE - 1}] * REPLICAS
    record("kueue: pods of the Workloads of two replicas of two", planned, in_the_end(planned, admitted))


def test_what_kserve_makes_of_a_service_is_let_in_and_found(cluster: ExampleCluster, record: Record) -> None:
    [served] = cluster.api.list(f"/apis/serving.kserve.io/v1beta1/namespaces/{LAB}/inferenceservices")
    cluster.api.apply(_deployment(served), manager="kserve")
    scheduler = cluster.plan["scheduler"]["kind"]
    running = in_the_end(REPLICAS, lambda: len(_running(cluster.api, "chat")))
    record(f"{scheduler}: pods of an InferenceService that run", REPLICAS, running)
    for number, pod in enumerate(_running(cluster.api, "chat"), start=1):
        _give_address(cluster.api, pod, f"10.0.1.{number}")
    pods = {pod["metadata"]["name"] for pod in _running(cluster.api, "chat")}
    found = in_the_end(pods, lambda: _served(cluster.api, "chat"))
    record(f"{scheduler}: pods that its Service leads to", REPLICAS, len(found & pods))


def _deployment(served: dict[str, Any]) -> dict[str, Any]:
    """With as many pods as KServe's own autoscaler keeps."""
    predictor, name = dict(served["spec"]["predictor"]), f"{served['metadata']['name']}-predictor"
    own = {"serving.kserve.io/inferenceservice": served["metadata"]["name"], "component": "predictor"}
    selected = {"app": f"isvc.{name}"}
    labels = {**served["metadata"]["labels"], **predictor.pop("labels"), **own, **selected}
    marks = {**served["metadata"].get("annotations", {}), **predictor.pop("annotations", {})}
    strategy, replicas = predictor.pop("deploymentStrategy"), predictor.pop("minReplicas")
    del predictor["maxReplicas"]
    predictor["containers"][0].setdefault("env", []).append({"name": "INFERENCE_SERVICE_NAME", "value": "chat"})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": LAB,
            "labels": labels,
            "annotations": marks,
            "ownerReferences": [
                {
                    **{key: served[key] for key in ("apiVersion", "kind")},
                    **{key: served["metadata"][key] for key in ("name", "uid")},
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": replicas,
            "strategy": strategy,
            "selector": {"matchLabels": selected},
            "template": {"metadata": {"labels": labels, "annotations": marks}, "spec": predictor},
        },
    }


def _name(api: Api) -> str:
    [found] = api.list(f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{LAB}/leaderworkersets")
    return str(found["metadata"]["name"])


def _give_address(api: Api, pod: dict[str, Any], address: str) -> None:
    path = f"/api/v1/namespaces/{LAB}/pods/{pod['metadata']['name']}/status"
    api.patch(path, {"status": {"podIP": address, "podIPs": [{"ip": address}]}}, kind="strategic")


def _running(api: Api, workload: str = "large") -> list[dict[str, Any]]:
    pods = api.list(f"/api/v1/namespaces/{LAB}/pods")
    return [
        pod
        for pod in pods
        if pod["metadata"]["labels"].get(WORKLOAD_LABEL) == workload and pod["status"]["phase"] == "Running"
    ]


def _told(pod: dict[str, Any]) -> tuple[str, ...]:
    [container] = pod["spec"]["containers"]
    variables = {item["name"]: item.get("value", "") for item in container["env"]}
    return tuple(variables[name] for name in ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"))


def _served(api: Api, service: str = "large") -> set[str]:
    return {
        endpoint["targetRef"]["name"]
        for found in api.list(f"/apis/discovery.k8s.io/v1/namespaces/{LAB}/endpointslices")
        if found["metadata"]["labels"]["kubernetes.io/service-name"] == service
        for endpoint in found["endpoints"] or ()
    }
