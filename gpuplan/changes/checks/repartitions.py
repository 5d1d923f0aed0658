"""Checks on nodes that are repartitioned in one step: how many at once, and what is left meanwhile (GPU708-709)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.checks.places import pods_note, pods_on, sharing_of
from gpuplan.changes.nodes import Transition, transitions
from gpuplan.changes.pools import is_partitioned_anew
from gpuplan.changes.step import Step
from gpuplan.changes.wording import amount
from gpuplan.checks.registry import check
from gpuplan.checks.wording import total_text
from gpuplan.diagnostics import Family, Finding, Label, Severity
from gpuplan.planning.plan import (
    Exclusive,
    Fraction,
    Mig,
    Mps,
    Plan,
    Pool,
    TimeSlicing,
    Total,
)
from gpuplan.values import NamedTuple
from gpuplan.wording import count, joined


@check("GPU708", "too-many-nodes-at-once", family=Family.STEP)
def too_many_nodes_at_once(step: Step) -> Iterator[Finding]:
    """More nodes of a pool are repartitioned at once than it may do without.

    ## Why
    The label of all these nodes changes in one sync, and the MIG manager of each starts at once: nothing counts nodes
    there, and `disruption.maxUnavailable` is a promise that only small steps keep. It is 1 unless the pool says
    otherwise; an approval and windows say when a sync begins, not how many nodes it takes. The MIG manager neither
    cordons nor drains, and a node on which a pod holds a GPU fails and stays so until its label changes again
    (`pkg/mig/reconfigure` of NVIDIA/mig-parted).

    ## Instead
    Take the change back, and let `gpuplan rollout POOL --to LAYOUT` make steps of it. Where the pool can do without all
    of these nodes at once, raise `disruption.maxUnavailable`; where they are drained already, say so in a comment. Pods
    that are listed with `--pods` are looked up: where nothing runs on the nodes there is no finding.
    """
    for away in _away(step):
        allowed = away.after.spec.disruption.max_unavailable
        if away.nodes <= allowed:
            continue
        short = [
            f"{amount(left)} of {amount(total.guaranteed)} `{total.unit.name}`" for total, left in _short(step, away)
        ]
        yield Finding(
            sharing_of(away.moves[0].after),
            f"{away.nodes} nodes of pool `{away.after.name}` are repartitioned at once, and {allowed} may be away",
            label="all in one sync",
            related=(Label(away.after.at / "disruption" / "maxUnavailable", f"`maxUnavailable` is {allowed}"),),
            notes=(
                *([f"meanwhile there are {joined(short)} that are guaranteed"] if short else []),
                *pods_note(away.pods),
            ),
            help=f"take it back, {by_rollout(step, away.moves[0].after)}; or drain the nodes, and say so: "
            "`# gpuplan: ignore[GPU708] REASON`",
        )


@check("GPU709", "guarantees-uncovered-meanwhile", Severity.WARNING, family=Family.STEP)
def guarantees_uncovered_meanwhile(step: Step) -> Iterator[Finding]:
    """While nodes are repartitioned, the others have less than what is guaranteed before and afterwards.

    ## Why
    A node that is repartitioned hands out nothing for minutes, or as long as it takes to drain it. What tenants are
    guaranteed both before and after the step should be there in between: else their pods wait, though both plans are
    right.

    ## Instead
    Change fewer nodes at once. Where even one is too many, add a node first, or lower a guarantee for as long as it
    takes.
    """
    for away in _away(step):
        if away.nodes > away.after.spec.disruption.max_unavailable:
            continue
        for total, left in _short(step, away):
            holders = [(tenant.name, quota.guaranteed) for tenant, quota in total.quotas if quota.guaranteed]
            yield Finding(
                sharing_of(away.moves[0].after),
                f"while {count(away.nodes, 'node')} of pool `{away.after.name}` "
                f"{'is' if away.nodes == 1 else 'are'} away, {amount(left)} `{total.unit.name}` are left of "
                f"{amount(total.guaranteed)} guaranteed",
                label="repartitioned",
                notes=(f"guaranteed are {total_text(holders)}", *pods_note(away.pods)),
                help="change fewer nodes at once, add a node first, or lower a guarantee meanwhile",
            )


# --- Nodes that are away -----------------------------------------------------------------------------------------


class _Away(NamedTuple):
    """Nodes of one pool that are repartitioned; ``pods`` is how many are there, None where nobody knows."""

    before: Pool
    after: Pool
    moves: tuple[Transition, ...]
    stays: tuple[Transition, ...]
    pods: int | None

    @property
    def nodes(self) -> int:
        return sum(moved.nodes.count for moved in self.moves)


def _away(step: Step) -> Iterator[_Away]:
    for old, new in step.pools:
        if old is None or new is None:
            continue
        moves: list[Transition] = []
        stays: list[Transition] = []
        for found in transitions(old, new):
            (moves if is_partitioned_anew(found) else stays).append(found)
        if moves:
            known = [pods_on(step, old, moved.nodes) for moved in moves]
            pods = None if None in known else sum(number or 0 for number in known)
            if pods != 0:
                yield _Away(old, new, tuple(moves), tuple(stays), pods)


def _short(step: Step, away: _Away) -> Iterator[tuple[Total, int]]:
    """The guarantees that the nodes that stay do not cover, the smaller of before and after, and what is left."""
    promised = _guarantees(step.before, away.before)
    for name, total in _guarantees(step.after, away.after).items():
        if name in promised:
            least = min(total, promised[name], key=lambda item: item.guaranteed)
            left = sum(_per_node(found, name) * found.nodes.count for found in away.stays)
            if left < least.guaranteed:
                yield least, left


def _guarantees(plan: Plan, pool: Pool) -> dict[str, Total]:
    return {total.unit.name: total for total in plan.totals if total.pool.name == pool.name}


def _per_node(found: Transition, name: str) -> int:
    """The fewer of what a node hands out before and after: it may be either."""
    units = [pool.find_unit(name) for pool in (found.before, found.after)]
    return min(unit.per_node if unit is not None else 0 for unit in units)


def by_rollout(step: Step, pool: Pool) -> str:
    """The command that makes steps of it, in this cluster; a rollout can only lead to a layout with a name."""
    is_inline = isinstance(pool.sharing, Mig) and pool.sharing.layout.is_inline
    command = f"`gpuplan rollout {pool.name} --to {_target(pool)} --cluster {step.after.cluster.name}`"
    return f"make the division a MigLayout, and run {command}" if is_inline else f"and run {command}"


def _target(pool: Pool) -> str:
    """How `gpuplan rollout --to` spells a way of sharing."""
    match pool.sharing:
        case Mig(layout=layout):
            return "LAYOUT" if layout.is_inline else layout.name
        case TimeSlicing(spec=spec):
            return f"time-slicing={spec.replicas}"
        case Mps(spec=spec):
            return f"mps={spec.replicas}"
        case Exclusive():
            return "exclusive"
        case Fraction():
            return "LAYOUT"
