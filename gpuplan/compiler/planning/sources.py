"""The places in policies that common values come from: names, units, counts and labels of pools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.openshift import UPSTREAM_RULES, nfd_operator
from gpuplan.compiler.catalog.places import gpu_fact, profile_fact
from gpuplan.compiler.manifests.provenance import (
    How,
    Links,
    Routes,
    adding,
    choosing,
    chosen,
    copied,
    facts,
    hashed,
    multiplied,
    multiplying,
    ordered,
    ordering,
    summed,
)
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL, uses_claims
from gpuplan.compiler.planning.gpu_operator import has_openshifts_nfd, unnoticed_resources
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    MIG_MANAGER_LABEL,
    POOL_LABEL,
    Cluster,
    Counted,
    DynamicMig,
    Isolation,
    Layout,
    LayoutEntry,
    Mig,
    MigTimeSlicing,
    Plan,
    Pool,
    Quota,
    RetainedDevicePluginConfig,
    Taint,
    Tenant,
    Unit,
    Workload,
)
from gpuplan.compiler.planning.subjects import Part
from gpuplan.compiler.planning.tree import Tree
from gpuplan.compiler.policy.models import Allocation, Cap, Install, MigStrategy, Platform

# --- Names -------------------------------------------------------------------------------------------------------


def name_of(part: Part) -> Origin:
    """Return the place of a document's name. References to the document hold the same text."""
    return Origin(part.at.source, ("metadata", "name"))


def named(*parts: Part) -> Links:
    """Return the links of a value that holds the names of these documents."""
    return copied(*map(name_of, parts))


def because_of(*parts: Part) -> Links:
    """Return the links of a thing that exists as long as these documents do."""
    return chosen(*map(name_of, parts))


MOST_IN_ORDER: Final = 12


def by_name(parts: Sequence[Part]) -> Links:
    """Return the links of an item whose position follows from the names of documents.

    With more documents than anybody reads there are no such links.
    """
    return ordering(because_of(*parts)) if 1 < len(parts) <= MOST_IN_ORDER else ()


def flavor_of(pool: Pool) -> Links:
    """Return the links of the name of a pool's ResourceFlavor."""
    return copied(pool.at / "names" / "resourceFlavor") if pool.spec.names.resource_flavor else named(pool)


def flavor_by(quota: Quota) -> Links:
    """Return the links of a ResourceFlavor's name if a quota names the pool."""
    is_kept = quota.pool.spec.names.resource_flavor is not None
    return (*(chosen if is_kept else copied)(quota.at / "pool"), *flavor_of(quota.pool))


def cluster_queue_of(tenant: Tenant) -> Links:
    """Return the links of the name of a tenant's ClusterQueue."""
    return copied(tenant.at / "names" / "clusterQueue") if tenant.spec.names.cluster_queue else named(tenant)


def local_queue_of(tenant: Tenant) -> Links:
    """Return the links of the LocalQueue's name that work names. `default` has none."""
    return copied(tenant.at / "names" / "localQueue") if tenant.spec.names.local_queue else ()


def queue_by_pool_of(tenant: Tenant, *pools: Pool) -> Links:
    """Return the links of the name of a tenant's queue in a pool."""
    kept = [tenant.at / "names" / "queues" / pool.name for pool in pools if pool.name in tenant.spec.names.queues]
    return copied(*kept) if kept else named(tenant, *pools)


def root_cohort_of(plan: Plan) -> Links:
    """Return the links of the name of the Cohort of all tenants."""
    kueue, scheduler = plan.cluster.scheduler.spec.kueue, plan.cluster.scheduler
    return copied(scheduler.at / "kueue" / "cohort") if kueue and kueue.cohort else ()


def namespace_of(tenant: Tenant, namespace: str) -> Origin:
    """Return the place at which a tenant names one of its namespaces."""
    return tenant.at / "namespaces" / tenant.spec.namespaces.index(namespace)


# --- The cluster -------------------------------------------------------------------------------------------------


def scheduler_of(plan: Plan) -> Links:
    """Return the links of the choice of scheduler."""
    return _settings(plan, "kind")


def release_of(plan: Plan) -> Links:
    """Return the links of the scheduler's release."""
    return _settings(plan, "version")


def frameworks_of(plan: Plan) -> Links:
    """Return the links of the kinds of work that Kueue knows."""
    return _settings(plan, "kueue")


def _settings(plan: Plan, field: str) -> Links:
    return chosen(plan.cluster.scheduler.at / field)


def admission_of(plan: Plan) -> Links:
    """Return the links that decide whether the cluster has admission policies. Claims need a version that has them."""
    return () if uses_claims(plan) else chosen(plan.cluster.at / "kubernetes")


# --- The GPU Operator --------------------------------------------------------------------------------------------


def operator_namespace(cluster: Cluster) -> Links:
    """Return the links of the GPU Operator's namespace, which the policy names or the platform."""
    operator = cluster.gpu_operator
    return copied(operator.at / "namespace") if operator.spec.namespace else usual_names(cluster)


def usual_names(cluster: Cluster) -> Links:
    """Return the links that decide between the GPU Operator's names on OpenShift and elsewhere.

    Either OLM or the platform means OpenShift. If both do, a change of one changes no name.
    """
    platform, install = cluster.at / "platform", cluster.gpu_operator.at / "install"
    is_openshift = cluster.spec.platform is Platform.OPENSHIFT
    is_olm = cluster.gpu_operator.spec.install is Install.OLM
    if is_openshift and is_olm:
        return ()
    if is_openshift or is_olm:
        return chosen(platform if is_openshift else install)
    return chosen(platform, install)


# --- Monitoring --------------------------------------------------------------------------------------------------


def monitoring_namespace(cluster: Cluster) -> Links:
    """Return the links of the namespace of rules and monitors. On OpenShift the default is the GPU Operator's."""
    monitoring = cluster.monitoring
    if monitoring is not None and monitoring.spec.namespace:
        return copied(monitoring.at / "namespace")
    platform = chosen(cluster.at / "platform")
    return (*platform, *operator_namespace(cluster)) if cluster.spec.platform is Platform.OPENSHIFT else platform


# --- Pools -------------------------------------------------------------------------------------------------------


def sharing_of(pool: Pool) -> Links:
    """Return the links that choose the way of sharing, without counts: a pool's own and that of its rollout."""
    return tuple(link for part in pool.parts for link in (*_layout_of(part), *_strategy_of(part)))


def _layout_of(pool: Pool) -> Links:
    """Return the links that choose a layout. A layout inside the pool needs none."""
    sharing = pool.sharing
    return chosen(sharing.layout_at) if isinstance(sharing, Mig) and not sharing.layout.is_inline else ()


def _strategy_of(pool: Pool) -> Links:
    return chosen(pool.sharing.at / "strategy") if isinstance(pool.sharing, Mig) else ()


def layout_content(layout: Layout) -> Links:
    """Return the links of a layout's digest: all that divides a GPU."""
    return hashed(link for entry in layout.entries for link in entry_content(entry))


def entry_content(entry: LayoutEntry) -> Links:
    """Return the links of an entry's content. An entry that is short for all GPUs has the place of its instances."""
    at, instances = entry.at, entry.at
    if entry.at.path[-1] != "instances":
        instances = entry.at / "instances"
        return copied(*gpus_of(entry), at / "enabled", *(instances / name for name in entry.instances))
    return copied(*(instances / name for name in entry.instances))


def gpus_of(entry: LayoutEntry) -> tuple[Origin, ...]:
    """Return the places at which an entry names its GPUs, or the one that says all."""
    at = entry.at / "gpus"
    return (at,) if entry.gpus is None else tuple(at / index for index in range(len(entry.gpus)))


def config_name(layout: Layout) -> Links:
    """Return the links of the name of an entry in the mig-parted file: a name and a digest, or a kept name."""
    if layout.keeps_name:
        return copied(layout.at / "configName")
    name = copied(Origin(layout.at.source, ("metadata", "name")))
    return (*name, *layout_content(layout))


def unit_name_of(pool: Pool, unit: Unit) -> Links:
    """Return the links of a unit's name: the choice of layout, and the profile in it.

    The profile is a key, whose place is that of its count.
    """
    part = pool.part_with(unit)
    if isinstance(part.sharing, DynamicMig):
        return chosen(*_on_demand(part.gpu, part.sharing, unit.name))
    if not isinstance(part.sharing, Mig):
        return ()
    if unit.name == "gpu":
        return (*_layout_of(part), *chosen(*_instances(part.sharing.layout, unit.name)))
    return (*_layout_of(part), *chosen(*_profiles(part.sharing.layout, unit.name)))


def _on_demand(gpu: Gpu, sharing: DynamicMig, profile: str) -> Iterator[Origin]:
    """Yield the places that list a profile that pods may claim."""
    for index, name in enumerate(sharing.spec.profiles):
        if gpu.current_name(name) == profile:
            yield sharing.at / "profiles" / index


def resource_of(pool: Pool, unit: Unit) -> Links:
    """Return the links of the name that pods ask for: `nvidia.com/mig-1g.10gb`, a DeviceClass."""
    return (*unit_name_of(pool, unit), *_resource_by_unit(pool, unit))


def _resource_by_unit(pool: Pool, unit: Unit) -> Links:
    """Return the links of a unit's resource if the unit is named, so that the choice of layout does not matter."""
    part = pool.part_with(unit)
    found = chosen(pool.at / "allocation")
    if pool.spec.allocation is Allocation.DRA:
        return (*found, *chosen(pool.at / "gpu"))
    if part.shares and part.shares_of(unit):
        found += chosen(part.shares.at / "rename")
    return (*found, *_divided_at(part, unit), *_strategy_of(part))


def _divided_at(part: Pool, unit: Unit) -> Links:
    """Return the links that say whether the MIG devices of a unit are divided, if only some profiles are."""
    shares = part.shares if unit.isolation is not Isolation.WHOLE_GPU else None
    by_profile = isinstance(shares, MigTimeSlicing) and any(stated.profile for stated in shares.stated)
    return chosen(shares.at / "replicas") if shares and by_profile else ()


def asked_by(plan: Plan, asker: Quota | Workload) -> Links:
    """Return the links of the resource that a quota counts or a workload asks for.

    Another pool does so only if it hands the same unit out otherwise.
    """
    pool, unit = asker.pool, asker.unit
    others = (_unit_in(other, asker.spec.unit) for other in plan.pools if other is not pool)
    named = chosen(asker.at / "pool") if any(other and other.asked_as != unit.asked_as for other in others) else ()
    if asker.spec.unit is None:
        return (*named, *resource_of(pool, unit))
    return (*chosen(asker.at / "unit"), *named, *_resource_by_unit(pool, unit))


def _unit_in(pool: Pool, name: str | None) -> Unit | None:
    """Return the unit that a name means in a pool. Without a name the pool must have one unit alone."""
    if name is not None:
        return pool.find_unit(name)
    units = pool.parts[0].units
    return units[0] if len(units) == 1 else None


def capacity_of(pool: Pool, unit: Unit) -> Links:
    """Return the links of the number of a unit in a pool."""
    found = list(multiplied(pool.at / "nodes" / "count"))
    for part in pool.parts:
        found += per_node_of(part, unit)
    if pool.rollout:
        found += summed(pool.rollout.at / "nodes")
    return tuple(dict.fromkeys(found))


def per_node_of(part: Pool, unit: Unit) -> Links:
    """Return the links of the number of a unit on each node of a part of a pool."""
    if part.find_unit(unit.name) is None:
        return ()
    found = list(multiplied(part.at / "nodes" / "gpusPerNode"))
    if isinstance(part.sharing, DynamicMig):
        found += chosen(*_on_demand(part.gpu, part.sharing, unit.name))
    if isinstance(part.sharing, Mig):
        found += _layout_of(part)
        found += multiplied(*_instances(part.sharing.layout, unit.name))
    if shares := part.shares_of(unit):
        found += multiplied(shares.at)
    return (*found, *_divided_at(part, unit))


def _instances(layout: Layout, profile: str) -> Iterator[Origin]:
    """Yield the places that count instances of a profile, or for whole GPUs those that say which stay whole."""
    yield from _profiles(layout, profile)
    for entry in layout.entries:
        if entry.at.path[-1] != "instances":
            if profile == "gpu":
                yield entry.at / "enabled"
            if profile == "gpu" or profile in entry.instances:
                yield from gpus_of(entry)


def _profiles(layout: Layout, profile: str) -> Iterator[Origin]:
    return (at for name, at in places_of_profiles(layout) if name == profile)


def places_of_profiles(layout: Layout) -> Iterator[tuple[str, Origin]]:
    """Yield each profile of a layout, with the place of its count."""
    for entry in layout.entries:
        yield from ((profile, at) for profile in entry.instances for at in instances_of(entry, profile))


def instances_of(entry: LayoutEntry, profile: str) -> Iterator[Origin]:
    """Yield the place at which an entry counts instances of a profile, if it does."""
    if profile in entry.instances:
        yield entry.at / profile if entry.at.path[-1] == "instances" else entry.at / "instances" / profile


def tolerations_of(pool: Pool) -> Routes:
    """Yield the links of each toleration of a pool's taints, by its index."""
    for index, taint in enumerate(pool.taints):
        if taint.is_default:
            yield (index,), default_taint_of(pool, taint)
            continue
        yield (index, "key"), copied(taint.at / "key")
        yield (index, "operator"), chosen(taint.at / "value")
        yield (index, "value"), copied(taint.at / "value")
        yield (index, "effect"), copied(taint.at / "effect")


def default_taint_of(pool: Pool, taint: Taint) -> Links:
    """Return the links of the cluster's taint, which a pool has while none of its own keeps pods off."""
    return chosen(taint.at, *(own.at / "effect" for own in pool.taints if not own.is_default))


def exporter_of(plan: Plan) -> Links:
    """Return the links that decide what the DCGM exporter collects and supports."""
    monitoring, operator = plan.cluster.monitoring, plan.cluster.gpu_operator
    if monitoring is None:
        return ()
    image = operator.at / "values" / "dcgmExporter" / "version"
    return chosen(monitoring.at / "collect", operator.at / "version", image)


def shared_pods_of(plan: Plan) -> Links:
    """Return the links that decide whether the exporter names pods on shared GPUs.

    Of several such pools none decides.
    """
    sharing = [links for pool in plan.parts if (links := _unnoticed(plan, pool))]
    only = choosing(sharing[0]) if len(sharing) == 1 else ()
    return (*exporter_of(plan), *chosen(plan.cluster.at / "platform"), *only)


def _unnoticed(plan: Plan, pool: Pool) -> Links:
    """Return the links of a pool's resources that the exporter's settings must name."""
    found = [unit for unit in pool.units if unit.resource in unnoticed_resources(plan)]
    return tuple(link for unit in found for link in resource_of(pool, unit))


def taints_of(plan: Plan) -> Links:
    """Return the links of all taints that keep pods off the nodes of pools."""
    written = [taint.at for pool in plan.pools for taint in pool.taints if not taint.is_default]
    texts = (taint / field for taint in written for field in ("key", "value", "effect"))
    lists = (pool.at / "taints" for pool in plan.pools)
    return chosen(*texts, *lists, plan.cluster.at / "taintPools")


def claims_of(plan: Plan) -> Links:
    """Return the links that decide whether devices are claimed. All pools do it alike (GPU566)."""
    return chosen(plan.pools[0].at / "allocation") if plan.pools else ()


def labels_of(plan: Plan, pool: Pool) -> Routes:
    """Yield the links of each label of a pool's nodes, by its key."""
    for key in pool.labels:
        yield (key,), label_of(plan, pool, key)


def label_of(plan: Plan, pool: Pool, key: str) -> Links:
    """Return the links of a label of nodes. gpuplan's own labels override those of the policy."""
    if key == MIG_CONFIG_LABEL:
        return mig_config_of(pool)
    if key == MIG_MANAGER_LABEL and isinstance(pool.sharing, DynamicMig):
        return chosen(pool.sharing.at)
    if key == POOL_LABEL:
        return named(pool)
    if key == DEVICE_PLUGIN_CONFIG_LABEL:
        is_kept = pool.labels[key] == pool.spec.names.device_plugin_config
        return (*(() if is_kept else named(pool)), *_moved_config(pool), *plugin_key_of(plan, pool))
    if key == plan.scheduler.node_pool_label:
        return (*named(pool), *chosen(plan.cluster.scheduler.at / "kind"))
    if key == DRA_PLUGIN_LABEL and pool.spec.allocation is Allocation.DRA:
        return chosen(pool.at / "allocation")
    return copied(pool.at / "nodeLabels" / key)


def mig_config_of(pool: Pool) -> Links:
    """Return the links of the value of `nvidia.com/mig.config`."""
    if not isinstance(pool.sharing, Mig):
        return (*chosen(pool.at / "gpu"), *has_mig_of(pool.gpu))
    return (*_layout_of(pool), *config_name(pool.sharing.layout))


def _moved_config(pool: Pool) -> Links:
    """Return the links of the file of moved nodes, which is another one unless one file fits both ways of MIG."""
    rollout = pool.spec.rollout
    if pool.sharing.at.path[: len(pool.at.path) + 1] != (*pool.at.path, "rollout"):
        return ()
    ways = pool.spec.sharing.mig and rollout and rollout.sharing.mig
    places = (pool.at / "sharing", pool.at / "rollout" / "sharing")
    return chosen(*(place / "mig" / "strategy" for place in places)) if ways else ()


def meaning_of(plan: Plan, pool: Pool) -> tuple[Origin, ...]:
    """Return the places of documents that define the pool's own key in the device plugin's file."""
    kept = (item.what for item in plan.retained if isinstance(item.what, RetainedDevicePluginConfig))
    return tuple(item.at / field for item in kept if item.spec.key == pool.keys.own for field in ("key", "config"))


def plugin_key_of(plan: Plan, pool: Pool) -> Links:
    """Return the links of a pool's key: a kept one, its own name, or a hash of its file."""
    is_kept = pool.spec.names.device_plugin_config is not None
    choice = (pool.at / "names" if is_kept else plan.cluster.gpu_operator.at) / "devicePluginConfig"
    if pool.keys.meaning is None and not pool.keys.by_content:
        return copied(choice) if is_kept else chosen(choice)
    return *chosen(choice), *hashed(
        (
            *chosen(*(() if pool.keys.by_content else meaning_of(plan, pool))),
            *sharing_of(pool),
            *chosen(*(shares.at for shares in (pool.shares.stated if pool.shares else ()))),
        )
    )


# --- Nodes -------------------------------------------------------------------------------------------------------


def rules_group_of(cluster: Cluster) -> Links:
    """Return the links of the API group of the NodeFeatureRules that the cluster's NFD reads.

    OpenShift's older NFD has a group of its own. On newer releases it does not matter whose NFD runs.
    """
    operator, release = cluster.gpu_operator, chosen(cluster.at / "kubernetes")
    if nfd_operator(cluster.spec.kubernetes).rules_group == UPSTREAM_RULES:
        return release if has_openshifts_nfd(cluster) else ()
    found = chosen(cluster.at / "platform")
    if cluster.spec.platform is Platform.OPENSHIFT:
        found += chosen(operator.at / "install")
        found += chosen(operator.at / "nfd") if operator.spec.install is Install.HELM else ()
    return (*found, *release) if has_openshifts_nfd(cluster) else found


def node_of(pool: Pool, name: str) -> Links:
    """Return the links of a node's name in its pool or, if the pool has a pattern, in the rollout."""
    return copied(*(_listed_names(pool).places_of((name,)) or moved_names(pool).places_of((name,))))


def names_of(pool: Pool, names: Iterable[str]) -> Routes:
    """Yield the links of some of a pool's nodes, by their index in sorted order."""
    found = sorted(names)
    moved = moved_names(pool)
    if set(found) <= set(moved.names):
        others = ordered(*moved.places)
    else:
        others = (*ordered(*_listed_names(pool).places_of(found)), *chosen(*moved.places))
    for index, name in enumerate(found):
        own = (*_listed_names(pool).places_of((name,)), *moved.places_of((name,)))
        yield (index,), (*copied(*own), *(link for link in others if link.at not in own))


class _Names(NamedTuple):
    """Names of nodes, as they are written in one place."""

    at: Origin
    names: Sequence[str]

    @property
    def places(self) -> tuple[Origin, ...]:
        return self.places_of(self.names)

    def places_of(self, names: Collection[str]) -> tuple[Origin, ...]:
        """Return the place of each of these names. If there are many it is the place of the list."""
        found = tuple(self.at / index for index, name in enumerate(self.names) if name in names)
        return (self.at,) if len(found) > _MANY else found


_MANY = 6


def _listed_names(pool: Pool) -> _Names:
    return _Names(pool.at / "nodes" / "names", pool.spec.nodes.names or ())


def moved_names(pool: Pool) -> _Names:
    """The nodes that a rollout has moved."""
    return _Names(pool.at / "rollout" / "nodes", pool.spec.rollout.nodes if pool.spec.rollout else ())


# --- GPU models --------------------------------------------------------------------------------------------------


def products_of(gpu: Gpu) -> Links:
    """Return the links of the names of a model's boards: the catalog, or the platform's own document."""
    return facts(gpu_fact(gpu, "products")) if gpu.written_at is None else copied(gpu.written_at / "products")


def ids_of(gpu: Gpu) -> Links:
    """Return the links of the PCI ids of a model's boards."""
    if gpu.written_at is None:
        return facts(gpu_fact(gpu, "pci"))
    return chosen(*(gpu.written_at / "pci" / index for index in range(len(gpu.pci))))


def has_mig_of(gpu: Gpu) -> Links:
    """Return the links that say whether a model has MIG. A model of the catalog has none."""
    return () if gpu.written_at is None else chosen(gpu.written_at / "mig")


def profile_of(gpu: Gpu, name: str) -> Links:
    """Return the links of the facts of a model's MIG profile."""
    if gpu.written_at is None:
        return facts(profile_fact(gpu, gpu.current_name(name)))
    return chosen(gpu.written_at / "mig" / "lgip", gpu.written_at / "mig" / "lgipp")


# --- Priority classes --------------------------------------------------------------------------------------------


def default_priority_of(plan: Plan) -> Links:
    """Return the links of the priority of pods that name no class."""
    for priority in plan.priority_classes:
        if priority.spec.default:
            return (*copied(priority.at / "value"), *chosen(priority.at / "default"))
    return chosen(*(priority.at / "default" for priority in plan.priority_classes))


# --- Tenants -----------------------------------------------------------------------------------------------------


def cap_of(plan: Plan, quota: Quota, namespace: str) -> Links:
    """Return the links of a quota's cap in one namespace: its split, or the way in which the scheduler caps."""
    if quota.split:
        return copied(quota.at / "split" / namespace)
    is_limit = plan.cluster.cap is not Cap.GUARANTEED and quota.spec.limit is not None
    return (*copied(quota.at / ("limit" if is_limit else "guaranteed")), *caps_of(plan))


def class_cap_of(plan: Plan, quota: Quota, namespace: str, priority_class: str) -> Links:
    """Return the links of a quota's cap for pods of a class in one namespace."""
    whole = cap_of(plan, quota, namespace)
    if priority_class not in quota.class_limits:
        return whole
    own = copied(quota.at / "classLimits" / priority_class)
    if not quota.split:
        return (*own, *choosing(whole))
    return (*multiplying(own), *multiplied(*(quota.at / "split" / name for name in quota.split)))


def caps_of(plan: Plan) -> Links:
    """Return the links of the way of capping: the policy's, or the scheduler and the version of Kubernetes."""
    if plan.cluster.scheduler.spec.cap is not None:
        return _settings(plan, "cap")
    by_version = admission_of(plan) if plan.scheduler.caps_in_queues else ()
    return (*_settings(plan, "cap"), *scheduler_of(plan), *by_version)


def limit_of(quota: Quota) -> Origin:
    """Return the place of a quota's limit, which may be its guarantee."""
    return quota.at / ("guaranteed" if quota.spec.limit is None else "limit")


def compute_of(quota: Quota, counted: Counted, field: str) -> Links:
    """Return the links of `guaranteed` or `limit` of CPU, memory or pods: fields of the quota, or of its units."""
    found = quota.find_compute(counted)
    if found is None:
        return ()
    if found.is_derived:
        units = copied(limit_of(quota) if field == "limit" else quota.at / "guaranteed")
        return (*multiplying(units), *chosen(quota.at / "pool", quota.at / "unit"), *_unit_of_node(quota, counted))
    if counted is Counted.PODS:
        return copied(found.at)
    bounds = quota.spec.cpu if counted is Counted.CPU else quota.spec.memory
    has_limit = bounds is not None and bounds.limit is not None
    return copied(found.at / (field if has_limit else "guaranteed"))


def counted_in(plan: Plan) -> Links:
    """Return the links that make CPU, memory or pods of pools counted: fields of quotas, or nodes of pools."""
    found = [(quota, part) for tenant in plan.tenants for quota in tenant.quotas for part in quota.compute]
    nodes = (quota.pool.at / "nodes" / part.counted.value for quota, part in found if part.is_derived)
    places = (place for quota, part in found for place in (part.at, quota.at / "pool"))
    return chosen(*dict.fromkeys((*places, *nodes)))


def names_of_counted(plan: Plan) -> Links:
    """Return the links of the names of pools whose CPU, memory or pods are counted."""
    pools = {quota.pool.name: quota.pool for tenant in plan.tenants for quota in tenant.quotas if quota.compute}
    return named(*pools.values())


def compute_left_of(tree: Tree, tenant: Tenant, quota: Quota, counted: Counted) -> Links:
    """Return the links of the rest of a guarantee of CPU, memory or pods. ``tree`` is the tree of what is counted."""
    found = compute_of(quota, counted, "guaranteed")
    within = [part for part in tree.nested_quotas if part.whole.at == quota.at]
    for part in within:
        between = takewhile(lambda above: above.name != tenant.name, tree.above(part.tenant))
        found += compute_of(part.quota, counted, "guaranteed")
        found += chosen(part.quota.at / "pool", part.quota.at / "unit")
        found += chosen(part.tenant.at / "parent", *(above.at / "parent" for above in between))
    return adding(found) if within else found


def _unit_of_node(quota: Quota, counted: Counted) -> Links:
    """Return the links of a unit's part of the node's CPU or memory: weights of all units, and the node's amounts."""
    pool = quota.pool
    nodes = pool.at / "nodes"
    units = (link for part in pool.parts for unit in part.units for link in per_node_of(part, unit))
    sizes = (link for part in pool.parts for unit in part.units for link in _size_of(part, unit))
    return (
        *chosen(pool.at / "followUnits"),
        *multiplied(nodes / counted.value, nodes / "reserve" / counted.value),
        *dict.fromkeys((*units, *sizes)),
    )


def _size_of(part: Pool, unit: Unit) -> Links:
    """Return the links of a unit's weight if it is a partition."""
    if not isinstance(part.sharing, Mig) or unit.name == "gpu":
        return ()
    is_sized = part.sharing.spec.strategy is not MigStrategy.SINGLE
    size = profile_of(part.gpu, unit.name) if is_sized else ()
    return (*chosen(part.sharing.at / "strategy"), *size)


def compute_cap_of(plan: Plan, quota: Quota, counted: Counted) -> Links:
    """Return the links of a quota's cap on CPU, memory or pods in a namespace."""
    found = quota.find_compute(counted)
    if found is None:
        return ()
    is_limit = plan.cluster.cap is not Cap.GUARANTEED
    links = compute_of(quota, counted, "limit" if is_limit else "guaranteed")
    if found.limit != found.guaranteed:
        links += _settings(plan, "cap")
    if quota.split:
        links = (*multiplying(links), *multiplied(*(quota.at / "split" / name for name in quota.split)))
    return links


def in_gpus(quota: Quota, amount: Links) -> Links:
    """Return the links of an amount of units in GPUs. Whole GPUs and claimed devices cost one each."""
    pool, part = quota.pool, quota.pool.part_with(quota.unit)
    found: Links = ()
    if isinstance(part.sharing, Mig) and quota.unit.name != "gpu":
        is_sized = pool.spec.allocation is not Allocation.DRA and part.sharing.spec.strategy is not MigStrategy.SINGLE
        size = profile_of(pool.gpu, quota.unit.name) if is_sized else ()
        found = (*chosen(quota.at / "unit", pool.at / "allocation", part.sharing.at / "strategy"), *size)
    if shares := part.shares_of(quota.unit):
        found += multiplied(shares.at)
    is_product = any(link.how in (How.FACT, How.PRODUCT) for link in found)
    return (*(multiplying(amount) if is_product else amount), *found)


def left_of(tree: Tree, tenant: Tenant, quota: Quota) -> Links:
    """Return the links of what remains of a guarantee after those within it are subtracted."""
    found = copied(quota.at / "guaranteed")
    for part in tree.nested_quotas:
        if part.holder is tenant and part.quota.key == quota.key:
            between = takewhile(lambda above: above is not tenant, tree.above(part.tenant))
            found += summed(part.quota.at / "guaranteed")
            found += chosen(part.quota.at / "pool", part.quota.at / "unit")
            found += chosen(part.tenant.at / "parent", *(above.at / "parent" for above in between))
    return adding(found) if len(found) > 1 else found
