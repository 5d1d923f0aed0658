"""A comparison of a policy by two schedulers, for people or for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog.schedulers import Capability
from gpuplan.compiler.checks.comparison import ConceptChange, SchedulerComparison, WorkloadChange
from gpuplan.compiler.manifests import to_yaml
from gpuplan.terminal.fitting import folded
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.text import Style, Theme, indent, marked_up, printable, section

FORMAT_VERSION: Final = "1.1"
"""A minor step only adds keys."""
_SHOWN: Final = 3


def shown_comparisons(comparisons: Sequence[SchedulerComparison], format_: str, theme: Theme) -> str:
    """All comparisons as ``table``, ``json`` or ``yaml``."""
    match format_:
        case "json":
            return json_text(comparisons_as_data(comparisons))
        case "yaml":
            return to_yaml(comparisons_as_data(comparisons))
        case _:
            return folded("\n".join(comparison_page(comparison, theme) for comparison in comparisons), theme)


def comparison_page(comparison: SchedulerComparison, theme: Theme) -> str:
    """One cluster: what changes, with the places, and what does not."""
    present, other = comparison.present, comparison.other
    heading = f"Cluster {comparison.cluster}: from {present.title} to {other.title}"
    lines = "".join(
        f"{_location(found.finding.at, theme)}  {found.code} {marked_up(printable(found.shown.message), theme)}\n"
        for found in comparison.errors
    )
    parts = (
        f"{theme.paint(printable(heading), Style.STRONG)}\n",
        _part("Gained", comparison.gained, other.kind.value, lambda kept: f"by {kept.how}", theme),
        _part("Lost", comparison.lost, other.kind.value, lambda kept: kept.loss, theme),
        section("Refused", lines, theme),
        section("Workloads", "".join(_workload(change, theme) for change in comparison.workloads), theme),
        _part("Needs configuration", comparison.settings, other.kind.value, lambda kept: kept.setting, theme),
        *(
            section(heading, "".join(f"{change.concept.title}\n" for change in changes), theme)
            for heading, changes in (("Kept by both", comparison.kept), ("Lost by both", comparison.lost_by_both))
        ),
    )
    return "\n".join(part for part in parts if part)


def _part(
    heading: str, changes: Sequence[ConceptChange], other: str, fact: Callable[[Capability], str], theme: Theme
) -> str:
    if not changes and heading not in ("Gained", "Lost"):
        return ""
    text = "".join(_change(change, fact(change.concept.capabilities[other]), theme) for change in changes)
    return section(heading, text or "nothing\n", theme)


def _workload(change: WorkloadChange, theme: Theme) -> str:
    parts = (
        ("is refused", [error.code for error in change.errors]),
        ("loses", [concept.title for concept in change.lost]),
        ("gains", [concept.title for concept in change.gained]),
    )
    text = "".join(f"{verb}: {', '.join(dict.fromkeys(named))}\n" for verb, named in parts if named)
    return f"{theme.paint(printable(change.name), Style.STRONG)}\n{indent(text)}" if text else ""


def _change(change: ConceptChange, fact: str, theme: Theme) -> str:
    concept = change.concept
    lines = [
        marked_up(fact, theme),
        *(f"{_location(use.at, theme)}  {marked_up(printable(use.text), theme)}" for use in change.places[:_SHOWN]),
    ]
    if len(change.places) > _SHOWN:
        lines.append(f"{len(change.places) - _SHOWN} more like these")
    text = "".join(f"{line}\n" for line in lines)
    return f"{concept.title}  {theme.paint(concept.field, Style.NOTE)}\n{indent(text)}"


def _location(at: Origin, theme: Theme) -> str:
    return printable(theme.place(at.locate()))


# --- JSON --------------------------------------------------------------------------------------------------------


def comparisons_as_data(comparisons: Sequence[SchedulerComparison]) -> dict[str, Any]:
    """All clusters, what a change is about in the matrix's order, places in the policy's."""
    return {"format_version": FORMAT_VERSION, "clusters": [_comparison(comparison) for comparison in comparisons]}


def _comparison(comparison: SchedulerComparison) -> dict[str, Any]:
    parts = {
        "gained": comparison.gained,
        "lost": comparison.lost,
        "kept": comparison.kept,
        "lost_by_both": comparison.lost_by_both,
        "needs_configuration": comparison.settings,
    }
    return {
        "name": comparison.cluster,
        "from": comparison.present.kind.value,
        "to": comparison.other.kind.value,
        **{name: [_change_as_data(change, comparison) for change in found] for name, found in parts.items()},
        "errors": [
            {"code": found.code, "message": found.shown.message, **_place_as_data(found.finding.at)}
            for found in comparison.errors
        ],
        "workloads": [
            {
                "name": found.name,
                "gained": [concept.id for concept in found.gained],
                "lost": [concept.id for concept in found.lost],
                "errors": list(dict.fromkeys(error.code for error in found.errors)),
            }
            for found in comparison.workloads
        ],
    }


def _change_as_data(change: ConceptChange, comparison: SchedulerComparison) -> dict[str, Any]:
    before = change.concept.capabilities[comparison.present.kind.value]
    after = change.concept.capabilities[comparison.other.kind.value]
    return {
        "concept": change.concept.id,
        "title": change.concept.title,
        "field": change.concept.field,
        "from": _capability(before),
        "to": _capability(after),
        "places": [{**_place_as_data(use.at), "text": use.text} for use in change.places],
    }


def _capability(kept: Capability) -> dict[str, Any]:
    return {
        "support": kept.support.value,
        "how": kept.how or None,
        "loss": kept.loss or None,
        "setting": kept.setting or None,
        "uncertain": kept.is_uncertain,
    }


def _place_as_data(at: Origin) -> dict[str, Any]:
    location = at.locate()
    start = location.span.start
    return {"path": location.file.path, "line": start.line, "column": start.column, "field": str(at)}
