"""Groups of Prometheus rules, as PrometheusRule objects and as rule files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.manifests import HEADER, to_yaml
from gpuplan.planning.alerts import AlertName
from gpuplan.planning.plan import Monitoring
from gpuplan.values import NamedTuple


class Recording(NamedTuple):
    """A recording rule. ``labels`` are added to every series of the result."""

    record: str
    expr: str
    labels: Mapping[str, str] = {}

    def body(self) -> dict[str, Any]:
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.record, "expr": self.expr, **labels}


class Alert(NamedTuple):
    """An alerting rule: ``duration`` is how long the expression must hold; ``meaning`` and ``action`` are sentences."""

    name: AlertName
    expr: str
    duration: str
    severity: str
    summary: str
    meaning: str
    action: str

    def body(self, labels: Mapping[str, str]) -> dict[str, Any]:
        return {
            "alert": self.name.value,
            "expr": self.expr,
            "for": self.duration,
            "labels": {"severity": self.severity, **labels},
            "annotations": {
                "summary": self.summary,
                "description": f"{self.meaning} {self.action} See {_RUNBOOK}#{self.name.lower()}.",
            },
        }


_RUNBOOK = "docs/how-to/monitor-pools.md"


class Group(NamedTuple):
    """Rules that are evaluated in their order, each seeing the results of those before it."""

    name: str
    rules: tuple[Recording | Alert, ...]

    def body(self, monitoring: Monitoring) -> dict[str, Any]:
        alert_labels = dict(sorted(monitoring.spec.alert_labels.items()))
        rules = [rule.body(alert_labels) if isinstance(rule, Alert) else rule.body() for rule in self.rules]
        return {"name": self.name, "rules": rules}


def prometheus_rule(group: Group, monitoring: Monitoring) -> dict[str, Any]:
    """The group as an object for the Prometheus Operator, with the labels by which Prometheus selects rules."""
    labels = {"labels": dict(sorted(monitoring.spec.labels.items()))} if monitoring.spec.labels else {}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": group.name, "namespace": monitoring.namespace, **labels},
        "spec": {"groups": [group.body(monitoring)]},
    }


def rule_file(group: Group, monitoring: Monitoring, about: str) -> bytes:
    """The group as a file for `rule_files` of a Prometheus without the operator."""
    return (HEADER + about + to_yaml({"groups": [group.body(monitoring)]})).encode()
