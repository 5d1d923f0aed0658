"""The back end of Kueue: what it shares out, to whom, and in what order.

The tree of tenants is a tree of cohorts. Below one root, for whoever has idle units may lend them to anybody, each
parent has a cohort and each tenant with namespaces a queue.

The objects of the cluster are in the stage `scheduling`, a LocalQueue in the folder of each namespace. What they mean
was read in Kueue 0.19; `kueue.x-k8s.io/v1beta2` is served since 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from gpuplan.compiler.admission import policy, trace_policy
from gpuplan.compiler.backends.base import Values, chart_artifacts, text_of
from gpuplan.compiler.backends.kueue.cells import Cell, Cells, free_cells, own_cells, rest_cells, shared_cells
from gpuplan.compiler.backends.kueue.tracing import trace_cells, trace_free_cells
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import HEADER, File, Manifest, quantity, to_yaml
from gpuplan.compiler.manifests.bodies import given, merged, new_object
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, Trace, below, chosen, copied, ordered
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.apis import find_chart, install_of
from gpuplan.compiler.planning.grants import QUEUES_POLICY, has_admission_policies, places_of, whose_network
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
from gpuplan.compiler.planning.plan import (
    POOL_LABEL,
    TENANT_LABEL,
    Amount,
    Counted,
    Plan,
    Pool,
    PriorityClass,
    Stage,
    Tenant,
)
from gpuplan.compiler.planning.preemption import evicts_within
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.compiler.planning.sources import (
    cluster_queue_of,
    flavor_of,
    frameworks_of,
    local_queue_of,
    named,
    namespace_of,
    resource_of,
    root_cohort_of,
    scheduler_of,
    tolerations_of,
)
from gpuplan.compiler.planning.subjects import about, families
from gpuplan.compiler.policy.models import Allocation, PriorityClassSpec

_FOLDER: Final = Stage.SCHEDULING.value

_object = partial(new_object, "kueue.x-k8s.io/v1beta2")


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster's scheduler is Kueue."""
    if plan.scheduler is not KUEUE:
        return
    of = _Traces(plan)
    for pool, body in _flavors(plan):
        yield Manifest(_FOLDER, body, about=about(pool), trace=partial(of.pool, pool, body["kind"]))
    related = {name: about(*family, *_pools(family)) for name, family in families(plan.tree).items()}
    for tenant, body in _cohorts(plan):
        everybody = about(plan.cluster, *plan.pools, *plan.tenants)
        subjects = related[tenant.name] if tenant else everybody
        yield Manifest(_FOLDER, body, about=subjects, trace=partial(of.cohort, tenant) if tenant else of.root)
    for tenant, body in _cluster_queues(plan):
        subjects = (*related[tenant.name], *about(*tenant.priority_classes))
        yield Manifest(_FOLDER, body, about=subjects, trace=partial(of.cluster_queue, tenant))
    for priority in plan.priority_classes:
        body = _object("WorkloadPriorityClass", priority.name, value=priority.spec.value)
        yield Manifest(_FOLDER, body, about=about(priority), trace=partial(of.priority_class, priority))
    if has_admission_policies(plan.cluster):
        subjects = about(plan.cluster, *plan.priority_classes)
        trace = partial(trace_policy, plan, QUEUES_POLICY)
        yield Manifest(_FOLDER, policy(plan, QUEUES_POLICY).body, about=subjects, trace=trace)
    if find_chart(plan.cluster):
        yield from chart_artifacts(plan, helm_values, decided_routes)
    else:
        yield _configuration(plan, of.configuration)
    for tenant in filter(has_queue, plan.tenants):
        for namespace in tenant.spec.namespaces:
            for name in local_queues(tenant):
                # Which ClusterQueue it names can never be changed.
                body = _object("LocalQueue", name, namespace, spec={"clusterQueue": cluster_queue(tenant)})
                trace = partial(of.local_queue, tenant, namespace, name)
                yield Manifest(f"{Stage.NAMESPACES.value}/{namespace}", body, about=about(tenant), trace=trace)


def _pools(tenants: Iterable[Tenant]) -> Iterator[Pool]:
    return (quota.pool for tenant in tenants for quota in tenant.quotas)


# --- Pools -------------------------------------------------------------------------------------------------------


def _flavors(plan: Plan) -> Iterator[tuple[Pool, dict[str, Any]]]:
    """A flavor for each pool that hands out something that can be counted, and its Topology.

    The levels of a Topology can never be changed. Kueue adds a flavor's labels to the node selector of pods that it
    admits, and the tolerations to theirs. Taints are not named as the flavor's own: Kueue would admit only pods that
    bring tolerations themselves.
    """
    for pool in filter(counted_units, plan.pools):
        if pool.spec.topology:
            yield (
                pool,
                _object("Topology", pool.name, spec={"levels": [{"nodeLabel": key} for key in pool.spec.topology]}),
            )
        spec = given(
            nodeLabels={POOL_LABEL: pool.name},
            tolerations=pool.tolerations,
            topologyName=pool.name if pool.spec.topology else None,
        )
        yield pool, _object("ResourceFlavor", flavor_name(pool), spec=spec)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _cohorts(plan: Plan) -> Iterator[tuple[Tenant | None, dict[str, Any]]]:
    """The root with what is nobody's, of no tenant, and a cohort for each parent."""
    yield None, _cohort(plan, root_cohort(plan.cluster), None, free_cells(plan), None)
    for tenant in plan.tenants:
        if plan.tree.is_divided(tenant):
            yield tenant, _cohort(plan, tenant.name, _above(plan, tenant), shared_cells(plan, tenant), tenant)


def _cohort(plan: Plan, name: str, parent: str | None, cells: Cells, tenant: Tenant | None) -> dict[str, Any]:
    """Limits need a parent (`validateLimit` in `pkg/webhooks/clusterqueue_webhook.go` of Kueue); the root has none."""
    groups = _resource_groups(plan, cells, _UNBOUNDED)
    sharing = _fair_sharing(tenant) if tenant else {}
    return _object("Cohort", name, spec=given(parentName=parent, resourceGroups=groups, **sharing))


def _cluster_queues(plan: Plan) -> Iterator[tuple[Tenant, dict[str, Any]]]:
    """A queue for each tenant that may run something that is counted."""
    tree = plan.tree
    for tenant in filter(has_queue, plan.tenants):
        if tree.is_divided(tenant):
            yield tenant, _cluster_queue(plan, tenant, tenant.name, rest_cells(plan, tenant), {})
        else:
            cells = own_cells(plan, tenant)
            yield tenant, _cluster_queue(plan, tenant, _above(plan, tenant), cells, _fair_sharing(tenant))


def _cluster_queue(plan: Plan, tenant: Tenant, cohort: str, cells: Cells, sharing: dict[str, Any]) -> dict[str, Any]:
    """The queue, open to the tenant's namespaces alone: anybody may make a LocalQueue that names it.

    A tenant's own idle units come first, wherever they are, then those of others, and evictions last: so it is with
    both fields of `flavorFungibility` at `TryNextFlavor`, and borrowing preferred to preemption by default. Whoever
    is within its guarantee takes it back from any borrower. A borrower evicts others only for its fair share, so that
    there is no `borrowWithinCohort`, which does not go with fair sharing.
    """
    spec = {
        "cohortName": cohort,
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": _selector(tenant),
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority" if evicts_within(tenant) else "Never",
        },
        **sharing,
        "resourceGroups": _resource_groups(plan, cells, _NOTHING),
    }
    return _object("ClusterQueue", cluster_queue(tenant), spec=spec)


def _selector(tenant: Tenant) -> dict[str, Any]:
    """By names, which nobody can change; by the label that those carry, too, where others may carry it."""
    if tenant.spec.labelled_namespaces:
        return {"matchLabels": {TENANT_LABEL: tenant.name}}
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(tenant.spec.namespaces)}
    return {"matchExpressions": [named]}


def _above(plan: Plan, tenant: Tenant) -> str:
    parent = plan.tree.find(tenant.parent)
    return parent.name if parent else root_cohort(plan.cluster)


def _fair_sharing(tenant: Tenant) -> dict[str, Any]:
    """Absent means a weight of 1. A parent's is its cohort's: its own pods share with its children as equals."""
    weight = tenant.surplus_weight
    return {} if weight == 1 else {"fairSharing": {"weight": quantity(weight)}}


# --- Configuration -----------------------------------------------------------------------------------------------

_CONFIGURATION: Final = f"{_FOLDER}/kueue-configuration.yaml"


def _configuration(plan: Plan, trace: Trace) -> File:
    """The parts of Kueue's own Configuration that this plan depends on, which nothing applies from here."""
    subjects = (*about(plan.cluster, *plan.pools, *plan.workloads), *whose_network(plan))
    told = text_of("kueue-configuration") + _told_of_compute(plan)
    data = (HEADER + told + to_yaml(configuration(plan))).encode()
    return File(_CONFIGURATION, data, about=subjects, trace=trace)


def helm_values(plan: Plan) -> Values:
    """The values of Kueue's chart: its own, under the policy's, under what follows from the plan.

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
    """Where the values come from that follow from the plan."""
    if monitoring := plan.cluster.monitoring:
        yield ("enablePrometheus",), chosen(monitoring.at)
    yield from below(("managerConfig", "controllerManagerConfigYaml"), _Traces(plan).configuration())


def _told_of_compute(plan: Plan) -> str:
    counted = [item.value for item in plan.compute_trees if item.value in UNCOUNTED]
    return text_of("kueue-configuration-compute", counted=" and ".join(counted)) if counted else ""


# --- Quotas ------------------------------------------------------------------------------------------------------


_NOTHING = Cell(0, 0)
"""What a queue may use of a resource that it has no quota on in that pool: nothing, borrowed units included."""

_UNBOUNDED = Cell(0)
"""What a cohort says about a resource that it has no quota on: nothing."""


def _resource_groups(plan: Plan, cells: Cells, empty: Cell) -> list[dict[str, Any]]:
    """One group of all, or none where there is nothing to count.

    Pods may ask for two resources, and what they get of a group is of one flavor. A group is a rectangle whose flavors
    list every resource, in the same order, so that ``empty`` fills the gaps; flavors are tried in their order, which is
    that of the policy.
    """
    if not cells:
        return []
    resources = sorted({resource for _, resource in cells})
    pools = dict.fromkeys(pool for pool, _ in cells)
    flavors = {pool.name: flavor_name(pool) for pool in plan.pools}
    return [
        {
            "coveredResources": resources,
            "flavors": [
                {
                    "name": flavors[pool],
                    "resources": [_quota(resource, cells.get((pool, resource), empty)) for resource in resources],
                }
                for pool in pools
            ],
        }
    ]


def _quota(resource: str, cell: Cell) -> dict[str, str]:
    body = {"name": resource, "nominalQuota": _amount(resource, cell.nominal)}
    if cell.borrowing is not None:
        body["borrowingLimit"] = _amount(resource, cell.borrowing)
    if cell.lending is not None:
        body["lendingLimit"] = _amount(resource, cell.lending)
    return body


def _amount(resource: str, amount: Amount) -> str:
    """Part of a device is none."""
    return amount_text(Counted(resource), int(amount)) if resource in _COUNTED else quantity(int(amount))


_COUNTED: Final = frozenset(counted.value for counted in Counted)


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Where the objects of one cluster come from."""

    plan: Plan

    def pool(self, pool: Pool, kind: str) -> Routes:
        """A Topology, or a ResourceFlavor."""
        yield (), scheduler_of(self.plan)
        yield ("metadata", "name"), named(pool) if kind == "Topology" else flavor_of(pool)
        for index in range(len(pool.spec.topology)):
            yield ("spec", "levels", index, "nodeLabel"), copied(pool.at / "topology" / index)
        yield ("spec", "nodeLabels"), named(pool)
        yield ("spec", "topologyName"), named(pool)
        yield from below(("spec", "tolerations"), tolerations_of(pool))

    def root(self) -> Routes:
        yield (), scheduler_of(self.plan)
        yield ("metadata", "name"), root_cohort_of(self.plan)
        yield from trace_free_cells(self.plan)

    def cohort(self, tenant: Tenant) -> Routes:
        yield (), (*scheduler_of(self.plan), *self._division(tenant))
        yield ("metadata", "name"), named(tenant)
        yield ("spec", "parentName"), self._above(tenant)
        yield ("spec", "fairSharing", "weight"), copied(tenant.at / "surplus" / "weight")
        cells = shared_cells(self.plan, tenant)
        yield from trace_cells(self.plan, tenant, cells, has_rest=not tenant.has_work)

    def cluster_queue(self, tenant: Tenant) -> Routes:
        tree = self.plan.tree
        is_divided = tree.is_divided(tenant)
        yield (), scheduler_of(self.plan)
        yield ("metadata", "name"), cluster_queue_of(tenant)
        above = (*named(tenant), *self._division(tenant)) if is_divided else self._above(tenant)
        yield ("spec", "cohortName"), above
        yield ("spec", "namespaceSelector"), chosen(tenant.at / "labelledNamespaces")
        yield ("spec", "namespaceSelector", "matchLabels"), named(tenant)
        values = ("spec", "namespaceSelector", "matchExpressions", 0, "values")
        by_name = () if tenant.spec.labelled_namespaces else sorted(tenant.spec.namespaces)
        places = [namespace_of(tenant, name) for name in by_name]
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
        yield (), scheduler_of(self.plan)
        yield ("metadata", "name"), named(priority)
        yield ("value",), copied(priority.at / "value")

    def configuration(self) -> Routes:
        yield (), (*scheduler_of(self.plan), *install_of(self.plan))
        yield from added_routes(self.plan)
        if self.plan.cluster.monitoring:
            yield ("metrics",), chosen(self.plan.cluster.monitoring.at)
        yield ("integrations", "frameworks"), frameworks_of(self.plan)
        yield ("resources", "excludeResourcePrefixes"), self._counts_compute()
        for index, resource in enumerate(uncounted(self.plan)):
            yield ("resources", "excludeResourcePrefixes", index), copied(*places_of(self.plan, resource))
        yield ("waitForPodsReady",), chosen(*(found.gang_at for found in gangs(self.plan)))
        claimed = [pool for pool in self.plan.pools if pool.spec.allocation is Allocation.DRA]
        for index, mapping in enumerate(device_class_mappings(self.plan)):
            for pool in claimed:
                for unit in pool.units:
                    if counted_resource(pool, unit) == mapping["name"]:
                        yield ("resources", "deviceClassMappings", index), resource_of(pool, unit)

    def _counts_compute(self) -> Links:
        """What has CPU or memory counted, where it is one thing alone."""
        found = [
            quota.compute[0].at
            for tenant in self.plan.tenants
            for quota in tenant.quotas
            if any(item.counted.value in UNCOUNTED for item in quota.compute)
        ]
        return chosen(*found) if len(set(map(str, found))) == 1 else ()

    def local_queue(self, tenant: Tenant, namespace: str, name: str) -> Routes:
        yield (), scheduler_of(self.plan)
        if name == local_queue(tenant):
            yield ("metadata", "name"), local_queue_of(tenant)
        yield ("metadata", "namespace"), copied(namespace_of(tenant, namespace))
        yield ("spec", "clusterQueue"), cluster_queue_of(tenant)

    def _above(self, tenant: Tenant) -> Links:
        parent = self.plan.tree.find(tenant.parent)
        return (*named(parent), *copied(tenant.at / "parent")) if parent else root_cohort_of(self.plan)

    def _division(self, tenant: Tenant) -> Links:
        """Why others are part of a tenant; where several are, none alone decides that."""
        children = self.plan.tree.children(tenant)
        return chosen(children[0].at / "parent") if len(children) == 1 else ()

    def _deciding_classes(self, tenant: Tenant) -> Iterator[Origin]:
        """What of a tenant's classes, if it were otherwise, would change whether its queue evicts."""
        classes = tenant.priority_classes
        for index, found in enumerate(classes):
            spec = found.spec
            others: dict[str, Sequence[PriorityClassSpec]] = {
                "preempts": [spec.model_copy(update={"preempts": not spec.preempts})],
                "preemptible": [spec.model_copy(update={"preemptible": not spec.preemptible})],
                "value": [spec.model_copy(update={"value": value}) for value in (-_FAR, _FAR)],
            }
            for field, specs in others.items():
                if any(_evicts_with(tenant, index, found._replace(spec=other)) for other in specs):
                    yield found.at / field
            if any(_evicts_with(tenant, index, other) for other in self.plan.priority_classes if other not in classes):
                yield tenant.at / "priorityClasses" / index


_FAR: Final = 1_000_000_000


def _evicts_with(tenant: Tenant, index: int, other: PriorityClass) -> bool:
    """Whether a queue would not evict as it does, if one of the classes were another."""
    classes = (*tenant.priority_classes[:index], other, *tenant.priority_classes[index + 1 :])
    return evicts_within(tenant._replace(priority_classes=classes)) != evicts_within(tenant)
