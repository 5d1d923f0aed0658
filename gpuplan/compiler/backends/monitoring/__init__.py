"""The back end of the stage `monitoring`: alerts, recording rules and dashboards that know the plan.

Each group of rules is written twice: as a PrometheusRule for the Prometheus Operator, and as a file below
`monitoring/rules` for a Prometheus without it, which nothing applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.backends.monitoring import dashboards
from gpuplan.compiler.backends.monitoring.costs import GROUP, cost_groups
from gpuplan.compiler.backends.monitoring.rules import NODE_LABELS, Group, groups, has_cluster_queues, recorded_series
from gpuplan.compiler.backends.monitoring.traces import Traces
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.planning.kai import queues
from gpuplan.compiler.planning.plan import Monitoring, Plan, Pool, Stage
from gpuplan.compiler.planning.subjects import about, every
from gpuplan.compiler.policy.models import Platform

_FOLDER: Final = Stage.MONITORING.value
_API: Final = "monitoring.coreos.com/v1"


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Yield rules, monitors and a dashboard, if the cluster is watched.

    A PrometheusRule is for the Prometheus Operator, with the labels by which Prometheus selects rules, and a file for
    `rule_files` of a Prometheus without it.
    """
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    cluster = about(plan.cluster)
    labels = dict(sorted(monitoring.spec.labels.items()))
    of = Traces(plan, monitoring)
    written = rule_groups(plan, monitoring)
    for group in written:
        subjects = (*cluster, *about(*plan.price_lists[:1]), *every(Pool)) if group.name.startswith(GROUP) else cluster
        spec = {"groups": [{"name": group.name, "rules": list(group.rules)}]}
        body = new_object(_API, "PrometheusRule", group.name, monitoring.namespace, labels=labels, spec=spec)
        yield Manifest(_FOLDER, body, about=subjects, trace=partial(of.rule_object, group))
        text = HEADER + text_of("rule-files", node_labels=",".join(NODE_LABELS)) + to_yaml(spec)
        path = f"{_FOLDER}/rules/{group.name}.yaml"
        yield File(path, text.encode(), about=subjects, trace=partial(of.rule_file, group))
    if plan.cluster.spec.platform is not Platform.OPENSHIFT:
        if labels:
            monitor = _status_exporter(plan.cluster.gpu_operator.namespace, labels)
            yield Manifest(_FOLDER, monitor, about=cluster, trace=of.service_monitor)
        for body in _queue_metrics(plan, monitoring):
            yield Manifest(_FOLDER, body, about=cluster, trace=of.queue_metrics)
    yield from dashboards.render(plan, recorded_series(written))


def rule_groups(plan: Plan, monitoring: Monitoring) -> tuple[Group, ...]:
    """Return all groups that have rules."""
    made = tuple(groups(plan, monitoring))
    return (*made, *cost_groups(plan, recorded_series(made)))


def _status_exporter(namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a ServiceMonitor for the operator's node status exporter.

    The operator makes one, and lets nobody choose its labels (`ServiceMonitor` in its `controllers/
    object_controls.go` reads those of the DCGM exporter alone): a Prometheus that selects monitors by label does not
    see it.

    There is none if the operator's own is found: by an OpenShift namespace's label, or by a Prometheus that takes
    all. If both are there, its series come twice, which the alert on them takes into account.
    """
    spec = {
        "endpoints": [{"port": "node-status", "path": "/metrics"}],
        "namespaceSelector": {"matchNames": [namespace]},
        "selector": {"matchLabels": {"app": "nvidia-node-status-exporter"}},
    }
    name = "gpuplan-node-status-exporter"
    return new_object(_API, "ServiceMonitor", name, namespace, labels=labels, spec=spec)


def _queue_metrics(plan: Plan, monitoring: Monitoring) -> Iterator[dict[str, Any]]:
    """Yield a monitor for the scheduler's queues, in the namespace of the rules: the scheduler's may not be there yet.

    That of Kueue's chart has no labels to select it by, so that it is enough only for a Prometheus that takes all
    (`charts/kueue/templates/prometheus/monitor.yaml`). KAI-Scheduler makes one only together with a Prometheus of its
    own, or told of one (`pkg/operator/operands/prometheus/resources.go`). On OpenShift the monitors of one namespace
    are not heard on the services of another.
    """
    if has_cluster_queues(plan) and monitoring.spec.labels:
        yield _monitor("gpuplan-kueue", plan, monitoring, _KUEUE, _OF_KUEUE)
    elif queues(plan):
        yield _monitor("gpuplan-kai-queues", plan, monitoring, _QUEUE_CONTROLLER, _OF_QUEUE_CONTROLLER)


_KUEUE: Final = {
    "port": "https",
    "path": "/metrics",
    "scheme": "https",
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "tlsConfig": {"insecureSkipVerify": True},
}
"""As in Kueue's own ServiceMonitor. Its certificate is its own, and its metrics are for whoever may read `/metrics`."""

_OF_KUEUE: Final = {"app.kubernetes.io/component": "metrics-service", "app.kubernetes.io/name": "kueue"}

_QUEUE_CONTROLLER: Final = {"port": "metrics", "path": "/metrics"}
_OF_QUEUE_CONTROLLER: Final = {"app": "queue-controller"}
"""(`pkg/operator/operands/queue_controller/resources.go` of KAI-Scheduler.)"""


def _monitor(
    name: str, plan: Plan, monitoring: Monitoring, endpoint: Mapping[str, Any], service: Mapping[str, str]
) -> dict[str, Any]:
    spec = {
        "endpoints": [dict(endpoint)],
        "namespaceSelector": {"matchNames": list(plan.scheduler.namespaces)},
        "selector": {"matchLabels": dict(service)},
    }
    labels = dict(sorted(monitoring.spec.labels.items()))
    return new_object(_API, "ServiceMonitor", name, monitoring.namespace, labels=labels, spec=spec)
