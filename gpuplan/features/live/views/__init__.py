"""The differences between what runs and the policies, and the result of an import, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.base.wording import count, count_kinds, listing
from gpuplan.compiler.manifests.kinds.imported import COLLECTED
from gpuplan.compiler.manifests.provenance import How
from gpuplan.features.live.drifting import Differs, Drift, Drifting, NextSync
from gpuplan.features.live.drifting.objects import Owner
from gpuplan.features.tracing import Source
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.json_findings import diagnostic_as_data, findings_as_data, json_text
from gpuplan.terminal.markdown import code, escape, fitting, markdown_table, prose
from gpuplan.terminal.syncing import started, within
from gpuplan.terminal.text import Style, Theme, cells, cropped, literal, pad, printable

if TYPE_CHECKING:
    from gpuplan.features.live.first_sync import FirstSync
    from gpuplan.features.live.importing import Import


FORMAT_VERSION: Final = "1.0"
"""A minor step only adds keys; lists are never null or absent."""
MOST_SOURCES: Final = 3
"""The number of lines of policies that people see for one difference; JSON has all."""
MOST_KINDS: Final = 8
"""The number of kinds that are named as not compared."""


def shown_drift(drifting: Drifting, format_: str, theme: Theme) -> str:
    """Return the differences as ``table``, ``markdown`` or ``json``."""
    match format_:
        case "json":
            return json_text(drift_as_data(drifting, theme))
        case "markdown":
            return drift_markdown(drifting, theme)
        case _:
            return drift_page(drifting, theme)


# --- What is said ------------------------------------------------------------------------------------------------


def verdict(drifting: Drifting) -> str:
    """``prod: 3 differences in 2 objects; 142 compared``."""
    compared = f"{count(drifting.compared, 'object')} compared"
    if against := sum(item.is_error for item in drifting.report.diagnostics):
        verb = "acts" if against == 1 else "act"
        compared = f"{count(against, 'object')} of others {verb} against the policies; {compared}"
    if not drifting.drifts:
        return f"{drifting.cluster}: nothing differs; {compared}"
    objects = len({drift.title for drift in drifting.drifts})
    return f"{drifting.cluster}: {count(len(drifting.drifts), 'difference')} in {count(objects, 'object')}; {compared}"


def notes(drifting: Drifting) -> Iterator[str]:
    """Yield notes on the dump and on what was not compared; that it may be of another cluster is the first."""
    if drifting.doubt:
        yield f"the dump is of another cluster, as it seems: {drifting.doubt}"
    if drifting.told_name not in ("", drifting.cluster):
        yield f"the dump is of cluster `{drifting.told_name}`, as gpuplan's own objects in it say"
    for why, group in groupby(sorted(drifting.unjudged, key=lambda item: item.why), key=lambda item: item.why):
        kinds = listing([f"{item.kind.partition('.')[0]} ({item.number})" for item in group], MOST_KINDS)
        yield f"not compared, since {why}: {kinds}"
    told_to = [drift for drift in drifting.left_alone if drift.next_sync is NextSync.LEAVES]
    if unread := [drift for drift in drifting.left_alone if drift not in told_to]:
        objects = count(len({drift.title for drift in unread}), "object")
        number = sum(len(drift.written) if isinstance(drift.written, Mapping) else 1 for drift in unread)
        yield f"left alone, since neither syncs: {count(number, 'annotation')} of Argo CD and Flux on {objects}"
    if told_to:
        paths = Counter(drift.path for drift in told_to)
        told = ", ".join(f"`{path}` of {count(number, 'object')}" for path, number in paths.items())
        yield f"left alone, as `ignoreDifferences` says: {told}"


def problem_of(drift: Drift) -> str:
    """Describe what is wrong with a whole object, or nothing if a field differs."""
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
    """Describe the next sync's action and who starts the sync."""
    is_more = drift.next_sync is NextSync.OVERWRITES and not drift.is_written
    does, applier = "takes it away" if is_more else _DOES[drift.next_sync], drift.applier
    if drift.next_sync is NextSync.NOTHING and not drift.file and drift.differs is not Differs.LEFT:
        return "nothing: no sync changes it"
    if applier is None or drift.next_sync in (NextSync.NOTHING, NextSync.RELABELS):
        return does
    return f"{applier.kind} `{applier.name}` {does}, {started(applier)}{within(applier)}"


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
    """Return the lines of policies that a value comes from, or else the page that tells the rule."""
    lines = [source for source in drift.sources if source.how is not How.RULE]
    own = [source for source in lines if not source.is_of_object]
    return own or lines or drift.sources


def _where(source: Source, theme: Theme) -> str:
    if source.how is How.RULE:
        return source.page
    file = source.file if source.how is How.FACT else theme.path(source.file)
    return f"{file}:{source.line}"


# --- For a terminal ----------------------------------------------------------------------------------------------


def drift_page(drifting: Drifting, theme: Theme) -> str:
    parts = [_object(list(group), theme) for _, group in groupby(drifting.drifts, key=lambda drift: drift.title)]
    return "\n".join(parts)


def _object(drifts: Sequence[Drift], theme: Theme) -> str:
    """One object, what it would take to bring it back, and each of its fields that differ."""
    first = drifts[0]
    heading = theme.paint(printable(first.title), Style.STRONG)
    said = f" {problem_of(first)}" if problem_of(first) else ""
    text = f"{heading}{said}  [{first.change_class}]\n"
    if cells(f"{printable(first.title)}{said}  [{first.change_class}]") > theme.width:
        text = f"{heading}\n {said}  [{first.change_class}]\n"
    for drift in drifts:
        if drift.path:
            line = f", line {drift.line}" if drift.line else ""
            text += f"  {theme.paint(printable(drift.path), Style.NOTE)}{line}\n"
            text += _row("policy", literal(drift.written) if drift.is_written else "says nothing", theme)
        shown = policy_lines(drift)
        for source in shown[:MOST_SOURCES]:
            text += _row("", f"{_where(source, theme)}  {source.title} {source.path}".rstrip(), theme)
        if drift.path:
            live = (
                theme.paint(cropped(literal(drift.live), max(theme.width - 4 - _WORDS, _LEAST)), Style.WARNING)
                if drift.has_live
                else "has none"
            )
            text += f"    {pad('cluster', _WORDS)}{live}\n"
        if drift.owner is not None:
            text += _row("by", by_whom(drift.owner), theme)
        text += _row("note", drift.note, theme) if drift.note else ""
    nexts = dict.fromkeys(coming(drift) for drift in drifts)
    return text + "".join(_row("next", line, theme) for line in nexts)


_WORDS: Final = 9


_LEAST: Final = 16


def _row(word: str, text: str, theme: Theme) -> str:
    """Return a line, or more where it does not fit into one."""
    shown = printable(text)
    if cells(shown) <= theme.width - 4 - _WORDS:
        return f"    {pad(word, _WORDS)}{shown}\n"
    by = " " * (4 + _WORDS)
    filled = fill(shown, max(theme.width, 4 + _WORDS + _LEAST), initial_indent=by, subsequent_indent=by)
    return f"    {pad(word, _WORDS)}{filled.lstrip()}\n"


# --- For a merge request -----------------------------------------------------------------------------------------

_LIMIT: Final = 900_000


def drift_markdown(drifting: Drifting, theme: Theme) -> str:
    """Return a verdict, and a table of what differs."""
    rows = [_cells(drift, theme) for drift in drifting.drifts]
    head = f"### {escape(verdict(drifting))}\n\n"
    table = markdown_table(_HEADINGS, rows) if rows else ""
    shown = "".join(fitting(table.splitlines(keepends=True), _LIMIT))
    against = (item.shown.message for item in drifting.report.diagnostics if item.is_error)
    rest = "".join(f"- {prose(note)}\n" for note in (*notes(drifting), *against))
    return head + shown + (f"\n{rest}" if rest else "")


_HEADINGS: Final = ("object", "field", "policy", "cluster", "by", "next sync", "class")


def _cells(drift: Drift, theme: Theme) -> Iterator[str]:
    yield code(drift.title)
    yield code(drift.path) if drift.path else escape(problem_of(drift))
    lines = ", ".join(_where(source, theme) for source in policy_lines(drift)[:MOST_SOURCES])
    yield f"{code(literal(drift.written)) if drift.path and drift.is_written else ''} {escape(lines)}".strip()
    yield (code(literal(drift.live)) if drift.has_live else "none") if drift.path else ""
    yield escape(by_whom(drift.owner)) if drift.owner else ""
    yield prose(coming(drift))
    yield drift.change_class.value


# --- For programs ------------------------------------------------------------------------------------------------


def drift_as_data(drifting: Drifting, theme: Theme) -> dict[str, Any]:
    """Return the differences as the contract `drift.schema.json` has them."""
    return {
        "format_version": FORMAT_VERSION,
        "cluster": drifting.cluster,
        "compared": drifting.compared,
        "differences": [_as_data(drift, theme) for drift in drifting.drifts],
        "left_alone": [_as_data(drift, theme) for drift in drifting.left_alone],
        "not_compared": [{"kind": item.kind, "count": item.number, "why": item.why} for item in drifting.unjudged],
        "findings": [diagnostic_as_data(diagnostic, theme) for diagnostic in drifting.report.diagnostics],
    }


def _as_data(drift: Drift, theme: Theme) -> dict[str, Any]:
    owner, applier = drift.owner, drift.applier
    return {
        "what": drift.differs.value,
        "object": drift.title,
        "path": drift.path,
        **({"line": drift.line} if drift.line else {}),
        **({"written": drift.written} if drift.is_written and drift.path else {}),
        **({"live": drift.live} if drift.has_live and drift.path else {}),
        "file": theme.path(drift.file) if drift.file else "",
        "dump": drift.dump,
        "policies": [source._replace(page="", citation="").as_data(theme.path) for source in drift.sources],
        "owner": owner
        and {
            "manager": owner.manager,
            "operation": owner.operation,
            "time": owner.time,
            "subresource": owner.subresource,
            "owns_field": not owner.is_last,
        },
        "next_sync": drift.next_sync.value,
        "applied_by": applier and {"kind": applier.kind, "name": applier.name, "approval": applier.approval.value},
        "class": drift.change_class.value,
        "note": drift.note,
    }


# --- An import -------------------------------------------------------------------------------------------------


def files(imported: Import) -> str:
    """Return the files that would be written, as one stream of documents, each below its path."""
    return "---\n".join(f"# {path}\n{text}" for path, text in imported.files.items())


def summary(imported: Import, *, dry: bool) -> str:
    """Describe what was made, what is left as it is, and what comes next."""
    if not imported.drafts:
        return "nothing was made: a part of the dump cannot be read\n"
    lines = [f"{'would create' if dry else 'created'} {path}" for path in imported.files]
    lines += [f"{item.path}: {printable(item.title)} says something else than the dump" for item in imported.differing]
    if imported.told_name not in ("", imported.cluster):
        lines.append(f"the dump is of cluster `{imported.told_name}`, as gpuplan's own objects in it say")
    made = count_kinds(draft.kind for draft in imported.drafts)
    lines.append(f"cluster `{imported.cluster}`: {made}{'' if imported.files else '; nothing to write'}")
    lines += _first_sync(imported)
    if imported.files and not dry:
        lines.append(f"next: gpuplan validate -c {imported.cluster} && gpuplan build -c {imported.cluster}")
    return "".join(f"{line}\n" for line in lines)


_MOST: Final = 100
"""The number of fields shown that the first sync changes; `gpuplan drift` shows all."""


def _first_sync(imported: Import) -> Iterator[str]:
    """Yield lines on what the first sync of the policies does to what the dump shows, worst first."""
    found = imported.first_sync
    if found is None:
        yield "the policies have errors, so nothing is known of a sync"
        return
    yield from (printable(drift.note or f"{drift.title} is not in the dump") for drift in found.absent)
    for effect, diagnostics in found.found.items():
        lines = [printable(item.shown.message) for item in diagnostics]
        lines += [_changed(drift) for drift in found.changed[effect]]
        if lines:
            yield f"the first sync {effect}:"
            yield from (f"  {line}" for line in lines[:_MOST])
        if len(lines) > _MOST:
            yield f"  and {len(lines) - _MOST} more: `gpuplan drift -c {imported.cluster} DUMP` shows all"
    if found.added:
        yield f"the first sync adds {count_kinds(Counter(found.added).elements())}"
    if found.annotated:
        yield f"the first sync adds annotations and labels of its own to {count(found.annotated, 'object')}"
    if not (any(found.changed.values()) or any(found.found.values())):
        yield "the first sync changes nothing else that the dump shows"


def _changed(drift: Drift) -> str:
    live = literal(drift.live) if drift.has_live else "nothing"
    written = literal(drift.written) if drift.is_written else "nothing"
    place = f"{drift.title} {drift.path}".strip()
    refused = ", which the API server refuses: it cannot be changed" if drift.next_sync is NextSync.FAILS else ""
    return f"{printable(place)}: {cropped(live, _WIDTH)} becomes {cropped(written, _WIDTH)}{refused}"


_WIDTH: Final = 60


def import_findings(imported: Import, format_: str, theme: Theme) -> str:
    """Return the findings in a format; JSON has the effects of the first sync as well, as `import.schema.json` says."""
    if format_ != Format.JSON:
        return findings(imported.report, Format(format_), theme)
    effects = imported.first_sync and _first_sync_as_data(imported.first_sync, theme)
    return json_text({**findings_as_data(imported.report, theme), "first_sync": effects})


def _first_sync_as_data(sync: FirstSync, theme: Theme) -> dict[str, Any]:
    return {
        "absent": [_as_data(drift, theme) for drift in sync.absent],
        "effects": [
            {
                "effect": effect.value,
                "findings": [diagnostic_as_data(diagnostic, theme) for diagnostic in diagnostics],
                "changes": [_as_data(drift, theme) for drift in sync.changed[effect]],
            }
            for effect, diagnostics in sync.found.items()
        ],
        "adds": [{"kind": kind, "count": number} for kind, number in sync.added.items()],
        "annotates": sync.annotated,
    }


def commands() -> str:
    """Return the commands of kubectl that collect a dump, each with where it is of use."""
    lines = [f"{item.command}{f'  # where {item.where} is' if item.where else ''}\n" for item in COLLECTED]
    return _HEAD + "".join(lines)


_HEAD = """\
# What `gpuplan import` reads. Nothing here writes to the cluster, and nothing reads Secrets.
# Leave out what the cluster does not have: kubectl ends where it does not know a kind.
"""
