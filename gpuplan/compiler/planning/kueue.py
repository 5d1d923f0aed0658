"""Kueue on a cluster: the names of its objects, the units that it counts, and its own Configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import items, value_of
from gpuplan.compiler.catalog.frameworks import Framework, enabled, slices
from gpuplan.compiler.catalog.operators import Version, parse_version
from gpuplan.compiler.catalog.schedulers import release_read
from gpuplan.compiler.manifests.bodies import given
from gpuplan.compiler.manifests.provenance import Links, Routes, as_written, below, chosen
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.grants import network_resources
from gpuplan.compiler.planning.plan import TENANT_LABEL, Cluster, Plan, Pool, Tenant, Unit, Workload
from gpuplan.compiler.policy.models import Allocation

# https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/jobs/pod/constants/constants.go
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"

DEFAULT_QUEUE: Final = "default"
"""A LocalQueue of each namespace: that of this name takes workloads that name none (`DefaultLocalQueueName` there)."""

ROOT_COHORT: Final = "gpuplan"
"""The default name of the root cohort."""

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
    """Return the kinds of work that Kueue knows on a cluster, in the order of the catalog."""
    kueue = cluster.scheduler.spec.kueue
    return enabled([kind.value for kind in kueue.frameworks] if kueue else [])


def release_of(cluster: Cluster) -> str:
    """Return Kueue's release, or the release that the capability matrix describes if the policy names none."""
    return cluster.scheduler.version or release_read(cluster.scheduler.kind.value)


def counted_resource(pool: Pool, unit: Unit) -> str | None:
    """Return a unit's name in Kueue's quotas: its resource or, for claims, a name that Kueue's Configuration maps.

    None for what Kueue cannot count.
    """
    if pool.spec.allocation is Allocation.DRA:
        return f"gpuplan.dev/{device_class_name(pool, unit)}"
    return unit.resource


def counted_units(pool: Pool) -> tuple[Unit, ...]:
    """Return the units that Kueue can count."""
    return tuple(unit for unit in pool.units if counted_resource(pool, unit))


def root_cohort(cluster: Cluster) -> str:
    """Return the cohort of all other cohorts and of the queues of tenants without a parent."""
    kueue = cluster.scheduler.spec.kueue
    return (kueue.cohort if kueue else None) or ROOT_COHORT


def flavor_name(pool: Pool) -> str:
    """Return the name of a pool's ResourceFlavor, which also stands in Kueue's metrics."""
    return pool.spec.names.resource_flavor or pool.name


def cluster_queue(tenant: Tenant) -> str:
    """Return the name of a tenant's ClusterQueue, which also stands in Kueue's metrics."""
    return tenant.spec.names.cluster_queue or tenant.name


def local_queue(tenant: Tenant) -> str:
    """Return the LocalQueue that work of a tenant names in each of its namespaces."""
    return tenant.spec.names.local_queue or DEFAULT_QUEUE


def local_queues(tenant: Tenant) -> tuple[str, ...]:
    """Return all LocalQueues in a tenant's namespaces.

    Without one that takes what names none, Kueue looks after no Job that names none, and its pods would run uncounted
    (`defaultLocalQueueApplies` and `WorkloadShouldBeSuspended` in `pkg/controller/jobframework` there).
    """
    return tuple(dict.fromkeys((local_queue(tenant), DEFAULT_QUEUE)))


def has_queue(tenant: Tenant) -> bool:
    """Whether a tenant may run something that is counted."""
    return tenant.has_work and any(counted_resource(quota.pool, quota.unit) for quota in tenant.quotas)


UNCOUNTED: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-")
"""Prefixes of resources that no quota counts, unless the policy has some of CPU or memory.

A workload that asks for a resource that its queue does not cover is never admitted (`BlockUndeclared`); the alternative
`IgnoreUndeclared` would let GPUs through that no quota covers."""


def configuration(plan: Plan) -> dict[str, Any]:
    """Return Kueue's Configuration: what follows from the plan, and what the policy adds."""
    settings, body = plan.cluster.scheduler.spec.kueue, decided(plan)
    return _joined(body, settings.configuration) if settings else body


def added_routes(plan: Plan) -> Routes:
    """Yield the links of what the policy adds to the Configuration."""
    scheduler = plan.cluster.scheduler
    if settings := scheduler.spec.kueue:
        yield from _added(scheduler.at / "kueue" / "configuration", decided(plan), settings.configuration)


def _added(at: Origin, decided_part: Mapping[str, Any], more: Mapping[str, Any]) -> Routes:
    """Yield the links of additions, which `_joined` puts behind the items of a list."""
    for key, value in more.items():
        here = decided_part.get(key)
        if here is None:
            yield (key,), chosen(at / key)
            yield from as_written(at / key, value, (key,))
        elif isinstance(here, Mapping) and isinstance(value, Mapping):
            yield from below((key,), _added(at / key, here, value))
        elif isinstance(here, list) and isinstance(value, list):
            added = [index for index, item in enumerate(value) if item not in here]
            for place, index in enumerate(added, start=len(here)):
                yield (key, place), chosen(at / key)
                yield from as_written(at / key / index, value[index], (key, place))


def decided(plan: Plan) -> dict[str, Any]:
    """Return the Configuration that Kueue needs for the plan to hold.

    Without fair sharing what is idle belongs to whoever comes first; every tenant has a weight in it, and it is 1 where
    the policy says nothing. Pods are among the kinds that go through queues, so that nothing gets a GPU by a kind that
    Kueue does not know. Where the cluster is watched, recording rules read what queues have and wait for.
    """
    return given(
        apiVersion="config.kueue.x-k8s.io/v1beta2",
        kind="Configuration",
        fairSharing={"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        integrations={"frameworks": [found.integration for found in frameworks(plan.cluster)]},
        managedJobsNamespaceSelector={"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]},
        metrics={"enableClusterQueueResources": True} if plan.cluster.monitoring else None,
        resources=given(excludeResourcePrefixes=uncounted(plan), deviceClassMappings=device_class_mappings(plan)),
        waitForPodsReady=WAIT_FOR_PODS_READY if any(gangs(plan)) else None,
    )


def _joined(decided: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of Kueue's Configuration with additions. Lists hold both, and decided values stay."""
    found = dict(decided)
    for key, value in more.items():
        here = found.get(key)
        if here is None:
            found[key] = value
        elif isinstance(here, Mapping) and isinstance(value, Mapping):
            found[key] = _joined(here, value)
        elif isinstance(here, list) and isinstance(value, list):
            found[key] = [*here, *(item for item in value if item not in here)]
    return found


def uncounted(plan: Plan) -> list[str]:
    """Return the prefixes of resources that queues do not count. Network resources for RDMA are never counted."""
    counted = {item.value for item in plan.compute_trees}
    return [*(prefix for prefix in UNCOUNTED if prefix not in counted), *network_resources(plan)]


def elastic_kinds(plan: Plan) -> tuple[str, ...]:
    """Return the kinds whose growing objects Kueue counts, by its release and feature gates."""
    if not plan.scheduler.suspends_jobs:
        return ()
    # Gates of a stage are turned on or off at once, except those that are named (`AllAlpha` and `AllBeta` in
    # `featuregate/feature_gate.go` of kubernetes/component-base). Kueue does not start if both its Configuration and
    # the chart name gates (`LoadAndValidateFeatureGates` in `pkg/config/validation.go`).
    gate, release = slices(), _since(release_of(plan.cluster))
    named = {name: is_on for name, is_on, _ in _named_gates(plan)}
    is_beta = release >= _since(gate.on)
    usual = named.get("AllBeta" if is_beta else "AllAlpha", is_beta)
    if release < _since(gate.since) or not named.get(gate.gate, usual):
        return ()
    found = [known for known in frameworks(plan.cluster) if known.elastic]
    return tuple(known.kind for known in found if _since(known.elastic) <= release)


def _named_gates(plan: Plan) -> Iterator[tuple[str, bool, tuple[Origin, ...]]]:
    """Yield the feature gates that the policy names in Kueue's Configuration or in values of its chart, with places."""
    scheduler = plan.cluster.scheduler
    named: object = scheduler.spec.kueue.configuration.get("featureGates") if scheduler.spec.kueue else None
    for name, is_on in named.items() if isinstance(named, Mapping) else ():
        if isinstance(is_on, bool):
            yield str(name), is_on, (scheduler.at / "kueue" / "configuration" / "featureGates" / name,)
    for index, item in enumerate(items(value_of(scheduler.spec.values, ("controllerManager", "featureGates")))):
        if isinstance(item, Mapping) and isinstance(item.get("enabled"), bool):
            at = scheduler.at / "values" / "controllerManager" / "featureGates"
            yield str(item.get("name")), item["enabled"], (at.key, at / index / "name", at / index / "enabled")


def elastic_of(plan: Plan) -> Links:
    """Return the places that choose the elastic kinds: Kueue's release and named feature gates."""
    wanted = (slices().gate, "AllAlpha", "AllBeta")
    named = (place for name, _, places in _named_gates(plan) if name in wanted for place in places)
    return chosen(plan.cluster.scheduler.at / "version", *named)


def _since(text: str) -> Version:
    return parse_version(text) or ()


WAIT_FOR_PODS_READY: Final = {"timeout": "10m", "recoveryTimeout": "10m", "blockAdmission": False}
"""A gang of which some pods find no place gives its quota back after a while, and comes again later."""


def gangs(plan: Plan) -> Iterator[Workload]:
    return (found for found in plan.workloads if found.gang)


def device_class_mappings(plan: Plan) -> list[dict[str, Any]]:
    """Return the resource that claims of each DeviceClass count as. Pools of one GPU model share a class for a unit."""
    classes = {
        counted_resource(pool, unit): device_class_name(pool, unit)
        for pool in plan.pools
        if pool.spec.allocation is Allocation.DRA
        for unit in pool.units
    }
    return [{"name": resource, "deviceClassNames": [name]} for resource, name in sorted(classes.items())]
