"""Checks on steps: what goes wrong between two plans that are each right, one rule a function (GPU700-719, 728-758)."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.registry import Check, checks_in, run_all
from gpuplan.features.changes.checks import fixed, nodes, repartitions, tenants
from gpuplan.features.changes.step import Step

CHECKS: tuple[Check[Step], ...] = checks_in(fixed, nodes, repartitions, tenants)


def run(step: Step) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's step."""
    return run_all(CHECKS, step)
