"""The capability matrix: the concepts of a policy that each scheduler keeps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.loading import facts


class Support(StrEnum):
    """The degree to which a scheduler keeps something."""

    EXACT = "exact"
    LOSSY = "lossy"
    IMPOSSIBLE = "impossible"


class Needs(StrEnum):
    """A thing that a scheduler needs beside its own objects to keep a concept."""

    ADMISSION = "admission"
    CONFIGURATION = "configuration"


class Capability(Value):
    """The support of a concept by a scheduler: ``how`` says by what, ``loss`` what is lost, empty for nothing."""

    support: Support
    how: str = ""
    loss: str = ""
    lost: str = ""
    needs: Needs | None = None
    setting: str = ""
    source: str = ""
    is_uncertain: bool = False


class Concept(Value):
    """Something that a policy can ask of a scheduler; ``field`` is where it says so."""

    id: str
    title: str
    field: str
    capabilities: Mapping[str, Capability]


@cache
def concepts() -> tuple[Concept, ...]:
    """Every concept, in the order in which people read them."""
    matrix = _matrix()
    return tuple(_concept(row, matrix["schedulers"]) for row in matrix["concepts"])


def get_concept(id_: str) -> Concept:
    return _by_id()[id_]


def capability(id_: str, scheduler: str) -> Capability:
    """Return the capability of a scheduler, by the policy's name for it, for a concept."""
    return get_concept(id_).capabilities[scheduler]


def release_read(scheduler: str) -> str:
    """The release of a scheduler in which it was read what it keeps."""
    return str(_matrix()["schedulers"][scheduler]["release"])


@cache
def _by_id() -> Mapping[str, Concept]:
    return {concept.id: concept for concept in concepts()}


def _matrix() -> Mapping[str, Any]:
    matrix: Mapping[str, Any] = facts("scheduler_data", "capabilities.yaml")
    return matrix


def _concept(row: Mapping[str, Any], schedulers: Mapping[str, Any]) -> Concept:
    found = {name: _capability(row[name], read["sources"]) for name, read in schedulers.items()}
    return Concept(row["id"], row["title"], row["field"], found)


def _capability(row: Mapping[str, Any], sources: str) -> Capability:
    made = {"support": Support(row["support"]), "needs": Needs(row["needs"]) if "needs" in row else None}
    return Capability(**{**row, **made, "source": f"{sources}{row['source']}" if "source" in row else ""})
