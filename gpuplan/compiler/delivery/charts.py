"""The Helm charts that Argo CD or Flux installs: the GPU Operator's, and the scheduler's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, assert_never

from gpuplan.compiler.backends import gpu_operator, kai, kueue
from gpuplan.compiler.backends.base import trace_values
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.operators import OPERATORS_CHART, ChartKinds, chart_kinds
from gpuplan.compiler.manifests.provenance import Links, Routes, chosen, copied
from gpuplan.compiler.planning.appliers import has_chart
from gpuplan.compiler.planning.charts import find_chart
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.sources import operator_namespace
from gpuplan.compiler.policy.models import SchedulerKind

REGISTRY: Final = "oci://"


class Chart(NamedTuple):
    """A chart, and the stage whose folder has its values.

    ``at`` is the part of the policy that says which it is: its fields `install`, `version` and `chartRepoURL`.
    ``namespace_links`` are those of the namespace. ``elsewhere`` are namespaces where it writes beside its own,
    ``creates`` those that it makes.
    """

    stage: Stage
    name: str
    at: Origin
    repository: str
    version: str
    namespace: str
    namespace_links: Links
    kinds: ChartKinds
    elsewhere: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Its repository as Argo CD has it: a registry without its scheme, which stands for another kind of source."""
        return self.repository.removeprefix(REGISTRY)

    @property
    def is_in_registry(self) -> bool:
        return self.repository.startswith(REGISTRY)

    @property
    def links(self) -> Links:
        """What chooses whether it is installed, and which one."""
        is_operators = self.stage is Stage.GPU_OPERATOR
        return chosen(self.at / "install", *(() if is_operators else (self.at / "kind",)))

    @property
    def repository_links(self) -> Links:
        return copied(self.at / "chartRepoURL")


def charts(plan: Plan) -> tuple[Chart, ...]:
    """All of a cluster, in the order of their stages."""
    return tuple(chart for chart in (_operators(plan), _schedulers(plan)) if chart)


def chart_of(plan: Plan, folder: str) -> Chart | None:
    """The chart whose values are in a folder."""
    return next((chart for chart in charts(plan) if chart.stage == folder), None)


def _operators(plan: Plan) -> Chart | None:
    if not has_chart(plan):
        return None
    operator, links = plan.cluster.gpu_operator, operator_namespace(plan.cluster)
    url, version = operator.spec.chart_repo_url, operator.version
    at, stage = operator.at, Stage.GPU_OPERATOR
    return Chart(stage, OPERATORS_CHART, at, url, version, operator.namespace, links, chart_kinds())


def _schedulers(plan: Plan) -> Chart | None:
    chart = find_chart(plan.cluster)
    if chart is None:
        return None
    at, facts = plan.cluster.scheduler.at, chart.facts
    links = chosen(at / "kind")
    where = (chart.repository, chart.version, chart.namespace, links)
    return Chart(Stage.SCHEDULER, chart.name, at, *where, facts.kinds, facts.namespaces, facts.creates)


# --- Values ------------------------------------------------------------------------------------------------------


def chart_values(plan: Plan, chart: Chart) -> Mapping[str, Any]:
    """The values that its folder has in a file, for who hands them to Helm in some other way."""
    if chart.stage is Stage.GPU_OPERATOR:
        return gpu_operator.helm_values(plan)
    back_end = _back_end(plan.cluster.scheduler.kind)
    return back_end.helm_values(plan) if back_end else {}


def trace_chart_values(plan: Plan, chart: Chart) -> Routes:
    """Where those values come from, by routes in them."""
    if chart.stage is Stage.GPU_OPERATOR:
        return gpu_operator.trace_helm_values(plan)
    back_end = _back_end(plan.cluster.scheduler.kind)
    return trace_values(plan, back_end.decided_routes) if back_end else iter(())


class _WithChart(Protocol):
    """A back end whose scheduler has a chart."""

    def helm_values(self, plan: Plan) -> Mapping[str, Any]: ...

    def decided_routes(self, plan: Plan) -> Routes: ...


def _back_end(scheduler: SchedulerKind) -> _WithChart | None:
    match scheduler:
        case SchedulerKind.KUEUE:
            return kueue
        case SchedulerKind.KAI:
            return kai
        case SchedulerKind.KUBERNETES | SchedulerKind.RUNAI:
            return None
        case unknown:
            assert_never(unknown)
