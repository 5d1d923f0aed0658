"""The back end of the stage `monitoring`: alerts, recording rules and dashboards that know the plan.

Each group of rules is written twice: as a PrometheusRule for the Prometheus Operator, and as a file below
`monitoring/rules` for a Prometheus without it, which nothing applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.backends.monitoring import dashboards
from gpuplan.compiler.backends.monitoring.costs import GROUP, cost_groups
from gpuplan.compiler.backends.monitoring.rules import NODE_LABELS, Group, groups, has_cluster_queues, recorded_series
from gpuplan.compiler.backends.monitoring.traces import Traces
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.kai import queues
from gpuplan.compiler.planning.plan import Monitoring, Plan, Pool, Stage
from gpuplan.compiler.planning.subjects import about, every
from gpuplan.compiler.policy.models import Platform

_FOLDER: Final = Stage.MONITORING.value
_API: Final = "monitoring.coreos.com/v1"
_MONITORS: Final = Path(__file__).with_name("monitors.yaml")


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
            namespace = plan.cluster.gpu_operator.namespace
            body = _monitor("node-status-exporter", namespace, labels, [namespace])
            yield Manifest(_FOLDER, body, about=cluster, trace=of.service_monitor)
        # A monitor of queues is in the namespace of the rules: the scheduler's may not be there yet.
        where = (monitoring.namespace, labels, list(plan.scheduler.namespaces))
        name = "kueue" if has_cluster_queues(plan) and labels else "kai-queues" if queues(plan) else None
        if name is not None:
            yield Manifest(_FOLDER, _monitor(name, *where), about=cluster, trace=of.queue_metrics)
    yield from dashboards.render(plan, recorded_series(written), text_of("why-dashboard"))


def rule_groups(plan: Plan, monitoring: Monitoring) -> tuple[Group, ...]:
    """Return all groups that have rules."""
    made = tuple(groups(plan, monitoring))
    return (*made, *cost_groups(plan, recorded_series(made)))


def _monitor(name: str, namespace: str, labels: Mapping[str, str], namespaces: list[str]) -> dict[str, Any]:
    """Return a monitor of `monitors.yaml`."""
    monitored = read_rows(_MONITORS)[name]
    spec = {
        "endpoints": [monitored["endpoint"]],
        "namespaceSelector": {"matchNames": namespaces},
        "selector": {"matchLabels": monitored["service"]},
    }
    return new_object(_API, "ServiceMonitor", f"gpuplan-{name}", namespace, labels=labels, spec=spec)
