"""What reading a text gives, in a form that fits on a line of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin
from gpuplan.compiler.documents import Document, read_text


def read(text: str) -> tuple[list[Any], list[str]]:
    """The data of each document, and each finding."""
    documents, diagnostics = read_text("policy.yaml", text)
    return [document.data for document in documents], describe(diagnostics)


def read_one(text: str) -> Document:
    """The only document of a text that has no findings."""
    (document,), diagnostics = read_text("policy.yaml", text)
    assert describe(diagnostics) == []
    return document


def codes(text: str) -> list[str]:
    _, diagnostics = read_text("policy.yaml", text)
    return [diagnostic.code for diagnostic in diagnostics]


def describe(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Each finding as `line:column code message`."""
    return [f"{place(item.finding.at)} {item.code} {item.finding.message}" for item in diagnostics]


def place(origin: Origin) -> str:
    start = origin.locate().span.start
    return f"{start.line}:{start.column}"


def underlined(origin: Origin) -> str:
    """The text that a finding at this origin would underline."""
    location = origin.locate()
    start, end = location.span.start, location.span.end
    if start.line == end.line:
        return location.file.lines[start.line - 1][start.column - 1 : end.column - 1]
    first, *others = location.file.lines[start.line - 1 : end.line]
    return "\n".join([first[start.column - 1 :], *others[:-1], others[-1][: end.column - 1]])
