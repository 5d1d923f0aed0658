"""Checks on what gpuplan itself writes for Workloads (GPU423, GPU579, GPU582)."""

from __future__ import annotations

from gpuplan.checks.generated import admitted
from gpuplan.checks.generated.admitted import ASKED
from gpuplan.checks.generated.work import Generated, GeneratedWork
from gpuplan.checks.registry import Check, checks_in

__all__ = ["ASKED", "GENERATED_CHECKS", "Generated", "GeneratedWork"]

GENERATED_CHECKS: tuple[Check[Generated], ...] = checks_in(admitted)
