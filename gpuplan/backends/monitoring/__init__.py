"""The back end of the stage `monitoring`: alerts, recording rules and dashboards that know the plan.

Each group of rules is written twice: as a PrometheusRule for the Prometheus Operator, and as a file below
`monitoring/rules` for a Prometheus without it, which nothing applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpuplan.backends.base import text_of
from gpuplan.backends.monitoring import dashboards
from gpuplan.backends.monitoring.rules import NODE_LABELS, Group, observed_groups, pool_group, tenant_groups
from gpuplan.backends.monitoring.traces import Traces
from gpuplan.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.manifests.bodies import new_object
from gpuplan.planning.plan import Monitoring, Plan, Stage
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Platform

_FOLDER: Final = Stage.MONITORING.value
_API: Final = "monitoring.coreos.com/v1"


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster is watched.

    A PrometheusRule is for the Prometheus Operator, with the labels by which Prometheus selects rules, and a file for
    `rule_files` of a Prometheus without it.
    """
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    cluster = about(plan.cluster)
    labels = dict(sorted(monitoring.spec.labels.items()))
    of = Traces(plan, monitoring)
    for group in groups(plan, monitoring):
        spec = {"groups": [{"name": group.name, "rules": list(group.rules)}]}
        body = new_object(_API, "PrometheusRule", group.name, monitoring.namespace, labels=labels, spec=spec)
        yield Manifest(_FOLDER, body, about=cluster, trace=partial(of.rule_object, group))
        text = HEADER + text_of("rule-files", node_labels=",".join(NODE_LABELS)) + to_yaml(spec)
        path = f"{_FOLDER}/rules/{group.name}.yaml"
        yield File(path, text.encode(), about=cluster, trace=partial(of.rule_file, group))
    for body in _service_monitors(plan, labels):
        yield Manifest(_FOLDER, body, about=cluster, trace=of.service_monitor)
    yield from dashboards.render(plan)


def groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """The groups that have rules."""
    found = (
        pool_group(plan),
        *tenant_groups(plan),
        *observed_groups(plan, monitoring),
    )
    return (group for group in found if group.rules)


def _service_monitors(plan: Plan, labels: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A ServiceMonitor for the operator's node status exporter.

    The operator makes one, and lets nobody choose its labels (`ServiceMonitor` in its `controllers/
    object_controls.go` reads those of the DCGM exporter alone): a Prometheus that selects monitors by label does not
    see it.

    There is none where the operator's own is found: by an OpenShift namespace's label, or by a Prometheus that takes
    all. Where both are, its series come twice, which the alert on them takes into account.
    """
    if labels and plan.cluster.spec.platform is not Platform.OPENSHIFT:
        namespace = plan.cluster.gpu_operator.namespace
        spec = {
            "endpoints": [{"port": "node-status", "path": "/metrics"}],
            "namespaceSelector": {"matchNames": [namespace]},
            "selector": {"matchLabels": {"app": "nvidia-node-status-exporter"}},
        }
        name = "gpuplan-node-status-exporter"
        yield new_object(_API, "ServiceMonitor", name, namespace, labels=labels, spec=spec)
