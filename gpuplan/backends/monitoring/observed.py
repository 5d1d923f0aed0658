"""Rules on what is there, in groups: which pool a node is in, what it publishes, how busy it is, and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.monitoring import metrics
from gpuplan.backends.monitoring.metrics import one_of, published, series
from gpuplan.backends.monitoring.rules import Group, Recording
from gpuplan.backends.monitoring.texts import Texts
from gpuplan.planning.plan import Monitoring, Plan, Pool


def groups(plan: Plan, monitoring: Monitoring) -> Iterator[Group]:
    """The groups, in the order in which they need each other; an alert that the policy disables is left out."""
    texts = Texts(plan, monitoring)
    planned = [rule for pool in plan.pools for rule in _node_planned(pool)]
    has_units = any(published(pool) for pool in plan.pools)
    units = texts.recordings("units") if has_units else ()
    yield Group("gpuplan-pools", (*texts.recordings("nodes"), *planned, *units))
    yield Group("gpuplan-utilization", tuple(texts.recordings("utilization")))
    alerts = sorted(texts.alerts(), key=lambda alert: alert.name)
    yield Group("gpuplan-alerts", tuple(alert for alert in alerts if alert.name not in monitoring.spec.disabled_alerts))


def _node_planned(pool: Pool) -> Iterator[Recording]:
    for resource in published(pool):
        nodes = [
            f"{_nodes(pool, part)} * {item.per_node}"
            for part in pool.parts
            for item in published(part)
            if item.resource == resource.resource and item.per_node and part.nodes.count
        ]
        if nodes:
            # The label `pool` is there already; it tells rules of two pools with one resource apart.
            labels = {"pool": pool.name, **resource.labels}
            yield Recording(metrics.NODE_PLANNED_UNITS, "\nor\n".join(nodes), labels)


def _nodes(pool: Pool, part: Pool) -> str:
    """The nodes of a part of a pool: all, or those that a rollout has moved, or all but those."""
    if pool.rollout is None or part.nodes.count == pool.nodes.count:
        return series(metrics.NODE_POOL, pool=pool.name)
    names = one_of(sorted(pool.rollout.moved.nodes.names))
    is_moved = part is pool.rollout.moved
    return series(metrics.NODE_POOL, pool=pool.name, **{"node__re" if is_moved else "node__nre": names})
