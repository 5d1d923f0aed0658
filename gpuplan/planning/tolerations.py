"""Tolerations of a pool's taints, for pods that are meant to run there."""

from __future__ import annotations

from gpuplan.planning.plan import Pool
from gpuplan.policy.models import Taint


def tolerations(pool: Pool) -> list[dict[str, str]]:
    """One for each taint, of exactly that taint. Whoever writes one again for the same pods writes the same."""
    return [_toleration(taint) for taint in pool.spec.taints]


def _toleration(taint: Taint) -> dict[str, str]:
    operator = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    return {"key": taint.key, **operator, "effect": taint.effect.value}
