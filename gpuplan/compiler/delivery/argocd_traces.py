"""Where the objects for Argo CD come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.delivery.annotations import SYNC_WAVE
from gpuplan.compiler.delivery.charts import chart_of, charts
from gpuplan.compiler.delivery.reasons import Reasons
from gpuplan.compiler.manifests.kinds import find_kind
from gpuplan.compiler.manifests.provenance import (
    Links,
    Routes,
    as_written,
    below,
    choosing,
    chosen,
    copied,
    hashed,
    ordering,
)
from gpuplan.compiler.planning.apis import api_at
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Argocd, Plan, Stage, with_places
from gpuplan.compiler.planning.sources import MOST_IN_ORDER, by_name, named, operator_namespace, rules_group_of
from gpuplan.compiler.planning.sync_names import COMPARE_OPTIONS, CONTENT, REVISION

Entries = Sequence[Mapping[str, Any]]

_NOTHING: Links = ()


class Traces(NamedTuple):
    """Where the objects of one cluster come from."""

    plan: Plan
    argocd: Argocd
    reasons: Reasons

    # --- The project ---------------------------------------------------------------------------------------------

    def app_project(self, spec: Mapping[str, Any]) -> Routes:
        yield (), self._root()
        yield from self._metadata()
        yield ("metadata", "name"), self._project()
        yield ("spec", "description"), named(self.plan.cluster)
        yield ("spec", "sourceRepos", 0), copied(self.argocd.at / "repoURL")
        before = _NOTHING
        for index, chart in enumerate(charts(self.plan), start=1):
            before += chart.links
            yield ("spec", "sourceRepos", index), (*chart.repository_links, *before)
        yield from below(("spec", "destinations"), self._destinations(spec["destinations"]))
        for field in ("clusterResourceWhitelist", "namespaceResourceWhitelist"):
            yield from below(("spec", field), self._whitelist(spec[field]))
        yield from below(("spec", "syncWindows"), self._windows())

    def _destinations(self, entries: Entries) -> Routes:
        """The operator's own namespace is always one of them, and those of a chart where there is one."""
        of_charts = {space: chart.links for chart in charts(self.plan) for space in (chart.namespace, *chart.elsewhere)}
        spaces = [entry["namespace"] for entry in entries]
        names = {space: self.reasons.names_of_namespace(space) for space in spaces}
        order, before = _in_order(names), _NOTHING
        for index, space in enumerate(spaces):
            is_operators = space == self.plan.cluster.gpu_operator.namespace
            links = () if is_operators else (*self.reasons.of_namespace(space), *of_charts.get(space, ()))
            yield from below((index,), self._destination())
            yield (index, "namespace"), (*names[space], *order, *links, *ordering(before))
            before += links
        for index in range(len(spaces)):
            yield (index,), ordering(self._scheduler_installed())
        yield (len(spaces) - 1,), choosing(before)

    def _whitelist(self, entries: Entries) -> Routes:
        """Namespaces one by one come first; those of operators are there by who installs those."""
        spaces = [entry["name"] for entry in entries if "name" in entry]
        names = {space: self.reasons.names_of("", "Namespace", space) for space in spaces}
        made = {space: chart.links for chart in charts(self.plan) for space in chart.creates}
        order, before = _in_order(names), _NOTHING
        for index, entry in enumerate(entries):
            if index < len(spaces):
                links = (*self.reasons.of_object("", "Namespace", spaces[index]), *made.get(spaces[index], ()))
                yield (index, "name"), (*names[spaces[index]], *order, *links, *ordering(before))
                yield (len(spaces) - 1,), links
            else:
                links = self._allowed(entry["group"], entry["kind"])
                installed = chosen(self.plan.cluster.gpu_operator.at / "install") if spaces else ()
                yield (index,), (*links, *ordering((*before, *installed)))
            yield (index,), ordering(self._scheduler_installed())
            before += links

    def _scheduler_installed(self) -> Links:
        """What chooses whether a scheduler's chart is among what is allowed."""
        return tuple(link for chart in charts(self.plan) if chart.stage is Stage.SCHEDULER for link in chart.links)

    def _allowed(self, group: str, kind: str) -> Links:
        """What alone decides that a kind may be written."""
        cluster = self.plan.cluster
        if kind == "NodeFeatureRule":
            return rules_group_of(cluster)
        found = find_kind(group, kind)
        if found and found.outlives_policy:
            return chosen(*api_at(cluster, group, kind))
        of_charts = [
            chart for chart in charts(self.plan) if (group, kind) in chart.kinds.cluster | chart.kinds.namespaced
        ]
        if not of_charts:
            return self.reasons.of_kind(group, kind)
        is_one = len(of_charts) == 1 and not self.reasons.has_kind(group, kind)
        return of_charts[0].links if is_one else ()

    def _windows(self) -> Routes:
        paths = {folder.path for folder in self.reasons.folders}
        pools = [pool for pool in self.plan.pools if pool.windows and f"{Stage.PARTITIONS}/{pool.name}" in paths]
        places = [
            (pool, at) for pool in pools for at, _ in with_places(pool.at / "disruption" / "windows", pool.windows)
        ]
        for index, (pool, at) in enumerate(places):
            yield (index,), (*self.reasons.of_folder(f"{Stage.PARTITIONS}/{pool.name}"), *by_name(pools))
            for field in ("schedule", "duration", "timeZone"):
                yield (index, field), copied(at / field)
            yield (index, "applications", 0), named(self.plan.cluster, pool)

    # --- Applications --------------------------------------------------------------------------------------------

    def application(self, applier: Applier) -> Routes:
        cluster = self.plan.cluster
        stage = Stage(applier.folder.partition("/")[0])
        approval = self._approval(applier, stage)
        yield (), (*self.reasons.of_folder(applier.folder), *self._root())
        yield from self._metadata()
        yield ("metadata", "name"), (*named(cluster), *_pool(applier))
        yield ("metadata", "annotations", SYNC_WAVE), approval
        yield ("spec", "project"), self._project()
        source: Path = ("spec", "source")
        if stage in (Stage.GPU_OPERATOR, Stage.SCHEDULER):
            of = cluster.gpu_operator if stage is Stage.GPU_OPERATOR else cluster.scheduler
            install, chart = chosen(of.at / "install"), ("spec", "sources", 0)
            yield from ((route, install) for route in (source, ("spec", "sources")))
            source = ("spec", "sources", 1) if chart_of(self.plan, stage) else source
            yield (*chart, "repoURL"), copied(of.at / "chartRepoURL")
            yield (*chart, "targetRevision"), copied(of.at / "version")
            yield (*chart, "helm", "valueFiles", 0), self._path()
        if stage is Stage.SCHEDULER:
            kind = chosen(cluster.scheduler.at / "kind")
            yield from (
                (route, kind) for route in ((*chart, "chart"), (*chart, "repoURL"), (*chart, "helm", "releaseName"))
            )
        yield from below(source, self._git_source())
        yield (*source, "path"), (*self._path(), *_pool(applier))
        yield from below(("spec", "destination"), self._destination())
        found = chart_of(self.plan, applier.folder)
        yield ("spec", "destination", "namespace"), found.namespace_links if found else operator_namespace(cluster)
        yield ("spec", "syncPolicy", "automated"), approval
        options = {Stage.PARTITIONS: cluster.at / "nodeLabels", Stage.GPU_OPERATOR: cluster.gpu_operator.at / "install"}
        if decisive := options.get(stage):
            for policy in (("spec", "syncPolicy"), ("operation", "sync")):
                yield (*policy, "syncOptions"), chosen(decisive)
        if stage is Stage.GPU_OPERATOR:
            yield ("metadata", "annotations", COMPARE_OPTIONS), chosen(cluster.gpu_operator.at / "install")
        if applier.root:
            yield from self._ordered(applier, stage, approval)

    def _ordered(self, applier: Applier, stage: Stage, approval: Links) -> Routes:
        """What a root syncs, for it is synced by itself, as the operator before it is."""
        cluster, revision = self.plan.cluster, copied(self.argocd.at / "revision")
        for route in (("operation",), ("metadata", "annotations", CONTENT), ("metadata", "annotations", REVISION)):
            yield route, approval
        content: Links = self.reasons.of_content(applier.folder)
        if stage is Stage.GPU_OPERATOR:
            operator = cluster.gpu_operator
            for key in ("revision", "revisions"):
                yield ("operation", "sync", key), chosen(operator.at / "install")
            yield ("operation", "sync", "revisions", 0), copied(operator.at / "version")
            content += chosen(operator.at / "install", operator.at / "version")
        yield ("metadata", "annotations", CONTENT), hashed(content)
        yield ("metadata", "annotations", REVISION), revision
        yield ("operation", "sync", "revision"), revision
        yield ("operation", "sync", "revisions", 1), revision
        yield ("operation", "initiatedBy", "username"), named(cluster)

    # --- The root ------------------------------------------------------------------------------------------------

    def root_project(self) -> Routes:
        yield (), self._root()
        yield from self._metadata()
        for route in (("metadata", "name"), ("spec", "description")):
            yield route, named(self.plan.cluster)
        yield ("spec", "sourceRepos", 0), copied(self.argocd.at / "repoURL")
        yield ("spec", "destinations", 0, "namespace"), self._namespace()

    def root(self) -> Routes:
        yield (), self._root()
        yield from self._metadata()
        for route in (("metadata", "name"), ("spec", "project")):
            yield route, named(self.plan.cluster)
        yield from below(("spec", "source"), self._git_source())
        yield ("spec", "source", "path"), self._path()
        yield ("spec", "destination", "namespace"), self._namespace()

    def revisions(self, appliers: Sequence[Applier]) -> Routes:
        """The file that copies the commit to all that the root orders."""
        yield (), (*self._root(), *chosen(self.argocd.at / "operatorApproval"))
        yield ("source", "name"), named(self.plan.cluster)
        for index, applier in enumerate(appliers):
            approval = self._approval(applier, Stage(applier.folder.partition("/")[0]))
            target = ("targets", index)
            yield target, (*self.reasons.of_folder(applier.folder), *approval)
            yield (*target, "select", "name"), (*named(self.plan.cluster), *_pool(applier))
            if not applier.pool:
                yield (*target, "fieldPaths", 0), chosen(self.plan.cluster.gpu_operator.at / "install")

    def _root(self) -> Links:
        """Whether there is one decides where all the others lie."""
        return chosen(self.argocd.at / "root") if "root" in self.argocd.spec.model_fields_set else ()

    def application_set(self, applier: Applier) -> Routes:
        git, template = ("spec", "generators", 0, "git"), ("spec", "template")
        yield (), (*self.reasons.of_stage(applier.folder.partition("/")[0]), *self._root())
        yield from self._metadata()
        yield ("metadata", "name"), named(self.plan.cluster)
        yield (*git, "repoURL"), copied(self.argocd.at / "repoURL")
        yield (*git, "revision"), copied(self.argocd.at / "revision")
        yield (*git, "directories", 0, "path"), self._path()
        yield (*template, "metadata", "name"), named(self.plan.cluster)
        yield from below((*template, "metadata", "labels"), self._labels())
        yield (*template, "spec", "project"), self._project()
        yield from below((*template, "spec", "source"), self._git_source())
        yield from below((*template, "spec", "destination"), self._destination())

    def health_checks(self) -> Routes:
        yield (), self._root()
        yield (), chosen(self.plan.cluster.scheduler.at / "install", self.plan.cluster.scheduler.at / "kind")

    def operator_patch(self) -> Routes:
        yield (), (*chosen(self.plan.cluster.at / "platform"), *self._root())

    def _approval(self, applier: Applier, stage: Stage) -> Links:
        if stage is Stage.GPU_OPERATOR:
            return chosen(self.argocd.at / "operatorApproval")
        pool = applier.pool if stage is Stage.PARTITIONS else None
        operator = chosen(self.argocd.at / "operatorApproval") if self.argocd.spec.root else ()
        return (*chosen(pool.at / "disruption" / "approval"), *operator) if pool else ()

    # --- Any object ----------------------------------------------------------------------------------------------

    def _metadata(self) -> Routes:
        yield ("metadata", "namespace"), self._namespace()
        yield from below(("metadata", "labels"), self._labels())

    def _namespace(self) -> Links:
        namespace = self.argocd.spec.namespace
        return copied(self.argocd.at / "namespace") if namespace else chosen(self.plan.cluster.at / "platform")

    def _labels(self) -> Routes:
        return as_written(self.argocd.at / "labels", self.argocd.spec.labels)

    def _project(self) -> Links:
        return copied(self.argocd.at / "project") if self.argocd.spec.project else named(self.plan.cluster)

    def _git_source(self) -> Routes:
        yield ("repoURL",), copied(self.argocd.at / "repoURL")
        yield ("targetRevision",), copied(self.argocd.at / "revision")

    def _path(self) -> Links:
        """Of a path to a folder of the cluster."""
        return (*copied(self.argocd.at / "path"), *named(self.plan.cluster))

    def _destination(self) -> Routes:
        at = self.argocd.at / "destination"
        yield from (((field,), copied(at / field)) for field in ("name", "server"))


def _pool(applier: Applier) -> Links:
    return named(applier.pool) if applier.pool else ()


def _in_order(names: Mapping[str, Links]) -> Links:
    """Of the namespaces of a sorted list, where no more are named than anybody reads."""
    links = ordering(link for found in names.values() for link in found)
    return links if len(links) <= MOST_IN_ORDER else ()
