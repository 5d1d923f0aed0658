"""The scheduler that divides a cluster's GPUs: which one, its release, its settings, and what caps tenants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from gpuplan.compiler.admission.policies import FRAMEWORKS_POLICY
from gpuplan.compiler.backends import kai, kueue
from gpuplan.compiler.backends.namespaces import QUOTA
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, read_text, sequence, text
from gpuplan.compiler.catalog.charts import SchedulerChart, find_scheduler_chart
from gpuplan.compiler.catalog.frameworks import known_to_kueue
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.queues import OLDEST_RELEASES
from gpuplan.compiler.documents import Document
from gpuplan.compiler.manifests.bodies import merged
from gpuplan.compiler.planning.kueue import ROOT_COHORT, UNCOUNTED, WAIT_FOR_PODS_READY, decided
from gpuplan.compiler.planning.plan import TENANT_LABEL, Stage
from gpuplan.compiler.planning.schedulers import chosen_cap, traits_of
from gpuplan.compiler.planning.sync_names import folder_name, sync_name
from gpuplan.compiler.policy.models import Cap, Framework, Scheduler, SchedulerInstall, SchedulerKind
from gpuplan.features.live.clusters.operators import without_credentials
from gpuplan.features.live.clusters.reader import HELM, Reader, Spec, is_written, less, only, part, plan_of
from gpuplan.features.live.dump import Dump, Item, units_in
from gpuplan.features.live.queues import root_cohort

KUEUE: Final = "kueue.x-k8s.io"
KAI: Final = "scheduling.run.ai"
RUNAI: Final = ("run.ai", "kai.resources")
"""Groups of Run:ai before 3.0, and of the open project that 3.0 is made of."""
_SHARDS: Final = "kai.scheduler"
_PROJECTS: Final = "gpuplan-projects"


def kind(reader: Reader) -> SchedulerKind:
    """Run:ai has queues of the same group as KAI-Scheduler, so that its projects count first."""
    has_projects = any(item.name == _PROJECTS for item in reader.dump.objects)
    if not reader.groups.isdisjoint(RUNAI) or has_projects or [*_requests(reader)]:
        return SchedulerKind.RUNAI
    if KUEUE in reader.groups:
        return SchedulerKind.KUEUE
    if _SHARDS in reader.groups or (KAI, "Queue") in reader.kinds:
        return SchedulerKind.KAI
    return SchedulerKind.KUBERNETES


def read(reader: Reader, beside: Mapping[str, Any]) -> Spec:
    """Return the scheduler of the cluster; ``beside`` are the other parts of the cluster's spec."""
    found = kind(reader)
    group = {SchedulerKind.KUEUE: (KAI, "Queue"), SchedulerKind.RUNAI: (KUEUE, "ClusterQueue")}.get(found)
    for item in reader.dump.of_kind(*group)[:1] if group else ():
        others = "KAI-Scheduler" if found is SchedulerKind.KUEUE else "Kueue"
        reader.say("queues-of-another-scheduler", item.at, scheduler=others, item=item)
    spec: Spec = {} if found is SchedulerKind.KUBERNETES else {"kind": found.value}
    chart = find_scheduler_chart(found.value)
    if chart is not None:
        spec |= _installed(reader, found, chart, beside)
    usual = chosen_cap(Scheduler.model_construct(kind=found), text(beside["kubernetes"]))
    if capped := cap(reader, usual):
        spec["cap"] = capped.value
    if found is SchedulerKind.RUNAI and (cluster := only(text(data.get("clusterId")) for data in _requests(reader))):
        spec["runai"] = {"clusterId": cluster}
    order = ("kind", "cap", "version", "runai", "kueue", "install", "chartRepoURL", "values")
    return {key: spec[key] for key in order if key in spec}


# --- Run:ai ------------------------------------------------------------------------------------------------------


def _requests(reader: Reader) -> Iterator[Mapping[str, Any]]:
    """Yield the bodies of requests that gpuplan writes for its API."""
    for _, data in reader.documents:
        if {"labelKey", "labelValue"} <= set(data) or {"requestedNamespace", "resources"} <= set(data):
            yield data


# --- Its chart ---------------------------------------------------------------------------------------------------

_IN_COMMENT: Final = regex(r"^# Values for the chart ([a-z-]+), (v?\d+\.\d+\.\d+)\.", re.MULTILINE)


def names_chart(document: Document) -> bool:
    """Whether it is a file of values as gpuplan writes it, whose comment names the chart and its release."""
    return _IN_COMMENT.search(document.file.text) is not None


def _installed(reader: Reader, scheduler: SchedulerKind, chart: SchedulerChart, beside: Mapping[str, Any]) -> Spec:
    """Return what gpuplan has Argo CD or Flux install, or else the release that runs, with the settings of Kueue."""
    version, repository, values, at = _own_chart(reader, chart)
    spec: Spec = {"kind": scheduler.value}
    if values is not None or version:
        release = f"v{version.removeprefix('v')}" if version else ""
        spec |= {"version": release} if release else {}
        spec["install"] = SchedulerInstall.HELM.value
        if repository and repository != chart.repository:
            spec["chartRepoURL"] = repository
    elif running := _running(reader, scheduler):
        spec["version"] = running
        [namespace, *_] = traits_of(scheduler).namespaces
        if is_written(reader.dump.find("", "Namespace", namespace)):
            spec["install"] = SchedulerInstall.HELM.value
    if scheduler is SchedulerKind.KUEUE:
        told = _configuration(reader, values or {})
        settings = _kueue(reader, told, {**beside, "scheduler": spec}, chart)
        spec |= {"kueue": settings} if settings else {}
    if scheduler is SchedulerKind.KUEUE and (cohort := root_cohort(reader.dump)) != ROOT_COHORT:
        spec["kueue"] = {**spec.get("kueue", {}), "cohort": cohort}
    if values:
        values = without_credentials(reader, values, at)
        plan = plan_of({**beside, "scheduler": spec}, reader.cluster)
        back_end = kueue if scheduler is SchedulerKind.KUEUE else kai
        more = less(values, back_end.helm_values(plan)) if plan else {}
        if scheduler is SchedulerKind.KAI:
            more = less(more, {"global": {"gpuSharing": True}})
        manager = more.get("managerConfig")
        if isinstance(manager, dict):
            manager.pop("controllerManagerConfigYaml", None)
            if not manager:
                del more["managerConfig"]
        if more:
            spec["values"] = more
    return spec


def _own_chart(reader: Reader, chart: SchedulerChart) -> tuple[str, str, Mapping[str, Any] | None, Origin | None]:
    """Version, repository and values of the chart, as gpuplan's files and objects have them, with their place."""
    version, repository, values, at = "", "", None, None
    for document, data in reader.documents:
        said = _IN_COMMENT.search(document.file.text)
        if said and said[1] == chart.chart:
            reader.use(document)
            version, values, at = said[2], data, document.origin
    for item, _, sources in reader.applications():
        for source in sources:
            if item.name == sync_name(reader.cluster, Stage.SCHEDULER) and source.get("chart") == chart.chart:
                url = text(source.get("repoURL"))
                repository = url if "://" in url else f"oci://{url}"
                version = version or text(source.get("targetRevision"))
    for item in reader.dump.of_kind(HELM, "HelmRelease"):
        found = mapping(part(item.body, "spec", "chart", "spec"))
        if item.name == folder_name(reader.cluster, Stage.SCHEDULER) and found.get("chart") == chart.chart:
            version = version or text(found.get("version"))
            if values is None:
                values, at = mapping(part(item.body, "spec", "values")), item.at / ("spec", "values")
            url_of_flux = reader.repository_of(item, found)
            repository = repository if url_of_flux is None else url_of_flux
    return version, repository, values, at


# --- The release that runs ---------------------------------------------------------------------------------------

_DEPLOYMENTS: Final = {
    SchedulerKind.KUEUE: ("kueue-controller-manager",),
    SchedulerKind.KAI: ("kai-operator", "kai-scheduler-default", "podgrouper", "queue-controller"),
}
_RELEASE: Final = regex(r"v?\d+\.\d+\.\d+$")


def _running(reader: Reader, scheduler: SchedulerKind) -> str:
    """Return the release in the labels of its Deployments, or in the tags of their images; empty if none has one.

    It is empty, too, for a release that knows nothing that gpuplan writes: the Cluster describes the next one.
    """
    for item in reader.dump.of_kind("apps", "Deployment"):
        containers = sequence(part(item.body, "spec", "template", "spec", "containers"))
        labels = [item.labels.get(label, "") for label in ("app.kubernetes.io/version", "helm.sh/chart")]
        images = [text(mapping(container).get("image")) for container in containers]
        for written in (*labels, *images) if item.name in _DEPLOYMENTS.get(scheduler, ()) else ():
            if found := _RELEASE.search(written):
                reader.use(item)
                running, oldest = f"v{found[0].removeprefix('v')}", OLDEST_RELEASES.get(scheduler, ())
                if (parse_version(running) or ())[:2] >= oldest:
                    return running
                title, least = traits_of(scheduler).title, ".".join(map(str, oldest))
                reader.say("scheduler-too-old", item.at, title=title, release=running, oldest=least)
                return ""
    return ""


# --- Kueue -------------------------------------------------------------------------------------------------------

_CONFIG: Final = "config.kueue.x-k8s.io"
_MANAGER: Final = ("kueue-manager-config", "controller_manager_config.yaml")


def _configuration(reader: Reader, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Kueue's configuration: of its chart's values, of gpuplan's file, or of its ConfigMap.

    Of the ConfigMap only what matters to a plan is returned: gpuplan merges its own into it and leaves the rest.
    """
    if inner := _inner(part(values, "managerConfig", "controllerManagerConfigYaml")):
        return inner
    for item, _, body in kueue_configurations(reader.dump):
        reader.use(item)
        is_whole = item.kind != "ConfigMap"
        return {key: value for key, value in body.items() if is_whole or key in _MATTERS}
    return {}


def kueue_configurations(dump: Dump) -> Iterator[tuple[Item, Origin, Mapping[str, Any]]]:
    """Yield Kueue's Configurations, each with its object and its place: files first, then what Kueue reads."""
    for item in dump.of_kind(_CONFIG, "Configuration"):
        yield item, item.at, item.body
    for item in dump.of_kind("", "ConfigMap"):
        if item.name == _MANAGER[0]:
            inner = _inner(mapping(item.body.get("data")).get(_MANAGER[1]))
            yield item, item.at / "data" / _MANAGER[1], inner


_MATTERS: Final = ("integrations", "resources", "featureGates")


def _inner(written: object) -> Mapping[str, Any]:
    return next((mapping(body) for body in read_text(written)), {})


def _kueue(reader: Reader, configured: Mapping[str, Any], beside: Mapping[str, Any], chart: SchedulerChart) -> Spec:
    """Return Kueue's frameworks, and its settings that gpuplan does not write by itself."""
    listed = sequence(part(configured, "integrations", "frameworks"))
    known = {found.integration: found.kind for found in known_to_kueue() if found.kind in _FRAMEWORKS}
    told_of = {known[name] for name in map(text, listed) if name in known}
    held = reader.dump.find("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", FRAMEWORKS_POLICY)
    kinds = {(found.api.partition("/")[0], found.resource): found.kind for found in known_to_kueue()}
    for rule in map(mapping, sequence(part(held.body, "spec", "matchConstraints", "resourceRules")) if held else ()):
        pairs = product(map(text, sequence(rule.get("apiGroups"))), map(text, sequence(rule.get("resources"))))
        told_of |= {kinds[pair] for pair in pairs if kinds.get(pair) in _FRAMEWORKS}
    frameworks = [found.kind for found in known_to_kueue() if found.kind in told_of]
    settings: Spec = {"frameworks": frameworks} if frameworks else {}
    scheduler = {**beside["scheduler"], **({"kueue": settings} if settings else {})}
    plan = plan_of({**beside, "scheduler": scheduler}, reader.cluster)
    if plan is None:
        return settings
    usual = decided(plan)
    if scheduler.get("install") == SchedulerInstall.HELM:
        usual = merged(chart.defaults, usual)
    more = less(configured, usual, by_item=True)
    if more.get("waitForPodsReady") == WAIT_FOR_PODS_READY:
        del more["waitForPodsReady"]
    resources = mapping(more.get("resources"))
    mappings = [
        found
        for found in sequence(resources.get(_MAPPINGS))
        if not text(mapping(found).get("name")).startswith("gpuplan.dev/")
    ]
    prefixes = [prefix for prefix in sequence(resources.get(_PREFIXES)) if prefix not in UNCOUNTED]
    rest = {**resources, _MAPPINGS: mappings, _PREFIXES: prefixes}
    kept = {**more, "resources": {key: value for key, value in rest.items() if value}}
    configuration = {key: value for key, value in kept.items() if value or key != "resources"}
    return {**settings, **({"configuration": configuration} if configuration else {})}


_FRAMEWORKS: Final = frozenset(framework.value for framework in Framework)
_MAPPINGS: Final = "deviceClassMappings"
_PREFIXES: Final = "excludeResourcePrefixes"


_REQUESTS: Final = "requests."
_OF_GPUS: Final = "requests.nvidia.com/"


def cap(reader: Reader, usual: Cap) -> Cap | None:
    """Return what caps the tenants, or None if it is the usual bound or nothing tells.

    Queues leave ResourceQuotas without numbers, unless a quota is split. So tenants of one namespace tell. Whether a
    number is a guarantee or a limit shows in a queue that has both.
    """
    namespaces = [item for item in reader.dump.of_kind("", "Namespace") if TENANT_LABEL in item.labels]
    counts = Counter(item.labels[TENANT_LABEL] for item in namespaces)
    alone = {item.name for item in namespaces if counts[item.labels[TENANT_LABEL]] == 1}
    bounds = [
        (item.namespace, key.removeprefix(_REQUESTS), amount)
        for item in reader.dump.of_kind("", "ResourceQuota")
        if item.name == QUOTA and item.namespace in alone
        for key, value in mapping(part(item.body, "spec", "hard")).items()
        if key.startswith(_OF_GPUS) and (amount := units_in(value))
    ]
    if not bounds:
        return None
    is_guarantee = any(
        guaranteed == amount != limit
        for namespace, resource, amount in bounds
        for guaranteed, limit in _numbers_of_queues(reader, namespace, resource)
    )
    found = Cap.GUARANTEED if is_guarantee else Cap.LIMIT
    return None if found is usual else found


def _numbers_of_queues(reader: Reader, namespace: str, resource: str) -> Iterator[tuple[int, int | None]]:
    """Yield the guarantee and the limit of each ClusterQueue that is open to the namespace."""
    for item in reader.dump.of_kind("kueue.x-k8s.io", "ClusterQueue"):
        terms = map(mapping, sequence(part(item.body, "spec", "namespaceSelector", "matchExpressions")))
        if any(sequence(term.get("values")) == [namespace] for term in terms):
            groups = sequence(part(item.body, "spec", "resourceGroups"))
            flavors = [flavor for group in groups for flavor in sequence(part(group, "flavors"))]
            cells = [mapping(cell) for flavor in flavors for cell in sequence(part(flavor, "resources"))]
            quotas = [cell for cell in cells if cell.get("name") == resource]
            nominal = sum(units_in(quota.get("nominalQuota")) for quota in quotas)
            borrowed = sum(units_in(quota.get("borrowingLimit")) for quota in quotas)
            yield nominal, nominal + borrowed if all("borrowingLimit" in quota for quota in quotas) else None
