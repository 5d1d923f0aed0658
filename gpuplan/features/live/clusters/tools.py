"""The tools around a cluster: the one that syncs its folders, Argo CD or Flux, and its monitoring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Final

from gpuplan.compiler.backends.gpu_operator.settings import metrics as exporter_metrics
from gpuplan.compiler.backends.monitoring.rules import (
    NAMESPACE_TENANT,
    POOL_MIG_CONFIG,
    POOL_PLANNED_NODES,
    POOL_PLANNED_UNITS,
    QUEUE_TENANT,
    texts,
)
from gpuplan.compiler.base.credentials import holds_credential
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.catalog.exporters import exporter_traits
from gpuplan.compiler.manifests.templates import rows_for
from gpuplan.compiler.planning.alerts import AlertName
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.planning.sync_names import CONTENT, fit, folder_name, root_name, sync_name
from gpuplan.compiler.policy.models import Approval, Collect, Flux, FluxSource, Platform
from gpuplan.features.live.clusters.kubernetes import CONSOLE
from gpuplan.features.live.clusters.reader import (
    ABOUT_PROJECT,
    ARGOCD,
    FLUX,
    HELM,
    Reader,
    Spec,
    cleaned,
    differing,
    only,
    part,
    plan_of,
    rules_in,
)
from gpuplan.features.live.dump import Dump, Item

_IN_CLUSTER: Final = "https://kubernetes.default.svc"


def names(dump: Dump) -> Iterator[str]:
    """Yield the names of the clusters that gpuplan's objects for Argo CD or Flux are about."""
    for item in dump.of_kind(ARGOCD, "AppProject"):
        about = text(part(item.body, "spec", "description"))
        if about.startswith(ABOUT_PROJECT):
            yield about.removeprefix(ABOUT_PROJECT)
    for item in dump.of_kind(FLUX, "Kustomization"):
        *_, cluster, folder = ["", "", *text(part(item.body, "spec", "path")).split("/")]
        if folder == Stage.GPU_OPERATOR and item.name in (
            folder_name(cluster, folder),
            fit(f"gpu-subscriptions-{cluster}"),
        ):
            yield cluster


def read_sync(reader: Reader, platform: Platform, usual: Approval) -> Spec:
    """Return the tool that syncs the cluster; ``usual`` is the approval of the operator where none is stated.

    An Argo CD or a Flux that syncs other things alone tells nothing of where the policies' output will be.
    """
    by_argocd, by_flux = argocd(reader, platform, usual), flux(reader, usual)
    if by_argocd is not None:
        for item, _ in [*_kustomizations(reader)][:1]:
            reader.say("two-tools-sync", item.at)
        return {"argocd": by_argocd}
    if by_flux is not None:
        return {"flux": by_flux}
    for tool, kind, field in _TOOLS:
        for item in reader.dump.of_kind(*kind)[:1]:
            reader.say("unknown-repository", item.at, tool=tool, field=field)
            return {}
    return {}


_TOOLS: Final = (
    ("Argo CD", (ARGOCD, "Application"), "`argocd: {repoURL: ...}`"),
    ("Flux", (FLUX, "Kustomization"), "`flux: {}`"),
)


# --- Argo CD -----------------------------------------------------------------------------------------------------


def argocd(reader: Reader, platform: Platform, usual: Approval) -> Spec | None:
    """Return the settings of gpuplan's AppProject and Applications; ``usual`` is the approval if none is stated."""
    project = next(filter(reader.is_own_project, reader.dump.of_kind(ARGOCD, "AppProject")), None)
    if project is None:
        return None
    reader.use(project)
    spec = mapping(project.body.get("spec"))
    applications = {item.name: (item, found) for item, found, _ in reader.applications()}
    operator, found = applications.get(sync_name(reader.cluster, Stage.GPU_OPERATOR), (None, {}))
    if operator is not None:
        reader.use(operator)
    repository = text(next(iter(sequence(spec.get("sourceRepos"))), ""))
    name, stages = reader.cluster, {stage.value for stage in Stage}
    folders: dict[str, str] = {stage: sync_name(name, stage) for stage in stages}
    of_git = (
        source
        for item, _, sources in reader.applications()
        for source in sources
        if source.get("repoURL") == repository and item.name == folders.get(text(source.get("path")).rpartition("/")[2])
    )
    source = next(of_git, {})
    is_automatic = operator is not None and (
        # An Application that a root syncs has no automated sync, and a digest of its content.
        "automated" in mapping(found.get("syncPolicy")) or CONTENT in operator.annotations
    )
    approval = (Approval.AUTOMATIC if is_automatic else Approval.MANUAL).value
    places = (
        {key: value}
        for place in map(mapping, sequence(spec.get("destinations")))
        for key in ("name", "server")
        if (value := text(place.get(key)))
    )
    if holds_credential(repository):  # Argo CD has passwords in a Secret of its own
        scheme, _, rest = repository.partition("://")
        reader.say("password-in-address", project.at / ("spec", "sourceRepos", 0))
        repository = f"{scheme}://{rest.partition('@')[2]}"
    return {
        "repoURL": repository,
        **differing(
            {
                "revision": (text(source.get("targetRevision")) or None, "main"),
                "path": (_out(text(source.get("path")), name), "out"),
                "namespace": (project.namespace or None, _ARGOCDS_NAMESPACE.get(platform, "argocd")),
                "project": (project.name, f"gpuplan-{name}"),
                "destination": (next(places, None), {"server": _IN_CLUSTER}),
                "labels": (cleaned(project.labels), {}),
                "root": (root_name(name) in applications, False),
                "operatorApproval": (approval if operator is not None else None, usual.value),
            }
        ),
    }


_ARGOCDS_NAMESPACE: Final = {Platform.OPENSHIFT: "openshift-gitops"}


def _out(path: str, cluster: str) -> str | None:
    """Where the output lies, by the path of a folder two levels below."""
    if not path:
        return None
    above = path.removeprefix("./").rpartition("/")[0]
    return normpath(above.removesuffix(cluster) or ".")


# --- Flux --------------------------------------------------------------------------------------------------------


def flux(reader: Reader, usual: Approval) -> Spec | None:
    """Return the settings of gpuplan's Kustomizations."""
    found = [*_kustomizations(reader)]
    if not found:
        return None
    item, folder = found[0]
    reader.use(item)
    spec = mapping(item.body.get("spec"))
    source = mapping(spec.get("sourceRef"))
    defaults = Flux.model_construct()
    usual_source = FluxSource.model_construct()
    of_source = {"kind": usual_source.kind.value, "name": usual_source.name}
    stated = {name: text(source.get(name)) or None for name in ("kind", "name", "namespace")}
    named = differing({name: (value, of_source.get(name)) for name, value in stated.items()})
    path = text(spec.get("path")).removesuffix(f"/{folder}") + "/x"
    interval = text(spec.get("interval"))
    for end in ("m0s", "h0m"):  # Go prints `10m0s`
        interval = interval[: 1 - len(end)] if interval.endswith(end) else interval
    operator = folder_name(reader.cluster, Stage.GPU_OPERATOR)
    releases = [release for release in reader.dump.of_kind(HELM, "HelmRelease") if release.name == operator]
    appliers = releases or [one for one in reader.dump.of_kind(FLUX, "Kustomization") if one.name == operator]
    is_suspended = any(part(applier.body, "spec", "suspend") is True for applier in appliers)
    approval = (Approval.MANUAL if is_suspended else Approval.AUTOMATIC).value
    return differing(
        {
            "source": (named, {}),
            "path": (_out(path, reader.cluster), defaults.path),
            "namespace": (item.namespace, defaults.namespace),
            "interval": (interval or None, defaults.interval),
            "serviceAccountName": (text(spec.get("serviceAccountName")) or None, None),
            "kubeConfigSecret": (text(part(spec, "kubeConfig", "secretRef", "name")) or None, None),
            "labels": (cleaned(item.labels), {}),
            "operatorApproval": (approval if appliers else None, usual.value),
        }
    )


def _kustomizations(reader: Reader) -> Iterator[tuple[Item, str]]:
    """Yield those of the cluster's folders, with the folder."""
    for item in reader.dump.of_kind(FLUX, "Kustomization"):
        _, found, folder = f"/{text(part(item.body, 'spec', 'path'))}".rpartition(f"/{reader.cluster}/")
        is_stage = found and folder.partition("/")[0] in (stage.value for stage in Stage)
        if is_stage and item.name == folder_name(reader.cluster, folder):
            yield item, folder


# --- Monitoring ------------------------------------------------------------------------------------------------

_METRICS: Final = "gpuplan-dcgm-metrics"
_PREFIX: Final = "gpuplan-"
_ALERTS: Final = "gpuplan-alerts"


def read_monitoring(
    reader: Reader, platform: Platform, operator: Mapping[str, str], settings_of_operator: Iterable[object]
) -> Spec | None:
    """Return the part on monitoring; ``settings_of_operator`` is what the operator is told, as values and as a
    ClusterPolicy.

    ``operator`` has its namespace and its version.
    """
    rules = reader.prometheus_rules
    if not rules and reader.config_map(_METRICS) is None:
        return None
    reader.use(*(item for item in rules if item.name == _ALERTS))
    is_basic = _is_basic(reader, rules)
    is_openshift = platform is Platform.OPENSHIFT
    namespace = only(item.namespace for item in rules)
    usual = operator["namespace"] if is_openshift else "monitoring"
    alerts = {text(rule.get("alert")): rule for rule in rules_in(rules) if "alert" in rule}
    settings = [mapping(part(values, "dcgmExporter", "serviceMonitor")) for values in settings_of_operator]
    facts = {*_facts(reader, rules)}
    if not is_basic:
        facts |= {"health", *(trait.value for trait in exporter_traits(operator["version"]))}
    disabled = [name for name in _alerts_where(facts) if name not in alerts] if rules else []
    labels = mapping(next(iter(alerts.values()), {}).get("labels"))
    runbooks = (text(part(rule, "annotations", "runbook_url")) for rule in alerts.values())
    name = f"{_PREFIX}{reader.cluster}"
    boards = (item for item in reader.dump.of_kind("", "ConfigMap") if item.name == name)
    board = next((item for item in boards if f"{name}.json" in mapping(item.body.get("data"))), None)
    dashboards = (
        {}
        if board is None
        else {
            "namespace": (board.namespace or None, CONSOLE if is_openshift else namespace or usual),
            "labels": (cleaned(board.labels), _CONSOLE_LABELS if is_openshift else {"grafana_dashboard": "1"}),
            "folder": (board.annotations.get(_FOLDER), None),
        }
    )
    return differing(
        {
            "namespace": (namespace or None, usual),
            "labels": (cleaned(rules[0].labels) if rules else {}, {}),
            "honorLabels": (any(found.get("honorLabels") is True for found in settings), False),
            "alertLabels": ({key: value for key, value in labels.items() if key != "severity"}, {}),
            "disabledAlerts": (disabled, []),
            "runbookUrl": (next((url.rpartition("#")[0] for url in runbooks if url), None), None),
            "collect": ((Collect.BASIC if is_basic else Collect.HEALTH).value, Collect.HEALTH.value),
            "dashboards": (differing(dashboards), {}),
        }
    )


# --- Alerts ------------------------------------------------------------------------------------------------------


def _is_basic(reader: Reader, rules: Sequence[Item]) -> bool:
    """Whether the exporter collects as little as that list says, or no alert reads more."""
    metrics = reader.config_map(_METRICS)
    if metrics is None:
        alerts = {text(rule.get("alert")) for rule in rules_in(rules)}
        return bool(rules) and alerts.isdisjoint({*_alerts_where({"health"})} - {*_alerts_where(())})
    plan = plan_of({**_ANY, "monitoring": {"collect": Collect.BASIC.value}}, reader.cluster)
    return plan is not None and mapping(metrics.body.get("data")) == exporter_metrics(plan)


_ANY: Final = {"kubernetes": "1.34", "gpuOperator": {"install": "helm", "version": "v26.7.0"}}
"""A cluster whose list of metrics is as short as on any other."""


def _alerts_where(facts: Collection[str]) -> list[str]:
    return [name.value for name in AlertName if any(rows_for(facts, texts()[name.value]))]


def _facts(reader: Reader, rules: Sequence[Item]) -> Iterator[str]:
    """Yield the facts that alerts depend on, by the series that rules record of the plan."""
    recorded = [(text(rule.get("record")), mapping(rule.get("labels"))) for rule in rules_in(rules) if "record" in rule]
    names = {name for name, _ in recorded}
    facts = {POOL_PLANNED_NODES: "pools", POOL_PLANNED_UNITS: "units", POOL_MIG_CONFIG: "partitioned"}
    facts |= {NAMESPACE_TENANT: "namespaces", QUEUE_TENANT: "queue-metrics"}
    yield from (fact for series, fact in facts.items() if series in names)
    planned = [labels for name, labels in recorded if name == POOL_PLANNED_UNITS]
    resources = {text(labels.get("resource")) for labels in planned}
    if sum(resource.startswith("nvidia_com_mig_") for resource in resources) > 1:
        yield "sizes"
    if POOL_PLANNED_NODES in names and POOL_PLANNED_UNITS not in names and reader.has_claims:
        yield "claims"
    if any(reader.is_own_project(item) for item in reader.dump.of_kind(ARGOCD, "AppProject")):
        yield "argocd"


# --- Dashboards --------------------------------------------------------------------------------------------------

_FOLDER: Final = "grafana_folder"
_CONSOLE_LABELS: Final = {"console.openshift.io/dashboard": "true", "console.openshift.io/odc-dashboard": "true"}
