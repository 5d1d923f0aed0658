"""A policy document that is to be written, with what it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.values import Value


class Draft(Value):
    """A policy document: ``spec`` is plain data in the order in which it is to be written.

    ``sources`` are the objects that it came from (`Item.source`). ``remarks`` are sentences about what of them it does
    not say, one for each finding, so that whoever reads the policy sees what is not in it.
    """

    kind: str
    name: str
    spec: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"


class Found(Value):
    """What a reader made of a dump, and what it could not say."""

    drafts: tuple[Draft, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    def __add__(self, other: Found) -> Found:
        return Found((*self.drafts, *other.drafts), (*self.diagnostics, *other.diagnostics))


def joined(found: Iterable[Found]) -> Found:
    """What several readers made."""
    every = Found()
    for item in found:
        every += item
    return every
