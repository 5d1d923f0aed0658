"""What Kueue counts, and how workloads tell it what they want."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.catalog.frameworks import Framework, enabled
from gpuplan.compiler.catalog.schedulers import release_read
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.plan import Cluster, Pool, Tenant, Unit
from gpuplan.compiler.policy.models import Allocation

# https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/jobs/pod/constants/constants.go
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"

DEFAULT_QUEUE: Final = "default"
"""A LocalQueue of each namespace: that of this name takes workloads that name none (`DefaultLocalQueueName` there)."""

ROOT_COHORT: Final = "gpuplan"
"""What `root_cohort` is called where the policy does not say it."""

PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
"""An annotation of pods: the level of a Topology within which they should all be, if it can be had."""

REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
"""An annotation of pods: the level of a Topology within which they all are, or wait."""

TOGETHER: Final = "kueue.x-k8s.io/podset-group-name"
"""An annotation of pods: those of two sets that have the same name here are placed as one, from Kueue 0.13 on."""

ANY_TOPOLOGY: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
"""An annotation of pods: they may be anywhere in a Topology.

Without it or the other one, pods get nothing of a flavor with a Topology if their queue has flavors without one
(`checkPodSetAndFlavorMatchForTAS` in `pkg/scheduler/flavorassigner/tas_flavorassigner.go` of Kueue).
"""


def frameworks(cluster: Cluster) -> tuple[Framework, ...]:
    """The kinds of work that Kueue knows on a cluster, in the order of the catalog."""
    kueue = cluster.scheduler.spec.kueue
    return enabled([kind.value for kind in kueue.frameworks] if kueue else [])


def release_of(cluster: Cluster) -> str:
    """Kueue's release, or where the policy does not say it, the one in which it was read what it keeps."""
    return cluster.scheduler.version or release_read(cluster.scheduler.kind.value)


def counted_resource(pool: Pool, unit: Unit) -> str | None:
    """What stands for a unit in Kueue's quotas: its resource or, for claims, a name that Kueue's Configuration maps.

    None for what Kueue cannot count.
    """
    if pool.spec.allocation is Allocation.DRA:
        return f"gpuplan.dev/{device_class_name(pool, unit)}"
    return unit.resource


def counted_units(pool: Pool) -> tuple[Unit, ...]:
    """The units that Kueue can count."""
    return tuple(unit for unit in pool.units if counted_resource(pool, unit))


def root_cohort(cluster: Cluster) -> str:
    """The cohort that all others, and the queues of tenants without a parent, are in."""
    kueue = cluster.scheduler.spec.kueue
    return (kueue.cohort if kueue else None) or ROOT_COHORT


def flavor_name(pool: Pool) -> str:
    """The name of a pool's ResourceFlavor, which Kueue's metrics know it by."""
    return pool.spec.names.resource_flavor or pool.name


def cluster_queue(tenant: Tenant) -> str:
    """The name of a tenant's ClusterQueue, which Kueue's metrics know it by."""
    return tenant.spec.names.cluster_queue or tenant.name


def local_queue(tenant: Tenant) -> str:
    """The LocalQueue that work of a tenant names, in whichever of its namespaces."""
    return tenant.spec.names.local_queue or DEFAULT_QUEUE


def local_queues(tenant: Tenant) -> tuple[str, ...]:
    """All LocalQueues in a tenant's namespaces.

    Without one that takes what names none, Kueue looks after no Job that names none, and its pods would run uncounted
    (`defaultLocalQueueApplies` and `WorkloadShouldBeSuspended` in `pkg/controller/jobframework` there).
    """
    return tuple(dict.fromkeys((local_queue(tenant), DEFAULT_QUEUE)))


def has_queue(tenant: Tenant) -> bool:
    """Whether a tenant may run something that is counted."""
    return tenant.has_work and any(counted_resource(quota.pool, quota.unit) for quota in tenant.quotas)
