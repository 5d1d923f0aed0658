"""Findings as Markdown, for the summary of a CI job and for comments on a merge request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Rule, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import count, joined, markdown_escaped
from gpuplan.terminal.full import tally
from gpuplan.terminal.plan import SUMMARY_HEADINGS, summary_row
from gpuplan.terminal.text import Theme, printable

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report

LIMIT: Final = 1_000_000
"""Bytes of UTF-8. GitHub refuses a job summary of more than 1 MiB as a whole.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
"""
LONGEST: Final = 1_000
"""Characters that a cell shows of one text. A policy may hold a name of a megabyte."""

_RULES_RESERVE: Final = 200_000
"""The characters that the rows leave to the rules' explanations and to all that stands once."""
_ORDER: Final = tuple(Severity)
_CODE: Final = regex(r"`([^`]*)`")
_REFERRING: Final = regex(r"""[!#$%&@^~](?=[\w"'])|:(?=//)|(?<=www)\.|(?<=\bgh)-(?=\d)""", re.IGNORECASE)
"""Where mentions of people, issues and the like begin, and addresses."""
_HEADING: Final = regex(r"^#+ (.*)$", re.MULTILINE)


def markdown(report: Report, theme: Theme) -> str:
    """A verdict, a table of the findings with errors first, what the clusters hand out, and what the rules mean.

    It is as GitHub and GitLab read it. What a policy says cannot become markup, a link or a mention.
    """
    worst_first = sorted(report.diagnostics, key=lambda diagnostic: _ORDER.index(diagnostic.severity))
    shown = list(fitting([finding_row(diagnostic, theme) for diagnostic in worst_first], LIMIT - _RULES_RESERVE))
    start = [_verdict(report), *findings_table(shown, len(worst_first)), *_capacity(report)]
    rules = {diagnostic.code: diagnostic.rule for diagnostic in worst_first[: len(shown)]}
    room = LIMIT - sum(_size(part) for part in start)
    return "".join([*start, *fitting([_explained(rules[code]) for code in sorted(rules)], room)])


def escape(text: str) -> str:
    """Text as it is to be read, in a table's cell too: what Markdown would obey is written as a character reference.

    GitHub and GitLab look for mentions and addresses when references are characters again, but not in code and not
    across its borders (github/cmark-gfm#181): the one character that begins them is code.
    """
    shown, end = printable(text), 0
    parts: list[str] = []
    for match in _REFERRING.finditer(shown):
        parts += (markdown_escaped(shown[end : match.start()]), f"<code>&#{ord(match[0])};</code>")
        end = match.end()
    return "".join((*parts, markdown_escaped(shown[end:])))


def _verdict(report: Report) -> str:
    found = [count(number, severity) for severity, number in tally(report.diagnostics).items() if number]
    files, clusters = count(report.file_count, "file"), count(len(report.clusters), "cluster")
    names = f": {_listed(report.clusters)}" if report.clusters else ""
    return f"## gpuplan: {joined(found) or 'no findings'}\n\n{files}, {clusters}{names}.\n"


def findings_table(rows: Sequence[str], total: int) -> Iterator[str]:
    """A table of the rows, and how many of all there are have no room in it."""
    if rows:
        yield "\n| | Rule | Place | Finding | Clusters |\n|---|---|---|---|---|\n"
        yield from rows
    if len(rows) < total:
        yield f"\n{total - len(rows)} of {count(total, 'finding')} are not shown; `gpuplan validate` prints them all.\n"


def finding_row(diagnostic: Diagnostic, theme: Theme) -> str:
    cells = (
        diagnostic.severity.value,
        f"{diagnostic.code}<br>{diagnostic.rule.name}",
        code(theme.place(diagnostic.finding.at.locate(), column=True)),
        "<br>".join(_lines(diagnostic, theme)),
        _listed(diagnostic.clusters),
    )
    return f"| {' | '.join(cells)} |\n"


def _lines(diagnostic: Diagnostic, theme: Theme) -> Iterator[str]:
    finding = diagnostic.shown
    yield prose(finding.headline)
    for label in finding.related:
        yield f"{code(theme.place(label.at.locate(), column=True))} {prose(label.text)}"
    for note in finding.notes:
        yield from (prose(line) for line in f"note: {note}".split("\n"))
    if finding.help:
        yield f"<strong>help: {prose(finding.help)}</strong>"


def prose(text: str) -> str:
    """One of our sentences, in which names are marked as code."""
    shortened = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    parts = _CODE.split(shortened)
    return "".join(code(part) if index % 2 else escape(part) for index, part in enumerate(parts))


def code(text: str) -> str:
    """As HTML: a span of backticks could be ended by what it quotes."""
    shortened = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    return f"<code>{markdown_escaped(printable(shortened))}</code>"


def markdown_table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are Markdown already."""
    return "".join(f"| {' | '.join(line)} |\n" for line in (headings, ["---"] * len(headings), *rows))


def fenced(text: str, language: str = "") -> str:
    """A code block, with a fence that nothing in it closes."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)


def _capacity(report: Report) -> Iterator[str]:
    if not report.plans:
        return
    yield f"\n### What the clusters hand out\n\n| {' | '.join(SUMMARY_HEADINGS)} |\n|{'---|' * len(SUMMARY_HEADINGS)}\n"
    for plan in report.plans:
        yield f"| {' | '.join(prose(cell) for cell in summary_row(plan))} |\n"


def _explained(rule: Rule) -> str:
    """A rule's page, folded up. It is ours, and may be Markdown."""
    page = _HEADING.sub(r"**\1**\n", rule.docs.strip())
    return f"\n<details><summary>{rule.code} {rule.name}</summary>\n\n{page}\n\n</details>\n"


def fitting(parts: Iterable[str], room: int) -> Iterator[str]:
    """The first of the parts, as many as there is room for."""
    for part in parts:
        room -= _size(part)
        if room < 0:
            return
        yield part


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
