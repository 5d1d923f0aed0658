"""The back end of Kueue: what it shares out, to whom, and in what order.

The tree of tenants is a tree of cohorts. Below one root, for whoever has idle units may lend them to anybody, each
parent has a cohort and each tenant with namespaces a queue.

The objects of the cluster are in the stage `scheduling`, a LocalQueue in the folder of each namespace. What they mean
was read in Kueue 0.19; `kueue.x-k8s.io/v1beta2` is served since 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpuplan.backends.base import text_of
from gpuplan.manifests import HEADER, File, Manifest, admission_policy, quantity, to_yaml
from gpuplan.manifests.bodies import given, new_object
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.dra import device_class_name
from gpuplan.planning.grants import QUEUES_POLICY, has_admission_policies
from gpuplan.planning.kueue import DEFAULT_QUEUE, ROOT_COHORT, counted_resource, counted_units
from gpuplan.planning.plan import POOL_LABEL, TENANT_LABEL, Amount, Plan, Pool, Stage, Tenant
from gpuplan.planning.preemption import evicts_within
from gpuplan.planning.schedulers.kueue import KUEUE, PRIORITY_LABEL
from gpuplan.planning.subjects import about, families
from gpuplan.planning.tree import Tree
from gpuplan.policy.models import Allocation, Training
from gpuplan.values import NamedTuple

_FOLDER: Final = Stage.SCHEDULING.value

_object = partial(new_object, "kueue.x-k8s.io/v1beta2")


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster's scheduler is Kueue."""
    if plan.scheduler is not KUEUE:
        return
    for pool, body in _flavors(plan):
        yield Manifest(_FOLDER, body, about=about(pool))
    related = {name: about(*family, *_pools(family)) for name, family in families(plan.tree).items()}
    for tenant, body in _cohorts(plan):
        everybody = about(plan.cluster, *plan.pools, *plan.tenants)
        yield Manifest(_FOLDER, body, about=related[tenant.name] if tenant else everybody)
    for tenant, body in _cluster_queues(plan):
        yield Manifest(_FOLDER, body, about=(*related[tenant.name], *about(*tenant.priority_classes)))
    for priority in plan.priority_classes:
        body = _object("WorkloadPriorityClass", priority.name, value=priority.spec.value)
        yield Manifest(_FOLDER, body, about=about(priority))
    if has_admission_policies(plan.cluster):
        yield Manifest(_FOLDER, _queues_policy(plan), about=about(plan.cluster, *plan.priority_classes))
    yield _configuration(plan)
    for tenant in filter(_has_queue, plan.tenants):
        for namespace in tenant.spec.namespaces:
            # Which ClusterQueue it names can never be changed.
            body = _object("LocalQueue", DEFAULT_QUEUE, namespace, spec={"clusterQueue": tenant.name})
            yield Manifest(f"{Stage.NAMESPACES.value}/{namespace}", body, about=about(tenant))


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
        yield pool, _object("ResourceFlavor", pool.name, spec=spec)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _cohorts(plan: Plan) -> Iterator[tuple[Tenant | None, dict[str, Any]]]:
    """The root with what is nobody's, of no tenant, and a cohort for each parent."""
    yield None, _cohort(ROOT_COHORT, None, _free_cells(plan), None)
    for tenant in plan.tenants:
        if plan.tree.is_divided(tenant):
            yield tenant, _cohort(tenant.name, _above(plan.tree, tenant), _shared_cells(plan.tree, tenant), tenant)


def _cohort(name: str, parent: str | None, cells: Cells, tenant: Tenant | None) -> dict[str, Any]:
    """Limits need a parent (`validateLimit` in `pkg/webhooks/clusterqueue_webhook.go` of Kueue); the root has none."""
    groups = _resource_groups(cells, _UNBOUNDED)
    sharing = _fair_sharing(tenant) if tenant else {}
    return _object("Cohort", name, spec=given(parentName=parent, resourceGroups=groups, **sharing))


def _cluster_queues(plan: Plan) -> Iterator[tuple[Tenant, dict[str, Any]]]:
    """A queue for each tenant that may run something that is counted."""
    tree = plan.tree
    for tenant in filter(_has_queue, plan.tenants):
        if tree.is_divided(tenant):
            yield tenant, _cluster_queue(tenant, tenant.name, _rest_cells(tree, tenant), {})
        else:
            cells = _own_cells(tree, tenant)
            yield tenant, _cluster_queue(tenant, _above(tree, tenant), cells, _fair_sharing(tenant))


def _cluster_queue(tenant: Tenant, cohort: str, cells: Cells, sharing: dict[str, Any]) -> dict[str, Any]:
    """The queue, open to the tenant's namespaces alone: anybody may make a LocalQueue that names it.

    A tenant's own idle units come first, wherever they are, then those of others, and evictions last: so it is with
    both fields of `flavorFungibility` at `TryNextFlavor`, and borrowing preferred to preemption by default. Whoever
    is within its guarantee takes it back from any borrower. A borrower evicts others only for its fair share, so that
    there is no `borrowWithinCohort`, which does not go with fair sharing.
    """
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(tenant.spec.namespaces)}
    spec = {
        "cohortName": cohort,
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": {"matchExpressions": [named]},
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority" if evicts_within(tenant) else "Never",
        },
        **sharing,
        "resourceGroups": _resource_groups(cells, _NOTHING),
    }
    return _object("ClusterQueue", tenant.name, spec=spec)


def _has_queue(tenant: Tenant) -> bool:
    return bool(tenant.spec.namespaces) and any(counted_resource(quota.pool, quota.unit) for quota in tenant.quotas)


def _above(tree: Tree, tenant: Tenant) -> str:
    parent = tree.find(tenant.parent)
    return parent.name if parent else ROOT_COHORT


def _fair_sharing(tenant: Tenant) -> dict[str, Any]:
    """Absent means a weight of 1. A parent's is its cohort's: its own pods share with its children as equals."""
    weight = tenant.surplus_weight
    return {} if weight == 1 else {"fairSharing": {"weight": quantity(weight)}}


# --- Admission ---------------------------------------------------------------------------------------------------

_FILE: Final = Path(__file__).with_name("policies.yaml")


def _queues_policy(plan: Plan) -> dict[str, Any]:
    """The policy `gpuplan-queues`; the folder of each namespace has a binding for it."""
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    values = {
        "default_priority": str(default),
        "harmless_labels": str(sorted(_harmless_labels(plan, default))),
        "priority_label": PRIORITY_LABEL,
    }
    return admission_policy(QUEUES_POLICY, read_rows(_FILE)["queues"], (), values)


def _harmless_labels(plan: Plan, most: int) -> Iterator[str]:
    """None, which Kueue takes for no class, and names of classes with no more than a priority.

    Where a class `default` exists Kueue's webhook gives it to all that names none (`ApplyDefaultWorkloadPriorityClass`
    in `pkg/controller/jobframework/defaults.go`): it is judged by its number if it is not the policy's own.
    """
    values = {"": most, "default": most} | {priority.name: priority.spec.value for priority in plan.priority_classes}
    return (name for name, value in values.items() if value <= most)


# --- Configuration -----------------------------------------------------------------------------------------------

_CONFIGURATION: Final = f"{_FOLDER}/kueue-configuration.yaml"

_FRAMEWORKS: Final = ("batch/job", "deployment", "pod")
"""Kinds that go through queues. Pods are among them, so that nothing gets a GPU by a kind that Kueue does not know."""

_UNCOUNTED: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-")
"""Prefixes of resources that no quota counts. A workload that asks for a resource that its queue does not cover is
never admitted (`BlockUndeclared`); the alternative `IgnoreUndeclared` would let GPUs through that no quota covers."""


def _configuration(plan: Plan) -> File:
    """The parts of Kueue's own Configuration that this plan depends on, which nothing applies from here.

    Without fair sharing what is idle belongs to whoever comes first; every tenant has a weight in it, and it is 1 where
    the policy says nothing.
    """
    has_gangs = any(isinstance(workload.work, Training) and workload.work.gang for workload in plan.workloads)
    body = given(
        apiVersion="config.kueue.x-k8s.io/v1beta2",
        kind="Configuration",
        fairSharing={"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        integrations={"frameworks": list(_FRAMEWORKS)},
        managedJobsNamespaceSelector={"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]},
        resources=given(excludeResourcePrefixes=list(_UNCOUNTED), deviceClassMappings=_device_class_mappings(plan)),
        waitForPodsReady=_WAIT_FOR_PODS_READY if has_gangs else None,
    )
    subjects = about(plan.cluster, *plan.pools, *plan.workloads)
    return File(_CONFIGURATION, (HEADER + text_of("kueue-configuration") + to_yaml(body)).encode(), about=subjects)


_WAIT_FOR_PODS_READY: Final = {"timeout": "10m", "recoveryTimeout": "10m", "blockAdmission": False}
"""A gang of which some pods find no place gives its quota back after a while, and comes again later."""


def _device_class_mappings(plan: Plan) -> list[dict[str, Any]]:
    """What claims of each DeviceClass count as; pools of one GPU model have one class for a unit."""
    classes = {
        counted_resource(pool, unit): device_class_name(pool, unit)
        for pool in plan.pools
        if pool.spec.allocation is Allocation.DRA
        for unit in pool.units
    }
    return [{"name": resource, "deviceClassNames": [name]} for resource, name in sorted(classes.items())]


# --- Quotas ------------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A number of units with its bounds; ``borrowing`` and ``lending`` are None where there is none.

    Kueue counts in cells, one for each flavor and resource of a queue. What the numbers mean is in
    `pkg/cache/scheduler/resource_node.go` of Kueue:

    - A queue may use its nominal quota and what it borrows. What it may lend is all of the nominal quota or, with a
      lending limit, as much as that; the rest is for itself alone.
    - A cohort has what its members lend it and a nominal quota of its own on top. Its borrowing limit bounds what all
      its members together take from above, its lending limit what others get from them.
    - A member can use only what it has a cell for, and a cohort without a cell for something lets it through unbounded.
    """

    nominal: Amount
    borrowing: Amount | None = None
    lending: Amount | None = None


Key = tuple[str, str]
"""A pool and a resource that it hands out."""

Cells = Mapping[Key, Cell]

_NOTHING = Cell(0, 0)
"""What a queue may use of a resource that it has no quota on in that pool: nothing, borrowed units included."""

_UNBOUNDED = Cell(0)
"""What a cohort says about a resource that it has no quota on: nothing."""


class _Grant(NamedTuple):
    """A tenant's quotas on one resource of one pool; ``left`` is what its children leave of the guarantee."""

    guaranteed: Amount
    limit: Amount | None
    lendable: Amount
    left: Amount

    @property
    def beyond(self) -> Amount | None:
        return None if self.limit is None else max(self.limit - self.guaranteed, 0)

    @property
    def lent(self) -> Amount | None:
        return None if self.lendable >= self.guaranteed else self.lendable


def _own_cells(tree: Tree, tenant: Tenant) -> Cells:
    """The quotas of a tenant that divides nothing."""
    return {key: Cell(grant.guaranteed, grant.beyond, grant.lent) for key, grant in _grants(tree, tenant).items()}


def _rest_cells(tree: Tree, tenant: Tenant) -> Cells:
    """What a parent has for its own pods: what it leaves to no child. The bounds are its cohort's."""
    return {key: Cell(grant.left) for key, grant in _grants(tree, tenant).items()}


def _shared_cells(tree: Tree, tenant: Tenant) -> Cells:
    """What a parent's cohort has: the bounds of its quotas and, if no pods are its own, what is left of them."""
    return {
        key: Cell(0 if tenant.spec.namespaces else grant.left, grant.beyond, grant.lent)
        for key, grant in _grants(tree, tenant).items()
    }


def _free_cells(plan: Plan) -> Cells:
    """What nobody has a guarantee on, for everybody to borrow."""
    free: dict[Key, Amount] = {}
    for total in plan.totals:
        resource = counted_resource(total.pool, total.unit)
        if resource is not None and total.free > 0:
            key = total.pool.name, resource
            free[key] = free.get(key, 0) + total.free
    return {key: Cell(amount) for key, amount in free.items()}


def _grants(tree: Tree, tenant: Tenant) -> Mapping[Key, _Grant]:
    """Units of one pool may have one resource: a partition under strategy `single`, and a GPU that stays whole."""
    found: dict[Key, _Grant] = {}
    for quota in tenant.quotas:
        resource = counted_resource(quota.pool, quota.unit)
        if resource is not None:
            key = quota.pool.name, resource
            grant = _Grant(quota.guaranteed, quota.limit, quota.lendable, tree.left_over(tenant, quota.key))
            found[key] = _add(found[key], grant) if key in found else grant
    return found


def _add(one: _Grant, other: _Grant) -> _Grant:
    return _Grant(
        one.guaranteed + other.guaranteed,
        None if one.limit is None or other.limit is None else one.limit + other.limit,
        one.lendable + other.lendable,
        one.left + other.left,
    )


def _resource_groups(cells: Cells, empty: Cell) -> list[dict[str, Any]]:
    """One group of all, or none where there is nothing to count.

    Pods may ask for two resources, and what they get of a group is of one flavor. A group is a rectangle whose flavors
    list every resource, in the same order, so that ``empty`` fills the gaps; flavors are tried in their order, which is
    that of the policy.
    """
    if not cells:
        return []
    resources = sorted({resource for _, resource in cells})
    pools = dict.fromkeys(pool for pool, _ in cells)
    return [
        {
            "coveredResources": resources,
            "flavors": [
                {
                    "name": pool,
                    "resources": [_quota(resource, cells.get((pool, resource), empty)) for resource in resources],
                }
                for pool in pools
            ],
        }
    ]


def _quota(resource: str, cell: Cell) -> dict[str, str]:
    body = {"name": resource, "nominalQuota": _whole(cell.nominal)}
    if cell.borrowing is not None:
        body["borrowingLimit"] = _whole(cell.borrowing)
    if cell.lending is not None:
        body["lendingLimit"] = _whole(cell.lending)
    return body


def _whole(amount: Amount) -> str:
    """Part of a device is none."""
    return quantity(int(amount))
