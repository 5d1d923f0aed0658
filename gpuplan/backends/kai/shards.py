"""SchedulingShards: a scheduler of its own for the nodes of each pool, and the topology that it places gangs by.

Shards do not see each other's nodes, so that nothing is lent from one pool to another. Nodes, queues and work find
their shard by the label `kai.scheduler/node-pool` (`GetLabelSelector` in `pkg/scheduler/conf/scheduler_conf.go` of
KAI-Scheduler); those without it belong to the shard `default` of its chart.
"""

from __future__ import annotations

from typing import Any

from gpuplan.planning.plan import Pool


def shard(pool: Pool) -> dict[str, Any]:
    spec: dict[str, Any] = {"partitionLabelValue": pool.name}
    if pool.spec.placement is not None:
        spec["placementStrategy"] = {"gpu": pool.spec.placement.value, "cpu": pool.spec.placement.value}
    spec["plugins"] = {"minruntime": {"arguments": _MINIMUM_RUN_TIME}}
    return {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": pool.name},
        "spec": spec,
    }


# A queue's own `reclaimMinRuntime` holds, whoever reclaims. By default it is that of the ancestor just below the one
# that both queues share, so that a tenant's would not hold against tenants of another parent
# (`pkg/scheduler/plugins/minruntime/resolver.go` in KAI-Scheduler).
_MINIMUM_RUN_TIME = {"reclaimResolveMethod": "queue"}


def topology(pool: Pool) -> dict[str, Any]:
    """The levels of a Topology cannot be changed, only replaced."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": pool.name},
        "spec": {"levels": [{"nodeLabel": label} for label in pool.spec.topology]},
    }
