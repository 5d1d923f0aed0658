"""The kinds of Kubernetes objects that gpuplan knows: how to apply and remove them, and what a change disturbs."""

from __future__ import annotations

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.manifests.kinds.model import (
    Care,
    Disturbance,
    Hold,
    Immutable,
    Judgement,
    Kind,
    Removal,
    Route,
    route_of,
)
from gpuplan.compiler.manifests.kinds.registry import assume_kind, find_kind, get_kind, known_kinds

__all__ = [
    "Care",
    "ChangeClass",
    "Disturbance",
    "Hold",
    "Immutable",
    "Judgement",
    "Kind",
    "Removal",
    "Route",
    "assume_kind",
    "find_kind",
    "get_kind",
    "known_kinds",
    "route_of",
    "worst",
]
