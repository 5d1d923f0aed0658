"""The monitoring of a cluster, by the rules and dashboards that gpuplan wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.catalog.exporters import exporter_traits
from gpuplan.compiler.manifests.templates import rows_for
from gpuplan.compiler.planning.alerts import AlertName
from gpuplan.compiler.policy.models import Collect, Platform
from gpuplan.features.live.clusters.kubernetes import CONSOLE
from gpuplan.features.live.clusters.reader import (
    ARGOCD,
    Reader,
    Spec,
    cleaned,
    differing,
    only,
    part,
    plan_of,
    rules_in,
)
from gpuplan.features.live.dump import Item

_METRICS: Final = "gpuplan-dcgm-metrics"
_PREFIX: Final = "gpuplan-"
_ALERTS: Final = "gpuplan-alerts"


def read(
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
