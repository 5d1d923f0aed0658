"""What each scheduler keeps of a policy: the capability matrix."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from gpuplan.documents import read_data
from gpuplan.values import Value

SCHEDULERS: Final[Mapping[str, str]] = {
    "kubernetes": "plain Kubernetes",
    "kueue": "Kueue",
    "kai": "KAI-Scheduler",
    "runai": "Run:ai",
}
"""The schedulers by the name that the policy gives them, as people call them."""


class Support(StrEnum):
    """How well a scheduler keeps something."""

    EXACT = "exact"
    LOSSY = "lossy"
    IMPOSSIBLE = "impossible"


class Needs(StrEnum):
    """What a scheduler cannot keep by its own objects alone."""

    ADMISSION = "admission"
    CONFIGURATION = "configuration"


class Capability(Value):
    """How a scheduler keeps a concept: ``how`` says by what, ``loss`` what is lost, empty where that is nothing.

    ``setting`` is what the scheduler itself must be told, empty where that is nothing; ``source`` is the address of
    what was read, empty where the rest of the row says it or nothing was found.
    """

    support: Support
    how: str
    loss: str
    needs: Needs | None
    setting: str
    source: str
    is_uncertain: bool


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
    """How a scheduler, by the policy's name for it, keeps a concept."""
    return get_concept(id_).capabilities[scheduler]


def keepers(id_: str) -> list[str]:
    """The schedulers that keep a concept as it is said, as people call them."""
    found = get_concept(id_).capabilities
    return [title for name, title in SCHEDULERS.items() if found[name].support is Support.EXACT]


def release_read(scheduler: str) -> str:
    """The release of a scheduler in which it was read what it keeps."""
    return str(_matrix()["schedulers"][scheduler]["release"])


@cache
def _by_id() -> Mapping[str, Concept]:
    return {concept.id: concept for concept in concepts()}


@cache
def _matrix() -> Mapping[str, Any]:
    text = (Path(__file__).parent / "scheduler_data" / "capabilities.yaml").read_text(encoding="utf-8")
    matrix: Mapping[str, Any] = read_data(text)
    return matrix


def _concept(row: Mapping[str, Any], schedulers: Mapping[str, Any]) -> Concept:
    found = {name: _capability(row[name], schedulers[name]["sources"]) for name in SCHEDULERS}
    return Concept(row["id"], row["title"], row["field"], found)


def _capability(row: Mapping[str, Any], sources: str) -> Capability:
    needs, source = row.get("needs"), row.get("source")
    return Capability(
        support=Support(row["support"]),
        how=row.get("how", ""),
        loss=row.get("loss", ""),
        needs=Needs(needs) if needs else None,
        setting=row.get("setting", ""),
        source=f"{sources}{source}" if source else "",
        is_uncertain=row.get("uncertain", False),
    )
