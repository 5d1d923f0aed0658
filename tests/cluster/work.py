"""What each kind of work is on a live cluster: a workload of it, and the pods that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuplan.compiler.planning.plan import POOL_LABEL
from tests.cluster.api import Api
from tests.cluster.lending import EVERYBODY, GPU
from tests.platforms import document, pool, tenant

LAB: Final = "lab"
POOL: Final = "gpus"
NODES: Final = ("gpu-a", "gpu-b", "gpu-c")
PER_NODE: Final = 8
WORKLOAD: Final = "gpuplan.dev/workload"


@dataclass(frozen=True, slots=True)
class Row:
    """A workload: ``work`` is what its policy says of it, ``kind`` the written object that its pods come of.

    ``apis`` are the members of `ClusterSpec.apis` that it needs, ``frameworks`` what Kueue has to be told of.
    """

    name: str
    work: str
    kind: str
    pods: int
    apis: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """The field of the policy that says which kind of work it is."""
        return self.work.partition(":")[0]

    def document(self) -> str:
        return document(
            "Workload", self.name, f"tenant: {LAB}, pool: {POOL}, image: 'registry.example.com/app:1', {self.work}"
        )


def _container(gpus: str = "") -> dict[str, Any]:
    limits = {"cpu": "4", "memory": "16Gi", **({GPU: gpus} if gpus else {})}
    return {"name": "ray", "image": "registry.example.com/ray:2.55.0", "resources": {"limits": limits}}


ROWS: Final = (
    Row(
        "service",
        "inference: {replicas: 2, route: {hosts: [chat.example.com], kind: HTTPRoute}, "
        "canary: {weight: 10, image: 'registry.example.com/app:2'}}",
        "Deployment",
        2,
        apis=("HTTPRoute",),
    ),
    # No KEDA runs here, so it keeps the one pod that it begins with.
    Row(
        "asleep",
        "inference: {route: {hosts: [asleep.example.com], kind: Ingress, tlsSecret: asleep-tls}, "
        "autoscaling: {minReplicas: 0, maxReplicas: 1, cooldown: 30m, query: {promql: up, perPod: 2, idle: 0.5}}}",
        "Deployment",
        1,
        apis=("ScaledObject",),
    ),
    Row("quiet", "inference: {port: none, probe: {command: [ready]}}", "Deployment", 1),
    Row("served", "inference: {kind: InferenceService}", "InferenceService", 1, apis=("InferenceService",)),
    Row(
        "large",
        "inference: {replicas: 2, podsPerReplica: 2}",
        "LeaderWorkerSet",
        4,
        apis=("LeaderWorkerSet",),
        frameworks=("LeaderWorkerSet",),
    ),
    Row("gang", "training: {pods: 4, gang: 4, peers: {}}", "Job", 4),
    Row(
        "set",
        "training: {kind: JobSet, pods: 2, gang: 2, peers: {}}",
        "JobSet",
        2,
        apis=("JobSet",),
        frameworks=("JobSet",),
    ),
    Row(
        "trained",
        "training: {kind: TrainJob, pods: 2, gang: 2, peers: {}}",
        "TrainJob",
        2,
        apis=("JobSet", "TrainJob"),
        frameworks=("JobSet", "TrainJob"),
    ),
    Row("notebook", "workspace: {storage: {size: 10Gi, group: 100}, runTime: 12h}", "Job", 1),
    Row("sweep", "batch: {pods: 2, trials: 5, backoffLimitPerIndex: 1}", "Job", 2),
)
"""Each kind of work, and each kind of object that it can be written as."""

HAND_WRITTEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "RayCluster": {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ray", "namespace": LAB},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [_container()]}}},
            "workerGroupSpecs": [
                {
                    "groupName": "gpus",
                    "replicas": 2,
                    "minReplicas": 2,
                    "maxReplicas": 2,
                    "rayStartParams": {},
                    "template": {"spec": {"nodeSelector": {POOL_LABEL: POOL}, "containers": [_container("1")]}},
                }
            ],
        },
    }
}
"""What people write of kinds of which gpuplan writes none."""


def platform() -> Sequence[str]:
    """A pool with room for all of it, and a tenant that is guaranteed the pool."""
    nodes = f"count: {len(NODES)}, gpusPerNode: {PER_NODE}, names: [{', '.join(NODES)}]"
    return (
        pool(POOL, "exclusive: {}", gpu="H100-80GB", nodes=nodes),
        tenant(
            LAB,
            f"pool: {POOL}, guaranteed: {len(NODES) * PER_NODE}",
            more=f"parent: {EVERYBODY}, members: [{{group: {LAB}}}]",
        ),
    )


def is_of(body: Mapping[str, Any], row: Row) -> bool:
    return bool(body["metadata"].get("labels", {}).get(WORKLOAD) == row.name)


def pods(api: Api, row: Row) -> list[dict[str, Any]]:
    """Those that are there of a workload, and that nobody has asked to go."""
    found = api.list(f"/api/v1/namespaces/{LAB}/pods?labelSelector={WORKLOAD}%3D{row.name}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def is_bound(pod: Mapping[str, Any]) -> bool:
    return pod["spec"].get("nodeName") in NODES and pod["status"].get("phase") == "Running"


def is_gated(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def owners(api: Api, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Whoever made an object, whoever made that one, and so on."""
    for reference in body["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            metadata = {"name": reference["name"], "namespace": body["metadata"]["namespace"]}
            found = api.get(
                api.path_of({"apiVersion": reference["apiVersion"], "kind": reference["kind"], "metadata": metadata})
            )
            maker = {**found, "apiVersion": reference["apiVersion"], "kind": reference["kind"]}
            yield maker
            yield from owners(api, maker)


def deployment_by_kserve(made: Mapping[str, Any]) -> dict[str, Any]:
    """What KServe makes of an InferenceService that is there: its controller is not run here.

    (`createRawDefaultDeployment` in `pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/
    deployment_reconciler.go` of kserve/kserve v0.17.0, and the predictor's metadata in
    `pkg/controller/v1beta1/inferenceservice/components/predictor.go`.)
    """
    metadata, predictor = made["metadata"], made["spec"]["predictor"]
    name, own = f"{metadata['name']}-predictor", ("minReplicas", "maxReplicas", "deploymentStrategy")
    marks = {"app": f"isvc.{name}"}
    labels = {**metadata["labels"], **predictor["labels"], "component": "predictor", **marks}
    reference = {"apiVersion": made["apiVersion"], "kind": made["kind"], "name": metadata["name"]}
    spec = {key: part for key, part in predictor.items() if key not in (*own, "labels", "annotations")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [{**reference, "uid": metadata["uid"], "controller": True}],
        },
        "spec": {
            "replicas": predictor["minReplicas"],
            "selector": {"matchLabels": marks},
            "strategy": predictor["deploymentStrategy"],
            "template": {"metadata": {"labels": labels, "annotations": predictor.get("annotations", {})}, "spec": spec},
        },
    }
