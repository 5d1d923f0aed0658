"""What parts of plans mean, apart from where they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from pydantic import BaseModel

from gpuplan.catalog import Gpu

_PLACES = frozenset(("at", "layout_at"))
_DERIVED = frozenset(("placed",))
"""Follows from what stands beside it, and takes long to compare."""


def means_same(one: object, other: object) -> bool:
    """Whether two parts of plans differ in nothing but where they were written."""
    return one is other or meaning(one) == meaning(other)


def meaning(part: object) -> object:
    """The part as plain data without origins; parts that mean the same are equal."""
    if isinstance(part, Gpu):
        return part.id
    if isinstance(part, Mapping):
        return {key: meaning(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        names = getattr(part, "_fields", None)
        if names is None:
            return tuple(meaning(value) for value in part)
        return type(part).__name__, *(meaning(getattr(part, name)) for name in names if _matters(name))
    if isinstance(part, BaseModel):
        return type(part).__name__, *(meaning(value) for _, value in part)
    if is_dataclass(part):
        names = tuple(field.name for field in fields(part))
        return type(part).__name__, *(meaning(getattr(part, name)) for name in names if _matters(name))
    return part


def _matters(name: str) -> bool:
    return name not in _PLACES and name not in _DERIVED
