"""The back end of KAI-Scheduler: a shard for each pool, and in it a tree of queues for the tenants.

All objects are the cluster's. Queues are as many as tenants times pools, and nothing joins those of two pools: they are
in a folder for each pool, all else is in the stage `scheduling`. What they mean was read in KAI-Scheduler 0.17.

Beside them stand the ResourceQuotas, which cap each kind of unit, and the admission policy that ties namespaces to
queues: a queue knows no namespaces, and no rights are needed to name one
(https://github.com/kai-scheduler/KAI-Scheduler/issues/2068).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.kai.admission import queues_policy
from gpuplan.backends.kai.queues import queue
from gpuplan.backends.kai.shards import shard, topology
from gpuplan.manifests import Manifest
from gpuplan.planning.grants import has_admission_policies
from gpuplan.planning.kai import queues
from gpuplan.planning.plan import Plan, Stage
from gpuplan.planning.schedulers.kai import KAI
from gpuplan.planning.subjects import about, families

_FOLDER = Stage.SCHEDULING.value


def render(plan: Plan) -> Iterator[Manifest]:
    """Nothing, unless the cluster's scheduler is KAI-Scheduler."""
    if plan.scheduler is not KAI:
        return
    for pool in plan.pools:
        if pool.spec.topology:
            yield Manifest(_FOLDER, topology(pool), about=about(pool))
        yield Manifest(_FOLDER, shard(pool), about=about(pool))
    related = families(plan.tree)
    for found in queues(plan):
        subjects = about(found.pool, *related[found.tenant.name])
        yield Manifest(f"{Stage.QUEUES.value}/{found.pool.name}", queue(found), order=found.depth, about=subjects)
    if has_admission_policies(plan.cluster):
        yield Manifest(_FOLDER, queues_policy(), about=about(plan.cluster))
