"""What pods ask for at the most, counted from objects alone: nothing here reads a policy or a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

Body = Mapping[str, Any]

WORKLOAD: Final = "gpuplan.dev/workload"


class Asked(NamedTuple):
    """Pods, and what all of them ask for together; ``units`` are GPUs or parts of them, ``mib`` memory of GPUs."""

    pods: int = 0
    units: Decimal = Decimal(0)
    mib: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)

    def times(self, count: int) -> Asked:
        return Asked(self.pods * count, self.units * count, self.mib * count, self.cpu * count, self.memory * count)

    def plus(self, other: Asked) -> Asked:
        return Asked(
            self.pods + other.pods,
            self.units + other.units,
            self.mib + other.mib,
            self.cpu + other.cpu,
            self.memory + other.memory,
        )


def asked_by(objects: Iterable[Body], *containers: str) -> dict[str, Asked]:
    """What the pods of each workload ask for at the most, by its name; other pods are under the empty one.

    Where ``containers`` are named, what those ask for in each pod, and no others.
    """
    bodies = list(objects)
    scaled = {_target(body): body["spec"][_SCALERS[body["kind"]]] for body in bodies if body["kind"] in _SCALERS}
    found: dict[str, Asked] = {}
    for body in bodies:
        if body["kind"] in WITHOUT_PODS:
            continue
        for pods, template in PODS_OF[body["kind"]](body, scaled.get((body["kind"], body["metadata"]["name"]))):
            # A canary's pods have a name of their own, and are its workload's all the same.
            is_work = WORKLOAD in template["metadata"].get("labels", {})
            name = body["metadata"]["labels"][WORKLOAD] if is_work else ""
            found[name] = found.get(name, Asked()).plus(_asked_by_pod(template, containers).times(pods))
    return found


# --- How many pods there are ---------------------------------------------------------------------------------------

Pods = Iterable[tuple[int, Body]]


def _of_deployment(body: Body, most: int | None) -> Pods:
    spec = body["spec"]
    assert spec["strategy"]["rollingUpdate"]["maxSurge"] == 0, "more pods than replicas while it rolls"
    yield spec.get("replicas", 1) if most is None else most, spec["template"]


def _of_job(body: Body, _: int | None) -> Pods:
    """No more at once than are still to complete."""
    spec = body["spec"]
    at_once = spec.get("parallelism", 1)
    yield min(at_once, spec.get("completions", at_once)), spec["template"]


def _of_group_set(body: Body, most: int | None) -> Pods:
    """A leader to each replica; the others are workers."""
    spec = body["spec"]
    assert spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] == 0, "more replicas while it rolls"
    replicas, group = spec.get("replicas", 1) if most is None else most, spec["leaderWorkerTemplate"]
    yield replicas, group.get("leaderTemplate", group["workerTemplate"])
    yield replicas * (group["size"] - 1), group["workerTemplate"]


def _of_inference_service(body: Body, most: int | None) -> Pods:
    """As KServe makes a Deployment of it; what else scales that names the Deployment."""
    predictor = body["spec"]["predictor"]
    assert predictor["deploymentStrategy"]["rollingUpdate"]["maxSurge"] == 0, "more pods than replicas while it rolls"
    assert most is None
    marks = {"labels": predictor["labels"], "annotations": predictor.get("annotations", {})}
    yield predictor["maxReplicas"], {"metadata": marks, "spec": predictor}


def _of_job_set(body: Body, _: int | None) -> Pods:
    for job in body["spec"]["replicatedJobs"]:
        for pods, template in _of_job(job["template"], None):
            yield pods * job.get("replicas", 1), template


def _of_runtime(body: Body, _: int | None) -> Pods:
    """It is for one TrainJob."""
    yield from _of_job_set(body["spec"]["template"], None)


PODS_OF: Final[Mapping[str, Callable[[Body, int | None], Pods]]] = {
    "Deployment": _of_deployment,
    "InferenceService": _of_inference_service,
    "Job": _of_job,
    "JobSet": _of_job_set,
    "LeaderWorkerSet": _of_group_set,
    "TrainingRuntime": _of_runtime,
}
"""How many pods come of each template of an object, by its kind; an autoscaler may say how many there are at most."""

_SCALERS: Final = {"HorizontalPodAutoscaler": "maxReplicas", "ScaledObject": "maxReplicaCount"}
"""Kinds that say how many pods another object has, and where they say how many at the most."""
WITHOUT_PODS: Final = frozenset(
    ("ConfigMap", "HTTPRoute", "Ingress", "PersistentVolumeClaim", "Service", "TrainJob", *_SCALERS)
)


def _target(body: Body) -> tuple[str, str]:
    reference = body["spec"]["scaleTargetRef"]
    return reference["kind"], reference["name"]


# --- What a pod asks for -------------------------------------------------------------------------------------------

_SUFFIXES: Final = {
    "m": Decimal("0.001"),
    **{sign: Decimal(1000) ** power for power, sign in enumerate("kMGTPE", 1)},
    **{f"{sign}i": Decimal(1024) ** power for power, sign in enumerate("KMGTPE", 1)},
}


def amount(text: str) -> Decimal:
    digits = text.rstrip("".join(_SUFFIXES))
    return Decimal(digits) * _SUFFIXES.get(text[len(digits) :], Decimal(1))


def _asked_by_pod(template: Body, only: Collection[str]) -> Asked:
    """A claim is for one device. What a container does not request, it asks for as far as its limit."""
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    claimed = 0
    for container in template["spec"]["containers"]:
        if only and container["name"] not in only:
            continue
        resources = container.get("resources", {})
        requests = {**resources.get("limits", {}), **resources.get("requests", {})}
        claimed += len(resources.get("claims", ()))
        for name, text in requests.items():
            total[name] += amount(text)
    assert claimed == len(template["spec"].get("resourceClaims", ()))
    says = template["metadata"].get("annotations", {})
    devices = [count for name, count in total.items() if name.startswith("nvidia.com/")]
    parts = Decimal(says.get("gpu-fraction", 0))
    return Asked(1, sum(devices, parts + claimed), Decimal(says.get("gpu-memory", 0)), total["cpu"], total["memory"])
