"""Checks on what is written by hand (GPU422, GPU481, GPU620-649, GPU682-689, GPU695-699, GPU802, GPU890-897)."""

from __future__ import annotations

from gpuplan.compiler.checks.registry import Check, checks_in
from gpuplan.compiler.planning.hand_files import HandFiles
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.components.checks import (
    admitted,
    alone,
    choices,
    claims,
    components,
    configs,
    drivers,
    objects,
    patched,
    queueing,
    resources,
    selectors,
)
from gpuplan.features.components.checks.patched import Patched

FILE_CHECKS: tuple[Check[Plan], ...] = checks_in(components)
"""Those that judge how files join what is generated."""
OBJECT_CHECKS: tuple[Check[HandFiles], ...] = checks_in(
    objects, admitted, configs, choices, selectors, queueing, drivers, alone, resources, claims
)
"""Those that judge objects, whether they are written by hand or are what Components made of them."""
QUEUE_CHECKS: tuple[Check[HandFiles], ...] = checks_in(queueing)
"""Those of them that judge queues."""
PATCHED_CHECKS: tuple[Check[Patched], ...] = checks_in(patched)
"""Those that judge what Components make of generated folders."""
