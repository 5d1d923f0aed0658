"""The back end of KAI-Scheduler: a shard for each pool, and in it a tree of queues for the tenants.

All objects are the cluster's. Queues are as many as tenants times pools, and nothing joins those of two pools: they are
in a folder for each pool, all else is in the stage `scheduling`. What they mean was read in KAI-Scheduler 0.17.

Beside them stand the ResourceQuotas, which cap each kind of unit, and the admission policy that ties namespaces to
queues: a queue knows no namespaces, and no rights are needed to name one
(https://github.com/kai-scheduler/KAI-Scheduler/issues/2068).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as Ratio
from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import Manifest, admission_policy
from gpuplan.manifests.bodies import given, new_object
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.grants import QUEUES_POLICY, has_admission_policies
from gpuplan.planning.kai import Queue, queues
from gpuplan.planning.plan import Plan, Pool, Stage
from gpuplan.planning.schedulers.kai import KAI, NODE_POOL_LABEL, OWN_CLASSES, QUEUE_LABEL
from gpuplan.planning.subjects import about, families

_FOLDER: Final = Stage.SCHEDULING.value
_FILE: Final = Path(__file__).with_name("policies.yaml")


def render(plan: Plan) -> Iterator[Manifest]:
    """Nothing, unless the cluster's scheduler is KAI-Scheduler."""
    if plan.scheduler is not KAI:
        return
    for pool in plan.pools:
        if pool.spec.topology:
            # The levels of a Topology cannot be changed, only replaced.
            levels = [{"nodeLabel": label} for label in pool.spec.topology]
            topology = new_object("kai.scheduler/v1alpha1", "Topology", pool.name, spec={"levels": levels})
            yield Manifest(_FOLDER, topology, about=about(pool))
        yield Manifest(_FOLDER, _shard(pool), about=about(pool))
    related = families(plan.tree)
    for found in queues(plan):
        subjects = about(found.pool, *related[found.tenant.name])
        yield Manifest(f"{Stage.QUEUES.value}/{found.pool.name}", _queue(found), order=found.depth, about=subjects)
    if has_admission_policies(plan.cluster):
        values = {"own_classes": str(list(OWN_CLASSES)), "queue_label": QUEUE_LABEL}
        body = admission_policy(QUEUES_POLICY, read_rows(_FILE)["queues"], (), values)
        yield Manifest(_FOLDER, body, about=about(plan.cluster))


# --- Pools -------------------------------------------------------------------------------------------------------


def _shard(pool: Pool) -> dict[str, Any]:
    """A scheduler of its own for the nodes of a pool.

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


def _queue(found: Queue) -> dict[str, Any]:
    """What a tenant is guaranteed of a pool, what it may use at most, and how what is idle is divided.

    What is left out means nothing: without a limit no pod may run, without a quota none that is not preemptible, and
    without a weight a queue gets no surplus (`max_allowed_check.go`, `quota_check.go` and `resource_division.go` below
    `pkg/scheduler/plugins/proportion` in KAI-Scheduler). Limits and quotas hold in all queues above as well. So each
    queue has all nine numbers, and cpu and memory are unbounded in each.

    The weight and the rank are for a tenant among its siblings; in a queue of its own work, among its children.
    """
    tenant = found.tenant
    unbounded = {"quota": _UNBOUNDED, "limit": _UNBOUNDED, "overQuotaWeight": 1}
    gpu = {
        "quota": _number(found.quota),
        "limit": _UNBOUNDED if found.limit is None else _number(found.limit),
        "overQuotaWeight": _number(Ratio(tenant.surplus_weight)),
    }
    spec = given(
        displayName=tenant.name,
        parentQueue=found.parent,
        priority=_PRIORITY + tenant.spec.surplus.rank,
        preemptMinRuntime=tenant.spec.protect.preempt,
        reclaimMinRuntime=tenant.spec.protect.reclaim,
        resources={"gpu": gpu, "cpu": unbounded, "memory": dict(unbounded)},
    )
    return new_object("scheduling.run.ai/v2", "Queue", found.name, labels={NODE_POOL_LABEL: found.pool.name}, spec=spec)


def _number(amount: Ratio) -> int | float:
    """The nearest number that a queue can hold, which is a 64-bit float; sums compare with a tolerance there."""
    return amount.numerator if amount.denominator == 1 else float(amount)
