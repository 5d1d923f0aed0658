"""Checks on what is written by hand beside the policies (GPU620-649)."""

from __future__ import annotations

from gpuplan.checks.handwritten import components, configs, objects, workloads
from gpuplan.checks.registry import Check

CHECKS: tuple[Check, ...] = (*objects.CHECKS, *configs.CHECKS, *components.CHECKS, *workloads.CHECKS)

OBJECT_CHECKS: tuple[Check, ...] = (
    *(check for check in objects.CHECKS if check not in objects.CHECKS_ON_FILES),
    *configs.CHECKS,
    *workloads.CHECKS,
)
"""Those that judge objects, whether they are written by hand or are what patching made of them."""
