"""Software of a cluster beyond Kubernetes: kinds of objects that it may lack, and the chart of its scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.charts import SchedulerChart, find_scheduler_chart
from gpuplan.compiler.manifests.provenance import Links, chosen
from gpuplan.compiler.planning.plan import Cluster, Plan, Workload
from gpuplan.compiler.policy.models import Api, Inference, SchedulerInstall, ServingKind, TrainingKind

_GROUPS: Final = {
    Api.HTTP_ROUTE: "gateway.networking.k8s.io",
    Api.INFERENCE_SERVICE: "serving.kserve.io",
    Api.JOB_SET: "jobset.x-k8s.io",
    Api.LEADER_WORKER_SET: "leaderworkerset.x-k8s.io",
    Api.SCALED_OBJECT: "keda.sh",
    Api.TRAIN_JOB: "trainer.kubeflow.org",
}


_INGRESS: Final = ("networking.k8s.io", "Ingress")
"""A kind that every API server has, though without a controller nothing serves it."""


_BESIDE: Final = {("trainer.kubeflow.org", "TrainingRuntime"): Api.TRAIN_JOB}
"""Kinds that come with the controller of another kind."""


def api_of(group: str, kind: str) -> Api | None:
    """Return the policy's name for a kind whose controller a cluster may lack, or None for other kinds."""
    if beside := _BESIDE.get((group, kind)):
        return beside
    return next((api for api, known in _GROUPS.items() if (known, api.value) == (group, kind)), None)


def lacks_kind(cluster: Cluster, group: str, kind: str) -> bool:
    """Whether the cluster may lack the kind and does not list it, so that no such object is written."""
    if (group, kind) == _INGRESS:
        return cluster.spec.ingress is None
    api = api_of(group, kind)
    return api is not None and api not in cluster.spec.apis


def api_at(cluster: Cluster, group: str, kind: str) -> tuple[Origin, ...]:
    """Return the place that lists a kind. There is none for kinds that every cluster has."""
    if (group, kind) == _INGRESS and cluster.spec.ingress:
        return (cluster.at / "ingress",)
    api = api_of(group, kind)
    return (cluster.at / "apis" / cluster.spec.apis.index(api),) if api in cluster.spec.apis else ()


def needed_api(workload: Workload) -> Api | None:
    """Return the kind that makes a workload's pods, or None if a kind of Kubernetes itself does."""
    work = workload.work
    if isinstance(work, Inference) and work.kind is ServingKind.INFERENCE_SERVICE:
        return Api.INFERENCE_SERVICE
    if workload.is_grouped:
        return Api.LEADER_WORKER_SET
    return _MAKING[workload.training_kind]


_MAKING: Final[Mapping[TrainingKind, Api | None]] = {
    TrainingKind.JOB: None,
    TrainingKind.JOB_SET: Api.JOB_SET,
    TrainingKind.TRAIN_JOB: Api.TRAIN_JOB,
}


class InstalledChart(NamedTuple):
    """A chart that gpuplan installs: its repository, version and namespace."""

    facts: SchedulerChart
    repository: str
    version: str
    namespace: str

    @property
    def name(self) -> str:
        """The name of the chart and of its release, as in the project's documentation."""
        return self.facts.chart


def find_chart(cluster: Cluster) -> InstalledChart | None:
    """Return the chart that the cluster's scheduler is installed from, or None if somebody else installs it."""
    scheduler = cluster.scheduler
    facts = find_scheduler_chart(scheduler.kind.value)
    if scheduler.spec.install is not SchedulerInstall.HELM or facts is None or not scheduler.version:
        return None
    repository = scheduler.spec.chart_repo_url or facts.repository
    [namespace, *_] = scheduler.traits.namespaces
    return InstalledChart(facts, repository, facts.version_of(scheduler.version), namespace)


def install_of(plan: Plan) -> Links:
    """Return the places that choose whether a scheduler is installed, and which."""
    at = plan.cluster.scheduler.at
    return chosen(at / "install", at / "kind")
