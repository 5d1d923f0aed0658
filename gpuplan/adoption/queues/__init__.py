"""Read the queues that tenants have with Kueue and KAI-Scheduler."""

from __future__ import annotations

from gpuplan.adoption.dump import Dump
from gpuplan.adoption.queues.kueue import root_cohort
from gpuplan.adoption.queues.model import Queue
from gpuplan.adoption.queues.nodes import KAI_QUEUES, KUEUE, Scheduling, Schedulings
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers.kai import KAI

__all__ = ["Queue", "Scheduling", "Schedulings", "read", "root_cohort"]


def read(dump: Dump, plan: Plan) -> tuple[tuple[Queue, ...], tuple[Diagnostic, ...]]:
    """A `Queue` for each tenant that has queues, each after the one that it is part of."""
    if dump.of_kind(KUEUE, "ClusterQueue") and plan.scheduler is not KAI:
        from gpuplan.adoption.queues import kueue

        return kueue.read(dump, plan)
    if dump.of_kind(KAI_QUEUES, "Queue"):
        from gpuplan.adoption.queues import kai

        return kai.read(dump, plan)
    return (), ()
