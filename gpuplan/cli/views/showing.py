"""The chosen parts of plans, in each format that `gpuplan show` has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.selection import Selection, selection_of
from gpuplan.compiler.planning.subjects import Part, subject_of
from gpuplan.terminal.fitting import Table, legend_of
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.markdown import LIMIT, escape, fenced, fitting, prose
from gpuplan.terminal.plan import facts, layout_facts, plan_page, sections, summary_table, table_of_entries
from gpuplan.terminal.plan_json import plans_as_data
from gpuplan.terminal.preemption import nobody_evicted, preemption_heading, preemption_page, preemption_table
from gpuplan.terminal.text import PLAIN, Theme, printable
from gpuplan.terminal.verbs import late

_plan_svg = late("gpuplan.terminal.drawing:plan_svg")
_pool_svg = late("gpuplan.terminal.drawing:pool_svg")


def shown_plans(chosen: Sequence[Plan | Selection], format_: str, theme: Theme) -> str:
    """Return the chosen parts as ``table``, ``wide``, ``name``, ``markdown``, ``svg``, ``json`` or ``yaml``."""
    match format_:
        case "json":
            return json_text(plans_as_data(chosen))
        case "yaml":
            return to_yaml(plans_as_data(chosen))
        case "name":
            named = (subject_of(part) for shown in map(selection_of, chosen) for part in _documents(shown))
            return "".join(f"{printable(f'{kind.lower()}/{name}')}\n" for kind, name in dict.fromkeys(named))
        case "markdown":
            return _within_limit(_plan_markdown(selection_of(plan)) for plan in chosen)
        case "svg":
            selections = [selection_of(plan) for plan in chosen]
            plans = [replace(shown.plan, pools=shown.pools) for shown in selections]
            pools = [(plan, pool) for plan in plans for pool in plan.pools]
            text: str = _pool_svg(*pools[0]) if len(pools) == 1 else _plan_svg(plans)
            return text
        case _:
            return "\n".join(plan_page(plan, theme) for plan in chosen)


def shown_summary(chosen: Sequence[Plan | Selection], format_: str, theme: Theme) -> str:
    """One line for each cluster, as ``table``, ``wide`` or ``markdown``."""
    table = summary_table(chosen)
    return _table_markdown(table) if format_ == "markdown" else table.shown(theme)


def shown_preemption(chosen: Sequence[Plan | Selection], format_: str, theme: Theme) -> str:
    """Return who can evict whom, as ``table``, ``wide`` or ``markdown``."""
    if format_ == "markdown":
        return _within_limit(_preemption_markdown(selection_of(plan)) for plan in chosen)
    return "\n".join(preemption_page(plan, theme) for plan in chosen)


def _documents(shown: Selection) -> Iterator[Part]:
    yield shown.plan.cluster
    yield from shown.pools
    yield from shown.gpus
    yield from (layout for layout in shown.layouts if not layout.is_inline)
    yield from shown.priority_classes
    yield from shown.tenants
    yield from shown.workloads
    yield from shown.retained


# --- Markdown ----------------------------------------------------------------------------------------------------


def _within_limit(parts: Iterable[Iterable[str]]) -> str:
    """As much as GitHub shows of a job's summary, and what is missing."""
    all_parts = [part for of_cluster in parts for part in of_cluster]
    shown = list(fitting(all_parts, LIMIT - 1000))
    left = len(all_parts) - len(shown)
    return "".join(shown) + (f"\n{left} parts are not shown; `--pool` and `--tenant` choose some.\n" if left else "")


def _plan_markdown(shown: Selection) -> Iterator[str]:
    yield f"## Cluster {escape(shown.plan.cluster.name)}\n\n{'; '.join(map(escape, facts(shown.plan)))}\n\n"
    for part in sections(shown):
        text = _table_markdown(part.body) if isinstance(part.body, Table) else _layouts_markdown(shown)
        if text:
            yield f"### {part.heading}\n\n{text}\n"


def _table_markdown(whole: Table) -> str:
    if not whole.rows:
        return ""
    table = whole.filled()
    rule = ["---:" if index in {*table.right} else "---" for index in range(len(table.headings))]
    # A terminal has no other way to tell headings from rows than capital letters.
    heads = (
        re.sub("[gc]pu", lambda name: name[0].upper(), head.capitalize(), flags=re.IGNORECASE)
        for head in table.headings
    )
    lines = [heads, rule, *(map(prose, row) for row in table.rows)]
    meant = legend_of(table.headings, table.rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + (f"\n{prose(meant)}\n" if meant else "")


def _layouts_markdown(shown: Selection) -> str:
    return "\n".join(
        f"{escape(layout_facts(shown.plan, layout))}\n\n{fenced(table_of_entries(layout.entries, PLAIN))}\n"
        for layout in shown.layouts
    )


def _preemption_markdown(shown: Selection) -> Iterator[str]:
    yield f"## {escape(preemption_heading(shown.plan))}\n\n"
    yield from filter(None, (_table_markdown(preemption_table(shown)),))
    yield from (f"\n{escape(line)}\n" for line in nobody_evicted(shown))
