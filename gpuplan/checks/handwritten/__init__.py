"""Checks on what is written by hand beside the policies (GPU620-649)."""

from __future__ import annotations

from gpuplan.checks.handwritten import components, configs, objects, patched, workloads
from gpuplan.checks.handwritten.patched import Patched
from gpuplan.checks.registry import Check, checks_in
from gpuplan.planning.plan import Plan

CHECKS: tuple[Check[Plan], ...] = checks_in(objects, configs, components, workloads)

OBJECT_CHECKS: tuple[Check[Plan], ...] = tuple(
    check
    for check in checks_in(objects, configs, workloads)
    if check not in (objects.object_written_by_gpuplan, objects.cluster_policy_contradicted)
)
"""Those that judge objects, whether they are written by hand or are what patching made of them."""

PATCHED_CHECKS: tuple[Check[Patched], ...] = checks_in(patched)
"""Those that judge what Components make of generated folders."""
