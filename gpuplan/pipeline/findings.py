"""Tidy up findings: ignored ones out, shared ones once, all in the order in which people read files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.documents import Ignore
from gpuplan.pipeline.rules import UNUSED_IGNORE


def tidy(
    diagnostics: Iterable[Diagnostic], ignores: Sequence[Ignore], *, report_unused: bool = False
) -> tuple[Diagnostic, ...]:
    """Drop what a comment ignores, merge what several clusters share, sort by file, line, column and code."""
    kept, used = _without_ignored(diagnostics, ignores)
    if report_unused:
        kept += [_unused(ignore, code) for ignore in ignores for code in ignore.codes if (id(ignore), code) not in used]
    merged: dict[object, Diagnostic] = {}
    for diagnostic in kept:
        location = diagnostic.finding.at.locate()
        key = (*location.sort_key, diagnostic.code, diagnostic.finding.message)
        first = merged.setdefault(key, diagnostic)
        new = tuple(name for name in diagnostic.clusters if name not in first.clusters)
        if new:
            merged[key] = replace(first, clusters=tuple(sorted((*first.clusters, *new))))
    return tuple(merged[key] for key in sorted(merged))  # type: ignore[type-var]  # tuples of text and numbers


def _without_ignored(
    diagnostics: Iterable[Diagnostic], ignores: Sequence[Ignore]
) -> tuple[list[Diagnostic], set[tuple[int, str]]]:
    by_line = {(ignore.file.path, ignore.line): ignore for ignore in ignores}
    kept: list[Diagnostic] = []
    used: set[tuple[int, str]] = set()
    for diagnostic in diagnostics:
        location = diagnostic.finding.at.locate() if by_line else None
        ignore = location and by_line.get((location.file.path, location.span.start.line))
        if ignore and diagnostic.rule.ignorable and diagnostic.code in ignore.codes:
            used.add((id(ignore), diagnostic.code))
        else:
            kept.append(diagnostic)
    return kept, used


def _unused(ignore: Ignore, code: str) -> Diagnostic:
    return UNUSED_IGNORE.report(
        Finding(
            ignore.origin,
            f"`{code}` is ignored here but not found",
            label="nothing to ignore",
            help=f"remove `{code}` from the comment",
        )
    )
