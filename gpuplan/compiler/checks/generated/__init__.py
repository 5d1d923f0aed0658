"""Checks on what gpuplan itself writes for Workloads (GPU423, GPU440-443, GPU579, GPU582)."""

from __future__ import annotations

from gpuplan.compiler.checks.generated import admitted, patches
from gpuplan.compiler.checks.generated.admitted import ASKED, Generated, GeneratedWork
from gpuplan.compiler.checks.registry import Check, checks_in

__all__ = ["ASKED", "GENERATED_CHECKS", "PATCH_CHECKS", "Generated", "GeneratedWork"]

GENERATED_CHECKS: tuple[Check[Generated], ...] = checks_in(admitted)
PATCH_CHECKS: tuple[Check[Generated], ...] = checks_in(patches)
