"""Judge what is written by hand for a cluster, as it is written."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.components.checks import FILE_CHECKS, OBJECT_CHECKS


def judge_files(plan: Plan) -> tuple[Diagnostic, ...]:
    """Find what is wrong with how hand-written files join what is generated, and with the objects in them."""
    return (*run_all(FILE_CHECKS, plan), *run_all(OBJECT_CHECKS, read(plan)))
