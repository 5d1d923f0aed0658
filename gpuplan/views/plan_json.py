"""Plans as plain data: a stable contract, `plan.schema.json`, that other programs may rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from gpuplan.planning.placement import Placed
from gpuplan.planning.plan import (
    Amount,
    Cluster,
    Exclusive,
    Fraction,
    Guard,
    Inference,
    Layout,
    LayoutEntry,
    Mig,
    ModelVolume,
    Mps,
    Plan,
    Pool,
    PriorityClass,
    Quota,
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedObject,
    Rollout,
    Sharing,
    Tenant,
    TimeSlicing,
    Total,
    Training,
    Unit,
    Workload,
)
from gpuplan.planning.projects import seconds
from gpuplan.views.preemption import evictions_as_data

FORMAT_VERSION = "1.2"
"""A minor step only adds keys. Null means unbounded for limits and caps, otherwise unknown or not there."""


def plans_as_data(plans: Iterable[Plan]) -> dict[str, Any]:
    """All clusters; what has an order in the policy keeps it, everything else is sorted by name."""
    return {"format_version": FORMAT_VERSION, "clusters": [plan_as_data(plan) for plan in plans]}


def plan_as_data(plan: Plan) -> dict[str, Any]:
    """One cluster."""
    totals = {(total.pool.name, total.unit.name): total for total in plan.totals}
    return {
        **_cluster(plan.cluster),
        "pools": [_pool(pool, totals) for pool in plan.pools],
        "layouts": [_layout(layout) for layout in plan.mig_layouts],
        "priority_classes": [_priority_class(item) for item in plan.priority_classes],
        "tenants": [_tenant(tenant) for tenant in plan.tenants],
        "evictions": evictions_as_data(plan),
        "workloads": [_workload(workload) for workload in plan.workloads],
        "retained": [_retained(item) for item in plan.retained],
    }


# --- Cluster -----------------------------------------------------------------------------------------------------


def _cluster(cluster: Cluster) -> dict[str, Any]:
    operator, scheduler = cluster.gpu_operator, cluster.scheduler
    return {
        "name": cluster.name,
        "kubernetes": cluster.spec.kubernetes,
        "platform": cluster.spec.platform.value,
        "node_labels": cluster.spec.node_labels.value,
        "gpu_operator": {
            "install": operator.spec.install.value,
            "version": operator.version,
            "namespace": operator.namespace,
            "cluster_policy": operator.cluster_policy,
            "mig_strategy": operator.spec.mig_strategy.value,
            "driver_enabled": operator.spec.driver.enabled,
            "driver_version": operator.spec.driver.version or None,
        },
        "scheduler": {
            "kind": scheduler.kind.value,
            "on_loss": scheduler.spec.on_loss.value,
            "cap": scheduler.spec.cap.value,
        },
    }


# --- Pools -------------------------------------------------------------------------------------------------------


def _pool(pool: Pool, totals: Mapping[tuple[str, str], Total]) -> dict[str, Any]:
    return {
        "name": pool.name,
        "gpu": pool.gpu.id,
        "nodes": {
            "count": pool.nodes.count,
            "gpus_per_node": pool.nodes.gpus_per_node,
            "names": list(pool.nodes.names),
            "name_pattern": pool.nodes.name_pattern,
        },
        "gpu_count": pool.gpu_count,
        "sharing": _sharing(pool.sharing),
        "units": [_unit(unit, totals.get((pool.name, unit.name))) for unit in pool.units],
        "labels": dict(sorted(pool.labels.items())),
        "rollout": _rollout(pool.rollout) if pool.rollout else None,
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in pool.spec.taints
        ],
        "workload_types": list(pool.spec.workload_types),
        "allocation": pool.spec.allocation.value,
        "placement": pool.spec.placement.value if pool.spec.placement else None,
        "topology": list(pool.spec.topology),
        "fallback": pool.spec.fallback,
        "memory_per_unit_mib": pool.spec.memory_per_unit,
        "disruption": {
            "approval": pool.spec.disruption.approval.value,
            "windows": [
                {"schedule": window.schedule, "duration": window.duration, "time_zone": window.time_zone}
                for window in pool.spec.disruption.windows
            ],
            "max_unavailable": pool.spec.disruption.max_unavailable,
            "guard": _guard(pool.spec.disruption.guard) if pool.spec.disruption.guard else None,
        },
    }


def _guard(guard: Guard) -> dict[str, Any]:
    return {"image": guard.image, "timeout_seconds": seconds(guard.timeout)}


def _rollout(rollout: Rollout) -> dict[str, Any]:
    """What differs on the nodes that have been moved."""
    moved = rollout.moved
    return {
        "nodes": list(moved.nodes.names),
        "sharing": _sharing(moved.sharing),
        "labels": dict(sorted(moved.labels.items())),
    }


def _sharing(sharing: Sharing) -> dict[str, Any]:
    """``kind`` and what belongs to it, named as in the policy."""
    match sharing:
        case Exclusive():
            return {"kind": "exclusive"}
        case TimeSlicing():
            return {"kind": "timeSlicing", **_time_slicing(sharing)}
        case Mps():
            return {"kind": "mps", "replicas": sharing.spec.replicas, "rename": sharing.spec.rename}
        case Mig():
            sliced = sharing.time_slicing
            return {
                "kind": "mig",
                "layout": sharing.layout.name,
                "config_name": sharing.layout.config_name,
                "strategy": sharing.spec.strategy.value,
                "time_slicing": _time_slicing(sliced) if sliced else None,
            }
        case Fraction():
            return {"kind": "fraction"}
        case _:
            assert_never(sharing)


def _time_slicing(sharing: TimeSlicing) -> dict[str, Any]:
    return {
        "replicas": sharing.spec.replicas,
        "rename": sharing.spec.rename,
        "fail_requests_greater_than_one": sharing.spec.fail_requests_greater_than_one,
    }


def _unit(unit: Unit, total: Total | None) -> dict[str, Any]:
    guaranteed = total.guaranteed if total else 0
    return {
        "name": unit.name,
        "resource": unit.resource,
        "device_class": unit.device_class,
        "per_gpu": list(unit.per_gpu),
        "per_node": unit.per_node,
        "capacity": unit.capacity,
        "guaranteed": _number(guaranteed),
        "limit": _number(total.limit if total else 0),
        "free": _number(unit.capacity - guaranteed),
        "gpu_weight": str(unit.gpu_weight),
        "memory_mib": unit.memory_mib,
        "isolation": unit.isolation.value,
    }


def _layout(layout: Layout) -> dict[str, Any]:
    return {
        "name": layout.name,
        "gpu": layout.gpu.id,
        "config_name": layout.config_name,
        "inline": layout.is_inline,
        "entries": [_entry(entry) for entry in layout.entries],
    }


def _entry(entry: LayoutEntry) -> dict[str, Any]:
    placed = entry.placed
    return {
        "gpus": None if entry.gpus is None else list(entry.gpus),
        "mig_enabled": entry.mig_enabled,
        "instances": dict(entry.instances),
        "placements": [
            {"profile": instance.profile.name, "start": instance.placement.start, "size": instance.placement.size}
            for instance in placed.instances
        ]
        if isinstance(placed, Placed)
        else None,
    }


# --- Tenants -----------------------------------------------------------------------------------------------------


def _priority_class(item: PriorityClass) -> dict[str, Any]:
    return {
        "name": item.name,
        "value": item.spec.value,
        "preemptible": item.spec.preemptible,
        "preempts": item.spec.preempts,
        "default": item.spec.default,
        "description": item.spec.description,
    }


def _tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "name": tenant.name,
        "namespaces": list(tenant.spec.namespaces),
        "parent": tenant.parent,
        "priority_classes": [item.name for item in tenant.priority_classes],
        "workload_types": list(tenant.spec.workload_types),
        "quotas": [_quota(quota) for quota in tenant.quotas],
        "surplus": {"weight": _number(tenant.surplus_weight), "rank": tenant.spec.surplus.rank},
        "protect": {"preempt": tenant.spec.protect.preempt, "reclaim": tenant.spec.protect.reclaim},
        "members": [{"group": member.group, "role": member.role.value} for member in tenant.spec.members],
        "pod_security": tenant.spec.allow.pod_security.value,
        "units_per_container": tenant.spec.allow.units_per_container,
    }


def _quota(quota: Quota) -> dict[str, Any]:
    return {
        "pool": quota.pool.name,
        "unit": quota.unit.name,
        "resource": quota.unit.resource,
        "device_class": quota.unit.device_class,
        "guaranteed": _number(quota.guaranteed),
        "limit": _number(quota.limit),
        "lendable": _number(quota.lendable),
        "caps": {namespace: _number(cap) for namespace, cap in sorted(quota.caps.items())},
    }


# --- Workloads ---------------------------------------------------------------------------------------------------


def _workload(workload: Workload) -> dict[str, Any]:
    fraction = workload.fraction
    return {
        "name": workload.name,
        "tenant": workload.tenant.name,
        "namespace": workload.namespace,
        **_work(workload.work),
        "most_pods": workload.most_pods,
        "pool": workload.pool.name,
        "unit": workload.unit.name,
        "units_per_pod": _number(workload.amount_per_pod),
        "units_per_pod_at_most": _number(fraction.most if fraction else workload.amount_per_pod),
        "priority_class": workload.priority_class.name if workload.priority_class else None,
        "image": workload.spec.image,
        "cpu": workload.spec.cpu or None,
        "memory": workload.spec.memory or None,
        "model": _model(workload.spec.model) if workload.spec.model else None,
    }


def _work(work: Inference | Training) -> dict[str, Any]:
    """``kind`` and what belongs to it."""
    match work:
        case Inference():
            scaling = work.autoscaling
            return {
                "kind": "inference",
                "replicas": work.replicas,
                "port": work.port,
                "autoscaling": {
                    "min_replicas": scaling.min_replicas,
                    "max_replicas": scaling.max_replicas,
                    "requests_per_second": scaling.requests_per_second,
                    "metric": scaling.metric,
                }
                if scaling
                else None,
            }
        case Training():
            return {"kind": "training", "pods": work.pods, "gang": work.gang, "backoff_limit": work.backoff_limit}
        case _:
            assert_never(work)


def _model(model: ModelVolume) -> dict[str, Any]:
    return {
        "size": model.size,
        "storage_class": model.storage_class or None,
        "mount_path": model.mount_path,
        "access_mode": model.access_mode,
        "download_image": model.download.image if model.download else None,
    }


# --- Retained ----------------------------------------------------------------------------------------------------


def _retained(item: Retained) -> dict[str, Any]:
    kind, defines = _defined(item.what)
    return {"name": item.name, "kind": kind, "defines": defines, "until": item.spec.until}


def _defined(what: RetainedLayout | RetainedDevicePluginConfig | RetainedObject) -> tuple[str, str]:
    """The field of the policy that holds it, and what is still known by it; objects may have any shape."""
    match what:
        case RetainedLayout():
            return "migLayout", what.spec.config_name
        case RetainedDevicePluginConfig():
            return "devicePluginConfig", what.spec.key
        case RetainedObject():
            metadata = what.spec.manifest.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            return "object", " ".join(str(part) for part in (what.spec.manifest.get("kind"), name) if part)
        case _:
            assert_never(what)


def _number(amount: Amount | None) -> int | float | None:
    """JSON has one kind of number; whole ones are written without a point."""
    if amount is None:
        return None
    return int(amount) if amount == int(amount) else float(amount)
