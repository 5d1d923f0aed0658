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
"""Every API server knows them, and without a controller nobody serves them."""


_BESIDE: Final = {("trainer.kubeflow.org", "TrainingRuntime"): Api.TRAIN_JOB}
"""What is written with objects of a kind, and comes with its controller."""


def api_of(group: str, kind: str) -> Api | None:
    """What a policy calls a kind of which a cluster need not have the controller."""
    if beside := _BESIDE.get((group, kind)):
        return beside
    return next((api for api, known in _GROUPS.items() if (known, api.value) == (group, kind)), None)


def lacks_kind(cluster: Cluster, group: str, kind: str) -> bool:
    """Whether the cluster has to say that it has the kind, and does not: nothing of it is written then."""
    if (group, kind) == _INGRESS:
        return cluster.spec.ingress is None
    api = api_of(group, kind)
    return api is not None and api not in cluster.spec.apis


def api_at(cluster: Cluster, group: str, kind: str) -> tuple[Origin, ...]:
    """Where the cluster says that it has a kind; nowhere where every cluster has it."""
    if (group, kind) == _INGRESS and cluster.spec.ingress:
        return (cluster.at / "ingress",)
    api = api_of(group, kind)
    return (cluster.at / "apis" / cluster.spec.apis.index(api),) if api in cluster.spec.apis else ()


def needed_api(workload: Workload) -> Api | None:
    """The kind that makes a workload's pods, where Kubernetes' own cannot."""
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
    """A chart as a policy has it installed: from where, which version of it, and in which namespace."""

    facts: SchedulerChart
    repository: str
    version: str
    namespace: str

    @property
    def name(self) -> str:
        """That of the chart, and of its release: all that it makes is called as its project calls it."""
        return self.facts.chart


def find_chart(cluster: Cluster) -> InstalledChart | None:
    """The chart that the cluster's scheduler is installed from; None where somebody else installs it."""
    scheduler = cluster.scheduler
    facts = find_scheduler_chart(scheduler.kind.value)
    if scheduler.spec.install is not SchedulerInstall.HELM or facts is None or not scheduler.version:
        return None
    repository = scheduler.spec.chart_repo_url or facts.repository
    [namespace, *_] = scheduler.traits.namespaces
    return InstalledChart(facts, repository, facts.version_of(scheduler.version), namespace)


def install_of(plan: Plan) -> Links:
    """What chooses whether the scheduler is installed, and which one."""
    at = plan.cluster.scheduler.at
    return chosen(at / "install", at / "kind")
