"""The back end of Kueue: what it shares out, to whom, and in what order.

The objects of the cluster are in the stage `scheduling`, a LocalQueue in the folder of each namespace. What they mean
was read in Kueue 0.19; `kueue.x-k8s.io/v1beta2` is served since 0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.backends.kueue.admission import queues_policy
from gpuplan.backends.kueue.configuration import configuration
from gpuplan.backends.kueue.flavors import flavors
from gpuplan.backends.kueue.priorities import priority_class
from gpuplan.backends.kueue.queues import cluster_queues, cohorts, local_queues
from gpuplan.manifests import File, Manifest
from gpuplan.planning.grants import has_admission_policies
from gpuplan.planning.plan import Plan, Pool, Stage, Tenant
from gpuplan.planning.schedulers.kueue import KUEUE
from gpuplan.planning.subjects import about, families

_FOLDER = Stage.SCHEDULING.value


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Nothing, unless the cluster's scheduler is Kueue."""
    if plan.scheduler is not KUEUE:
        return
    for pool, body in flavors(plan):
        yield Manifest(_FOLDER, body, about=about(pool))
    related = {name: about(*family, *_pools(family)) for name, family in families(plan.tree).items()}
    for tenant, body in cohorts(plan):
        everybody = about(plan.cluster, *plan.pools, *plan.tenants)
        yield Manifest(_FOLDER, body, about=related[tenant.name] if tenant else everybody)
    for tenant, body in cluster_queues(plan):
        yield Manifest(_FOLDER, body, about=(*related[tenant.name], *about(*tenant.priority_classes)))
    for priority in plan.priority_classes:
        yield Manifest(_FOLDER, priority_class(priority), about=about(priority))
    if has_admission_policies(plan.cluster):
        yield Manifest(_FOLDER, queues_policy(plan), about=about(plan.cluster, *plan.priority_classes))
    yield configuration(plan)
    for tenant, body in local_queues(plan):
        yield Manifest(f"{Stage.NAMESPACES.value}/{body['metadata']['namespace']}", body, about=about(tenant))


def _pools(tenants: Iterable[Tenant]) -> Iterator[Pool]:
    return (quota.pool for tenant in tenants for quota in tenant.quotas)
