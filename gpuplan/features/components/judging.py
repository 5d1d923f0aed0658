"""Judge what is written by hand for a cluster."""

from __future__ import annotations

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.plan import Plan


def judge_files(plan: Plan) -> tuple[Diagnostic, ...]:
    """Find what is wrong with how hand-written files join what is generated, and with the objects in them."""
    if not plan.hand_written and not plan.components:
        return ()
    from gpuplan.features.components.checks import FILE_CHECKS, OBJECT_CHECKS  # most clusters have no such files

    return (*run_all(FILE_CHECKS, plan), *run_all(OBJECT_CHECKS, read(plan)))
