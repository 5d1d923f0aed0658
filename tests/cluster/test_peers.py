"""The pods of a gang resolve one another: Kubernetes' own controllers give each the name that its variables have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster.api import Api
from tests.cluster.example import ExampleCluster
from tests.cluster.lending import CLUSTER, EVERYBODY, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.programs import need_go
from tests.platforms import document, pool, tenant

Record = Callable[[str, object, object], None]

LAB, PODS = "lab", 4

DOCUMENTS = (
    pool("gpus", "exclusive: {}", gpu="H100-80GB", nodes="count: 2, gpusPerNode: 8, names: [gpu-a, gpu-b]"),
    tenant(LAB, "pool: gpus, guaranteed: 16", more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]"),
    document(
        "Workload",
        "pretrain",
        f"tenant: {LAB}",
        "pool: gpus",
        "count: 4",
        f"training: {{pods: {PODS}, gang: {PODS}, peers: {{}}}}",
        "image: registry.example.com/lab/pretrain:1",
    ),
)


def test_a_gang_of_four_resolves_its_peers_before_they_are_ready(tmp_path: Path, record: Record) -> None:
    """A name that DNS knows is the host name of an endpoint, and the Service's: CoreDNS answers from EndpointSlices.

    The pods have an address, which a kubelet gives them, and are not ready.
    """
    need_go()
    write_policy(tmp_path, "kind: kubernetes", DOCUMENTS)
    with ExampleCluster.start(CLUSTER, tmp_path) as cluster:
        [job] = cluster.api.list(f"/apis/batch/v1/namespaces/{LAB}/jobs")
        name = job["metadata"]["name"]
        assert in_the_end(PODS, lambda: len(_running(cluster.api))) == PODS
        for number, pod in enumerate(_running(cluster.api)):
            _give_address(cluster.api, pod["metadata"]["name"], f"10.0.0.{number + 1}")
        planned = {f"{name}-{index}.{name}" for index in range(PODS)}
        record("kubernetes: names of a gang of four that DNS knows", planned, in_the_end(planned, _known, cluster.api))
        first = {_variable(pod, "MASTER_ADDR") for pod in _running(cluster.api)}
        record("kubernetes: where its pods look for the first one", {f"{name}-0.{name}"}, first)


def _running(api: Api) -> list[dict[str, Any]]:
    pods = api.list(f"/api/v1/namespaces/{LAB}/pods")
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


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


def _variable(pod: dict[str, Any], name: str) -> str:
    [container] = pod["spec"]["containers"]
    [value] = [item["value"] for item in container["env"] if item["name"] == name]
    return str(value)
