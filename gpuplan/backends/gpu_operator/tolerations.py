"""Tolerations that the operator's own pods need on the plan's nodes."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.operators import is_tolerated
from gpuplan.planning.plan import Plan


def missing(plan: Plan, present: Sequence[object]) -> list[dict[str, str]]:
    """A toleration for each taint of the plan's pools that none of those present covers."""
    wanted = {
        (taint.key, taint.effect.value)
        for pool in plan.pools
        for taint in pool.spec.taints
        if not is_tolerated(present, taint.key, taint.value, taint.effect)
    }
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in sorted(wanted)]
