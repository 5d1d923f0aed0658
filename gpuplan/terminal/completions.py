"""Words that complete a command line and that only a plan has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.options import root_of

if TYPE_CHECKING:
    from gpuplan.compiler.planning.plan import Plan


def plans(context: click.Context) -> Sequence[Plan]:
    """Return the plans of the clusters that were named before, or of all; none if they cannot be read."""
    try:
        report = pipeline.validate(root_of(context), context.params.get("clusters") or (), kustomize="off")
    except (GpuplanError, OSError):
        return ()
    return report.plans
