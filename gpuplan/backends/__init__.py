"""Back ends: each turns a plan into the objects and files of its stage."""

from __future__ import annotations

from typing import Final

from gpuplan.backends import (
    dra,
    gpu_operator,
    guard,
    kai,
    kueue,
    monitoring,
    namespaces,
    partitions,
    retained,
    runai,
    scheduling,
    workloads,
)
from gpuplan.backends.base import Artifact, Backend

BACKENDS: Final[tuple[Backend, ...]] = (
    gpu_operator,
    partitions,
    guard,
    scheduling,
    dra,
    kueue,
    kai,
    runai,
    namespaces,
    workloads,
    monitoring,
    retained,
)

__all__ = ["BACKENDS", "Artifact", "Backend"]
