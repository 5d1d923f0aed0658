"""The objects of a dump that are one workload of gpuplan's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.backends.workloads.kserve import CONTAINER
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, TENANT_LABEL, WORKLOAD_LABEL
from gpuplan.features.live.dump import Dump, Item

Kind = tuple[str, str]
"""A group and a kind."""

DEPLOYMENT: Final = ("apps", "Deployment")
LEADER_WORKER_SET: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
INFERENCE_SERVICE: Final = ("serving.kserve.io", "InferenceService")
JOB: Final = ("batch", "Job")
JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
TRAINING_RUNTIME: Final = ("trainer.kubeflow.org", "TrainingRuntime")
TRAIN_JOB: Final = ("trainer.kubeflow.org", "TrainJob")
SERVICE: Final = ("", "Service")
CONFIG_MAP: Final = ("", "ConfigMap")
CLAIM: Final = ("", "PersistentVolumeClaim")
AUTOSCALER: Final = ("autoscaling", "HorizontalPodAutoscaler")
SCALED_OBJECT: Final = ("keda.sh", "ScaledObject")
HTTP_ROUTE: Final = ("gateway.networking.k8s.io", "HTTPRoute")
INGRESS: Final = ("networking.k8s.io", "Ingress")

MAKERS: Final[Mapping[Kind, Path]] = {
    INFERENCE_SERVICE: ("spec", "predictor"),
    LEADER_WORKER_SET: ("spec", "leaderWorkerTemplate", "leaderTemplate"),
    DEPLOYMENT: ("spec", "template"),
    TRAINING_RUNTIME: ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template"),
    JOB_SET: ("spec", "replicatedJobs", 0, "template", "spec", "template"),
    JOB: ("spec", "template"),
}
"""The kinds that make the pods of a workload, with the route to the pod template of each."""

_BESIDE: Final = (
    TRAIN_JOB,
    SERVICE,
    CONFIG_MAP,
    CLAIM,
    AUTOSCALER,
    SCALED_OBJECT,
    HTTP_ROUTE,
    INGRESS,
)
KINDS: Final = (*MAKERS, *_BESIDE)
"""All that the objects of workloads are. Others with their labels are made of them by controllers."""


class Group(Value):
    """The objects with a workload's label in one namespace; ``tenant`` is what their other label says."""

    name: str
    namespace: str
    tenant: str
    items: tuple[Item, ...]

    @property
    def makers(self) -> tuple[Item, ...]:
        """The objects that may make its pods, the newest first: a replaced Job stays until somebody prunes it."""
        found = [item for item in self.items if kind_of(item) in MAKERS and not self._is_beside(item)]
        return tuple(sorted(found, key=_age, reverse=True))

    def _is_beside(self, obj: Item) -> bool:
        """A Job that downloads, or what makes the pods of a canary."""
        container = main_container(template_of(obj))
        return container.get("name") == DOWNLOAD or obj.name == f"{self.name}-canary"

    def of(self, *kinds: Kind) -> Iterator[Item]:
        return (item for item in self.items if kind_of(item) in kinds)

    def find(self, kind: Kind, name: str) -> Item | None:
        return next((item for item in self.of(kind) if item.name == name), None)

    @property
    def download(self) -> Item | None:
        """The Job that fills a volume."""
        return next((item for item in self.of(JOB) if main_container(template_of(item)).get("name") == DOWNLOAD), None)


DOWNLOAD: Final = "download"
"""The name of the container of a Job that fills a model's volume."""

_CONTAINERS: Final = (MAIN_CONTAINER, CONTAINER)
"""The names of the container that a workload is about, the second one by KServe."""


def groups_of(dump: Dump) -> tuple[Group, ...]:
    """The workloads whose labels objects have, but for what controllers own."""
    found: dict[tuple[str, str], list[Item]] = {}
    for item in dump.objects:
        name = item.labels.get(WORKLOAD_LABEL)
        if name and kind_of(item) in KINDS and not is_owned(item):
            found.setdefault((item.namespace, name), []).append(item)
    return tuple(
        Group(name, namespace, next((item.labels.get(TENANT_LABEL, "") for item in items), ""), tuple(items))
        for (namespace, name), items in sorted(found.items())
    )


def is_owned(obj: Item) -> bool:
    """Whether a controller made it of another object."""
    owners = sequence(inside(obj.body, "metadata").get("ownerReferences"))
    return any(mapping(owner).get("controller") is True for owner in owners)


def kind_of(obj: Item) -> Kind:
    return obj.group, obj.kind


def template_of(obj: Item) -> Mapping[str, object]:
    """Return the pod template of an object, or nothing if it is no maker."""
    route = MAKERS.get(kind_of(obj))
    found = mapping(value_at(obj.body, route)) if route else {}
    if kind_of(obj) != INFERENCE_SERVICE:
        return found
    metadata = {field: found[field] for field in ("labels", "annotations") if field in found}
    return {"metadata": metadata, "spec": found}


def main_container(template: Mapping[str, object]) -> Mapping[str, object]:
    """The container that the work is about: that of gpuplan's name, or the first one."""
    containers = [mapping(item) for item in sequence(inside(template, "spec").get("containers"))]
    named = (item for item in containers if str(item.get("name")) in _CONTAINERS)
    return next(named, containers[0] if containers else {})


def texts(value: object) -> list[str]:
    """The texts of a list."""
    return [item for item in sequence(value) if isinstance(item, str)]


def named(items: Sequence[object], name: str) -> Mapping[str, object]:
    """The item of a list that has a name."""
    return next((mapping(item) for item in items if mapping(item).get("name") == name), {})


def _age(obj: Item) -> str:
    """When it was made, as the API server writes it: it sorts as it is."""
    return text(inside(obj.body, "metadata").get("creationTimestamp"))
