"""Tidy up findings: ignored ones out, shared ones once, all in the order in which people read files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Diagnostic, Family, Finding, Origin, Position
from gpuplan.compiler.documents import Ignore
from gpuplan.compiler.documents.rules import AMBIGUOUS_TEXT
from gpuplan.compiler.pipeline.rules import UNUSED_IGNORE
from gpuplan.compiler.policy.rules import UNKNOWN_FIELD, VALUE_NOT_ALLOWED, WRONG_TYPE


def tidy(
    diagnostics: Iterable[Diagnostic],
    ignores: Sequence[Ignore],
    *,
    needed: Sequence[Ignore] = (),
    is_judged: Callable[[str], bool] = lambda _: True,
) -> tuple[Diagnostic, ...]:
    """Drop what a comment ignores, merge what several clusters share, sort by file, line, column and code.

    What several clusters share is told as by the cluster with the most related places.
    A comment that should be ``needed`` and is not becomes a finding, unless its code is not judged.
    """
    diagnostics = tuple(diagnostics)
    kept, used = _without_ignored(diagnostics, ignores)
    kept += [
        _unused(ignore, code, [item for item in kept if item.code == code])
        for ignore in needed
        for code in ignore.codes
        if (id(ignore), code) not in used and is_judged(code)
    ]
    merged: dict[object, Diagnostic] = {}
    for diagnostic in _without_echoes(kept):
        location = diagnostic.finding.at.locate()
        key = (*location.sort_key, diagnostic.code, diagnostic.finding.message)
        first = merged.setdefault(key, diagnostic)
        new = tuple(name for name in diagnostic.clusters if name not in first.clusters)
        if new:
            fuller = max(first, diagnostic, key=lambda each: len(each.finding.related))
            merged[key] = replace(fuller, clusters=tuple(sorted((*first.clusters, *new))))
    return tuple(merged[key] for key in sorted(merged))  # type: ignore[type-var]  # tuples of text and numbers


def _without_ignored(
    diagnostics: Iterable[Diagnostic], ignores: Sequence[Ignore]
) -> tuple[list[Diagnostic], set[tuple[int, str]]]:
    by_place: dict[tuple[str, int, str], list[Ignore]] = {}
    for ignore in ignores:
        for code in ignore.codes:
            by_place.setdefault((ignore.file.path, ignore.line, code), []).append(ignore)
    kept: list[Diagnostic] = []
    used: set[tuple[int, str]] = set()
    for diagnostic in diagnostics:
        found = by_place.get((*_line_of(diagnostic.finding.at), diagnostic.code), ())
        used.update((id(ignore), diagnostic.code) for ignore in found if diagnostic.rule.ignorable)
        if not found or not diagnostic.rule.ignorable:
            kept.append(diagnostic)
    return kept, used


def _line_of(origin: Origin) -> tuple[str, int]:
    """Return the file of a place and its line, as comments that ignore findings have it."""
    location = origin.locate()
    return location.file.path, location.span.start.line


def _without_echoes(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Drop what is said of a value that could not be read as it is written: that follows from how it is written.

    Likewise that a word is read in two ways, where none may stand, or only others: `default: yes`.
    """
    kept = list(diagnostics)
    unread = {_start(item) for item in kept if item.is_error and item.rule.family is Family.READING}
    kept = [item for item in kept if item.rule.family is Family.READING or _start(item) not in unread]
    mistyped = {_start(item) for item in kept if item.rule in (WRONG_TYPE, VALUE_NOT_ALLOWED)}
    kept = [item for item in kept if item.rule is not AMBIGUOUS_TEXT or _start(item) not in mistyped]
    misplaced = {
        _start(item) for item in kept if item.rule is UNKNOWN_FIELD and item.finding.message.startswith("field")
    }
    is_other = (item.rule is UNKNOWN_FIELD and item.finding.message.startswith("unknown") for item in kept)
    return [item for item, is_less in zip(kept, is_other, strict=True) if not is_less or _start(item) not in misplaced]


def _start(diagnostic: Diagnostic) -> tuple[str, Position]:
    location = diagnostic.finding.at.locate()
    return location.file.path, location.span.start


def _unused(ignore: Ignore, code: str, others: Sequence[Diagnostic]) -> Diagnostic:
    """Return the finding on a comment without effect; ``others`` are the findings of its code."""
    message, why = f"`{code}` is ignored here but not found", "nothing to ignore"
    help_ = f"remove `{code}` from the comment"
    here = ignore.file.path, ignore.line
    named = [item for item in others if here in {_line_of(label.at) for label in item.finding.related}]
    if any(not item.rule.ignorable for item in others):
        message, why = f"`{code}` cannot be ignored: without what it asks for no plan can be made", "has no effect"
        help_ = f"do what `{code}` says, and remove the comment"
    elif named:
        path, line = _line_of(named[0].finding.at)
        message, why = f"`{code}` is not ignored: its finding is at {path}:{line}", "the second place of it"
        help_ = f"write the comment above line {line} of {path}"
    return UNUSED_IGNORE.report(Finding(ignore.origin, message, label=why, help=help_))
