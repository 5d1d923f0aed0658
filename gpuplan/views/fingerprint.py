"""What makes a finding the same finding in the next run, although lines have moved."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from gpuplan.diagnostics import Diagnostic
from gpuplan.patterns import regex

_NAMED = regex("`([^`]*)`")


def fingerprints(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """One for each finding, all different.

    It is made of the rule, the file, the field, the text there and the names in the message: not of lines, nor of
    list indexes or numbers in words, so that neither a comment above nor a sorted list opens an alert again.
    """
    seen: Counter[str] = Counter()
    found = []
    for diagnostic in diagnostics:
        identity = "\0".join(_identity(diagnostic))
        found.append(hashlib.sha256(f"{identity}\0{seen[identity]}".encode(errors="replace")).hexdigest()[:32])
        seen[identity] += 1
    return found


def _identity(diagnostic: Diagnostic) -> tuple[str, ...]:
    finding = diagnostic.finding
    location = finding.at.locate()
    start, end = location.span.start, location.span.end
    lines = location.file.lines
    line = lines[start.line - 1] if start.line <= len(lines) else ""
    marked = line[start.column - 1 : end.column - 1 if end.line == start.line else None]
    field = ".".join(part for part in finding.at.path if isinstance(part, str))
    return diagnostic.code, location.file.path, field, marked.strip(), *_NAMED.findall(finding.message)
