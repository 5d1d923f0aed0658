"""The scheduler that divides a cluster's GPUs: which one, its release, its settings, and what caps tenants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.admission.policies import FRAMEWORKS_POLICY
from gpuplan.compiler.backends import kai, kueue
from gpuplan.compiler.backends.namespaces import QUOTA
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, read_text, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog.charts import SchedulerChart, find_scheduler_chart
from gpuplan.compiler.catalog.frameworks import known_to_kueue
from gpuplan.compiler.documents import Document
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.manifests.bodies import merged
from gpuplan.compiler.planning.kueue import ROOT_COHORT, UNCOUNTED, WAIT_FOR_PODS_READY, decided
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, Stage
from gpuplan.compiler.planning.schedulers import chosen_cap, traits_of
from gpuplan.compiler.planning.sync_names import folder_name, sync_name
from gpuplan.compiler.policy.models import Cap, Framework, Scheduler, SchedulerInstall, SchedulerKind
from gpuplan.features.live.clusters.operators import without_credentials
from gpuplan.features.live.clusters.reader import HELM, Reader, Spec, is_written, less, only, part, plan_of
from gpuplan.features.live.dump import Item
from gpuplan.features.live.queues import root_cohort

KUEUE: Final = "kueue.x-k8s.io"
KAI: Final = "scheduling.run.ai"
RUNAI: Final = "run.ai"
_SHARDS: Final = "kai.scheduler"
_PROJECTS: Final = "gpuplan-projects"


def kind(reader: Reader) -> SchedulerKind:
    """Run:ai has queues of the same group as KAI-Scheduler, so that its projects count first."""
    if RUNAI in reader.groups or any(item.name == _PROJECTS for item in reader.dump.objects) or [*_requests(reader)]:
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
    elif running := next(_running(reader, scheduler), ""):
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
        if more := _more_values(values, plan, scheduler):
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
            name = text(part(found, "sourceRef", "name"))
            place = reader.dump.find("source.toolkit.fluxcd.io", "HelmRepository", name, item.namespace)
            repository = text(part(place.body, "spec", "url")) if place else repository
    return version, repository, values, at


def _more_values(values: Mapping[str, Any], plan: Plan | None, scheduler: SchedulerKind) -> Spec:
    """Values that gpuplan does not write by itself."""
    if plan is None:
        return {}
    expected = kueue.helm_values(plan) if scheduler is SchedulerKind.KUEUE else kai.helm_values(plan)
    shares = {"global": {"gpuSharing": True}}
    found = less(values, expected)
    if scheduler is SchedulerKind.KAI:
        found = less(found, shares)
    manager = found.get("managerConfig")
    if isinstance(manager, dict):
        manager.pop("controllerManagerConfigYaml", None)
        if not manager:
            del found["managerConfig"]
    return found


# --- The release that runs ---------------------------------------------------------------------------------------

_DEPLOYMENTS: Final = {
    SchedulerKind.KUEUE: ("kueue-controller-manager",),
    SchedulerKind.KAI: ("kai-operator", "kai-scheduler-default", "podgrouper", "queue-controller"),
}
_RELEASE: Final = regex(r"v?\d+\.\d+\.\d+$")


def _running(reader: Reader, scheduler: SchedulerKind) -> Iterator[str]:
    """Yield the releases in the labels of its Deployments, or in the tags of their images."""
    for item in reader.dump.of_kind("apps", "Deployment"):
        if item.name in _DEPLOYMENTS.get(scheduler, ()):
            for said in _texts_of_release(item):
                if found := _RELEASE.search(said):
                    reader.use(item)
                    yield f"v{found[0].removeprefix('v')}"


def _texts_of_release(deployment: Item) -> Iterator[str]:
    yield deployment.labels.get("app.kubernetes.io/version", "")
    yield deployment.labels.get("helm.sh/chart", "")
    for container in sequence(part(deployment.body, "spec", "template", "spec", "containers")):
        yield text(mapping(container).get("image"))


# --- Kueue -------------------------------------------------------------------------------------------------------

_CONFIG: Final = "config.kueue.x-k8s.io"
_MANAGER: Final = ("kueue-manager-config", "controller_manager_config.yaml")


def _configuration(reader: Reader, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Kueue's configuration: of its chart's values, of gpuplan's file, or of its ConfigMap.

    Of the ConfigMap only what matters to a plan is returned: gpuplan merges its own into it and leaves the rest.
    """
    if inner := _inner(part(values, "managerConfig", "controllerManagerConfigYaml")):
        return inner
    for item in reader.dump.of_kind(_CONFIG, "Configuration"):
        reader.use(item)
        return item.body
    for item in reader.dump.of_kind("", "ConfigMap"):
        if item.name == _MANAGER[0]:
            reader.use(item)
            inner = _inner(mapping(item.body.get("data")).get(_MANAGER[1]))
            return {key: inner[key] for key in _MATTERS if key in inner}
    return {}


_MATTERS: Final = ("integrations", "resources", "featureGates")


def _inner(written: object) -> Mapping[str, Any]:
    return next((mapping(body) for body in read_text(written)), {})


def _kueue(reader: Reader, configured: Mapping[str, Any], beside: Mapping[str, Any], chart: SchedulerChart) -> Spec:
    """Return Kueue's frameworks, and its settings that gpuplan does not write by itself."""
    listed = sequence(part(configured, "integrations", "frameworks"))
    known = {found.integration: found.kind for found in known_to_kueue() if found.kind in _FRAMEWORKS}
    told_of = {known[name] for name in map(text, listed) if name in known} | {*_held(reader)}
    frameworks = [found.kind for found in known_to_kueue() if found.kind in told_of]
    settings: Spec = {"frameworks": frameworks} if frameworks else {}
    scheduler = {**beside["scheduler"], **({"kueue": settings} if settings else {})}
    plan = plan_of({**beside, "scheduler": scheduler}, reader.cluster)
    if plan is None:
        return settings
    usual = decided(plan)
    if scheduler.get("install") == SchedulerInstall.HELM:
        usual = merged(chart.defaults, usual)
    more = _added(configured, usual)
    if more.get("waitForPodsReady") == WAIT_FOR_PODS_READY:
        del more["waitForPodsReady"]
    resources = mapping(more.get("resources"))
    left = {
        **resources,
        "deviceClassMappings": [
            item
            for item in sequence(resources.get(_MAPPINGS))
            if not text(mapping(item).get("name")).startswith("gpuplan.dev/")
        ],
        "excludeResourcePrefixes": [item for item in sequence(resources.get(_PREFIXES)) if item not in UNCOUNTED],
    }
    kept = {**more, "resources": {key: value for key, value in left.items() if value}}
    configuration = {key: value for key, value in kept.items() if value or key != "resources"}
    return {**settings, **({"configuration": configuration} if configuration else {})}


def _held(reader: Reader) -> Iterator[str]:
    """Yield the kinds that gpuplan's admission policy holds to their queues as a whole."""
    found = reader.dump.find("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", FRAMEWORKS_POLICY)
    kinds = {(known.api.partition("/")[0], known.resource): known.kind for known in known_to_kueue()}
    rules = sequence(part(found.body, "spec", "matchConstraints", "resourceRules")) if found else ()
    for rule in map(mapping, rules):
        for group in map(text, sequence(rule.get("apiGroups"))):
            for resource in map(text, sequence(rule.get("resources"))):
                if (kind := kinds.get((group, resource))) in _FRAMEWORKS:
                    yield str(kind)


_FRAMEWORKS: Final = frozenset(framework.value for framework in Framework)
_MAPPINGS: Final = "deviceClassMappings"
_PREFIXES: Final = "excludeResourcePrefixes"


def _added(configured: Mapping[str, Any], usual: Mapping[str, Any]) -> Spec:
    """Return the values that one mapping has and the other lacks, and the items that a list adds."""
    found: Spec = {}
    for key, value in configured.items():
        there = usual.get(key)
        if there is None:
            found[key] = value
        elif isinstance(value, Mapping) and isinstance(there, Mapping):
            if inner := _added(value, there):
                found[key] = inner
        elif isinstance(value, list) and isinstance(there, list):
            if added := [item for item in value if item not in there]:
                found[key] = added
        elif value != there:
            found[key] = value
    return found


_REQUESTS: Final = "requests."
_OF_GPUS: Final = "requests.nvidia.com/"


class _Bound(NamedTuple):
    """A number of units of a resource that a tenant may use in its only namespace."""

    tenant: str
    namespace: str
    resource: str
    amount: int


def cap(reader: Reader, usual: Cap) -> Cap | None:
    """Return what caps the tenants, or None if it is the usual bound or nothing tells.

    Queues leave ResourceQuotas without numbers, unless a quota is split. So tenants of one namespace tell. Whether a
    number is a guarantee or a limit shows in a queue that has both.
    """
    bounds = [*_bounds(reader)]
    if not bounds:
        return None
    found = (
        Cap.GUARANTEED
        if any(
            any(guaranteed == bound.amount != limit for guaranteed, limit in _by_queue(reader, bound))
            for bound in bounds
        )
        else Cap.LIMIT
    )
    return None if found is usual else found


def _bounds(reader: Reader) -> Iterator[_Bound]:
    namespaces = [item for item in reader.dump.of_kind("", "Namespace") if TENANT_LABEL in item.labels]
    counts = Counter(item.labels[TENANT_LABEL] for item in namespaces)
    tenants = {item.name: item.labels[TENANT_LABEL] for item in namespaces if counts[item.labels[TENANT_LABEL]] == 1}
    for item in reader.dump.of_kind("", "ResourceQuota"):
        if item.name == QUOTA and item.namespace in tenants:
            for key, value in mapping(part(item.body, "spec", "hard")).items():
                if key.startswith(_OF_GPUS) and (amount := _amount(value)):
                    yield _Bound(tenants[item.namespace], item.namespace, key.removeprefix(_REQUESTS), amount)


def _amount(value: object) -> int:
    found = parse_quantity(str(value)) if isinstance(value, str | int) else None
    return int(found) if found else 0


def _by_queue(reader: Reader, bound: _Bound) -> Iterator[tuple[int, int | None]]:
    """Yield the guarantee and the limit of each ClusterQueue that is open to the namespace."""
    for item in reader.dump.of_kind("kueue.x-k8s.io", "ClusterQueue"):
        terms = map(mapping, sequence(part(item.body, "spec", "namespaceSelector", "matchExpressions")))
        if any(sequence(term.get("values")) == [bound.namespace] for term in terms):
            quotas = [found for found in _quotas(item.body) if found.get("name") == bound.resource]
            nominal = sum(_amount(found.get("nominalQuota")) for found in quotas)
            borrowed = sum(_amount(found.get("borrowingLimit")) for found in quotas)
            is_bounded = all("borrowingLimit" in found for found in quotas)
            yield nominal, nominal + borrowed if is_bounded else None


def _quotas(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for group in sequence(part(queue, "spec", "resourceGroups")):
        for flavor in sequence(part(group, "flavors")):
            yield from map(mapping, sequence(part(flavor, "resources")))
