"""Checks: what can be wrong with a plan, each rule one function."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.registry import Check, checks_in, run_all
from gpuplan.compiler.planning.plan import Plan

CHECKS: tuple[Check[Plan], ...] = checks_in(
    *(import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if not found.ispkg)
)
"""All that the modules of this package declare, by the modules' names."""


def run(plan: Plan) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's plan."""
    return run_all(CHECKS, plan)
