"""Recording rules on what is there: units that nodes publish, what pods take of them, how busy the devices are.

Sources are kube-state-metrics and the DCGM exporter. Of the latter's series only those count that MIG devices have too:
`DCGM_FI_DEV_GPU_UTIL` and its kin are absent or zero there (NVIDIA/dcgm-exporter#216, #430).
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.metrics import (
    node_label,
    one_of,
    published,
    sanitized,
    series,
    workload_labels,
)
from gpuplan.backends.monitoring.rules import Group, Recording
from gpuplan.planning.plan import POOL_LABEL, Monitoring, Plan, Pool

_MIB = 1024 * 1024


# --- Units -------------------------------------------------------------------------------------------------------


def pool_group(plan: Plan) -> Group:
    """Which pool a node is in, and from that on what the pools' nodes publish and what is taken of it."""
    rules = [_node_pool()]
    rules += (rule for pool in plan.pools for rule in _node_planned(pool))
    if resources := _resources(plan):
        rules += _units(resources)
    return Group("gpuplan-pools", tuple(rules))


def _node_pool() -> Recording:
    """One series for each node, whichever instance of kube-state-metrics says so."""
    label = node_label(POOL_LABEL)
    labels = series("kube_node_labels", **{f"{label}__ne": ""})
    return Recording(
        metrics.NODE_POOL, f'max by (node, pool) (\n  label_replace({labels}, "pool", "$1", "{label}", "(.+)")\n)'
    )


def _node_planned(pool: Pool) -> Iterator[Recording]:
    for resource in published(pool):
        nodes = [
            f"{_nodes(pool, part)} * {item.per_node}"
            for part in pool.parts
            for item in published(part)
            if item.resource == resource.resource and item.per_node and part.nodes.count
        ]
        if nodes:
            # The label `pool` is there already; it tells rules of two pools with one resource apart.
            labels = {"pool": pool.name, **resource.labels}
            yield Recording(metrics.NODE_PLANNED_UNITS, "\nor\n".join(nodes), labels)


def _nodes(pool: Pool, part: Pool) -> str:
    """The nodes of a part of a pool: all, or those that a rollout has moved, or all but those."""
    if pool.rollout is None or part.nodes.count == pool.nodes.count:
        return series(metrics.NODE_POOL, pool=pool.name)
    names = one_of(sorted(pool.rollout.moved.nodes.names))
    is_moved = part is pool.rollout.moved
    return series(metrics.NODE_POOL, pool=pool.name, **{"node__re" if is_moved else "node__nre": names})


def _resources(plan: Plan) -> str:
    """A regular expression for the plan's resources, as kube-state-metrics spells them."""
    return one_of(sorted({sanitized(item.resource) for pool in plan.pools for item in published(pool)}))


_ADD_POOL_AND_UNIT = f"on (node, resource) group_left (pool, unit)\n({metrics.NODE_PLANNED_UNITS} ^ 0)"
"""After `*`: adds labels, and leaves out what is not the plan's; any number to the power of 0 is 1."""


def _units(resources: str) -> Iterator[Recording]:
    allocatable = series("kube_node_status_allocatable", resource__re=resources)
    yield Recording(metrics.NODE_ALLOCATABLE_UNITS, f"max by (node, resource) ({allocatable})\n* {_ADD_POOL_AND_UNIT}")
    yield Recording(metrics.POOL_ALLOCATABLE_UNITS, f"sum by (pool, unit, resource) ({metrics.NODE_ALLOCATABLE_UNITS})")
    yield Recording(metrics.NAMESPACE_REQUESTED_UNITS, _requested(resources))
    yield Recording(
        metrics.POOL_REQUESTED_UNITS, f"sum by (pool, unit, resource) ({metrics.NAMESPACE_REQUESTED_UNITS})"
    )
    yield Recording(
        metrics.TENANT_REQUESTED_UNITS,
        f"sum by (tenant, pool, unit, resource) (\n"
        f"  {metrics.NAMESPACE_REQUESTED_UNITS}\n"
        f"  * on (namespace) group_left (tenant) {metrics.NAMESPACE_TENANT}\n"
        f")",
    )
    yield Recording(
        metrics.POOL_FREE_UNITS,
        f"{metrics.POOL_ALLOCATABLE_UNITS}\n- ({metrics.POOL_REQUESTED_UNITS} or {metrics.POOL_ALLOCATABLE_UNITS} * 0)",
    )
    yield Recording(metrics.WAITING_UNITS, _waiting(resources))


def _requested(resources: str) -> str:
    """What pods hold that are on a node and not done; those that are done have requests, but no devices."""
    requests = series("kube_pod_container_resource_requests", resource__re=resources, node__ne="")
    running = series("kube_pod_status_phase", phase__re="Pending|Running")
    return (
        f"sum by (namespace, node, resource) (\n"
        f"  max by (namespace, pod, container, node, resource) ({requests})\n"
        f"  * on (namespace, pod) group_left ()\n"
        f"  max by (namespace, pod) ({running} == 1)\n"
        f")\n"
        f"* {_ADD_POOL_AND_UNIT}"
    )


def _waiting(resources: str) -> str:
    requests = series("kube_pod_container_resource_requests", resource__re=resources)
    return (
        f"sum by (resource) (\n"
        f"  max by (namespace, pod, container, resource) ({requests})\n"
        f"  * on (namespace, pod) group_left ()\n"
        f"  max by (namespace, pod) (kube_pod_status_unschedulable == 1)\n"
        f")"
    )


# --- Utilization -------------------------------------------------------------------------------------------------


def utilization_group(plan: Plan, monitoring: Monitoring) -> Group:
    return Group("gpuplan-utilization", tuple(_utilization(plan, monitoring)))


def _utilization(plan: Plan, monitoring: Monitoring) -> Iterator[Recording]:
    engine, dram, memory = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_FB_USED"
    of_pools = "(pool, profile)"
    yield Recording(metrics.POOL_ENGINE_ACTIVE, f"avg by {of_pools} (\n{_devices(engine)}\n)")
    yield Recording(metrics.POOL_DRAM_ACTIVE, f"avg by {of_pools} (\n{_devices(dram)}\n)")
    yield Recording(metrics.POOL_MEMORY_USED, f"sum by {of_pools} (\n{_devices(memory)}\n) * {_MIB}")
    if any(tenant.spec.namespaces for tenant in plan.tenants):
        of_tenants = "(tenant, pool, profile)"
        tenants = [_devices_of_tenants(plan, monitoring, metric) for metric in (engine, dram, memory)]
        yield Recording(metrics.TENANT_ENGINE_ACTIVE, f"avg by {of_tenants} (\n{tenants[0]}\n)")
        yield Recording(metrics.TENANT_DRAM_ACTIVE, f"avg by {of_tenants} (\n{tenants[1]}\n)")
        yield Recording(metrics.TENANT_MEMORY_USED, f"sum by {of_tenants} (\n{tenants[2]}\n) * {_MIB}")


_DEVICE = "node, gpu, GPU_I_ID, GPU_I_PROFILE"
"""What tells one device from another; the exporter has a series for each pod on it where GPUs are shared."""

_ADD_POOL = f"* on (node) group_left (pool) {metrics.NODE_POOL}"


def _devices(metric: str) -> str:
    """One series for each device of the plan's nodes, with its pool and profile."""
    return indent(_with_profile(f"max by ({_DEVICE}) ({metric})") + f"\n{_ADD_POOL}", "  ")


def _devices_of_tenants(plan: Plan, monitoring: Monitoring, metric: str) -> str:
    """One series for each device and namespace that has it, with its pool, profile and tenant."""
    labels = workload_labels(plan.cluster, monitoring)
    devices = f"max by ({labels.namespace}, {_DEVICE}) ({metric}{{{labels.is_set}}})"
    if labels.namespace != "namespace":
        devices = _label_replace(devices, "namespace", labels.namespace)
    tenant = f"* on (namespace) group_left (tenant) {metrics.NAMESPACE_TENANT}"
    return indent(_with_profile(devices) + f"\n{_ADD_POOL}\n{tenant}", "  ")


def _with_profile(expr: str) -> str:
    return _label_replace(expr, "profile", "GPU_I_PROFILE")


def _label_replace(expr: str, label: str, source: str) -> str:
    """The series with a label of another name; those without it stay as they are."""
    return f'label_replace(\n{indent(expr, "  ")},\n  "{label}", "$1", "{source}", "(.+)"\n)'
