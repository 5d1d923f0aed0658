"""What the step from one platform to another disturbs, as Markdown for a pull or merge request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.changes.model import ObjectChange
from gpuplan.diagnostics import Diagnostic
from gpuplan.pipeline.comparing import Diff, Impact, Platform
from gpuplan.views.diff_words import facts, notes, place, seen_from, verdict
from gpuplan.views.markdown import code, escape, finding_row, findings_table, fitting, prose
from gpuplan.views.theme import Theme
from gpuplan.wording import count

LIMIT: Final = 60_000
"""Bytes of UTF-8. GitHub takes 65,536 characters in a comment, and whoever posts it adds a line of its own."""

_FINDINGS_RESERVE: Final = 15_000
_DETAILS_RESERVE: Final = 15_000


def diff_markdown(diff: Diff, theme: Theme) -> str:
    """The verdict, a table of the changes with the worst of each cluster first, and each change folded up.

    What a policy says cannot become markup, a link or a mention.
    """
    rows = [_row(impact) for impact in diff.impacts] + [_object_row(item) for item in diff.objects]
    shown = list(fitting(rows, LIMIT - _FINDINGS_RESERVE - _DETAILS_RESERVE))
    findings = _findings(diff.findings, seen_from(diff.later.side, theme))
    errors = (*_errors(diff.earlier, theme), *_errors(diff.later, theme))
    start = "".join((*_head(diff), *_table(shown, len(rows)), *findings, *errors))
    room = LIMIT - len(start.encode(errors="replace"))
    return "".join((start, *fitting((_details(impact, diff, theme) for impact in diff.impacts), room)))


def _head(diff: Diff) -> Iterator[str]:
    change_class, _, rest = verdict(diff).partition(": ")
    yield f"## gpuplan: {change_class}\n\n{prose(rest)}\n"
    yield from (f"\n{prose(note)}\n" for note in notes(diff))


def _table(rows: list[str], total: int) -> Iterator[str]:
    if rows:
        yield "\n| | Cluster | What | Nodes | Pods | Drain | Reboot |\n|---|---|---|---|---|---|---|\n"
        yield from rows
    if len(rows) < total:
        yield f"\n{total - len(rows)} of {count(total, 'change')} are not shown; `gpuplan diff` prints them all.\n"


def _row(impact: Impact) -> str:
    change = impact.change
    cells = (
        f"**{change.change_class}**",
        code(change.cluster),
        f"{escape(change.subject.kind)} {code(change.subject.name)}: {prose(change.what)}",
        str(change.nodes.count) if change.nodes else "",
        _pods(impact),
        "yes" if change.needs_drain else "",
        "maybe" if change.needs_reboot else "",
    )
    return f"| {' | '.join(cells)} |\n"


def _pods(impact: Impact) -> str:
    if impact.holders is not None:
        return str(len(impact.holders)) if impact.holders else ""
    return f"up to {impact.change.pods}" if impact.change.pods else ""


def _object_row(item: ObjectChange) -> str:
    what = f"{code(str(item.identity))} is {item.verb} in {code(f'{item.folder}/')}"
    return f"| **{item.change_class}** | {code(item.cluster)} | {what} | | | | |\n"


def _details(impact: Impact, diff: Diff, theme: Theme) -> str:
    change = impact.change
    title = (
        f"{change.change_class}: {escape(change.subject.kind)} {code(change.subject.name)} in {code(change.cluster)}"
    )
    where = f"- {code(place(impact, diff, theme))}"
    lines = "\n".join((where, *(_fact(fact.about, fact.lines) for fact in facts(impact))))
    return f"\n<details><summary>{title}</summary>\n\n{lines}\n\n</details>\n"


def _fact(about: str, lines: tuple[str, ...]) -> str:
    if len(lines) == 1:
        return f"- **{about}**: {prose(lines[0])}"
    return "\n".join((f"- **{about}**:", *(f"  - {prose(line)}" for line in lines)))


def _errors(platform: Platform, theme: Theme) -> Iterator[str]:
    if platform.errors:
        yield f"\n### {count(len(platform.errors), 'error')} in {code(platform.side.name)}\n"
        yield from _findings(platform.errors, seen_from(platform.side, theme))


def _findings(found: Sequence[Diagnostic], theme: Theme) -> Iterator[str]:
    rows = list(fitting((finding_row(item, theme) for item in found), _FINDINGS_RESERVE // 3))
    yield from findings_table(rows, len(found))
