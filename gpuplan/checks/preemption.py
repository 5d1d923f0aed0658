"""Checks on who can evict whom (GPU590-594)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.checks.wording import severity_of_loss
from gpuplan.diagnostics import Finding, Severity
from gpuplan.planning.plan import Plan
from gpuplan.planning.preemption import Mechanism, evictions
from gpuplan.planning.schedulers import Evicts
from gpuplan.wording import listing


@check("GPU590", "preempts-all-the-same", Severity.NOTE)
def preempts_all_the_same(plan: Plan) -> Iterator[Finding]:
    """On a cluster with KAI-Scheduler or Run:ai, a class that says `preempts: false` evicts others all the same.

    ## Why
    `preemptionPolicy: Never` is a word to kube-scheduler. KAI-Scheduler compares values alone: within a queue, work of
    a higher class takes the place of preemptible work of a lower one (`pkg/scheduler/actions/preempt`). Run:ai's
    scheduler is the one that it was made from.

    ## Instead
    Give such classes the same value as those that they must not evict, or accept it. With `onLoss: refuse` this is an
    error.
    """
    calm = {found.name: found for found in plan.priority_classes if not found.spec.preempts}
    if not calm or plan.scheduler.evicts is not Evicts.BY_SHARE:
        return
    victims: dict[str, dict[str, None]] = {}
    for eviction in evictions(plan):
        if eviction.mechanism is Mechanism.QUEUE:
            for party in eviction.evictors:
                if party.priority_class in calm:
                    names = (victim.priority_class or "none" for victim in eviction.victims)
                    victims.setdefault(party.priority_class, {}).update(dict.fromkeys(names))
    for name, found in calm.items():
        if below := sorted(victims.get(name, ())):
            yield Finding(
                found.at / "preempts",
                f"pods of class `{name}` evict pods of {listing(below)} with {plan.scheduler.title}",
                label="looked at by kube-scheduler alone",
                notes=(f"`{name}` has the value {found.spec.value}, and within a tenant the higher value wins",),
                help="see `gpuplan show --preemption` for who can evict whom",
                severity=severity_of_loss(plan, Severity.NOTE),
            )
