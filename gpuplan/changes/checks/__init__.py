"""Checks on steps: what goes wrong between two plans that are each right, one rule a function (GPU700-719, 728-739)."""

from __future__ import annotations

from gpuplan.changes.checks import clusters, halves, immutable, nodes, queues, repartitions, tenants
from gpuplan.changes.checks.registry import Step, StepCheck
from gpuplan.diagnostics import Diagnostic

CHECKS: tuple[StepCheck, ...] = (
    *nodes.CHECKS,
    *queues.CHECKS,
    *immutable.CHECKS,
    *tenants.CHECKS,
    *repartitions.CHECKS,
    *halves.CHECKS,
    *clusters.CHECKS,
)


def run(step: Step) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's step, in the checks' order."""
    return tuple(diagnostic for check in CHECKS for diagnostic in check.run(step))


__all__ = ["CHECKS", "Step", "StepCheck", "run"]
