"""Unknown fields by the thousand, which are one mistake and not as many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from gpuplan.diagnostics import Diagnostic, Finding, Origin, Path
from gpuplan.policy.fields import nested_model
from gpuplan.policy.rules import UNKNOWN_FIELD
from gpuplan.wording import listing

MOST: Final = 200
"""Unknown fields of one mapping that are findings of their own."""


def crowds(model: type[BaseModel], data: Mapping[str, Any]) -> dict[Path, list[str]]:
    """The unknown fields of each mapping that has too many of them, by its place."""
    found: dict[Path, list[str]] = {}
    for place, fields in _large_mappings(data, ()):
        inner = nested_model(model, place)
        known = {field.alias or name for name, field in inner.model_fields.items()} if inner else None
        unknown = [name for name in fields if name not in known] if known is not None else []
        if len(unknown) > MOST:
            found[place] = unknown
    return found


def describe_crowd(at: Origin, unknown: list[str]) -> Diagnostic:
    """One finding for all of them, at the first."""
    where = f"`{at}`" if at.path else "the document"
    return UNKNOWN_FIELD.report(
        Finding(
            (at / unknown[0]).key,
            f"{where} has {len(unknown):,} unknown fields: {listing(unknown)}",
            label="the first of them",
            help="remove them",
        )
    )


def _large_mappings(data: object, here: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(data, dict):
        if len(data) > MOST:
            yield here, data
        for key, part in data.items():
            if isinstance(part, dict | list):
                yield from _large_mappings(part, (*here, key))
    elif isinstance(data, list):
        for index, part in enumerate(data):
            if isinstance(part, dict | list):
                yield from _large_mappings(part, (*here, index))
