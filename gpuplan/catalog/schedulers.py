"""What each scheduler keeps of a policy: the capability matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

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


@dataclass(frozen=True, slots=True)
class Capability:
    """How a scheduler keeps a concept: ``how`` says by what, ``loss`` what is lost, empty where that is nothing."""

    support: Support
    how: str
    loss: str
    needs: Needs | None
    is_uncertain: bool


@dataclass(frozen=True, slots=True)
class Concept:
    """Something that a policy can ask of a scheduler; ``field`` is where it says so."""

    id: str
    title: str
    field: str
    capabilities: Mapping[str, Capability]


@cache
def concepts() -> tuple[Concept, ...]:
    """Every concept, in the order in which people read them."""
    text = (Path(__file__).parent / "scheduler_data" / "capabilities.yaml").read_text(encoding="utf-8")
    return tuple(_concept(row) for row in yaml.load(text, Loader=yaml.CSafeLoader)["concepts"])


def find_concept(id_: str) -> Concept:
    return next(concept for concept in concepts() if concept.id == id_)


def capability(id_: str, scheduler: str) -> Capability:
    """How a scheduler, by the policy's name for it, keeps a concept."""
    return find_concept(id_).capabilities[scheduler]


def _concept(row: Mapping[str, Any]) -> Concept:
    return Concept(row["id"], row["title"], row["field"], {name: _capability(row[name]) for name in SCHEDULERS})


def _capability(row: Mapping[str, Any]) -> Capability:
    needs = row.get("needs")
    return Capability(
        support=Support(row["support"]),
        how=row.get("how", ""),
        loss=row.get("loss", ""),
        needs=Needs(needs) if needs else None,
        is_uncertain=row.get("uncertain", False),
    )
