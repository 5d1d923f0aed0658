"""The meaning of parts of plans, without the places where they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

from pydantic import BaseModel

from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.plan import said

_DERIVED = "placed"
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
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return tuple(meaning(value) for value in part)
    if isinstance(part, BaseModel | tuple) or is_dataclass(part):
        return type(part).__name__, {name: meaning(value) for name, value in said(part) if name != _DERIVED}
    return part
