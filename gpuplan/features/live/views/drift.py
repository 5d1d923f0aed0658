"""What runs otherwise than the policies say, for a terminal, a merge request or programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.features.live.drifting import Differs, Drift, Drifting, NextSync
from gpuplan.features.live.drifting.comparing import Owner
from gpuplan.features.tracing import Source
from gpuplan.terminal.json_findings import diagnostic_as_data, json_text
from gpuplan.terminal.markdown import code, escape, fitting, markdown_table, prose
from gpuplan.terminal.syncing import started, within
from gpuplan.terminal.text import Style, Theme, cells, cropped, literal, pad, printable

FORMAT_VERSION: Final = "1.0"
"""A minor step only adds keys; lists are never null or absent."""
MOST_SOURCES: Final = 3
"""How many lines of policies are shown to people for one difference; JSON has all."""
MOST_KINDS: Final = 8
"""How many kinds are named that were not compared."""


def shown_drift(found: Drifting, format_: str, theme: Theme) -> str:
    """The differences as ``table``, ``markdown`` or ``json``."""
    match format_:
        case "json":
            return json_text(drift_as_data(found, theme))
        case "markdown":
            return drift_markdown(found, theme)
        case _:
            return drift_page(found, theme)


# --- What is said ------------------------------------------------------------------------------------------------


def verdict(found: Drifting) -> str:
    """``prod: 3 differences in 2 objects; 142 compared``."""
    compared = f"{count(found.compared, 'object')} compared"
    if not found.drifts:
        return f"{found.cluster}: nothing differs; {compared}"
    objects = len({drift.title for drift in found.drifts})
    return f"{found.cluster}: {count(len(found.drifts), 'difference')} in {count(objects, 'object')}; {compared}"


def notes(found: Drifting) -> Iterator[str]:
    """What a reader has to know of the dump, and of what was not compared."""
    if found.told_name not in ("", found.cluster):
        yield f"the dump is of cluster `{found.told_name}`, as gpuplan's own objects in it say"
    for why, group in groupby(sorted(found.unjudged, key=lambda item: item.why), key=lambda item: item.why):
        kinds = listing([f"{item.kind.partition('.')[0]} ({item.number})" for item in group], MOST_KINDS)
        yield f"not compared, since {why}: {kinds}"
    if found.left_alone:
        paths = Counter(drift.path for drift in found.left_alone)
        told = ", ".join(f"`{path}` of {count(number, 'object')}" for path, number in paths.items())
        yield f"left alone, as `ignoreDifferences` says: {told}"


def what(drift: Drift) -> str:
    """What is the matter with the whole of it; empty where a field differs."""
    match drift.differs:
        case Differs.MISSING:
            return "is not in the cluster"
        case Differs.NODE if not drift.path:
            return "" if drift.note else "is not in the cluster"
        case Differs.LEFT:
            return "is in the cluster, and the policies say no such thing"
        case _:
            return ""


def coming(drift: Drift) -> str:
    """What the next sync does, and who starts it."""
    is_more = drift.next_sync is NextSync.OVERWRITES and not drift.is_written
    does, applier = "takes it away" if is_more else _DOES[drift.next_sync], drift.applier
    if drift.differs is Differs.NODE and drift.next_sync is NextSync.NOTHING:
        return "nothing: no sync changes it"
    if applier is None or drift.next_sync in (NextSync.NOTHING, NextSync.RELABELS):
        return does
    return f"{applier.kind} `{applier.name}` {does}, {_started(applier)}"


def _started(applier: Applier) -> str:
    return f"{started(applier)}{within(applier)}"


_DOES: Final = {
    NextSync.OVERWRITES: "overwrites it",
    NextSync.CREATES: "creates it",
    NextSync.FAILS: "fails: this field cannot be changed, delete the object first",
    NextSync.PRUNES: "deletes it",
    NextSync.ASKS: "deletes it when a person agrees",
    NextSync.RELABELS: "Node Feature Discovery sets it again",
    NextSync.LEAVES: "leaves it alone",
    NextSync.NOTHING: "nothing: nobody syncs it",
}


def by_whom(owner: Owner) -> str:
    """``kubectl-edit, Update at 2026-11-24T01:00:00Z``."""
    parts = [part for part in (owner.operation, owner.subresource) if part]
    when = f" at {owner.time}" if owner.time else ""
    last = ", which wrote to the object last" if owner.is_last else ""
    return f"{owner.manager}, {' of '.join(parts)}{when}{last}"


def policy_lines(drift: Drift) -> Sequence[Source]:
    """The lines of policies that a value comes from, or else the page that tells the rule."""
    lines = [source for source in drift.sources if source.how is not How.RULE]
    own = [source for source in lines if not source.is_of_object]
    return own or lines or drift.sources


def _where(source: Source, theme: Theme) -> str:
    if source.how is How.RULE:
        return source.page
    file = source.file if source.how is How.FACT else theme.path(source.file)
    return f"{file}:{source.line}"


# --- For a terminal ----------------------------------------------------------------------------------------------


def drift_page(found: Drifting, theme: Theme) -> str:
    parts = [_object(list(group), theme) for _, group in groupby(found.drifts, key=lambda drift: drift.title)]
    return "\n".join(parts)


def _object(drifts: Sequence[Drift], theme: Theme) -> str:
    """One object, what it would take to bring it back, and each of its fields that differ."""
    first = drifts[0]
    heading = theme.paint(printable(first.title), Style.STRONG)
    said = f" {what(first)}" if what(first) else ""
    text = f"{heading}{said}  [{first.change_class}]\n"
    if cells(f"{printable(first.title)}{said}  [{first.change_class}]") > theme.width:
        text = f"{heading}\n {said}  [{first.change_class}]\n"
    for drift in drifts:
        text += _field(drift, theme)
    nexts = dict.fromkeys(coming(drift) for drift in drifts)
    return text + "".join(_row("next", line, theme) for line in nexts)


def _field(drift: Drift, theme: Theme) -> str:
    text = ""
    if drift.path:
        line = f", line {drift.line}" if drift.line else ""
        text += f"  {theme.paint(printable(drift.path), Style.NOTE)}{line}\n"
        text += _row("policy", literal(drift.written) if drift.is_written else "says nothing", theme)
    shown = policy_lines(drift)
    for source in shown[:MOST_SOURCES]:
        text += _row("", f"{_where(source, theme)}  {source.title} {source.path}".rstrip(), theme)
    if drift.path:
        live = theme.paint(_cell(literal(drift.live), theme), Style.WARNING) if drift.has_live else "has none"
        text += f"    {pad('cluster', _WORDS)}{live}\n"
    if drift.owner is not None:
        text += _row("by", by_whom(drift.owner), theme)
    return text + (_row("note", drift.note, theme) if drift.note else "")


_WORDS: Final = 9


def _cell(text: str, theme: Theme) -> str:
    return cropped(text, max(theme.width - 4 - _WORDS, _LEAST))


_LEAST: Final = 16


def _row(word: str, text: str, theme: Theme) -> str:
    """A line, or more where it does not fit into one."""
    from textwrap import fill

    shown = printable(text)
    if cells(shown) <= theme.width - 4 - _WORDS:
        return f"    {pad(word, _WORDS)}{shown}\n"
    by = " " * (4 + _WORDS)
    filled = fill(shown, max(theme.width, 4 + _WORDS + _LEAST), initial_indent=by, subsequent_indent=by)
    return f"    {pad(word, _WORDS)}{filled.lstrip()}\n"


# --- For a merge request -----------------------------------------------------------------------------------------

_LIMIT: Final = 900_000


def drift_markdown(found: Drifting, theme: Theme) -> str:
    """A verdict, and a table of what differs."""
    rows = [_cells(drift, theme) for drift in found.drifts]
    head = f"### {escape(verdict(found))}\n\n"
    table = markdown_table(_HEADINGS, rows) if rows else ""
    shown = "".join(fitting(table.splitlines(keepends=True), _LIMIT))
    rest = "".join(f"- {prose(note)}\n" for note in notes(found))
    return head + shown + (f"\n{rest}" if rest else "")


_HEADINGS: Final = ("object", "field", "policy", "cluster", "by", "next sync", "class")


def _cells(drift: Drift, theme: Theme) -> Iterator[str]:
    yield code(drift.title)
    yield code(drift.path) if drift.path else escape(what(drift))
    lines = ", ".join(_where(source, theme) for source in policy_lines(drift)[:MOST_SOURCES])
    yield f"{code(literal(drift.written)) if drift.path and drift.is_written else ''} {escape(lines)}".strip()
    yield (code(literal(drift.live)) if drift.has_live else "none") if drift.path else ""
    yield escape(by_whom(drift.owner)) if drift.owner else ""
    yield prose(coming(drift))
    yield drift.change_class.value


# --- For programs ------------------------------------------------------------------------------------------------


def drift_as_data(found: Drifting, theme: Theme) -> dict[str, Any]:
    """A contract, `drift.schema.json`."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": found.cluster,
        "compared": found.compared,
        "differences": [_as_data(drift, theme) for drift in found.drifts],
        "left_alone": [_as_data(drift, theme) for drift in found.left_alone],
        "not_compared": [{"kind": item.kind, "count": item.number, "why": item.why} for item in found.unjudged],
        "findings": [diagnostic_as_data(diagnostic, theme) for diagnostic in found.report.diagnostics],
    }


def _as_data(drift: Drift, theme: Theme) -> dict[str, Any]:
    return {
        "what": drift.differs.value,
        "object": drift.title,
        "path": drift.path,
        **({"line": drift.line} if drift.line else {}),
        **({"written": drift.written} if drift.is_written and drift.path else {}),
        **({"live": drift.live} if drift.has_live and drift.path else {}),
        "file": theme.path(drift.file) if drift.file else "",
        "dump": drift.dump,
        "policies": [_source_as_data(source, theme) for source in drift.sources],
        "owner": _owner_as_data(drift.owner) if drift.owner else None,
        "next_sync": drift.next_sync.value,
        "applied_by": _applier_as_data(drift.applier) if drift.applier else None,
        "class": drift.change_class.value,
        "note": drift.note,
    }


def _source_as_data(source: Source, theme: Theme) -> dict[str, Any]:
    is_ours = source.how in (How.RULE, How.FACT)
    return {
        "file": source.file if is_ours else theme.path(source.file),
        "line": source.line,
        "path": source.path,
        "how": source.how.value,
        "document": source.title,
        "of_object": source.is_of_object,
    }


def _owner_as_data(owner: Owner) -> dict[str, Any]:
    return {
        "manager": owner.manager,
        "operation": owner.operation,
        "time": owner.time,
        "subresource": owner.subresource,
        "owns_field": not owner.is_last,
    }


def _applier_as_data(applier: Applier) -> dict[str, str]:
    return {"kind": applier.kind, "name": applier.name, "approval": applier.approval.value}
