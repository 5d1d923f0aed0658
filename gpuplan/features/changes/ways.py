"""The way to another sharing that keeps all guarantees, as findings print it: what to write, and what to type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from gpuplan.compiler.planning.layouts import is_divided_alike
from gpuplan.compiler.planning.plan import DynamicMig, Fraction, Layout, Mig, Mps, Plan, Pool, TimeSlicing
from gpuplan.features.changes.step import Step

RETAIN: Final = "gpuplan retain --write"


def by_rollout(step: Step, pools: Sequence[Pool]) -> str:
    """Return how pools that share their GPUs alike come to what their policies say after the step.

    A rollout leads to a layout by its name, so a layout that is edited stays, and what it says now gets a name.
    """
    sharing = pools[0].sharing
    if isinstance(sharing, DynamicMig):
        return "take it back, and give the nodes to a second pool, as many at a time as may be away"
    if not isinstance(sharing, Mig):
        return f"take it back, and run {_commands(step, pools, _target(pools[0]))}"
    layout = sharing.layout
    if layout.is_inline:
        name = _free(step.after, pools[0].name)
        return f"take it back, write the division as layout `{name}`, and run {_commands(step, pools, name)}"
    if is_edited(step, layout):
        name = _free(step.after, layout.name)
        return (
            f"leave layout `{layout.name}` as it was, write its new division as layout `{name}`, and run "
            f"{_commands(step, pools, name)}"
        )
    return f"take it back, and run {_commands(step, pools, layout.name)}"


def by_edit(step: Step, layout: Layout) -> str:
    """Return how a layout comes to be another: at once where its pools can do without their nodes, else in steps."""
    retain = f"{'leave `configName` out, and ' if layout.keeps_name else ''}run `{RETAIN}` and commit what it writes"
    users = [pool for pool in step.after.pools if isinstance(pool.sharing, Mig) and pool.sharing.layout == layout]
    if not users:
        return retain
    if all(pool.nodes.count <= pool.spec.disruption.max_unavailable for pool in users):
        return f"{retain}; or {by_rollout(step, users)}"
    return f"{by_rollout(step, users)}; or drain the nodes, and {retain}"


def is_edited(step: Step, layout: Layout) -> bool:
    """Whether a layout with this name divides GPUs otherwise before the step."""
    known = (item for item in step.before.layouts if item.name == layout.name)
    return any(not is_divided_alike(item, layout) for item in known)


def _free(plan: Plan, name: str) -> str:
    taken = {layout.name for layout in plan.layouts}
    return next(each for number in count(2) if (each := f"{name}-{number}") not in taken)


def _commands(step: Step, pools: Sequence[Pool], to: str) -> str:
    cluster = step.after.cluster.name
    return " and ".join(f"`gpuplan rollout {pool.name} --to {to} --cluster {cluster}`" for pool in pools)


def _target(pool: Pool) -> str:
    """Return the value of `gpuplan rollout --to` for a way of sharing without a layout."""
    match pool.sharing:
        case TimeSlicing(spec=spec):
            return f"time-slicing={spec.replicas}"
        case Mps(spec=spec):
            return f"mps={spec.replicas}"
        case Fraction():
            return "fraction"
        case _:
            return "exclusive"
