"""A page on who can evict whom, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.compiler.base.wording import abridged
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import Eviction, Party, counted_in, misread
from gpuplan.compiler.planning.selection import Selection, selection_of
from gpuplan.terminal.data.evictions import WHEN_EVICTED, WHY_EVICTED
from gpuplan.terminal.fitting import Table, folded
from gpuplan.terminal.text import Style, Theme, indent, printable


def preemption_page(chosen: Plan | Selection, theme: Theme) -> str:
    """One cluster: a line for each way in which pods are evicted, and the pools in which none is."""
    shown, inner = selection_of(chosen), theme.indented()
    heading = theme.paint(printable(preemption_heading(shown.plan)), Style.STRONG)
    rest = "".join(f"{printable(line)}\n" for line in nobody_evicted(shown))
    return folded(f"{heading}\n", theme) + indent(preemption_table(shown).shown(inner) + folded(rest, inner))


def preemption_heading(plan: Plan) -> str:
    return f"Cluster {plan.cluster.name}: who can evict whom with {plan.scheduler.title}"


def preemption_table(shown: Selection) -> Table:
    """A row for each way; those that differ only in what is lacking of CPU, memory and pods are one."""
    alike: dict[Eviction, list[str]] = {}
    for eviction in shown.evictions:
        alike.setdefault(eviction._replace(unit="") if eviction.counted else eviction, []).append(eviction.unit)
    rows = [
        (
            eviction.pool,
            ", ".join(names),
            _parties(eviction.evictors),
            _parties(eviction.victims),
            WHY_EVICTED[eviction.mechanism],
            ", ".join(WHEN_EVICTED[condition] for condition in eviction.when),
            eviction.min_run_time or "-",
        )
        for eviction, names in alike.items()
    ]
    return Table(("POOL", "LACKING", "PODS OF", "MAY EVICT PODS OF", "REASON", "WHEN", "RUNS AT LEAST"), rows)


def nobody_evicted(shown: Selection) -> Iterator[str]:
    """Where nobody evicts anybody, and of which classes the table is about pods with a label alone."""
    disturbed = {(eviction.pool, eviction.unit) for eviction in shown.evictions}
    counted = [resource.value for resource in counted_in(shown.plan)]
    lacked = {pool.name: [*(unit.name for unit in pool.units), *counted] for pool in shown.pools}
    calm = {pool: [name for name in names if (pool, name) not in disturbed] for pool, names in lacked.items()}
    if listed := ", ".join(f"{pool} ({', '.join(names)})" for pool, names in calm.items() if names):
        chosen = "they evict nobody, and nobody evicts them,"
        yield f"{'nobody evicts anybody' if shown.has_all_tenants else chosen} in {listed}"
    label, classes = shown.plan.scheduler.preemptibility_label, [found.name for found in misread(shown.plan)]
    if label and classes:
        named = ", ".join(classes)
        yield f"{label} says of the pods of Workloads whether they may be evicted; others of {named} need it"


def _parties(parties: Sequence[Party]) -> str:
    """Tenants with their classes; those that have the same ones together."""
    classes: dict[str, list[str]] = {}
    for party in parties:
        classes.setdefault(party.tenant, []).append(party.priority_class or "no class")
    tenants: dict[str, list[str]] = {}
    for tenant, names in classes.items():
        tenants.setdefault(" ".join(names), []).append(tenant)
    return "; ".join(f"{abridged(names, ', ')} ({shared})" for shared, names in tenants.items())
