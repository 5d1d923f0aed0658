"""Read the queues that tenants have with Kueue and KAI-Scheduler."""

from __future__ import annotations

from gpuplan.adoption.dump import Dump
from gpuplan.adoption.queues.model import Queue
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan

__all__ = ["Queue", "read"]


def read(dump: Dump, plan: Plan) -> tuple[tuple[Queue, ...], tuple[Diagnostic, ...]]:  # noqa: ARG001
    """A `Queue` for each tenant that has queues."""
    return (), ()
