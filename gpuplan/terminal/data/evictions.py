"""The reasons and the conditions of evictions, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.planning.preemption import Condition, Mechanism

WHY_EVICTED: Final[Mapping[Mechanism, str]] = {
    Mechanism.PRIORITY: "a higher class",
    Mechanism.QUEUE: "a higher class of the same tenant",
    Mechanism.RECLAIM: "another tenant's guarantee",
    Mechanism.FAIR_SHARE: "another tenant's share of the surplus",
}
WHEN_EVICTED: Final[Mapping[Condition, str]] = {
    Condition.POOL_FULL: "the pool is full",
    Condition.NODE_FULL: "no node has room for the pod",
    Condition.QUEUE_FULL: "the pod does not fit",
    Condition.VICTIM_OVER_GUARANTEE: "the victim's tenant is above its guarantee",
    Condition.EVICTOR_WITHIN_GUARANTEE: "the other within its own",
    Condition.VICTIM_OVER_FAIR_SHARE: "the victim's tenant has more than its share",
    Condition.EVICTOR_WITHIN_FAIR_SHARE: "the other no more than its own",
    Condition.QUOTA_HAS_ROOM: "its quota has room",
    Condition.QUOTA_HAS_ROOM_OR_JOB: "its quota has room or it is a Job's",
    Condition.BY_KUBE_SCHEDULER: "kube-scheduler places the pod, which asks for no GPUs",
}
