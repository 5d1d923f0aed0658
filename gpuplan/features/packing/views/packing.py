"""Shows how GPUs are best cut for a demand: to people, in a merge request, as a patch, or for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from fractions import Fraction
from math import ceil
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.planning.plan import Amount, Pool, UnitKey
from gpuplan.compiler.planning.prices import HOURS_PER_MONTH, Cost
from gpuplan.features.changes import cost_change_as_data, costs_of
from gpuplan.features.packing.granting import Moved
from gpuplan.features.packing.judging import lacking_text
from gpuplan.features.packing.model import ALTERNATIVES_S, Numbers, Packing, Variant, Variation, idle_of, rounding_of
from gpuplan.features.packing.sizing.answers import Objective, Proof
from gpuplan.features.packing.sizing.needs import Basis
from gpuplan.features.packing.steps import commands_of, tasks_of
from gpuplan.terminal.costs import hour_text, money_as_data, month_text
from gpuplan.terminal.fitting import Table, folded, folded_commands
from gpuplan.terminal.json_findings import diagnostic_as_data, json_text
from gpuplan.terminal.markdown import escape, fenced, markdown_table
from gpuplan.terminal.plan import sharing_of
from gpuplan.terminal.plan_json import plan_as_data
from gpuplan.terminal.text import PLAIN, Style, Theme, printable, section

FORMAT_VERSION: Final = "2.1"
"""A minor step only adds keys; lists are never null or absent."""

FORMATS: Final = ("table", "json", "markdown", "diff")


def shown_packing(packing: Packing, format_: str, theme: Theme, number: int = 0) -> str:
    """Return an answer in one of `FORMATS`; ``number`` is the alternative, 0 for what was asked for.

    Return nothing if there is no answer, and no patch of an answer that must not be written: the findings say why.
    """
    if format_ == "json":
        return json_text(packing_as_data(packing, theme))
    if not packing.variants:
        return ""
    match format_:
        case "diff":
            variant = packing.variants[number]
            patch = patch_text(variant, packing.texts) if variant.is_valid else ""
            if not theme.is_fitted:
                return patch
            # a terminal obeys characters that a patch must keep
            return "".join(f"{printable(line.removesuffix(chr(10)))}\n" for line in _lines_of(patch))
        case "markdown":
            return _markdown(packing, number)
        case _:
            return _page(packing, theme, number)


def patch_text(variant: Variant, texts: Mapping[str, str]) -> str:
    """Return the changes of files as `patch` and `git apply` read them."""
    parts: list[str] = []
    for path, text in sorted(variant.files.items()):
        before, after = texts.get(path), text
        old = "/dev/null" if before is None else f"a/{path}"
        new = "/dev/null" if after is None else f"b/{path}"
        lines = unified_diff(_lines_of(before), _lines_of(after), old, new)
        parts += (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return "".join(parts)


def _lines_of(text: str | None) -> list[str]:
    return (text or "").splitlines(keepends=True)


# --- For people --------------------------------------------------------------------------------------------------


def _page(packing: Packing, theme: Theme, number: int) -> str:
    """Return an answer without what stands beside it: alternatives are shown when they are there."""
    variant, narrow = packing.variants[number], theme.indented()

    def table(heading: str, headings: tuple[str, ...], rows: list[tuple[str, ...]], right: Iterable[int] = ()) -> str:
        return section(heading, Table(headings, rows, right=right).shown(narrow) if rows else "", theme)

    def lines(heading: str, texts: Iterable[str]) -> str:
        return section(heading, folded(_text(texts), narrow), theme)

    heading = theme.paint(printable(_headline(packing, variant)), Style.STRONG)
    parts = [
        folded(f"{heading}\n{_text(_facts(packing, variant))}", theme),
        table("Pools", POOLS, pool_rows(variant), (2, 3)),
        table("Guarantees", GUARANTEES, guarantee_rows(packing, number), (3,)),
        table("Quotas that move", QUOTAS, quota_rows(variant)),
        table("Workloads that move", WORK, work_rows(variant)),
        lines("Idle", _idle(variant)),
        lines("Cost", cost_text(variant)),
        table("Left as they are", ("POOL", "WHY"), [*variant.fleet.kept, *variant.fleet.left_alone]),
        lines("To do by hand", tasks_of(variant)),
        section("How to get there", folded_commands(_text(commands_of(variant)), narrow), theme),
    ]
    return "\n".join(part for part in parts if part)


def shown_alternatives(packing: Packing, theme: Theme) -> str:
    """Return a table of the answer beside the alternatives, or nothing if there are none."""
    rows = other_rows(packing)
    table = Table(others(packing), rows, right=range(2, 10)).shown(theme.indented()) if rows else ""
    text = section("Alternatives", table, theme) if rows else ""
    if packing.has_stopped:
        text += f"the search for alternatives has stopped after {ALTERNATIVES_S:g} seconds\n"
    return f"\n{text}" if text else ""


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{printable(line)}\n" for line in lines)


def _headline(packing: Packing, variant: Variant) -> str:
    now, then = packing.today, variant.numbers
    if variant.answer.unmet:
        pods = sum(pods for _, pods in variant.answer.unmet)
        return f"Cluster {packing.cluster}: {lacking_text(pods, is_exhaustive=variant.answer.is_exhaustive)}"
    if not variant.diff:
        return f"Cluster {packing.cluster}: no policies can be made of the answer"
    change, nodes = then.gpus - now.gpus, count(now.nodes, "node")
    less = f"{abs(change)} {'fewer' if change < 0 else 'more'} than today's {now.gpus} in {nodes}"
    against = f"{less if change else f'as many as today, in {nodes}'}; {nodes_text(then)}"
    return (
        f"Cluster {packing.cluster}: {count(then.gpus, 'GPU')} in {count(then.nodes, 'node')} "
        f"with {count(then.layouts, 'MIG layout')}; {against if variant.files else 'nothing changes'}{_money(variant)}"
    )


def nodes_text(numbers: Numbers) -> str:
    """Return in words how many nodes have to be drained, and how many come."""
    texts = (
        (numbers.recut_nodes, "to drain and cut again"),
        (numbers.removed_nodes, "to drain and take away"),
        (numbers.new_nodes, "to add"),
    )
    changed = [f"{count(number, 'node')} {text}" for number, text in texts if number]
    return joined(changed) if changed else "no node to drain"


def _money(variant: Variant) -> str:
    """Return the costs of a month and how they change from today, or nothing if no document says prices."""
    cost, change = variant.numbers.cost, variant.cost_change
    if cost is None:
        return ""
    difference = change.total.difference if change and change.total else Fraction(0)
    against = f", {month_text(difference, cost.currency, '+')} against today" if difference else ""
    return f"; {_month(cost)} {cost.currency} a month{against}"


def _month(cost: Cost) -> str:
    return f"{'at least ' if cost.unpriced else ''}{month_text(cost.amount, cost.currency)}"


def _facts(packing: Packing, variant: Variant) -> Iterator[str]:
    """Yield the size of the demand, and why the answer cannot be less."""
    pods, teams = sum(need.pods for need in packing.needs), len({need.team for need in packing.needs})
    basis = _BASES[packing.basis]
    source = basis if packing.is_from_quotas else f"the files, and for other teams {basis}"
    yield f"demand: {count(pods, 'pod')} of {count(teams, 'team')}, from {source}"
    if packing.spared:
        ask, their = ("asks", "its") if len(packing.spared) == 1 else ("ask", "their")
        yield (
            f"{listing(packing.spared)} {ask} for less than {their} guarantees, which stay; "
            "`--may-cut-guarantees` lets them go down"
        )
    if idle := variant.fleet.limits_without_nodes:
        yield f"no pool in question has nodes of {listing(idle)}, so `--nodes-at-most` limits nothing there"
    engines = {name for need in packing.needs for name in need.engines}
    gpus = [one.gpu for one in variant.fleet.node_types]
    if unread := sorted({gpu.id for gpu in gpus if any(getattr(gpu.engines, name) is None for name in engines)}):
        yield f"the media engines of {listing(unread)} are not known: no pod that needs some is put there"
    if not variant.answer.unmet:
        yield bound_text(packing, variant)


_BASES: Final = {
    Basis.GUARANTEED: "the guarantees of the quotas",
    Basis.LIMIT: "the limits of the quotas",
    Basis.WORKLOADS: "the workloads, else the guarantees of the quotas",
}


def bound_text(packing: Packing, variant: Variant) -> str:
    """Return in plain words a lower limit of all answers, and whether it is proven."""
    bound, objective, cost = variant.answer.bound, variant.answer.objective, packing.today.cost
    if objective is Objective.PRICE and cost:
        least = f"{month_text(bound.least, cost.currency)} {cost.currency} a month"
    else:
        least = count(ceil(bound.least), *_UNITS[objective])
    match bound.proof:
        case Proof.SOLVER:
            return f"no answer takes less than {least}: the solver has proved it"
        case Proof.NONE:
            return f"no answer can take less than {least}; an answer in between may exist: not all were tried"


_UNITS: Final = {
    Objective.GPUS: ("GPU",),
    Objective.PRICE: ("an hour", "an hour"),
    Objective.CHANGES: ("node cut in another way", "nodes cut in another way"),
}


POOLS: Final = ("POOL", "GPU", "NODES", "GPUS", "SHARING", "TODAY")


def pool_rows(variant: Variant) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for pool in variant.pools:
        was = variant.fleet.find(pool.name)
        today = "new" if was is None else "the same" if _today(was) == _today(pool) else _today(was)
        rows.append((pool.name, pool.gpu.id, str(pool.nodes.count), str(pool.gpu_count), sharing_of(pool), today))
    names = {pool.name for pool in variant.pools}
    gone = [was for was in variant.fleet.pools if was.name not in names] if variant.plan else []
    return rows + [(was.name, was.gpu.id, "0", "0", "goes", _today(was)) for was in gone]


def _today(pool: Pool) -> str:
    return f"{count(pool.nodes.count, 'node')}, {sharing_of(pool)}"


GUARANTEES: Final = ("TENANT", "TODAY", "THEN", "GPUS")


def guarantee_rows(packing: Packing, number: int) -> list[tuple[str, ...]]:
    """Return the guarantees that are others then, biggest cut first, with the change in GPUs."""
    return [
        (one.tenant, _units(one.before), _units(one.after), f"{float(one.gpus_after - one.gpus_before):+.3g}")
        for one in packing.guarantees(number)
    ]


def _units(units: Mapping[UnitKey, Amount]) -> str:
    return ", ".join(f"{float(number):g} {_unit(key)}" for key, number in units.items()) or "-"


QUOTAS: Final = ("TENANT", "FROM", "TO")


def quota_rows(variant: Variant) -> list[tuple[str, ...]]:
    """Return the quotas that move: none if the demand is not met."""
    return [
        (moved.tenant, _unit(moved.before), ", ".join(f"{flow.units} {_unit(flow.key)}" for flow in moved.after) or "-")
        for moved in (() if variant.answer.unmet else moves_of(variant))
    ]


def moves_of(variant: Variant) -> list[Moved]:
    """Return the quotas that are not on the unit on which they were."""
    return [moved for moved in variant.moved if [flow.key for flow in moved.after] != [moved.before]]


def _unit(key: UnitKey | None) -> str:
    return "new" if key is None else f"{key[0]} {key[1]}"


WORK: Final = ("WORKLOAD", "FROM", "TO")


def work_rows(variant: Variant) -> list[tuple[str, ...]]:
    """Return the workloads that move.

    The policy of a workload that stays may name its unit now, if its pool has several: that is no move.
    """
    return [
        (seat.workload.name, _unit(seat.workload.key), _unit(seat.key) if seat.key else "no room")
        for seat in (() if variant.answer.unmet else variant.seats)
        if seat.key != seat.workload.key
    ]


def _idle(variant: Variant) -> Iterator[str]:
    if variant.plan is None:
        return
    for idle in idle_of(variant.plan, variant.pools):
        units = joined([f"{number} {name}" for name, number in idle.unused.items() if number])
        slices = f"{count(idle.slices, 'memory slice')} in no instance" if idle.slices else ""
        if units or slices:
            yield f"{idle.pool}: {'; '.join(filter(None, (units and f'{units} that nobody is guaranteed', slices)))}"
    for model, gpus in rounding_of(variant.plan, variant.pools).items():
        if gpus:
            yield f"{model}: {count(gpus, 'GPU')} because nodes are whole"
    for gone in variant.assignment.departures:
        names = f": {joined(gone.names)}" if gone.names else ""
        yield f"{count(gone.nodes, 'node')} of {gone.pool} {'is' if gone.nodes == 1 else 'are'} not needed{names}"


def cost_text(variant: Variant) -> Iterator[str]:
    """Yield the costs of the pools by the hour and month, and how `gpuplan diff` says they change."""
    cost = variant.numbers.cost
    if cost is None or variant.diff is None or variant.plan is None:
        return
    yield (
        f"{hour_text(cost.amount)} {cost.currency} an hour, {month_text(cost.amount, cost.currency)} a month "
        f"of {HOURS_PER_MONTH} hours{', for the pools in question' if variant.fleet.left_alone else ''}"
    )
    if cost.unpriced and variant.cost_change is None:
        have = "has" if len(cost.unpriced) == 1 else "have"
        yield f"without {listing(cost.unpriced)}, which {have} no price"
    yield from costs_of(variant.diff, variant.plan.cluster.name)


def others(packing: Packing) -> tuple[str, ...]:
    cost = packing.today.cost
    return (*OTHERS, *([f"{cost.currency} A MONTH"] if cost else []))


OTHERS: Final = ("", "ANSWER", "GPUS", "NODES", "LAYOUTS", "CUT AGAIN", "TAKEN AWAY", "NEW")
NAMES: Final = {
    Variation.ASKED: "as asked",
    Variation.FEWER_LAYOUTS: "one layout less",
    Variation.ONE_LAYOUT: "one layout for all",
    Variation.SHARED: "shared without hardware isolation too",
    Variation.FEWEST_CHANGES: "fewest nodes cut otherwise",
}


def other_rows(packing: Packing) -> list[tuple[str, ...]]:
    if not packing.alternatives:
        return []
    rows = [("today", "as it is", *_cells(packing.today))]
    for index, variant in enumerate(packing.variants):
        cells = _cells(variant.numbers) if variant.plan else ("-",) * (len(rows[0]) - 2)
        rows.append((str(index or ""), NAMES[variant.variation], *cells))
    return rows


def _cells(numbers: Numbers) -> tuple[str, ...]:
    money = [_month(numbers.cost)] if numbers.cost else []
    shown = (*numbers[:3], numbers.recut_nodes, numbers.removed_nodes, numbers.new_nodes)
    return (*map(str, shown), *money)


# --- For a merge request -----------------------------------------------------------------------------------------


def _markdown(packing: Packing, number: int) -> str:
    variant = packing.variants[number]
    parts = [
        f"**{escape(_headline(packing, variant))}**\n",
        "".join(f"- {escape(line)}\n" for line in _facts(packing, variant)),
    ]
    tables: Sequence[tuple[str, Sequence[str], Sequence[tuple[str, ...]]]] = (
        ("Pools", POOLS, pool_rows(variant)),
        ("Guarantees", GUARANTEES, guarantee_rows(packing, number)),
        ("Quotas that move", QUOTAS, quota_rows(variant)),
        ("Workloads that move", WORK, work_rows(variant)),
        ("Alternatives", others(packing), other_rows(packing)),
    )
    for heading, headings, rows in tables:
        if rows:
            parts.append(f"### {heading}\n\n{markdown_table(headings, [map(escape, row) for row in rows])}")
    for heading, lines in (
        ("Idle", [*_idle(variant)]),
        ("Cost", [*cost_text(variant)]),
        ("To do by hand", [*tasks_of(variant)]),
        ("How to get there", [*commands_of(variant)]),
    ):
        if lines:
            parts.append(f"### {heading}\n\n" + "".join(f"- {escape(line)}\n" for line in lines))
    if variant.files and variant.is_valid:
        parts.append(f"### Policies\n\n{fenced(patch_text(variant, packing.texts), 'diff')}")
    return "\n".join(parts)


# --- For programs ------------------------------------------------------------------------------------------------


def packing_as_data(packing: Packing, theme: Theme = PLAIN) -> dict[str, Any]:
    """The contract of `gpuplan schema pack`."""
    chosen = packing.chosen
    findings = (*(one for one in packing.report.diagnostics if one.is_error), *packing.diagnostics)
    return {
        "format_version": FORMAT_VERSION,
        "cluster": packing.cluster,
        "objective": packing.objective.value,
        "valid": packing.is_valid,
        "demand": {
            "from_quotas": packing.is_from_quotas,
            "basis": packing.basis.value,
            "teams": sorted({need.team for need in packing.needs}),
            "pods": sum(need.pods for need in packing.needs),
        },
        "today": _numbers(packing.today),
        "kept": [one._asdict() for one in chosen.fleet.kept] if chosen else [],
        "left_alone": [one._asdict() for one in chosen.fleet.left_alone] if chosen else [],
        "answers": [_variant(packing, number, theme) for number in range(len(packing.variants))],
        "findings": _findings(findings, theme),
    }


def _numbers(numbers: Numbers) -> dict[str, Any]:
    cost = numbers.cost
    money = {"currency": cost.currency, **money_as_data(cost.amount)} if cost else {}
    return {
        **numbers._asdict(),
        "drained_nodes": numbers.drained_nodes,
        "cost": {**money, "unpriced_pools": list(cost.unpriced)} if cost else None,
    }


def _variant(packing: Packing, number: int, theme: Theme) -> dict[str, Any]:
    variant = packing.variants[number]
    names = {pool.name for pool in variant.pools}
    bound = variant.answer.bound
    plan, diff = variant.plan, variant.diff
    return {
        "answer": variant.variation.value,
        "objective": variant.answer.objective.value,
        "valid": variant.is_valid,
        **_numbers(variant.numbers),
        "bound": {"least": str(bound.least), "proof": bound.proof.value},
        "pools": [pool for pool in plan_as_data(plan)["pools"] if pool["name"] in names] if plan else [],
        "idle": [{**idle._asdict(), "unused": dict(idle.unused)} for idle in idle_of(plan, variant.pools)]
        if plan
        else [],
        "rounding": dict(rounding_of(plan, variant.pools)) if plan else {},
        "not_needed": [one._asdict() for one in variant.assignment.departures],
        "guarantees": [
            {
                "tenant": one.tenant,
                "before": _granted(one.before),
                "after": _granted(one.after),
                "gpus_before": float(one.gpus_before),
                "gpus_after": float(one.gpus_after),
            }
            for one in packing.guarantees(number)
        ],
        "quotas": [
            {
                "tenant": moved.tenant,
                "from": _key(moved.before),
                "to": [{**(_key(flow.key) or {}), "units": flow.units} for flow in moved.after],
            }
            for moved in variant.moved
        ],
        "workloads": [
            {"workload": seat.workload.name, "from": _key(seat.workload.key), "to": _key(seat.key)}
            for seat in variant.seats
        ],
        "change": {
            "class": diff.worst_of(plan.cluster.name).value,
            "nodes": diff.nodes_of(plan.cluster.name),
            "pods": diff.pods_of(plan.cluster.name),
            "costs": cost_change_as_data(variant.cost_change),
        }
        if diff and plan
        else None,
        "files": dict(sorted(variant.files.items())),
        "tasks": list(tasks_of(variant)),
        "commands": list(commands_of(variant)),
        "findings": _findings((*variant.findings, *(diff.findings if diff else ())), theme),
    }


def _granted(units: Mapping[UnitKey, Amount]) -> list[dict[str, Any]]:
    return [{"pool": pool, "unit": unit, "units": float(number)} for (pool, unit), number in units.items()]


def _key(key: UnitKey | None) -> dict[str, str] | None:
    return None if key is None else {"pool": key[0], "unit": key[1]}


def _findings(diagnostics: Iterable[Diagnostic], theme: Theme) -> list[dict[str, Any]]:
    return [diagnostic_as_data(one, theme) for one in diagnostics]


# --- For stderr --------------------------------------------------------------------------------------------------


def written(packing: Packing, variant: Variant, done: Sequence[str], theme: Theme) -> str:
    """Return which files were written, or how to write them."""
    if not variant.files:
        return "nothing to write: the policies say so already\n"
    if not done:
        return f"{count(len(variant.files), 'file')} to change; `--write` writes them, `-o diff` shows them\n"
    verbs = {path: "removed" if variant.files[path] is None else "wrote" for path in done}
    lines = "".join(f"{verb} {theme.path(path)}\n" for path, verb in verbs.items())
    return f"{lines}next: gpuplan diff --cluster {packing.cluster} && gpuplan build --cluster {packing.cluster}\n"
