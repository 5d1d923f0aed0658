"""Shows where a value comes from, or what depends on a line, to people or for programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill
from typing import Any, Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.policy.models import Approval
from gpuplan.features.tracing.model import Source, TracedPlace, TracedValue, Tracing, Unwritten, Use
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.text import Style, Theme, cells, cropped, indent, literal, pad, printable

FORMAT_VERSION: Final = "1.0"
"""A minor step only adds keys; lists are never null or absent."""
MOST_SOURCES: Final = 12
MOST_VALUES: Final = 12
MOST_OBJECTS: Final = 20
"""The most sources of a value, values of an object and objects of a place that people are shown; JSON has all."""


def shown_tracing(tracing: Tracing, format_: str, theme: Theme, *, is_summary: bool = False) -> str:
    """Return the answer as ``table``, ``json`` or ``yaml``; a summary counts what depends on each line of a policy."""
    match format_:
        case "json":
            return json_text(tracing_as_data(tracing, theme))
        case "yaml":
            return to_yaml(tracing_as_data(tracing, theme))
        case _:
            return _page(tracing, theme, is_summary=is_summary)


def _page(tracing: Tracing, theme: Theme, *, is_summary: bool) -> str:
    if not tracing.is_of_policy:
        files = groupby(tracing.values, key=lambda value: (value.cluster, value.file, value.object_title))
        text = "\n".join(_file(list(values), theme) for _, values in files)
        rest = groupby(tracing.unwritten, key=lambda one: one.object_title)
        return "\n".join(filter(None, (text, "".join(_unwritten(title, list(parts), theme) for title, parts in rest))))
    if is_summary:
        return _summary(tracing.places, theme)
    return "\n".join(_place(place, theme) for place in tracing.places)


# --- Where it comes from -----------------------------------------------------------------------------------------


def _file(values: Sequence[TracedValue], theme: Theme) -> str:
    """Return the text on an object or another file: why it exists, and each of its values."""
    first = values[0]
    heading = theme.paint(printable(theme.path(first.file)), Style.STRONG)
    title = f"  {printable(first.object_title)}" if first.object_title else ""
    if cells(theme.path(first.file) + title) > theme.width:
        title = f"\n{title}"
    whole = list(dict.fromkeys(source for value in values for source in value.sources if source.is_of_object))
    what = "this object" if first.object_title else "this file"
    reasons = f"  {what} is here because of\n{_sources(whole, theme, '    ')}" if whole else ""
    ruled = [value for value in values if len(values) > 1 and _is_ruled(value)]
    others = [value for value in values if len(values) == 1 or not _is_ruled(value)]
    width = max((len(str(value.line)) for value in others), default=1)
    by, text = " " * (width + 4), ""
    for value in others:
        text += _assigned(f"  {pad(str(value.line), width, right=True)}  ", value, theme, by)
        if value.differs:
            room = max(theme.width - 24, _LEAST)
            has = "has none" if value.live is None else f"has {cropped(literal(value.live), room)}"
            text += f"{by}{theme.paint(f'the cluster {has}', Style.WARNING)}\n"
        text += _sources([source for source in value.sources if not source.is_of_object], theme, by)
    for page, group in groupby(sorted(ruled, key=_page_of), key=_page_of):
        names = list(dict.fromkeys(value.path for value in group))
        more = len(names) - MOST_VALUES
        shown = printable(", ".join(names[:MOST_VALUES]) + (f" and {more} more" if more > 0 else ""))
        filled = fill(shown, max(theme.width - 6, _LEAST), break_long_words=False, break_on_hyphens=False)
        text += f"  gpuplan's own rules, {page}\n{indent(filled, '      ')}\n"
    return f"{heading}{title}\n{reasons}{text}"


def _is_ruled(value: TracedValue) -> bool:
    sources = [source for source in value.sources if not source.is_of_object]
    return not value.differs and all(source.how is How.RULE and not source.title for source in sources)


def _page_of(value: TracedValue) -> str:
    return next((source.page for source in value.sources if not source.is_of_object), "")


def _assigned(start: str, value: TracedValue, theme: Theme, by: str) -> str:
    """Return ``path = value`` on one line, cropped to it, or on more if the path alone fills one."""
    path = printable(value.path)
    if cells(f"{start}{path}") > theme.width:
        start = f"{start.rstrip()}\n{by}"
    head = f"{start}{theme.paint(path, Style.NOTE)}"
    room = theme.width - cells(f"{start}{path} = ".rpartition("\n")[2])
    shown = literal(value.value)
    if room >= min(len(shown), _LEAST):
        return f"{head} = {cropped(shown, room)}\n"
    return f"{head}\n{by}= {cropped(shown, max(theme.width - cells(by) - 2, _LEAST))}\n"


_WORDS: Final = max(len(how.value) for how in How)
_LEAST: Final = 16
"""The fewest cells of a value, however long its path is."""


def _sources(sources: Sequence[Source], theme: Theme, by: str) -> str:
    """Return each source in a line, or in two if it is too long for one. Sources that look alike are shown once."""
    sources = list({(source.how, _where(source, theme), _about(source)): source for source in sources}.values())
    shown = sources if len(sources) <= MOST_SOURCES else sources[: MOST_SOURCES - 1]
    text = ""
    for source in shown:
        place, what = _where(source, theme), printable(_about(source))
        line = f"{by}{pad(source.how.value, _WORDS)}  {place}"
        is_fitting = cells(line) + 2 + cells(what) <= theme.width
        text += f"{line}  {what}".rstrip() if is_fitting else f"{line}\n{by}{' ' * _WORDS}    {what}"
        text += "\n"
    rest = len(sources) - len(shown)
    return text + (f"{by}and {rest} more\n" if rest else "")


def _where(source: Source, theme: Theme) -> str:
    if source.how is How.RULE:
        return source.page
    file = source.file if source.how is How.FACT else theme.path(source.file)
    return printable(f"{file}:{source.line}")


def _about(source: Source) -> str:
    if source.how is How.RULE:
        return f"default of {source.path}" if source.title else ""
    return f"{source.title} {source.path} {f'({source.citation})' if source.citation else ''}".strip()


def _unwritten(title: str, parts: Sequence[Unwritten], theme: Theme) -> str:
    """Return the numbers of values that an object of a cluster has beside those that are written."""
    text = f"{theme.paint(printable(title), Style.STRONG)}: not written by gpuplan\n"
    for one in parts:
        some = cropped(", ".join(one.paths), max(theme.width - cells(one.what) - 12, _LEAST))
        text += f"  {len(one.paths)}  {one.what}: {printable(some)}\n" if one.paths else f"  {one.what}\n"
    return text


# --- What depends on it ------------------------------------------------------------------------------------------


def _place(place: TracedPlace, theme: Theme) -> str:
    where = theme.paint(printable(f"{theme.path(place.file)}:{place.line}"), Style.STRONG)
    what = printable(f"{place.title} {place.path}".rstrip())
    is_fitting = cells(f"{theme.path(place.file)}:{place.line}  {what}") <= theme.width
    room = theme.width - cells(what) - 7
    said = f"{what} = {cropped(literal(place.value), max(room, _LEAST))}"
    head = (
        f"{where}  {said}\n"
        if is_fitting and cells(f"{theme.path(place.file)}:{place.line}  {said}") <= theme.width
        else f"{where}\n  {said}\n"
    )
    for other in place.elsewhere:
        does = "takes it away" if other.is_removed else "says it instead"
        head += f"  cluster {other.cluster}: {printable(f'{theme.path(other.file)}:{other.line} {does}')}\n"
    if place.note:
        note = printable(place.note)
        head += fill(note, theme.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False) + "\n"
    clusters = groupby(place.uses, key=lambda use: use.value.cluster)
    return head + "".join(_cluster(name, list(uses), theme) for name, uses in clusters)


def _cluster(name: str, uses: Sequence[Use], theme: Theme) -> str:
    text = f"  {theme.paint(printable(f'cluster {name}'), Style.STRONG)}\n"
    objects = 0
    in_turn = sorted(uses, key=lambda use: (not _by_applier(use).kind, _by_applier(use)))
    for applied, group in groupby(in_turn, key=_by_applier):
        by_hand = f"whatever applies out/{applied.tool}/" if applied.tool else "nothing syncs it: by hand"
        start = "a person starts it" if applied.is_manual else "by itself"
        text += f"    {printable(f'{applied.kind} {applied.name}: {start}' if applied.kind else by_hand)}\n"
        for _, of_object in groupby(group, key=lambda use: (use.value.file, use.value.object_title)):
            objects += 1
            text += _object(list(of_object), theme) if objects <= MOST_OBJECTS else ""
    more = objects - MOST_OBJECTS
    return text + (f"    and {count(more, 'more object', 'more objects')}\n" if more > 0 else "")


class _Applied(NamedTuple):
    """An applier as it is sorted and shown. Uses that nothing syncs have no kind, and come last."""

    kind: str
    name: str
    is_manual: bool
    tool: str


def _by_applier(use: Use) -> _Applied:
    applier: Applier | None = use.applier
    if applier is None:
        folder = use.value.file.split("/")[1]
        return _Applied("", "", is_manual=False, tool=folder if folder in TOOLS else "")
    return _Applied(applier.kind, applier.name, applier.approval is Approval.MANUAL, "")


def _object(uses: Sequence[Use], theme: Theme) -> str:
    """Return the values of one object, or how many if all of it depends on the place."""
    first = uses[0].value
    title = printable(first.object_title or "file")
    file = printable(theme.path(first.file))
    is_fitting = cells(f"      {title}  {file}") <= theme.width
    text = f"      {title}  {file}\n" if is_fitting else f"      {title}\n        {file}\n"
    some = [use for use in uses if not use.is_of_object]
    shown = some if len(some) <= MOST_VALUES else some[: MOST_VALUES - 1]
    for use in shown:
        text += _assigned(f"        {use.how.value}  {use.value.line}  ", use.value, theme, " " * 10)
    if len(some) > len(shown):
        text += f"        and {len(some) - len(shown)} more\n"
    if not some:
        text += f"        {uses[-1].how.value}  all of it, {count(len(uses), 'value')}\n"
    return text


def _summary(places: Sequence[TracedPlace], theme: Theme) -> str:
    """Return how much depends on each value of a file or a document."""
    text = ""
    for (file, title), group in groupby(places, key=lambda place: (place.file, place.title)):
        of_file = list(group)
        text += f"{theme.paint(printable(theme.path(file)), Style.STRONG)}  {printable(title)}\n"
        width = max(len(str(place.line)) for place in of_file)
        for place in of_file:
            start = f"  {pad(str(place.line), width, right=True)}  {printable(place.path or 'all of it')}"
            said = _counted(place)
            is_fitting = cells(f"{start}: {said}") <= theme.width
            text += f"{start}: {said}\n" if is_fitting else f"{start}:\n{' ' * (width + 6)}{said}\n"
    return text


def _counted(place: TracedPlace) -> str:
    clusters = dict.fromkeys(use.value.cluster for use in place.uses)
    instead = dict.fromkeys(other.cluster for other in place.elsewhere)
    other = f"said elsewhere in {joined(list(instead))}" if instead else ""
    if not place.uses:
        return other or "nothing"
    objects = {use.value.file for use in place.uses}
    number = f"{count(len(place.uses), 'value')} in {count(len(objects), 'file')} of {joined(list(clusters))}"
    return f"{number}; {other}" if other else number


# --- For programs ------------------------------------------------------------------------------------------------


def tracing_as_data(tracing: Tracing, theme: Theme) -> dict[str, Any]:
    """A contract, `trace.schema.json`: lines of what is written with ``from``, or lines of policies with ``to``."""
    if tracing.is_of_policy:
        lines = [_place_as_data(place, theme) for place in tracing.places]
    else:
        lines = [
            {
                **_written(value, theme),
                **({"live": value.live} if value.differs else {}),
                "from": [source.as_data(theme.path) for source in value.sources],
            }
            for value in tracing.values
        ]
    return {
        "format_version": FORMAT_VERSION,
        "lines": lines,
        "not_written": [
            {"cluster": one.cluster, "object": one.object_title, "what": one.what, "paths": list(one.paths)}
            for one in tracing.unwritten
        ],
        "notes": list(tracing.notes),
    }


def _written(value: TracedValue, theme: Theme) -> dict[str, Any]:
    return {
        "file": theme.path(value.file),
        "line": value.line,
        "path": value.path,
        "cluster": value.cluster,
        "object": value.object_title,
        "value": value.value,
    }


def _place_as_data(place: TracedPlace, theme: Theme) -> dict[str, Any]:
    return {
        "file": theme.path(place.file),
        "line": place.line,
        "path": place.path,
        "document": place.title,
        "value": place.value,
        "to": [_use_as_data(use, theme) for use in place.uses],
        "elsewhere": [
            {"cluster": other.cluster, "file": theme.path(other.file), "line": other.line, "removed": other.is_removed}
            for other in place.elsewhere
        ],
        "note": place.note,
    }


def _use_as_data(use: Use, theme: Theme) -> dict[str, Any]:
    applier = use.applier
    applied = applier and {"kind": applier.kind, "name": applier.name, "approval": applier.approval.value}
    return {**_written(use.value, theme), "how": use.how.value, "of_object": use.is_of_object, "applied_by": applied}
