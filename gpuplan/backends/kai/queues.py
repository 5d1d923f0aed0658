"""Queues: what a tenant is guaranteed of a pool, what it may use at most, and how what is idle is divided.

What is left out means nothing: without a limit no pod may run, without a quota none that is not preemptible, and
without a weight a queue gets no surplus (`max_allowed_check.go`, `quota_check.go` and `resource_division.go` below
`pkg/scheduler/plugins/proportion` in KAI-Scheduler). Limits and quotas hold in all queues above as well. So each queue
has all nine numbers, and cpu and memory are unbounded in each.
"""

from __future__ import annotations

from fractions import Fraction as Ratio
from typing import Any

from gpuplan.planning.kai import Queue
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL

_UNBOUNDED = -1
_PRIORITY = 100
"""The priority of a queue that says nothing."""


def queue(found: Queue) -> dict[str, Any]:
    """The weight and the rank are for a tenant among its siblings; in a queue of its own work, among its children."""
    tenant = found.tenant
    spec: dict[str, Any] = {"displayName": tenant.name}
    if found.parent:
        spec["parentQueue"] = found.parent
    spec["priority"] = _PRIORITY + tenant.spec.surplus.rank
    if tenant.spec.protect.preempt is not None:
        spec["preemptMinRuntime"] = tenant.spec.protect.preempt
    if tenant.spec.protect.reclaim is not None:
        spec["reclaimMinRuntime"] = tenant.spec.protect.reclaim
    unbounded = {"quota": _UNBOUNDED, "limit": _UNBOUNDED, "overQuotaWeight": 1}
    spec["resources"] = {"gpu": _gpu(found), "cpu": unbounded, "memory": dict(unbounded)}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": found.name, "labels": {NODE_POOL_LABEL: found.pool.name}},
        "spec": spec,
    }


def _gpu(found: Queue) -> dict[str, int | float]:
    return {
        "quota": _number(found.quota),
        "limit": _UNBOUNDED if found.limit is None else _number(found.limit),
        "overQuotaWeight": _number(Ratio(found.tenant.surplus_weight)),
    }


def _number(amount: Ratio) -> int | float:
    """The nearest number that a queue can hold, which is a 64-bit float; sums compare with a tolerance there."""
    return amount.numerator if amount.denominator == 1 else float(amount)
