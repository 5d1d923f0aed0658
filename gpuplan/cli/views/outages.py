"""Nodes that are away for repair: what is left, which guarantees do not hold, and what to type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.checks.wording import number, total_text
from gpuplan.compiler.planning.outages import Away, Level, levels
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.views.rollout import wait_for_nodes
from gpuplan.terminal.fitting import Table, folded, folded_commands
from gpuplan.terminal.text import Style, Theme, indent, printable, section

_HEADINGS = ("POOL", "UNIT", "ALL", "LEFT", "GUARANTEED", "SHORT")


def outage_page(plan: Plan, aways: Sequence[Away], theme: Theme) -> str:
    """One cluster: a row for each unit of the pools, the broken guarantees, and commands for the nodes that have names.

    A single GPU is gone for its node's pods while the device plugin calls it unhealthy. To repair it takes the node.
    """
    found = list(levels(plan, aways))
    is_one = len(aways) == 1 and (aways[0].is_whole or len(aways[0].gpus) == 1)
    title = f"Cluster {plan.cluster.name}, while {joined([*map(_name, aways)])} {'is' if is_one else 'are'} away"
    rows = [
        (level.pool.name, level.unit, *map(number, (level.capacity, level.left, level.guaranteed, level.short)))
        for level in found
    ]
    nodes = [away for away in aways if away.is_named]
    names = " ".join(away.name for away in nodes)
    commands = (f"kubectl cordon {names}", f"kubectl drain {names} --ignore-daemonsets --delete-emptydir-data")
    # A node that comes back has its labels from NFD, or gets them with the next sync; the units tell that it works.
    waiting = [line for away in nodes for line in wait_for_nodes([away.name], away.part)]
    back = (*waiting, f"kubectl uncordon {names}")
    parts = (
        folded(f"{theme.paint(printable(title), Style.STRONG)}\n", theme),
        section("Capacity, in units", Table(_HEADINGS, rows, right=range(2, 6)).shown(theme.indented()), theme),
        section("Guarantees", _lines(_guarantees(plan, found), theme), theme),
        section("To take the node away", _lines(commands, theme, folded_commands), theme) if nodes else "",
        section("When it is repaired", _lines(back, theme, folded_commands), theme) if nodes else "",
        section("If it does not come back", _lines(_give_up(plan, aways), theme), theme),
    )
    return "\n".join(part for part in parts if part)


def _name(away: Away) -> str:
    if away.is_named:
        return away.name if away.is_whole else f"{_gpus(away)} of {away.name}"
    whose = f"a node of pool {away.pool.name}"
    return whose if away.is_whole else f"{_gpus(away)} of {whose}"


def _gpus(away: Away) -> str:
    indexes = [str(index) for index in sorted(away.gpus)]
    return f"GPU{'' if len(indexes) == 1 else 's'} {joined(indexes)}"


def _lines(lines: Iterable[str], theme: Theme, fold: Callable[[str, Theme], str] = folded) -> str:
    return indent(fold("".join(f"{printable(line)}\n" for line in lines), theme.indented(4)))


def _guarantees(plan: Plan, remaining: Sequence[Level]) -> Iterator[str]:
    broken = [level for level in remaining if level.short]
    if not broken:
        yield "all of them hold"
    for level in broken:
        holders = [(tenant.name, quota.guaranteed) for tenant, quota in level.total.quotas] if level.total else []
        parts = total_text([(name, amount) for name, amount in holders if amount])
        yield f"{level.unit} of pool {level.pool.name}: {level.left} left of {parts} guaranteed"
    for pool in dict.fromkeys(level.pool.name for level in broken):
        fallback = next(level.pool.spec.fallback for level in broken if level.pool.name == pool)
        if fallback and plan.scheduler.crosses_pools:
            yield f"workloads of pool {pool} may go to its fallback, pool {fallback}"


def _give_up(plan: Plan, aways: Sequence[Away]) -> Iterator[str]:
    for name in dict.fromkeys(away.pool.name for away in aways):
        own = [away for away in aways if away.pool.name == name]
        pool = own[0].pool
        if len(own) == pool.nodes.count:
            yield f"remove pool {pool.name}, and what names it"
            continue
        listed = [away.name for away in own if away.name in pool.nodes.names]
        names = f", and take {joined(listed)} out of `nodes.names`" if listed else ""
        yield f"write `nodes.count: {pool.nodes.count - len(own)}` in pool {pool.name}{names}"
    for level in levels(plan, [away.node for away in aways]):
        if level.short and level.left:
            yield f"lower guarantees on {level.unit} of pool {level.pool.name} by {number(level.short)}"
