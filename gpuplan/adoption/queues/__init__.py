"""Read the queues that tenants have with Kueue and KAI-Scheduler."""

from __future__ import annotations

from gpuplan.adoption.dump import Dump
from gpuplan.adoption.queues.cohorts import KUEUE, root_cohort
from gpuplan.adoption.queues.model import Queue
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers.kai import KAI
from gpuplan.planning.schedulers.runai import RUNAI

__all__ = ["Queue", "read", "root_cohort"]


def read(dump: Dump, plan: Plan) -> tuple[tuple[Queue, ...], tuple[Diagnostic, ...]]:
    """A `Queue` for each tenant that has queues, each after the one that it is part of.

    Run:ai makes queues of KAI-Scheduler's group by itself: its projects say what they are of.
    """
    if plan.scheduler is RUNAI:
        return (), ()
    if dump.of_kind(KUEUE, "ClusterQueue") and plan.scheduler is not KAI:
        from gpuplan.adoption.queues import kueue

        return kueue.read(dump, plan)
    from gpuplan.adoption.queues import kai

    return kai.read(dump, plan)
