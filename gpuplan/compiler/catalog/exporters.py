"""Facts about the DCGM exporter: the release that comes with each operator, and its abilities."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.catalog.loading import facts
from gpuplan.compiler.catalog.operators import Version, parse_version


class ExporterTrait(StrEnum):
    """Something that not every exporter can do, or calls by the same name."""

    EVENT_REASONS = "event-reasons"
    RECOVERY_ACTION = "recovery-action"
    HEALTH_STATUS = "health-status"
    EVERY_POD = "every-pod"


_IMAGE: Final = regex(r"[0-9]+(?:\.[0-9]+)+-([0-9]+(?:\.[0-9]+)+)(?:-[0-9A-Za-z.-]+)?")
"""DCGM's version, the exporter's own, and what the image is built on: `4.5.3-4.8.2-distroless`."""


def exporter_traits(operator: str, image: str = "") -> frozenset[ExporterTrait]:
    """Return the abilities of the exporter of an operator's release; the version of its image counts if it is known."""
    found = _IMAGE.fullmatch(image)
    version = parse_version(found[1] if found else _brought_by(operator).partition("-")[2])
    return frozenset(trait for trait, since in _traits().items() if version is not None and version >= since)


def _brought_by(operator: str) -> str:
    """The image of the newest release that is not newer; the newest of all for what is no release."""
    version, releases = parse_version(operator), _data()["releases"]
    older = [
        image for release, image in releases.items() if version is None or (parse_version(release) or ()) <= version
    ]
    return str(older[-1] if older else next(iter(releases.values())))


@cache
def _traits() -> Mapping[ExporterTrait, Version]:
    return {ExporterTrait(row["name"]): parse_version(row["since"]) or () for row in _data()["traits"]}


def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = facts("operator_data", "exporters.yaml")
    return data
