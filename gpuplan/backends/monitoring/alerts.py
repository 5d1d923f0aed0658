"""Alerts on the plan's nodes, units and tenants.

Alerts on hardware read the DCGM exporter's series alone, so that they hold while kube-state-metrics is down. What a
series is worth by itself is said where it is used; who else must be set up for it is in docs/how-to/monitor-pools.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.metrics import (
    MIG_STATE_LABEL,
    node_label,
    one_of,
    published,
    sanitized,
    series,
    workload_labels,
)
from gpuplan.backends.monitoring.rules import Alert, Group
from gpuplan.planning.alerts import AlertName
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.plan import (
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Argocd,
    Mig,
    MigStrategy,
    Monitoring,
    Plan,
    Platform,
    Stage,
)
from gpuplan.planning.sync_names import sync_name


def group(plan: Plan, monitoring: Monitoring) -> Group:
    """The alerts that this plan can raise and that the policy has not disabled, by name."""
    alerts = sorted(_alerts(plan, monitoring), key=lambda alert: alert.name)
    return Group(
        "gpuplan-alerts", tuple(alert for alert in alerts if alert.name not in monitoring.spec.disabled_alerts)
    )


def _alerts(plan: Plan, monitoring: Monitoring) -> Iterator[Alert]:
    yield _xid_error()
    yield _clock_throttled()
    yield _row_remap_failure()
    yield _allocated_idle(plan, monitoring)
    if not uses_claims(plan):
        yield _device_plugin_no_devices()
    if plan.pools:
        yield _pool_labels_absent(plan.cluster.spec.platform)
        yield _units_drift()
        yield _pool_below_plan()
    if partitioned := [pool.name for pool in plan.pools if MIG_CONFIG_LABEL in pool.labels]:
        yield _mig_config_failed()
        yield _mig_config_stuck()
        yield _mig_layout_drift(partitioned)
    if len(resources := _mig_resources(plan)) > 1:
        yield _fragmentation(resources)
    if any(tenant.spec.namespaces for tenant in plan.tenants):
        yield _quota_saturated()
    if plan.cluster.argocd:
        yield _plan_out_of_sync(plan, plan.cluster.argocd)


# --- Hardware ----------------------------------------------------------------------------------------------------

_APPLICATION_XIDS = "13|31|43|45|68|109"
"""Errors that a program makes and that leave the GPU healthy: those that the device plugin passes over by default
(`ignoredXids` in `internal/rm/health.go` of NVIDIA/k8s-device-plugin)."""


def _xid_error() -> Alert:
    """`DCGM_EXP_XID_ERRORS_COUNT` counts over five minutes; `DCGM_FI_DEV_XID_ERRORS` keeps the last code for good."""
    errors = series("DCGM_EXP_XID_ERRORS_COUNT", xid__nre=_APPLICATION_XIDS)
    return Alert(
        AlertName.XID_ERROR,
        f"max by (node, gpu, xid) ({errors}) > 0",
        "1m",
        "critical",
        "GPU {{ $labels.gpu }} of node {{ $labels.node }} reports Xid {{ $labels.xid }}",
        "The driver reports an error that no program causes; pods on this GPU may fail or compute wrongly.",
        "Cordon the node, look the Xid up in NVIDIA's catalog, and reset or replace the GPU.",
    )


def _clock_throttled() -> Alert:
    """`DCGM_EXP_CLOCK_EVENTS_COUNT` counts over five minutes; power caps and idle clocks are no fault."""
    events = series("DCGM_EXP_CLOCK_EVENTS_COUNT", clock_event__re="hw_power_brake|hw_slowdown|hw_thermal|sw_thermal")
    return Alert(
        AlertName.CLOCK_THROTTLED,
        f"max by (node, gpu, clock_event) ({events}) > 0",
        "15m",
        "warning",
        "GPU {{ $labels.gpu }} of node {{ $labels.node }} is slowed down: {{ $labels.clock_event }}",
        "Heat or the power supply keeps the clocks down, so that everything on this GPU is slower.",
        "Check the node's cooling, airflow and power supply.",
    )


def _row_remap_failure() -> Alert:
    return Alert(
        AlertName.ROW_REMAP_FAILURE,
        "max by (node, gpu) (DCGM_FI_DEV_ROW_REMAP_FAILURE) > 0",
        "5m",
        "critical",
        "GPU {{ $labels.gpu }} of node {{ $labels.node }} cannot remap a faulty row of memory",
        "The GPU has no spare rows left: more memory errors will end the pods on it.",
        "Drain the node and have the GPU replaced.",
    )


def _allocated_idle(plan: Plan, monitoring: Monitoring) -> Alert:
    labels = workload_labels(plan.cluster, monitoring)
    active = f"avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels.is_set}}}[1h])"
    pods = f"max by ({labels.namespace}, {labels.pod}, node) ({active}) < 0.05"
    namespace, pod = f"{{{{ $labels.{labels.namespace} }}}}", f"{{{{ $labels.{labels.pod} }}}}"
    return Alert(
        AlertName.ALLOCATED_IDLE,
        pods,
        "1h",
        "info",
        f"Pod {pod} in namespace {namespace} holds GPUs that do nothing",
        "For two hours none of the pod's GPUs or MIG devices was busy for even 5 % of the time.",
        "Ask the tenant to stop the pod, or to move to a smaller unit; where GPUs are shared, to another pool.",
    )


def _device_plugin_no_devices() -> Alert:
    """The status exporter counts what the node publishes, and says -1 when it cannot tell."""
    devices = "max by (node) (gpu_operator_node_device_plugin_devices_total) == 0"
    return Alert(
        AlertName.DEVICE_PLUGIN_NO_DEVICES,
        f"{devices}\nand on (node) {metrics.NODE_POOL}",
        "30m",
        "critical",
        "Node {{ $labels.node }} publishes no GPUs",
        "The device plugin found nothing to publish, so that nothing that needs a GPU is scheduled here.",
        "Look at the pods of nvidia-driver-daemonset, nvidia-device-plugin-daemonset and nvidia-mig-manager there.",
    )


# --- Nodes and units ---------------------------------------------------------------------------------------------

_ADD_POOL = f"* on (node) group_left (pool) {metrics.NODE_POOL}"


def _pool_labels_absent(platform: Platform) -> Alert:
    """OpenShift's kube-state-metrics shows all labels of nodes, and cannot be told otherwise.

    (`jsonnet/components/kube-state-metrics.libsonnet` of openshift/cluster-monitoring-operator.)
    """
    label = node_label(POOL_LABEL)
    allowlist = f"--metric-labels-allowlist=nodes=[{','.join(metrics.NODE_LABELS)}]"
    shown = "" if platform is Platform.OPENSHIFT else f"Start kube-state-metrics with {allowlist}. "
    return Alert(
        AlertName.POOL_LABELS_ABSENT,
        f"absent({series('kube_node_labels', **{f'{label}__ne': ''})})",
        "30m",
        "warning",
        f"No node is known to be in a pool: kube-state-metrics shows no label {POOL_LABEL}",
        "Without that label all alerts and dashboards about pools, units and tenants are silent.",
        f"{shown}Check that the pools' partitions are synced.",
    )


def _units_drift() -> Alert:
    """By value: units too many, or too few where negative. The second half is of units that are in no plan."""
    planned, allocatable = metrics.NODE_PLANNED_UNITS, metrics.NODE_ALLOCATABLE_UNITS
    published_gpus = series("kube_node_status_allocatable", resource__re="nvidia_com_(gpu|mig_).*")
    return Alert(
        AlertName.UNITS_DRIFT,
        f"({allocatable} or {planned} * 0) - {planned} != 0\n"
        f"or\n"
        f"(\n"
        f"  (max by (node, resource) ({published_gpus}) > 0)\n"
        f"  {_ADD_POOL}\n"
        f"  unless on (node, resource) {planned}\n"
        f")",
        "30m",
        "warning",
        "Node {{ $labels.node }} of pool {{ $labels.pool }} does not publish the planned {{ $labels.resource }}",
        "It is {{ $value }} units off the plan: devices are unhealthy, or the node's partitions or sharing differ.",
        "Compare `kubectl describe node {{ $labels.node }}` with `gpuplan show`, and look at nvidia-mig-manager "
        "and nvidia-device-plugin-daemonset on the node.",
    )


def _pool_below_plan() -> Alert:
    planned, allocatable = metrics.POOL_PLANNED_UNITS, metrics.POOL_ALLOCATABLE_UNITS
    return Alert(
        AlertName.POOL_BELOW_PLAN,
        f"{planned} - ({allocatable} or {planned} * 0) > 0",
        "1h",
        "warning",
        "Pool {{ $labels.pool }} lacks {{ $value }} of its units {{ $labels.unit }}",
        "Guarantees are promised on the planned capacity, and there is less: nodes or devices are missing.",
        "Bring the missing nodes back, or lower `nodes.count` of the pool and what tenants are guaranteed.",
    )


# --- MIG ---------------------------------------------------------------------------------------------------------

_MIG_STATE = node_label(MIG_STATE_LABEL)


def _mig_config_failed() -> Alert:
    """mig-manager does not try again by itself: it waits for its label to change."""
    return Alert(
        AlertName.MIG_CONFIG_FAILED,
        _mig_state("failed"),
        "5m",
        "critical",
        "mig-manager could not partition the GPUs of node {{ $labels.node }} in pool {{ $labels.pool }}",
        "It does not try again by itself, most often because a pod still held a GPU.",
        f"Drain the node, read the log of nvidia-mig-manager, then restart that pod or set {MIG_CONFIG_LABEL} anew.",
    )


def _mig_config_stuck() -> Alert:
    return Alert(
        AlertName.MIG_CONFIG_STUCK,
        _mig_state("pending|rebooting"),
        "30m",
        "warning",
        "Node {{ $labels.node }} of pool {{ $labels.pool }} has been repartitioning for half an hour",
        "mig-manager waits for the operator's own pods to leave the GPUs, or the node has not come back from a reboot.",
        "Read the log of nvidia-mig-manager on the node.",
    )


def _mig_state(states: str) -> str:
    labels = series("kube_node_labels", **{f"{_MIG_STATE}__re": states})
    return f"max by (node) ({labels})\n{_ADD_POOL}\n== 1"


def _mig_layout_drift(pools: list[str]) -> Alert:
    label = node_label(MIG_CONFIG_LABEL)
    nodes = series("kube_node_labels", **{f"{node_label(POOL_LABEL)}__re": one_of(pools)})
    named = f'label_replace(\n  max by (node, {label}) ({nodes}),\n  "mig_config", "$1", "{label}", "(.*)"\n)'
    return Alert(
        AlertName.MIG_LAYOUT_DRIFT,
        f"{named}\n{_ADD_POOL}\nunless on (pool, mig_config) {metrics.POOL_MIG_CONFIG}",
        "30m",
        "warning",
        "Node {{ $labels.node }} of pool {{ $labels.pool }} is not labelled with the planned MIG layout",
        f"Its label {MIG_CONFIG_LABEL} is `{{{{ $labels.mig_config }}}}`: the change waits for approval or for a "
        "window, or something else has set the label.",
        "Sync the pool's partitions when the node may be disturbed; `gpuplan show` names the planned layout.",
    )


def _mig_resources(plan: Plan) -> list[str]:
    """Resources that are MIG profiles; under `single` the name says nothing of the profile."""
    return sorted(
        {
            sanitized(item.resource)
            for pool in plan.parts
            if isinstance(pool.sharing, Mig) and pool.sharing.spec.strategy is MigStrategy.MIXED
            for item in published(pool)
            if item.resource.startswith("nvidia.com/mig-")
        }
    )


def _fragmentation(resources: list[str]) -> Alert:
    wanted = series(metrics.WAITING_UNITS, resource__re=one_of(resources))
    free = series(metrics.POOL_FREE_UNITS, resource__re=one_of(resources))
    return Alert(
        AlertName.FRAGMENTATION,
        f"{wanted} > 0\n"
        f"unless on (resource) (sum by (resource) ({metrics.POOL_FREE_UNITS}) > 0)\n"
        f"and on () (sum({free}) > 0)",
        "15m",
        "info",
        "Pods wait for {{ $value }} {{ $labels.resource }} while MIG devices of other sizes are free",
        "The GPUs are cut in sizes that are not what is asked for.",
        "See what is free with `gpuplan show` and the dashboard; change the layout of a pool if this lasts.",
    )


# --- Tenants and delivery ----------------------------------------------------------------------------------------


def _quota_saturated() -> Alert:
    """`kube_resourcequota` keeps resource names as they are."""
    labels = "namespace, resourcequota, resource"
    gpus = "requests[.]nvidia[.]com/.+"
    used = series("kube_resourcequota", type="used", resource__re=gpus)
    hard = series("kube_resourcequota", type="hard", resource__re=gpus)
    return Alert(
        AlertName.QUOTA_SATURATED,
        f"max by ({labels}) ({used})\n/ max by ({labels}) ({hard} > 0)\n> 0.9",
        "30m",
        "info",
        "Namespace {{ $labels.namespace }} uses {{ $value | humanizePercentage }} of its {{ $labels.resource }}",
        "More pods of this tenant are refused when the quota is used up.",
        "Nothing is wrong; if the tenant needs more, raise `limit` or `guaranteed` of its quota.",
    )


def _plan_out_of_sync(plan: Plan, argocd: Argocd) -> Alert:
    """`argocd_app_info` comes from the cluster where Argo CD runs, and its Prometheus has to evaluate this rule."""
    applications = series(
        "argocd_app_info",
        name__re=one_of(_applications(plan)),
        project=argocd.project,
        sync_status__ne="Synced",
    )
    return Alert(
        AlertName.PLAN_OUT_OF_SYNC,
        f"max by (name, sync_status) ({applications}) == 1",
        "1h",
        "warning",
        "Application {{ $labels.name }} is {{ $labels.sync_status }}",
        "The cluster is not what Git says: a change waits for approval or its window, or a sync fails.",
        "Run `argocd app diff {{ $labels.name }}`, then approve or repair the sync.",
    )


def _applications(plan: Plan) -> list[str]:
    """The names of the cluster's Applications, whether there is something in each or not."""
    cluster = plan.cluster.name
    stages = [stage for stage in Stage if stage not in (Stage.QUEUES, Stage.NAMESPACES)]
    by_pool = [Stage.PARTITIONS, *([Stage.QUEUES] if plan.scheduler.has_queues_by_pool else [])]
    pools = [f"{stage}/{pool.name}" for stage in by_pool for pool in plan.pools]
    namespaces = [f"{Stage.NAMESPACES}/{namespace}" for tenant in plan.tenants for namespace in tenant.spec.namespaces]
    workloads = sorted({f"{Stage.WORKLOADS}/{workload.namespace}" for workload in plan.workloads})
    return [sync_name(cluster, folder) for folder in (*stages, *pools, *namespaces, *workloads)]
