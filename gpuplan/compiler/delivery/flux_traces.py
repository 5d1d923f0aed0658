"""Where the objects for Flux come from."""

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


class Traces(NamedTuple):
    """Where the objects of one cluster come from."""

    plan: Plan
    flux: Flux
    reasons: Reasons

    def kustomization(self, applier: Applier, others: Sequence[str], body: Mapping[str, Any]) -> Routes:
        """``others`` are the folders that it depends on."""
        cluster, path = self.plan.cluster, applier.folder
        stage = Stage(path.partition("/")[0])
        yield (), self.reasons.of_folder(path)
        yield from self._metadata()
        yield ("metadata", "name"), self._named(path)
        yield ("spec", "suspend"), self._approval(applier, stage)
        for index, other in enumerate(others):
            yield ("spec", "dependsOn", index), self.reasons.of_folder(other)
            yield ("spec", "dependsOn", index, "name"), self._named(other)
        yield from below(("spec",), self._syncing())
        yield from below(("spec", "sourceRef"), self._source_ref())
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
        """A name that is too long ends in a digest of the whole."""
        links = (*named(self.plan.cluster), *self._part(path))
        return (
            links
            if folder_name(self.plan.cluster.name, path) == sync_name(self.plan.cluster.name, path)
            else hashed(links)
        )

    def _part(self, path: str) -> Links:
        """What a folder is for: a pool, or a namespace."""
        stage, _, part = path.partition("/")
        if not part:
            return ()
        if Stage(stage).is_by_pool:
            pool = self.plan.find_pool(part)
            return named(pool) if pool else ()
        return self.reasons.names_of_part(path)

    def _approval(self, applier: Applier, stage: Stage) -> Links:
        if stage is Stage.GPU_OPERATOR:
            return chosen(self.flux.at / "operatorApproval")
        pool = applier.pool if stage is Stage.PARTITIONS else None
        return chosen(pool.at / "disruption" / "approval") if pool else ()

    def _syncing(self) -> Routes:
        at = self.flux.at
        yield ("interval",), copied(at / "interval")
        yield ("serviceAccountName",), copied(at / "serviceAccountName")
        yield ("kubeConfig", "secretRef", "name"), copied(at / "kubeConfigSecret")

    def _source_ref(self) -> Routes:
        yield from (((field,), copied(self.flux.at / "source" / field)) for field in ("kind", "name", "namespace"))

    def _of_operator(self, body: Mapping[str, Any]) -> Routes:
        """The operator is ready with the ConfigMaps whose names are digests of what is in them.

        Where OLM installs it there are two Kustomizations, and the first has a name of its own.
        """
        cluster = self.plan.cluster
        install = chosen(cluster.gpu_operator.at / "install")
        if body["metadata"]["name"] != folder_name(cluster.name, Stage.GPU_OPERATOR):
            yield (), install
        for field in ("suspend", "wait", "patches", "healthChecks", "dependsOn"):
            yield ("spec", field), install
        for index, check in enumerate(body["spec"].get("healthCheckExprs", ())):
            is_policy = check["kind"] == "ClusterPolicy"
            yield ("spec", "healthCheckExprs", index), () if is_policy else install
            yield ("spec", "healthCheckExprs", index, "current"), self._config_maps() if is_policy else ()

    def _config_maps(self) -> Links:
        names = (("migManager", "config", "name"), ("devicePlugin", "config", "name"))
        return tuple(link for route, links in trace_helm_values(self.plan) if route in names for link in links)
