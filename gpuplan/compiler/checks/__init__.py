"""Checks: what can be wrong with a plan, each rule one function."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.registry import Check, checks_in, run_all
from gpuplan.compiler.planning.plan import Plan


def run(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return every finding of every check on one cluster's plan."""
    return run_all(CHECKS, plan)


CHECKS: tuple[Check[Plan], ...] = checks_in(
    *(import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if not module.ispkg)
)
"""The checks that the modules of this package declare, by the modules' names."""
