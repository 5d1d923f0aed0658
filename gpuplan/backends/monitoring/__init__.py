"""The back end of the stage `monitoring`: alerts, recording rules and dashboards that know the plan.

Each group of rules is written twice: as a PrometheusRule for the Prometheus Operator, and as a file below
`monitoring/rules` for a Prometheus without it, which nothing applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.monitoring import dashboards, metrics, observed, planned, status
from gpuplan.backends.monitoring.rules import Group, prometheus_rule, rule_file
from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Monitoring, Plan, Stage
from gpuplan.planning.subjects import about

_FOLDER = Stage.MONITORING.value


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster is watched."""
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    cluster = about(plan.cluster)
    for group in groups(plan, monitoring):
        yield Manifest(_FOLDER, prometheus_rule(group, monitoring), about=cluster)
        yield File(f"{_FOLDER}/rules/{group.name}.yaml", rule_file(group, monitoring, _ABOUT), about=cluster)
    yield from (Manifest(_FOLDER, body, about=cluster) for body in status.objects(plan, monitoring))
    yield from dashboards.render(plan)


def groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """The groups that have rules."""
    found = (
        planned.pool_group(plan),
        *planned.tenant_groups(plan),
        *observed.groups(plan, monitoring),
    )
    return (group for group in found if group.rules)


_ABOUT = f"""\
# For `rule_files` of a Prometheus without the Prometheus Operator; nothing applies this file.
# kube-state-metrics must run with --metric-labels-allowlist=nodes=[{",".join(metrics.NODE_LABELS)}],
# and series of the DCGM exporter must have the label `node`, from __meta_kubernetes_pod_node_name.
"""
