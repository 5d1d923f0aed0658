"""Checks: what can be wrong with a plan, each rule one function."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from gpuplan.checks import handwritten
from gpuplan.checks.handwritten.reading import read
from gpuplan.checks.registry import Check, checks_in, run_all
from gpuplan.diagnostics import Diagnostic
from gpuplan.planning.plan import Plan

CHECKS: tuple[Check[Plan], ...] = (
    *checks_in(*(import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if not found.ispkg)),
    *handwritten.FILE_CHECKS,
)
"""All that the modules of this package declare, by the modules' names."""


def run(plan: Plan) -> tuple[Diagnostic, ...]:
    """Every finding of every check on one cluster's plan, and on the objects that are written by hand for it."""
    return (*run_all(CHECKS, plan), *run_all(handwritten.OBJECT_CHECKS, read(plan)))
