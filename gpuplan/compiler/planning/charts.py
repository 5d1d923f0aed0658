"""The chart that a cluster's scheduler is installed from, where gpuplan has it installed."""

from __future__ import annotations

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.charts import SchedulerChart, find_scheduler_chart
from gpuplan.compiler.manifests.provenance import Links, chosen
from gpuplan.compiler.planning.plan import Cluster, Plan
from gpuplan.compiler.policy.models import SchedulerInstall


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
