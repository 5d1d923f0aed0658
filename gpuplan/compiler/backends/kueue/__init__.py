"""The back end of Kueue: the quotas that it shares out, to whom, and in what order.

The tree of tenants is a tree of cohorts. Below one root, for whoever has idle units may lend them to anybody, each
parent has a cohort and each tenant with namespaces a queue.

The objects of the cluster are in the stage `scheduling`, a LocalQueue in the folder of each namespace. What they mean
was read in Kueue 0.19; `kueue.x-k8s.io/v1beta2` is served since 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from gpuplan.compiler.backends.base import Values, chart_artifacts, text_of
from gpuplan.compiler.backends.kueue.cells import Cell, Cells, free_cells, own_cells, rest_cells, shared_cells
from gpuplan.compiler.backends.kueue.tracing import trace_cells, trace_free_cells
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import HEADER, File, Manifest, quantity, to_yaml
from gpuplan.compiler.manifests.bodies import given, merged, new_object
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, below, chosen, copied, ordered
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.apis import find_chart, install_of
from gpuplan.compiler.planning.grants import places_of, whose_network
from gpuplan.compiler.planning.kueue import (
    UNCOUNTED,
    added_routes,
    cluster_queue,
    configuration,
    counted_resource,
    counted_units,
    device_class_mappings,
    flavor_name,
    gangs,
    has_queue,
    local_queue,
    local_queues,
    root_cohort,
    uncounted,
)
from gpuplan.compiler.planning.plan import POOL_LABEL, TENANT_LABEL, Counted, Plan, Pool, PriorityClass, Stage, Tenant
from gpuplan.compiler.planning.preemption import evicts_within
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.compiler.planning.sources import named
from gpuplan.compiler.planning.subjects import about, families
from gpuplan.compiler.policy.models import Allocation, PriorityClassSpec

_FOLDER: Final = Stage.SCHEDULING.value

_object = partial(new_object, "kueue.x-k8s.io/v1beta2")


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Yield the objects of Kueue, if that is the cluster's scheduler."""
    if plan.scheduler is not KUEUE:
        return
    of = _Traces(plan)
    for pool in filter(counted_units, plan.pools):
        for body in _flavor(pool):
            yield Manifest(_FOLDER, body, about=about(pool), trace=partial(of.pool, pool, body["kind"]))
    related = {
        name: about(*family, *(quota.pool for tenant in family for quota in tenant.quotas))
        for name, family in families(plan.tree).items()
    }
    # The root has what is nobody's, and each parent a cohort below it.
    root = _cohort(plan, root_cohort(plan.cluster), None, free_cells(plan), None)
    yield Manifest(_FOLDER, root, about=about(plan.cluster, *plan.pools, *plan.tenants), trace=of.root)
    for tenant in filter(plan.tree.is_divided, plan.tenants):
        body = _cohort(plan, tenant.name, _above(plan, tenant), shared_cells(plan, tenant), tenant)
        yield Manifest(_FOLDER, body, about=related[tenant.name], trace=partial(of.cohort, tenant))
    for tenant in filter(has_queue, plan.tenants):
        body = _cluster_queue(plan, tenant)
        subjects = (*related[tenant.name], *about(*tenant.priority_classes))
        yield Manifest(_FOLDER, body, about=subjects, trace=partial(of.cluster_queue, tenant))
    for priority in plan.priority_classes:
        body = _object("WorkloadPriorityClass", priority.name, value=priority.spec.value)
        yield Manifest(_FOLDER, body, about=about(priority), trace=partial(of.priority_class, priority))
    yield from chart_artifacts(plan, helm_values, decided_routes)
    if not find_chart(plan.cluster):
        # The parts of Kueue's own Configuration that this plan depends on; nothing applies them from here.
        subjects = (*about(plan.cluster, *plan.pools, *plan.workloads), *whose_network(plan))
        counted = " and ".join(compute.value for compute in plan.compute_trees if compute.value in UNCOUNTED)
        more = text_of("kueue-configuration-compute", counted=counted) if counted else ""
        data = (HEADER + text_of("kueue-configuration") + more + to_yaml(configuration(plan))).encode()
        yield File(f"{_FOLDER}/kueue-configuration.yaml", data, about=subjects, trace=of.configuration)
    for tenant in filter(has_queue, plan.tenants):
        for namespace in tenant.spec.namespaces:
            for name in local_queues(tenant):
                # Which ClusterQueue it names can never be changed.
                body = _object("LocalQueue", name, namespace, spec={"clusterQueue": cluster_queue(tenant)})
                trace = partial(of.local_queue, tenant, namespace, name)
                yield Manifest(f"{Stage.NAMESPACES.value}/{namespace}", body, about=about(tenant), trace=trace)


# --- Pools -------------------------------------------------------------------------------------------------------


def _flavor(pool: Pool) -> Iterator[dict[str, Any]]:
    """Yield a flavor for a pool that hands out something that can be counted, and its Topology.

    The levels of a Topology can never be changed. Kueue adds a flavor's labels to the node selector of pods that it
    admits, and the tolerations to theirs. Taints are not named as the flavor's own: Kueue would admit only pods that
    bring tolerations themselves.
    """
    if pool.spec.topology:
        yield _object("Topology", pool.name, spec={"levels": [{"nodeLabel": key} for key in pool.spec.topology]})
    spec = given(
        nodeLabels={POOL_LABEL: pool.name},
        tolerations=pool.tolerations,
        topologyName=pool.name if pool.spec.topology else None,
    )
    yield _object("ResourceFlavor", flavor_name(pool), spec=spec)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _cohort(plan: Plan, name: str, parent: str | None, cells: Cells, tenant: Tenant | None) -> dict[str, Any]:
    """Return a cohort.

    Limits need a parent (`validateLimit` in `pkg/webhooks/clusterqueue_webhook.go` of Kueue); the root has none.
    """
    groups = _resource_groups(plan, cells, _UNBOUNDED)
    sharing = _fair_sharing(tenant) if tenant else {}
    return _object("Cohort", name, spec=given(parentName=parent, resourceGroups=groups, **sharing))


def _cluster_queue(plan: Plan, tenant: Tenant) -> dict[str, Any]:
    """Return the queue, open to the tenant's namespaces alone: anybody may make a LocalQueue that names it.

    A tenant's own idle units come first, wherever they are, then those of others, and evictions last: so it is with
    both fields of `flavorFungibility` at `TryNextFlavor`, and borrowing preferred to preemption by default. Whoever
    is within its guarantee takes it back from any borrower. A borrower evicts others only for its fair share, so that
    there is no `borrowWithinCohort`, which does not go with fair sharing.

    Namespaces are chosen by name, which nobody can change, or by a label if others may carry that. The queue of a
    parent has what it leaves to no child; its cohort has the weight.
    """
    is_divided = plan.tree.is_divided(tenant)
    cells = rest_cells(plan, tenant) if is_divided else own_cells(plan, tenant)
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(tenant.spec.namespaces)}
    labelled = {"matchLabels": {TENANT_LABEL: tenant.name}}
    spec = {
        "cohortName": tenant.name if is_divided else _above(plan, tenant),
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": labelled if tenant.spec.labelled_namespaces else {"matchExpressions": [named]},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority" if evicts_within(tenant) else "Never",
        },
        **({} if is_divided else _fair_sharing(tenant)),
        "resourceGroups": _resource_groups(plan, cells, _NOTHING),
    }
    return _object("ClusterQueue", cluster_queue(tenant), spec=spec)


def _above(plan: Plan, tenant: Tenant) -> str:
    parent = plan.tree.find(tenant.parent)
    return parent.name if parent else root_cohort(plan.cluster)


def _fair_sharing(tenant: Tenant) -> dict[str, Any]:
    """Return the weight; absent means 1. A parent's is its cohort's: its own pods share with its children as equals."""
    weight = tenant.surplus_weight
    return {} if weight == 1 else {"fairSharing": {"weight": quantity(weight)}}


# --- Configuration -----------------------------------------------------------------------------------------------


def helm_values(plan: Plan) -> Values:
    """Return the values of Kueue's chart: its own, under the policy's, under what follows from the plan.

    A Configuration in the values replaces that of the chart as a whole (`templates/manager/manager-config.yaml` there),
    and what Kueue assumes where nothing is said is what the chart says, but for the workers of its controllers and,
    before 0.19, its requests a second. The pod of the controller has a digest of it, so that a change restarts it.
    """
    chart, scheduler = find_chart(plan.cluster), plan.cluster.scheduler
    if chart is None:
        return {}
    text = to_yaml(merged(chart.facts.defaults, configuration(plan)))
    watched = {"enablePrometheus": True} if plan.cluster.monitoring else {}
    return merged(merged(watched, scheduler.spec.values), {"managerConfig": {"controllerManagerConfigYaml": text}})


def decided_routes(plan: Plan) -> Routes:
    """Yield the routes of the values that follow from the plan."""
    if monitoring := plan.cluster.monitoring:
        yield ("enablePrometheus",), chosen(monitoring.at)
    yield from below(("managerConfig", "controllerManagerConfigYaml"), _Traces(plan).configuration())


# --- Quotas ------------------------------------------------------------------------------------------------------


_NOTHING = Cell(0, 0)
"""The cell of a resource that a queue has no quota on in a pool: nothing, borrowed units included."""

_UNBOUNDED = Cell(0)
"""The cell of a resource that a cohort has no quota on: it says nothing."""


def _resource_groups(plan: Plan, cells: Cells, empty: Cell) -> list[dict[str, Any]]:
    """Return one group of all, or none if there is nothing to count.

    Pods may ask for two resources, and what they get of a group is of one flavor. A group is a rectangle whose flavors
    list every resource, in the same order, so that ``empty`` fills the gaps; flavors are tried in their order, which is
    that of the policy.
    """
    if not cells:
        return []
    resources = sorted({resource for _, resource in cells})
    pools = dict.fromkeys(pool for pool, _ in cells)
    names = {pool.name: flavor_name(pool) for pool in plan.pools}
    flavors = []
    for pool in pools:
        quotas = []
        for resource in resources:
            cell = cells.get((pool, resource), empty)
            amounts = {"nominalQuota": cell.nominal, "borrowingLimit": cell.borrowing, "lendingLimit": cell.lending}
            texts = {
                field: amount_text(Counted(resource), int(amount)) if resource in _COUNTED else quantity(int(amount))
                for field, amount in amounts.items()
                if amount is not None  # part of a device is none
            }
            quotas.append({"name": resource, **texts})
        flavors.append({"name": names[pool], "resources": quotas})
    return [{"coveredResources": resources, "flavors": flavors}]


_COUNTED: Final = frozenset(counted.value for counted in Counted)


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Routes of the objects of one cluster."""

    plan: Plan

    def pool(self, pool: Pool, kind: str) -> Routes:
        """Yield the routes of a Topology, or of a ResourceFlavor."""
        yield (), sources.scheduler_of(self.plan)
        yield ("metadata", "name"), named(pool) if kind == "Topology" else sources.flavor_of(pool)
        for index in range(len(pool.spec.topology)):
            yield ("spec", "levels", index, "nodeLabel"), copied(pool.at / "topology" / index)
        yield ("spec", "nodeLabels"), named(pool)
        yield ("spec", "topologyName"), named(pool)
        yield from below(("spec", "tolerations"), sources.tolerations_of(pool))

    def root(self) -> Routes:
        yield (), sources.scheduler_of(self.plan)
        yield ("metadata", "name"), sources.root_cohort_of(self.plan)
        yield from trace_free_cells(self.plan)

    def cohort(self, tenant: Tenant) -> Routes:
        yield (), (*sources.scheduler_of(self.plan), *self._division(tenant))
        yield ("metadata", "name"), named(tenant)
        yield ("spec", "parentName"), self._above(tenant)
        yield ("spec", "fairSharing", "weight"), copied(tenant.at / "surplus" / "weight")
        cells = shared_cells(self.plan, tenant)
        yield from trace_cells(self.plan, tenant, cells, has_rest=not tenant.has_work)

    def cluster_queue(self, tenant: Tenant) -> Routes:
        tree = self.plan.tree
        is_divided = tree.is_divided(tenant)
        yield (), sources.scheduler_of(self.plan)
        yield ("metadata", "name"), sources.cluster_queue_of(tenant)
        above = (*named(tenant), *self._division(tenant)) if is_divided else self._above(tenant)
        yield ("spec", "cohortName"), above
        yield ("spec", "namespaceSelector"), chosen(tenant.at / "labelledNamespaces")
        yield ("spec", "namespaceSelector", "matchLabels"), named(tenant)
        values = ("spec", "namespaceSelector", "matchExpressions", 0, "values")
        by_name = () if tenant.spec.labelled_namespaces else sorted(tenant.spec.namespaces)
        places = [sources.namespace_of(tenant, name) for name in by_name]
        for index, place in enumerate(places):
            yield (*values, index), copied(place)
        if len(places) > 1:
            yield (*values, ANY), ordered(*places)
        yield ("spec", "preemption", "withinClusterQueue"), chosen(*self._deciding_classes(tenant))
        if not is_divided:
            yield ("spec", "fairSharing", "weight"), copied(tenant.at / "surplus" / "weight")
        cells = rest_cells(self.plan, tenant) if is_divided else own_cells(self.plan, tenant)
        yield from trace_cells(self.plan, tenant, cells)

    def priority_class(self, priority: PriorityClass) -> Routes:
        yield (), sources.scheduler_of(self.plan)
        yield ("metadata", "name"), named(priority)
        yield ("value",), copied(priority.at / "value")

    def configuration(self) -> Routes:
        yield (), (*sources.scheduler_of(self.plan), *install_of(self.plan))
        yield from added_routes(self.plan)
        if self.plan.cluster.monitoring:
            yield ("metrics",), chosen(self.plan.cluster.monitoring.at)
        yield ("integrations", "frameworks"), sources.frameworks_of(self.plan)
        counting = [
            quota.compute[0].at
            for tenant in self.plan.tenants
            for quota in tenant.quotas
            if any(compute.counted.value in UNCOUNTED for compute in quota.compute)
        ]
        is_one = len(set(map(str, counting))) == 1  # of several none alone decides that CPU or memory is counted
        yield ("resources", "excludeResourcePrefixes"), chosen(*counting) if is_one else ()
        for index, resource in enumerate(uncounted(self.plan)):
            yield ("resources", "excludeResourcePrefixes", index), copied(*places_of(self.plan, resource))
        yield ("waitForPodsReady",), chosen(*(found.gang_at for found in gangs(self.plan)))
        claimed = [pool for pool in self.plan.pools if pool.spec.allocation is Allocation.DRA]
        for index, mapping in enumerate(device_class_mappings(self.plan)):
            for pool in claimed:
                for unit in pool.units:
                    if counted_resource(pool, unit) == mapping["name"]:
                        yield ("resources", "deviceClassMappings", index), sources.resource_of(pool, unit)

    def local_queue(self, tenant: Tenant, namespace: str, name: str) -> Routes:
        yield (), sources.scheduler_of(self.plan)
        if name == local_queue(tenant):
            yield ("metadata", "name"), sources.local_queue_of(tenant)
        yield ("metadata", "namespace"), copied(sources.namespace_of(tenant, namespace))
        yield ("spec", "clusterQueue"), sources.cluster_queue_of(tenant)

    def _above(self, tenant: Tenant) -> Links:
        parent = self.plan.tree.find(tenant.parent)
        return (*named(parent), *copied(tenant.at / "parent")) if parent else sources.root_cohort_of(self.plan)

    def _division(self, tenant: Tenant) -> Links:
        """Return why others are part of a tenant; of several none alone decides that."""
        children = self.plan.tree.children(tenant)
        return chosen(children[0].at / "parent") if len(children) == 1 else ()

    def _deciding_classes(self, tenant: Tenant) -> Iterator[Origin]:
        """Yield the places of a tenant's classes that, were they otherwise, would change whether its queue evicts."""
        classes = tenant.priority_classes
        for index, priority in enumerate(classes):
            spec = priority.spec
            others: dict[str, Sequence[PriorityClassSpec]] = {
                "preempts": [spec.model_copy(update={"preempts": not spec.preempts})],
                "preemptible": [spec.model_copy(update={"preemptible": not spec.preemptible})],
                "value": [spec.model_copy(update={"value": value}) for value in (-_FAR, _FAR)],
            }
            for field, specs in others.items():
                if any(_evicts_with(tenant, index, priority._replace(spec=other)) for other in specs):
                    yield priority.at / field
            if any(_evicts_with(tenant, index, other) for other in self.plan.priority_classes if other not in classes):
                yield tenant.at / "priorityClasses" / index


_FAR: Final = 1_000_000_000


def _evicts_with(tenant: Tenant, index: int, other: PriorityClass) -> bool:
    """Whether a queue would not evict as it does, if one of the classes were another."""
    classes = (*tenant.priority_classes[:index], other, *tenant.priority_classes[index + 1 :])
    return evicts_within(tenant._replace(priority_classes=classes)) != evicts_within(tenant)
