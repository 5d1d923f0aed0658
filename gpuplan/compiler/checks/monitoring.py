"""Checks on what Prometheus, Grafana and the DCGM exporter are told (GPU670-679, GPU880)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.compiler.catalog.openshift import CONSOLE_NAMESPACE, DASHBOARD_LABEL, OF_CONSOLE
from gpuplan.compiler.checks.node_labels import label_faults
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped
from gpuplan.compiler.planning.alerts import AlertName
from gpuplan.compiler.planning.gpu_operator import (
    NAMES_ARGUMENT,
    RESOURCE_NAMES,
    exporter_environment,
    gets_environment,
    names_by_argument,
)
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Install, Platform

# --- Alerts ------------------------------------------------------------------------------------------------------


@check("GPU670", "unknown-alert")
def unknown_alert(plan: Plan) -> Iterator[Finding]:
    """An alert is disabled that gpuplan does not have.

    ## Why
    `disabledAlerts` leaves alerts out by their names. A misspelt one leaves nothing out, and the alert that was meant
    still fires.

    ## Instead
    Write the name as it is in the rule files, for instance `GpuAllocatedIdle`.
    """
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    known = [name.value for name in AlertName]
    for index, name in enumerate(monitoring.spec.disabled_alerts):
        if name not in known:
            at, note = monitoring.at / "disabledAlerts" / index, f"the alerts are {listing(known, shown=None)}"
            message, meant = f"gpuplan has no alert `{name}`", closest(name, known)
            yield mistyped(at, message, meant, "leaves nothing out", "remove it", note)


_ALERT_LABEL = regex(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SET_BY_GPUPLAN = {
    "alertname": "the alert's own name",
    "severity": "each alert has its own",
    **dict.fromkeys(
        (
            *("clock_event", "error", "exported_namespace", "exported_pod", "gpu", "health_error_code", "health_watch"),
            *("mig_config", "modelName", "name", "namespace", "node", "pod", "pool", "resource", "resourcequota"),
            *("sensor", "sync_status", "unit", "xid"),
        ),
        "alerts of one kind are told apart by it",
    ),
}
_FUNCTION = r"humanize(1024|Duration|Percentage|Timestamp)?|title|toLower|toUpper"
_TEMPLATE = regex(rf"\{{\{{\s*(\$value|\$(labels|externalLabels)\.\w+)(\s*\|\s*({_FUNCTION}))*\s*\}}\}}", re.ASCII)


@check("GPU671", "invalid-alert-label")
def invalid_alert_label(plan: Plan) -> Iterator[Finding]:
    """A label for alerts has a name that Prometheus does not take, or that alerts have already.

    ## Why
    A label's name has letters, digits and `_`, and does not begin with a digit; those that begin with `__` are
    Prometheus' own. A value with `{{` is a template. One bad name or template, and Prometheus loads none of the rules.
    `alertname`, `severity` and labels such as `node` are what alerts are told apart by; with one value for all that
    would be lost, and Prometheus refuses two alerts with the same labels. A label without a value is no label.

    ## Instead
    Choose another name, or remove the label. A template is one such as `{{ $labels.namespace }}`. Where severities are
    called otherwise, relabel them in Prometheus' `alerting.alert_relabel_configs`.
    """
    monitoring = plan.cluster.monitoring
    if monitoring is None:
        return
    for name, value in monitoring.spec.alert_labels.items():
        at = monitoring.at / "alertLabels" / name
        if not _ALERT_LABEL.fullmatch(name) or name.startswith("__"):
            yield Finding(
                at.key,
                f"`{name}` is not the name of an alert's label",
                label="Prometheus would load none of the rules",
                help=f"write `{_as_label(name)}`",
            )
        elif name in _SET_BY_GPUPLAN:
            yield Finding(at.key, f"alerts have a label `{name}`", label=_SET_BY_GPUPLAN[name], help="remove it")
        elif not value:
            yield Finding(at, f"the label `{name}` has no value", label="no label at all", help="give it one")
        elif "{{" in _TEMPLATE.sub("", value):
            yield Finding(
                at,
                f"the value of the label `{name}` is a template that Prometheus may not take",
                label="Prometheus would load none of the rules",
                help="write one such as `{{ $labels.namespace }}`, or text without `{{`",
            )


def _as_label(name: str) -> str:
    """Return the nearest name that Prometheus takes."""
    words = re.sub(r"[^a-zA-Z0-9]+", "_", name).strip("_")
    return f"_{words}" if not words or words[0].isdigit() else words


# --- Who finds what ----------------------------------------------------------------------------------------------


@check("GPU672", "invalid-monitoring-label")
def invalid_monitoring_label(plan: Plan) -> Iterator[Finding]:
    """A label on rules, monitors or dashboards has a form that Kubernetes does not take.

    ## Why
    A key is a name of at most 63 characters with an optional domain before it; a value has at most 63 characters. The
    API server refuses the object for one bad label.

    ## Instead
    Correct the key or the value as the finding says.
    """
    if monitoring := plan.cluster.monitoring:
        yield from label_faults(monitoring.at / "labels", monitoring.spec.labels)
        yield from label_faults(monitoring.dashboards.at / "labels", monitoring.dashboards.labels)


@check("GPU673", "dashboard-that-nobody-finds", Severity.WARNING)
def dashboard_that_nobody_finds(plan: Plan) -> Iterator[Finding]:
    """The dashboard has no label.

    ## Why
    Grafana's sidecar and OpenShift's console look for ConfigMaps by label. Without one the dashboard is a ConfigMap
    that nobody reads.

    ## Instead
    Remove `dashboards.labels` for the usual one, which is `grafana_dashboard: "1"`, or write what your sidecar is told
    to look for.
    """
    monitoring = plan.cluster.monitoring
    if monitoring and not monitoring.dashboards.labels:
        yield Finding(
            (monitoring.dashboards.at / "labels").key,
            "the dashboard has no label to be found by",
            label="nobody reads the ConfigMap",
            help='remove `labels`, or write `{grafana_dashboard: "1"}`',
        )


@check("GPU674", "rules-outside-cluster-monitoring", Severity.WARNING)
def rules_outside_cluster_monitoring(plan: Plan) -> Iterator[Finding]:
    """On OpenShift the rules lie in another namespace than the GPU Operator's.

    ## Why
    The platform's Prometheus reads rules and monitors in namespaces with the label `openshift.io/cluster-monitoring`
    alone, which the operator's namespace has. Rules elsewhere are for the monitoring of users' projects: it sees the
    series of the rule's own namespace and none of nodes, and where it is off nobody reads them.

    ## Instead
    Remove `namespace`. Where the other namespace has that label too, ignore the finding.
    """
    monitoring, operator = plan.cluster.monitoring, plan.cluster.gpu_operator
    is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT
    if monitoring and is_openshift and monitoring.namespace != operator.namespace:
        yield Finding(
            monitoring.at / "namespace",
            f"the platform's Prometheus may not read rules in `{monitoring.namespace}`",
            label="read only with the label `openshift.io/cluster-monitoring`",
            help=f"remove it: the default is `{operator.namespace}`",
        )


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
    if monitoring is None or not any(label.startswith(OF_CONSOLE) for label in monitoring.dashboards.labels):
        return
    dashboards, is_openshift = monitoring.dashboards, plan.cluster.spec.platform is Platform.OPENSHIFT
    if not is_openshift:
        yield Finding(
            dashboards.at / "labels",
            "labels of OpenShift's console on a dashboard of a cluster without that console",
            label=f"platform is `{plan.cluster.spec.platform}`",
            help='write the label that Grafana\'s sidecar looks for: `grafana_dashboard: "1"`',
        )
    elif dashboards.labels.get(DASHBOARD_LABEL) != "true":
        yield Finding(
            dashboards.at / "labels",
            f"the console does not show a dashboard without the label `{DASHBOARD_LABEL}`",
            label="not what the console looks for",
            help=f'add `{DASHBOARD_LABEL}: "true"`',
        )
    if is_openshift and dashboards.namespace != CONSOLE_NAMESPACE:
        yield Finding(
            dashboards.at / "namespace",
            f"the console does not show a dashboard in namespace `{dashboards.namespace}`",
            label="not where the console looks",
            help=f"leave it out, or write `namespace: {CONSOLE_NAMESPACE}`",
        )


# --- Pods on shared GPUs -----------------------------------------------------------------------------------------


@check("GPU880", "shared-pods-not-named", Severity.WARNING)
def shared_pods_not_named(plan: Plan) -> Iterator[Finding]:
    """The DCGM exporter is not told of the resource that shared GPUs are published as.

    ## Why
    The exporter names the pods of `nvidia.com/gpu` and of MIG devices, and passes over any other resource without a
    word, such as `nvidia.com/gpu.shared`: no tenant's use of these GPUs is ever recorded, and no idle pod on them is
    found. Where gpuplan writes the Helm values or the whole ClusterPolicy it sets `NVIDIA_RESOURCE_NAMES`. With
    `install: external` it cannot: a list of variables belongs to one owner as a whole. And v25.3.3 and v25.3.4 of the
    GPU Operator hand `dcgmExporter.env` to the exporter on OpenShift alone: elsewhere they return before it
    (`TransformDCGMExporter` in their `controllers/object_controls.go:1668`).

    ## Instead
    Add what the finding names to the ClusterPolicy or to the Helm values, and suppress the finding on somebody else's
    ClusterPolicy with that as the reason. Or leave out `monitoring`.
    """
    operator, environment = plan.cluster.gpu_operator, exporter_environment(plan)
    is_theirs, names = operator.spec.install is Install.EXTERNAL, environment.get(RESOURCE_NAMES)
    is_read = names is not None and gets_environment(plan)
    if names is None or not (is_theirs or not (is_read or names_by_argument(plan))):
        return
    variable, argument = f"{{name: {RESOURCE_NAMES}, value: '{names}'}}", f"{NAMES_ARGUMENT}={names}"
    what = f"add `{variable}` to `dcgmExporter.env`" if is_read else f"add `{argument}` to `dcgmExporter.args`"
    yield Finding(
        operator.at / ("install" if is_theirs else "version"),
        f"the DCGM exporter names no pods of {listing(names.split(','), shown=None)}",
        label="its environment is not gpuplan's to change" if is_theirs else "gives the exporter no environment",
        notes=("it names those of `nvidia.com/gpu` and of MIG devices",),
        help=f"{what} of {'the ClusterPolicy' if is_theirs else '`gpuOperator.values`'}",
    )
