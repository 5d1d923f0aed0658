"""The rows of a cluster's dashboard: its pools, how busy they are and for whom, quotas, health, alerts.

No panel is about one pool or one tenant: which ones are shown is the viewer's choice, and the dashboard stays as small
for three hundred pools as for three. Of what there may be thousands, graphs show the `_MOST` largest at each moment.
"""

from __future__ import annotations

from typing import Final

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.dashboards.board import Column, Format, Graph, Row, Stat, Table, Variable
from gpuplan.backends.monitoring.metrics import node_label, series

_MOST: Final = 25
_POOL: Final = "$pool"
_TENANT: Final = "$tenant"

VARIABLES: Final = (
    Variable("pool", "Pool", metrics.POOL_PLANNED_NODES),
    Variable("tenant", "Tenant", metrics.NAMESPACE_TENANT),
)


def rows() -> tuple[Row, ...]:
    """From what is planned to what is wrong."""
    return (_pools(), _pool_use(), _tenant_use(), _quotas(), _health(), _alerts())


# --- Pools -------------------------------------------------------------------------------------------------------

_POOL_UNIT: Final = (("pool", "Pool"), ("unit", "Unit"))


def _pools() -> Row:
    planned_nodes = f"sum({series(metrics.POOL_PLANNED_NODES, pool__re=_POOL)})"
    found_nodes = f"count({series(metrics.NODE_POOL, pool__re=_POOL)})"
    planned = _of_pools(metrics.POOL_PLANNED_UNITS)
    allocatable = f"{_of_pools(metrics.POOL_ALLOCATABLE_UNITS)} or {planned} * 0"
    requested = f"{_of_pools(metrics.POOL_REQUESTED_UNITS)} or {planned} * 0"
    free = f"{_of_pools(metrics.POOL_FREE_UNITS)} or {planned} * 0"
    return Row(
        "Pools",
        (
            Stat("Nodes planned", "Nodes of the chosen pools by the policy.", planned_nodes),
            Stat("Nodes found", "Nodes that carry the label of a chosen pool.", f"{found_nodes} or vector(0)"),
            Stat(
                "Nodes whose partitions are not ready",
                "Nodes where MIG Manager is at work, or has failed and waits for a change of the label.",
                f"count({_unready_nodes()}) or vector(0)",
                is_bad_above=0,
            ),
            Stat(
                "Units that pods wait for",
                "What pods of the whole cluster request that the scheduler finds no node for.",
                f"sum({metrics.WAITING_UNITS}) or vector(0)",
                is_bad_above=0,
            ),
            Table(
                "Units",
                "Planned by the policy; allocatable as the nodes publish them; requested by pods; free of the latter.",
                _POOL_UNIT,
                (
                    Column("Planned", planned),
                    Column("Allocatable", allocatable),
                    Column("Requested", requested),
                    Column("Free", free),
                ),
            ),
            Graph(
                "Units in use, of those planned",
                "The part of a pool's planned units that pods have.",
                _largest(f"({requested}) / ({planned} > 0)"),
                _legend("pool", "unit"),
                Format.PART,
            ),
            Graph(
                "Units free",
                "What is published and not taken, of the pools that have least.",
                f"bottomk({_MOST}, {_of_pools(metrics.POOL_FREE_UNITS)})",
                _legend("pool", "unit"),
                Format.COUNT,
            ),
            Graph(
                "Nodes by the state of their partitions",
                "What MIG Manager says of its last attempt. It does not try again by itself after it has failed.",
                f"count by ({_STATE}) ({_node_states('.+')})",
                _legend(_STATE),
                Format.COUNT,
                is_stacked=True,
            ),
            Table(
                "Partitions that are not ready, by node",
                "MIG Manager is at work there, or has failed and waits for a change of the label.",
                (("pool", "Pool"), ("node", "Node"), (_STATE, "State")),
                (Column("", _unready_nodes()),),
                is_narrow=True,
            ),
        ),
    )


_STATE: Final = node_label(metrics.MIG_STATE_LABEL)


def _of_pools(metric: str) -> str:
    return f"sum by (pool, unit) ({series(metric, pool__re=_POOL)})"


def _node_states(states: str) -> str:
    """One series for each node, whichever instance of kube-state-metrics says so."""
    labels = series("kube_node_labels", **{f"{_STATE}__re": states})
    return _with_pool(f"max by (node, {_STATE}) ({labels})")


def _unready_nodes() -> str:
    return _node_states("pending|rebooting|failed")


# --- How busy they are -------------------------------------------------------------------------------------------


def _pool_use() -> Row:
    legend = _legend("pool", "profile")
    return Row(
        "Use of pools",
        (
            Graph(
                "Compute engines busy, by pool",
                "The part of time that graphics and compute engines are busy: MIG devices have this number too.",
                _largest(series(metrics.POOL_ENGINE_ACTIVE, pool__re=_POOL)),
                legend,
                Format.PART,
            ),
            Graph(
                "Memory interface busy, by pool",
                "The part of time that data goes to or from device memory.",
                _largest(series(metrics.POOL_DRAM_ACTIVE, pool__re=_POOL)),
                legend,
                Format.PART,
            ),
            Graph(
                "Memory in use, by pool",
                "Device memory in use on all devices of the pool.",
                _largest(series(metrics.POOL_MEMORY_USED, pool__re=_POOL)),
                legend,
                Format.BYTES,
            ),
            Graph(
                "Memory in use, of what there is",
                "The part of a pool's device memory that is in use.",
                _largest(f"{_device_memory('USED')} / ({_device_memory('USED')} + {_device_memory('FREE')})"),
                _legend("pool"),
                Format.PART,
            ),
        ),
    )


def _device_memory(what: str) -> str:
    """Where a GPU has MIG devices it is those that have this series; where it is shared, each pod on it has one."""
    devices = _with_pool(f"max by (node, gpu, GPU_I_ID) (DCGM_FI_DEV_FB_{what})")
    return f"sum by (pool) ({devices})"


def _tenant_use() -> Row:
    chosen = {"tenant__re": _TENANT, "pool__re": _POOL}
    legend = _legend("tenant", "pool", "profile")
    guaranteed, limit, requested = (
        f"sum by (tenant, pool, unit) ({series(metric, **chosen)})"
        for metric in (metrics.TENANT_GUARANTEED_UNITS, metrics.TENANT_LIMIT_UNITS, metrics.TENANT_REQUESTED_UNITS)
    )
    return Row(
        "Use by tenants",
        (
            Table(
                "Units of tenants",
                "What a tenant is guaranteed, may have at most (no number: no bound), and has.",
                (("tenant", "Tenant"), *_POOL_UNIT),
                (
                    Column("Guaranteed", guaranteed),
                    Column("Limit", limit),
                    Column("Requested", f"{requested} or {guaranteed} * 0"),
                ),
            ),
            Graph(
                "Units in use, by tenant",
                "What the tenant's pods have, of the tenants that have most.",
                _largest(requested),
                _legend("tenant", "pool", "unit"),
                Format.COUNT,
            ),
            Graph(
                "Compute engines busy, by tenant",
                "As for pools, of devices that the tenant's pods have; a shared device counts for everybody on it.",
                _largest(series(metrics.TENANT_ENGINE_ACTIVE, **chosen)),
                legend,
                Format.PART,
            ),
            Graph(
                "Memory interface busy, by tenant",
                "The part of time that data goes to or from the memory of devices that the tenant's pods have.",
                _largest(series(metrics.TENANT_DRAM_ACTIVE, **chosen)),
                legend,
                Format.PART,
            ),
            Graph(
                "Memory in use, by tenant",
                "Device memory in use on devices that the tenant's pods have; a shared one counts whole.",
                _largest(series(metrics.TENANT_MEMORY_USED, **chosen)),
                legend,
                Format.BYTES,
            ),
        ),
    )


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas() -> Row:
    """Only what may be had at all: a namespace's quota also forbids every GPU resource that is not granted."""
    labels = (("tenant", "Tenant"), ("namespace", "Namespace"), ("resource", "Resource"))
    hard = f"{_quota('min', 'hard')} > 0"
    used = _quota("max", "used")
    return Row(
        "Quotas of namespaces",
        (
            Table(
                "Quotas",
                "What pods of a namespace have been admitted with, and how much they may be.",
                labels,
                (Column("Used", f"{used} and ({hard})"), Column("Hard", hard)),
                is_narrow=True,
            ),
            Graph(
                "Quota in use",
                "The part of a namespace's quota that is used up. New pods are refused at 100 %.",
                _largest(f"{used} / ({hard})"),
                _legend("namespace", "resource"),
                Format.PART,
            ),
        ),
    )


def _quota(strictest: str, kind: str) -> str:
    """The strictest of a namespace's quotas holds. Resources keep their names here, unlike those of nodes and pods."""
    quota = series("kube_resourcequota", resource__re="requests[.]nvidia[.]com/.+", type=kind)
    tenant = series(metrics.NAMESPACE_TENANT, tenant__re=_TENANT)
    return f"{strictest} by (namespace, resource) ({quota}) * on (namespace) group_left (tenant) {tenant}"


# --- What is wrong -----------------------------------------------------------------------------------------------


def _health() -> Row:
    legend = _legend("node", "gpu")
    return Row(
        "Health of GPUs",
        (
            Table(
                "GPUs with errors",
                "The last Xid error, also one that a program caused; memory rows that were replaced after errors, and "
                "whether that has failed.",
                (("pool", "Pool"), ("node", "Node"), ("gpu", "GPU")),
                (
                    Column("Last Xid", _of_gpus("DCGM_FI_DEV_XID_ERRORS > 0")),
                    Column("Rows remapped", _of_gpus("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS > 0")),
                    Column("Remapping failed", _of_gpus("DCGM_FI_DEV_ROW_REMAP_FAILURE > 0")),
                ),
            ),
            Graph(
                "Temperature in °C",
                "Of the hottest GPUs.",
                _largest(_of_gpus("DCGM_FI_DEV_GPU_TEMP")),
                legend,
                Format.CELSIUS,
            ),
            Graph(
                "Power in watts",
                "Of the GPUs that draw most.",
                _largest(_of_gpus("DCGM_FI_DEV_POWER_USAGE")),
                legend,
                Format.WATTS,
            ),
        ),
    )


def _of_gpus(expr: str) -> str:
    """One series for each GPU, with its pool; the exporter has one for each MIG device and each pod on it."""
    return _with_pool(f"max by (node, gpu) ({expr})")


def _with_pool(expr: str) -> str:
    return f"{expr} * on (node) group_left (pool) {series(metrics.NODE_POOL, pool__re=_POOL)}"


def _alerts() -> Row:
    labels = ("alertname", "severity", "pool", "tenant", "namespace", "node")
    firing = series("ALERTS", alertname__re="Gpu.+", alertstate="firing")
    return Row(
        "Alerts",
        (
            Table(
                "Alerts that fire",
                "Of the whole cluster, whatever is chosen above.",
                (("alertname", "Alert"), *((label, label.capitalize()) for label in labels[1:])),
                (Column("Alerts", f"count by ({', '.join(labels)}) ({firing})"),),
            ),
        ),
    )


# --- Text --------------------------------------------------------------------------------------------------------


def _largest(expr: str) -> str:
    return f"topk({_MOST}, {expr})"


def _legend(*labels: str) -> str:
    """A series is named by the values of these labels."""
    return " ".join(f"{{{{{label}}}}}" for label in labels)
