"""Who can evict whom, for people and as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuplan.planning.plan import Plan
from gpuplan.planning.preemption import Condition, Eviction, Mechanism, Party, evictions
from gpuplan.views.text import indent, printable, table
from gpuplan.views.theme import Style, Theme
from gpuplan.wording import count

_WHY: Final[Mapping[Mechanism, str]] = {
    Mechanism.PRIORITY: "a higher class",
    Mechanism.QUEUE: "a higher class of the same tenant",
    Mechanism.RECLAIM: "another tenant's guarantee",
    Mechanism.FAIR_SHARE: "another tenant's share of the surplus",
}
_WHEN: Final[Mapping[Condition, str]] = {
    Condition.POOL_FULL: "the pool is full",
    Condition.NODE_FULL: "no node has room for the pod",
    Condition.QUEUE_FULL: "the pod does not fit",
    Condition.VICTIM_OVER_GUARANTEE: "the victim's tenant is above its guarantee",
    Condition.EVICTOR_WITHIN_GUARANTEE: "the other within its own",
    Condition.VICTIM_OVER_FAIR_SHARE: "the victim's tenant has more than its share",
    Condition.EVICTOR_WITHIN_FAIR_SHARE: "the other no more than its own",
}
_SHOWN: Final = 3


def preemption_page(plan: Plan, theme: Theme) -> str:
    """One cluster: a line for each way in which pods are evicted, and the pools in which none is."""
    found = evictions(plan)
    heading = f"Cluster {plan.cluster.name}: who can evict whom with {plan.scheduler.title}"
    rows = [_row(eviction) for eviction in found]
    text = table(("POOL", "UNIT", "PODS OF", "MAY EVICT PODS OF", "FOR", "WHEN", "AFTER"), rows) if rows else ""
    disturbed = {(eviction.pool, eviction.unit) for eviction in found}
    calm = [
        f"{pool.name} ({unit.name})"
        for pool in plan.pools
        for unit in pool.units
        if (pool.name, unit.name) not in disturbed
    ]
    none = printable(f"nobody evicts anybody in {', '.join(calm)}") + "\n" if calm else ""
    return f"{theme.paint(printable(heading), Style.STRONG)}\n{indent(text + none)}"


def _row(eviction: Eviction) -> tuple[str, ...]:
    return (
        eviction.pool,
        eviction.unit,
        _parties(eviction.evictors),
        _parties(eviction.victims),
        _WHY[eviction.mechanism],
        ", ".join(_WHEN[condition] for condition in eviction.when),
        eviction.min_run_time or "-",
    )


def _parties(parties: Sequence[Party]) -> str:
    """Tenants with their classes; those that have the same ones together."""
    classes: dict[str, list[str]] = {}
    for party in parties:
        classes.setdefault(party.tenant, []).append(party.priority_class or "no class")
    tenants: dict[str, list[str]] = {}
    for tenant, names in classes.items():
        tenants.setdefault(" ".join(names), []).append(tenant)
    return "; ".join(f"{_abridged(names)} ({shared})" for shared, names in tenants.items())


def _abridged(names: Sequence[str]) -> str:
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: _SHOWN - 1])} and {count(len(names) - _SHOWN + 1, 'more', 'more')}"


def evictions_as_data(plan: Plan) -> list[dict[str, Any]]:
    """A part of `plan.schema.json`."""
    return [
        {
            "pool": eviction.pool,
            "unit": eviction.unit,
            "mechanism": eviction.mechanism.value,
            "within_tenants": eviction.mechanism.is_within_tenants,
            "across_tenants": eviction.mechanism.is_across_tenants,
            "evictors": [party._asdict() for party in eviction.evictors],
            "victims": [party._asdict() for party in eviction.victims],
            "when": [condition.value for condition in eviction.when],
            "min_run_time": eviction.min_run_time,
        }
        for eviction in evictions(plan)
    ]
