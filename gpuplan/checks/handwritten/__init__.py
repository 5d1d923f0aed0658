"""Checks on what is written by hand beside the policies (GPU620-649)."""

from __future__ import annotations

from gpuplan.checks.handwritten import components, configs, objects, workloads
from gpuplan.checks.registry import Check

CHECKS: tuple[Check, ...] = (*objects.CHECKS, *configs.CHECKS, *components.CHECKS, *workloads.CHECKS)
