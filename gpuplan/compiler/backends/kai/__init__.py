"""The back end of KAI-Scheduler: a shard for each pool, and in it a tree of queues for the tenants.

All objects are the cluster's. Queues are as many as tenants times pools, and nothing joins those of two pools: they are
in a folder for each pool, all else is in the stage `scheduling`. What they mean was read in KAI-Scheduler 0.17.

Beside them stand the ResourceQuotas, which cap each kind of unit, and the admission policy that ties namespaces to
queues: a queue knows no namespaces, and no rights are needed to name one
(https://github.com/kai-scheduler/KAI-Scheduler/issues/2068).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction as Ratio
from functools import partial
from math import inf, nextafter
from typing import Any, Final

from gpuplan.compiler.backends.base import Values, chart_artifacts
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.manifests.bodies import given, merged, new_object
from gpuplan.compiler.manifests.provenance import Links, Routes, adding, below, chosen, copied, summed
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.amounts import as_number
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.kai import Queue, queues
from gpuplan.compiler.planning.plan import Counted, Fraction, Plan, Pool, Quota, Stage, Tenant
from gpuplan.compiler.planning.schedulers.kai import KAI, NODE_POOL_LABEL
from gpuplan.compiler.planning.subjects import about, families
from gpuplan.compiler.policy.models import Platform

_FOLDER: Final = Stage.SCHEDULING.value


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Yield the objects of KAI-Scheduler, if that is the cluster's scheduler."""
    if plan.scheduler is not KAI:
        return
    yield from chart_artifacts(plan, helm_values, decided_routes)
    yield from objects(plan)


def objects(plan: Plan) -> Iterator[Manifest]:
    """Yield shards, queues and what ties namespaces to them."""
    for pool in plan.pools:
        if pool.spec.topology:
            # The levels of a Topology cannot be changed, only replaced.
            levels = [{"nodeLabel": label} for label in pool.spec.topology]
            topology = new_object("kai.scheduler/v1alpha1", "Topology", pool.name, spec={"levels": levels})
            yield Manifest(_FOLDER, topology, about=about(pool), trace=partial(_trace_pool, plan, pool))
        yield Manifest(_FOLDER, _shard(pool), about=about(pool), trace=partial(_trace_pool, plan, pool))
    related = families(plan.tree)
    for queue in queues(plan):
        subjects = about(queue.pool, *related[queue.tenant.name])
        folder, trace = f"{Stage.QUEUES.value}/{queue.pool.name}", partial(_trace_queue, plan, queue)
        yield Manifest(folder, _queue(queue), order=queue.depth, about=subjects, trace=trace)


# --- The chart ---------------------------------------------------------------------------------------------------

_RENDERS_CONFIG: Final = (0, 17)
"""The first release whose chart can have its Config among the objects. A hook writes it before, unwatched."""


def helm_values(plan: Plan) -> Values:
    """Return the values of KAI-Scheduler's chart: the policy's, under what follows from the plan.

    Fractions are handed out where it is told to share GPUs. Its Config is an object of the chart, since what a hook
    writes is neither watched nor mended (`docs/gitops/README.md` there). OpenShift it finds by itself only where Helm
    can ask the cluster; earlier releases cannot be told.
    """
    chart = find_chart(plan.cluster)
    shares = any(isinstance(pool.sharing, Fraction) for pool in plan.pools)
    renders = (parse_version(plan.cluster.scheduler.version) or ()) >= _RENDERS_CONFIG
    asks = chart is not None and chart.facts.asks_for_openshift(chart.version)
    is_openshift = plan.cluster.spec.platform is Platform.OPENSHIFT and not asks
    decided = given(
        openshift=is_openshift or None,
        kaiConfig={"render": True} if renders else None,
        kaiConfigDeployer={"enabled": False} if renders else None,
        **{"global": {"gpuSharing": True} if shares else None},
    )
    return merged(plan.cluster.scheduler.spec.values, decided)


def decided_routes(plan: Plan) -> Routes:
    """Yield the routes of the values that follow from the plan."""
    yield ("openshift",), chosen(plan.cluster.at / "platform", plan.cluster.scheduler.at / "version")
    for key in ("kaiConfig", "kaiConfigDeployer"):
        yield (key,), chosen(plan.cluster.scheduler.at / "version")
    divided = (pool.at / "sharing" for pool in plan.pools if isinstance(pool.sharing, Fraction))
    yield ("global", "gpuSharing"), chosen(*divided)


# --- Pools -------------------------------------------------------------------------------------------------------


def _shard(pool: Pool) -> dict[str, Any]:
    """Return a scheduler of its own for the nodes of a pool.

    Shards do not see each other's nodes, so that nothing is lent from one pool to another. Nodes, queues and work find
    their shard by the label `kai.scheduler/node-pool` (`GetLabelSelector` in `pkg/scheduler/conf/scheduler_conf.go` of
    KAI-Scheduler); those without it belong to the shard `default` of its chart.

    A queue's own `reclaimMinRuntime` holds, whoever reclaims. By default it is that of the ancestor just below the one
    that both queues share, so that a tenant's would not hold against tenants of another parent
    (`pkg/scheduler/plugins/minruntime/resolver.go` there).
    """
    placement = pool.spec.placement
    spec = given(
        partitionLabelValue=pool.name,
        placementStrategy={"gpu": placement.value, "cpu": placement.value} if placement else None,
        plugins={"minruntime": {"arguments": {"reclaimResolveMethod": "queue"}}},
    )
    return new_object("kai.scheduler/v1", "SchedulingShard", pool.name, spec=spec)


# --- Queues ------------------------------------------------------------------------------------------------------

_UNBOUNDED: Final = -1
_PRIORITY: Final = 100
"""The priority of a queue that says nothing."""


def _queue(queue: Queue) -> dict[str, Any]:
    """Return a queue: a tenant's guarantee of a pool, the most that it may use, and its part of what is idle.

    Sums of the numbers are compared with a tolerance.

    What is left out means nothing: without a limit no pod may run, without a quota none that is not preemptible, and
    without a weight a queue gets no surplus (`max_allowed_check.go`, `quota_check.go` and `resource_division.go` below
    `pkg/scheduler/plugins/proportion` in KAI-Scheduler). Limits and quotas hold in all queues above as well. So each
    queue has all nine numbers. CPU and memory are unbounded where the tenant has no quota of them in the pool; CPU is
    counted in thousandths, memory in millions of bytes (`pkg/apis/scheduling/v2/resources.go` there).

    The weight and the rank are for a tenant among its siblings; in a queue of its own work, among its children.
    """
    tenant = queue.tenant
    weight = as_number(Ratio(tenant.surplus_weight))
    limit = _UNBOUNDED if queue.limit is None else as_number(queue.limit)
    resources = {"gpu": {"quota": as_number(queue.quota), "limit": limit, "overQuotaWeight": weight}}
    for counted in (Counted.CPU, Counted.MEMORY):
        numbers: dict[str, int | float] = {"quota": _UNBOUNDED, "limit": _UNBOUNDED, "overQuotaWeight": 1}
        if share := queue.compute.get(counted):
            most = _UNBOUNDED if share.limit is None else _counted(counted, share.limit)
            numbers = {"quota": _counted(counted, share.guaranteed), "limit": most, "overQuotaWeight": weight}
        resources[counted.value] = numbers
    spec = given(
        displayName=tenant.name,
        parentQueue=queue.parent,
        priority=_PRIORITY + tenant.spec.surplus.rank,
        preemptMinRuntime=tenant.spec.protect.preempt,
        reclaimMinRuntime=tenant.spec.protect.reclaim,
        resources=resources,
    )
    return new_object("scheduling.run.ai/v2", "Queue", queue.name, labels={NODE_POOL_LABEL: queue.pool.name}, spec=spec)


def _counted(counted: Counted, amount: int) -> int | float:
    """Return the least number of a queue that is no less than the amount, once it is multiplied again.

    KAI-Scheduler compares without a tolerance what is asked for with the product (`createQueueResourceAttrs` in
    `pkg/scheduler/plugins/proportion/proportion.go`): what is exactly within a limit must not be beyond it.
    """
    if counted is Counted.CPU or amount % _MEGABYTE == 0:
        return amount if counted is Counted.CPU else amount // _MEGABYTE
    number = amount / _MEGABYTE
    return nextafter(number, inf) if number * _MEGABYTE < amount else number


_MEGABYTE: Final = 1_000_000


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace_pool(plan: Plan, pool: Pool) -> Routes:
    """Yield the routes of a Topology, or of a SchedulingShard."""
    yield (), sources.scheduler_of(plan)
    yield ("metadata", "name"), sources.named(pool)
    for index in range(len(pool.spec.topology)):
        yield ("spec", "levels", index, "nodeLabel"), copied(pool.at / "topology" / index)
    yield ("spec", "partitionLabelValue"), sources.named(pool)
    yield ("spec", "placementStrategy"), copied(pool.at / "placement")


def _trace_queue(plan: Plan, queue: Queue) -> Routes:
    tenant, parent = queue.tenant, plan.tree.find(queue.tenant.parent)
    held, named_by = _held(plan, tenant, queue.pool), _why(plan, tenant, queue.pool)
    yield (), sources.scheduler_of(plan)
    called = sources.queue_by_pool_of(tenant, queue.pool)
    yield ("metadata", "name"), (*called, *named_by, *_division(plan, queue))
    yield ("metadata", "annotations"), chosen(*(part.at / "parent" for part in plan.tree.path(tenant)))
    yield ("metadata", "labels", NODE_POOL_LABEL), (*sources.named(queue.pool), *named_by)
    yield ("spec", "displayName"), sources.named(tenant)
    if _is_rest(queue):
        yield ("spec", "parentQueue"), (*called, *named_by)
    elif parent:
        above = sources.queue_by_pool_of(parent, queue.pool)
        yield ("spec", "parentQueue"), (*above, *named_by, *copied(tenant.at / "parent"))
    yield ("spec", "priority"), summed(tenant.at / "surplus" / "rank")
    yield ("spec", "preemptMinRuntime"), copied(tenant.at / "protect" / "preempt")
    yield ("spec", "reclaimMinRuntime"), copied(tenant.at / "protect" / "reclaim")
    gpu = ("spec", "resources", "gpu")
    yield (*gpu, "quota"), _guaranteed(plan, queue, held)
    yield (*gpu, "limit"), _limit(plan, queue, held)
    yield (*gpu, "overQuotaWeight"), copied(tenant.at / "surplus" / "weight")
    for counted in queue.compute:
        yield from below(("spec", "resources", counted.value), _trace_compute(plan, queue, counted))


def _trace_compute(plan: Plan, queue: Queue, counted: Counted) -> Routes:
    """Yield sums over what the tenant holds, as those of GPUs."""
    tree, tenant = plan.compute_trees[counted], queue.tenant
    held = [quota for quota in tree.together[tenant.name] if quota.pool.name == queue.pool.name]
    own = [quota for quota in held if any(quota.at == item.at for item in tenant.quotas)]
    quotas = own if _is_rest(queue) else held
    rest = [sources.compute_left_of(tree, tenant, quota, counted) for quota in own]
    guaranteed = rest if _is_rest(queue) else [sources.compute_of(quota, counted, "guaranteed") for quota in held]
    for field, parts in (
        ("quota", guaranteed),
        ("limit", [sources.compute_of(quota, counted, "limit") for quota in quotas]),
    ):
        links = tuple(link for part in parts for link in (adding(part) if len(parts) > 1 else part))
        places = chosen(*(quota.at / "pool" for quota in quotas)) if len(quotas) > 1 else ()
        yield (field,), (*links, *places)
    yield ("overQuotaWeight",), copied(tenant.at / "surplus" / "weight")


def _held(plan: Plan, tenant: Tenant, pool: Pool) -> list[Quota]:
    """Return the quotas that a tenant has in a pool with all that are part of it."""
    return [quota for quota in plan.tree.together[tenant.name] if quota.pool.name == pool.name]


def _why(plan: Plan, tenant: Tenant, pool: Pool) -> Links:
    """Return what alone decides that a tenant has a queue in a pool: its own quota there, or that of the only child."""
    own = [quota for quota in tenant.quotas if quota.pool.name == pool.name]
    children = [child for child in plan.tree.children(tenant) if _held(plan, child, pool)]
    if len(own) + len(children) != 1:
        return ()
    if own:
        return copied(own[0].at / "pool")
    return (*chosen(children[0].at / "parent"), *_why(plan, children[0], pool))


def _is_rest(queue: Queue) -> bool:
    """Whether it is the queue of a tenant's own work, below the one of all that are part of it."""
    return queue.parent == f"{queue.name}.all"


def _division(plan: Plan, queue: Queue) -> Links:
    """Return why a tenant has a second queue for its own work: a child has one there.

    Of several children none alone decides that.
    """
    children = [child for child in plan.tree.children(queue.tenant) if _held(plan, child, queue.pool)]
    if len(children) != 1 or not (_is_rest(queue) or queue.name.endswith(".all")):
        return ()
    quotas = _held(plan, children[0], queue.pool)
    places = (quota.at / "pool" for quota in quotas) if len(quotas) == 1 else ()
    return chosen(children[0].at / "parent", *places)


def _guaranteed(plan: Plan, queue: Queue, held: Sequence[Quota]) -> Links:
    """Return a sum over what the tenant holds; in the queue of its own work, less what lies within."""
    quotas, tenant = [quota for quota in held if quota in queue.tenant.quotas or not _is_rest(queue)], queue.tenant
    amounts = [
        (quota, sources.left_of(plan.tree, tenant, quota) if _is_rest(queue) else copied(quota.at / "guaranteed"))
        for quota in quotas
    ]
    return _sum_of(plan, queue, amounts)


def _limit(plan: Plan, queue: Queue, held: Sequence[Quota]) -> Links:
    """Return a sum as well; if one of several limits is `none`, that alone decides."""
    own = [quota for quota in held if quota in queue.tenant.quotas]
    quotas = own if _is_rest(queue) else held if own else []
    unbounded = [quota for quota in quotas if quota.limit is None]
    if unbounded:
        only = unbounded[0]
        return (*copied(only.at / "limit"), *chosen(only.at / "pool")) if len(unbounded) == 1 else ()
    return _sum_of(plan, queue, [(quota, copied(sources.limit_of(quota))) for quota in quotas])


def _sum_of(plan: Plan, queue: Queue, amounts: Sequence[tuple[Quota, Links]]) -> Links:
    """Return the sum in GPUs. Of several quotas each is there by its pool, and those of others by their parents."""
    if len(amounts) < 2:
        return tuple(link for quota, amount in amounts for link in sources.in_gpus(quota, amount))
    below = [tenant for tenant in plan.tenants if queue.tenant in plan.tree.above(tenant)]
    parts = [tenant for tenant in below if any(quota in tenant.quotas for quota, _ in amounts)]
    places = (*(quota.at / "pool" for quota, _ in amounts), *(tenant.at / "parent" for tenant in parts))
    return (*(link for quota, amount in amounts for link in sources.in_gpus(quota, adding(amount))), *chosen(*places))
