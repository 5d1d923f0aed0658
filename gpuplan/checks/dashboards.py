"""Checks on where dashboards are looked for (GPU675-679)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Severity
from gpuplan.planning.plan import Dashboards, Plan
from gpuplan.policy.models import Platform

_CONSOLE = "console.openshift.io/"
_DASHBOARD = f"{_CONSOLE}dashboard"
_NAMESPACE = "openshift-config-managed"


@check("GPU675", "dashboard-nobody-looks-for", Severity.WARNING)
def dashboard_nobody_looks_for(plan: Plan) -> Iterator[Finding]:
    """The policy's own namespace or labels put the dashboard where OpenShift's console does not look.

    ## Why
    The console asks for ConfigMaps with the label `console.openshift.io/dashboard: "true"` in the namespace
    `openshift-config-managed`, and in no other (`cmd/bridge/main.go` in openshift/console). Of those it shows
    developers the ones that have `console.openshift.io/odc-dashboard: "true"` as well. The labels also decide on the
    form that gpuplan writes: the console reads what Grafana's dashboards were at version 5, and a part of that.

    ## Instead
    For the console leave `dashboards` out: on OpenShift the defaults are what it looks for. For a Grafana write the
    label that its sidecar looks for, and the namespace.
    """
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    dashboards = monitoring.dashboards
    if not any(label.startswith(_CONSOLE) for label in dashboards.labels):
        return
    if plan.cluster.spec.platform is not Platform.OPENSHIFT:
        yield Finding(
            dashboards.at / "labels",
            "labels of OpenShift's console on a dashboard of a cluster without that console",
            label=f"platform is `{plan.cluster.spec.platform}`",
            help='write the label that Grafana\'s sidecar looks for: `grafana_dashboard: "1"`',
        )
    else:
        yield from _out_of_the_consoles_sight(dashboards)


def _out_of_the_consoles_sight(dashboards: Dashboards) -> Iterator[Finding]:
    if dashboards.labels.get(_DASHBOARD) != "true":
        yield Finding(
            dashboards.at / "labels",
            f"the console does not show a dashboard without the label `{_DASHBOARD}`",
            label="not what the console looks for",
            help=f'add `{_DASHBOARD}: "true"`',
        )
    if dashboards.namespace != _NAMESPACE:
        yield Finding(
            dashboards.at / "namespace",
            f"the console does not show a dashboard in namespace `{dashboards.namespace}`",
            label="not where the console looks",
            help=f"leave it out, or write `namespace: {_NAMESPACE}`",
        )
