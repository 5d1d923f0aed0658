"""Checks on files that no platform is beside: rules that elsewhere judge what a policy says of the GPU Operator."""

from __future__ import annotations

from gpuplan.compiler.checks.registry import Check, checks_in
from gpuplan.compiler.planning.hand_files import HandFiles
from gpuplan.features.files.checks import config_files, drivers, schedulers, values

ALONE_CHECKS: tuple[Check[HandFiles], ...] = checks_in(values, config_files, drivers, schedulers)
"""Those that judge objects by settings of the GPU Operator among the same files; each has the rule of another check."""
