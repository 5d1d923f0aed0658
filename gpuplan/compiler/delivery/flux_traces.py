"""Routes of the objects for Flux."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.compiler.backends.gpu_operator import trace_helm_values
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery.charts import Chart, trace_chart_values
from gpuplan.compiler.delivery.reasons import Reasons
from gpuplan.compiler.manifests.provenance import Links, Routes, as_written, below, chosen, copied, hashed
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Flux, Plan, Stage
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.planning.sync_names import folder_name, sync_name

_SOURCE = ("kind", "name", "namespace")
_NOTHING: Links = ()


class Traces(NamedTuple):
    """Routes of the objects of one cluster."""

    plan: Plan
    flux: Flux
    reasons: Reasons

    def kustomization(self, applier: Applier, others: Sequence[str], body: Mapping[str, Any]) -> Routes:
        """Yield the routes of a Kustomization; ``others`` are the folders that it depends on."""
        cluster, path = self.plan.cluster, applier.folder
        stage = Stage(path.partition("/")[0])
        yield (), self.reasons.of_folder(path)
        yield from self._metadata()
        yield ("metadata", "name"), self._named(path)
        pool, approval = applier.pool if stage is Stage.PARTITIONS else None, _NOTHING
        if stage is Stage.GPU_OPERATOR:
            approval = chosen(self.flux.at / "operatorApproval")
        elif pool:
            approval = chosen(pool.at / "disruption" / "approval")
        yield ("spec", "suspend"), approval
        for index, other in enumerate(others):
            yield ("spec", "dependsOn", index), self.reasons.of_folder(other)
            yield ("spec", "dependsOn", index, "name"), self._named(other)
        yield from below(("spec",), self._syncing())
        yield from ((("spec", "sourceRef", field), copied(self.flux.at / "source" / field)) for field in _SOURCE)
        yield ("spec", "path"), (*copied(self.flux.at / "path"), *named(cluster), *self._part(path))
        if stage is Stage.GPU_OPERATOR:
            yield from self._of_operator(body)
        elif stage is Stage.SCHEDULER:
            for field in ("healthChecks", "healthCheckExprs"):
                yield ("spec", field), chosen(cluster.scheduler.at / "kind")

    def repository(self, chart: Chart) -> Routes:
        yield from self._of_release(chart)
        yield ("spec", "interval"), copied(self.flux.at / "interval")
        yield ("spec", "url"), chart.repository_links
        yield ("spec", "type"), chosen(chart.at / "chartRepoURL")

    def release(self, chart: Chart) -> Routes:
        yield from self._of_release(chart)
        is_operators = chart.stage is Stage.GPU_OPERATOR
        yield ("spec", "suspend"), chosen(self.flux.at / "operatorApproval") if is_operators else ()
        yield from below(("spec",), self._syncing())
        for field in ("targetNamespace", "storageNamespace"):
            yield ("spec", field), chart.namespace_links
        found = ("spec", "chart", "spec")
        for route in (("spec", "releaseName"), (*found, "chart"), (*found, "version")):
            yield route, () if is_operators else chart.links
        yield (*found, "version"), copied(chart.at / "version")
        yield (*found, "sourceRef", "name"), self._named(chart.stage)
        yield from below(("spec", "values"), trace_chart_values(self.plan, chart))

    def _of_release(self, chart: Chart) -> Routes:
        yield (), chart.links
        yield from self._metadata()
        yield ("metadata", "name"), self._named(chart.stage)

    # --- Parts ---------------------------------------------------------------------------------------------------

    def _metadata(self) -> Routes:
        yield ("metadata", "namespace"), copied(self.flux.at / "namespace")
        yield from below(("metadata", "labels"), as_written(self.flux.at / "labels", self.flux.spec.labels))

    def _named(self, path: str) -> Links:
        """Return the links of a name. One that is too long ends in a digest of the whole."""
        links = (*named(self.plan.cluster), *self._part(path))
        return (
            links
            if folder_name(self.plan.cluster.name, path) == sync_name(self.plan.cluster.name, path)
            else hashed(links)
        )

    def _part(self, path: str) -> Links:
        """Return what a folder is for: a pool, or a namespace."""
        stage, _, part = path.partition("/")
        if not part:
            return ()
        if Stage(stage).is_by_pool:
            pool = self.plan.find_pool(part)
            return named(pool) if pool else ()
        return self.reasons.names_of_part(path)

    def _syncing(self) -> Routes:
        at = self.flux.at
        yield ("interval",), copied(at / "interval")
        yield ("serviceAccountName",), copied(at / "serviceAccountName")
        yield ("kubeConfig", "secretRef", "name"), copied(at / "kubeConfigSecret")

    def _of_operator(self, body: Mapping[str, Any]) -> Routes:
        """Yield the routes of checks: the operator is ready with ConfigMaps that have digests as names.

        If OLM installs it there are two Kustomizations, and the first has a name of its own.
        """
        cluster = self.plan.cluster
        install = chosen(cluster.gpu_operator.at / "install")
        if body["metadata"]["name"] != folder_name(cluster.name, Stage.GPU_OPERATOR):
            yield (), install
        for field in ("suspend", "wait", "patches", "healthChecks", "dependsOn"):
            yield ("spec", field), install
        names = (("migManager", "config", "name"), ("devicePlugin", "config", "name"))
        for index, check in enumerate(body["spec"].get("healthCheckExprs", ())):
            route = ("spec", "healthCheckExprs", index)
            if check["kind"] != "ClusterPolicy":
                yield route, install
                continue
            maps = (links for value, links in trace_helm_values(self.plan) if value in names)
            yield (*route, "current"), tuple(link for links in maps for link in links)
