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
            namespace, name = plan.cluster.gpu_operator.namespace, "gpuplan-node-status-exporter"
            body = _monitor(name, namespace, labels, [namespace], *_STATUS_EXPORTER)
            yield Manifest(_FOLDER, body, about=cluster, trace=of.service_monitor)
        # A monitor of queues is in the namespace of the rules: the scheduler's may not be there yet.
        where = (monitoring.namespace, labels, list(plan.scheduler.namespaces))
        if has_cluster_queues(plan) and labels:
            body = _monitor("gpuplan-kueue", *where, *_KUEUE)
            yield Manifest(_FOLDER, body, about=cluster, trace=of.queue_metrics)
        elif queues(plan):
            body = _monitor("gpuplan-kai-queues", *where, *_QUEUE_CONTROLLER)
            yield Manifest(_FOLDER, body, about=cluster, trace=of.queue_metrics)
    yield from dashboards.render(plan, recorded_series(written))


def rule_groups(plan: Plan, monitoring: Monitoring) -> tuple[Group, ...]:
    """Return all groups that have rules."""
    made = tuple(groups(plan, monitoring))
    return (*made, *cost_groups(plan, recorded_series(made)))


_Service = tuple[Mapping[str, Any], Mapping[str, str]]
"""An endpoint, and the labels of the Service that has it. On OpenShift the monitors of one namespace are not heard on
the services of another."""

_STATUS_EXPORTER: Final[_Service] = (
    {"port": "node-status", "path": "/metrics"},
    {"app": "nvidia-node-status-exporter"},
)
"""The operator's node status exporter.

The operator makes a monitor of it, and lets nobody choose its labels (`ServiceMonitor` in its `controllers/
object_controls.go` reads those of the DCGM exporter alone): a Prometheus that selects monitors by label misses it. The
operator's own is found by an OpenShift namespace's label, or by a Prometheus that takes all. If both are there, its
series come twice, which the alert on them takes into account.
"""

_KUEUE: Final[_Service] = (
    {
        "port": "https",
        "path": "/metrics",
        "scheme": "https",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},
    },
    {"app.kubernetes.io/component": "metrics-service", "app.kubernetes.io/name": "kueue"},
)
"""The same as in Kueue's own ServiceMonitor, which has no labels to select it by (`charts/kueue/templates/prometheus/
monitor.yaml`): it is enough only for a Prometheus that takes all. Its certificate is its own, and its metrics are for
whoever may read `/metrics`."""

_QUEUE_CONTROLLER: Final[_Service] = ({"port": "metrics", "path": "/metrics"}, {"app": "queue-controller"})
"""The queue controller of KAI-Scheduler (`pkg/operator/operands/queue_controller/resources.go`). It has a monitor only
together with a Prometheus of its own, or if it is told of one (`pkg/operator/operands/prometheus/resources.go`)."""


def _monitor(
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    namespaces: list[str],
    endpoint: Mapping[str, Any],
    service: Mapping[str, str],
) -> dict[str, Any]:
    spec = {
        "endpoints": [dict(endpoint)],
        "namespaceSelector": {"matchNames": namespaces},
        "selector": {"matchLabels": dict(service)},
    }
    return new_object(_API, "ServiceMonitor", name, namespace, labels=labels, spec=spec)
