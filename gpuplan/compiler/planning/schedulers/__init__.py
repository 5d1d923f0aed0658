"""The schedulers that can divide a cluster's GPUs, and what each is like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from gpuplan.compiler.catalog.schedulers import Support
from gpuplan.compiler.planning.schedulers.kai import KAI
from gpuplan.compiler.planning.schedulers.kubernetes import KUBERNETES
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import SchedulerKind

__all__ = ["SCHEDULERS", "Evicts", "Protects", "SchedulerTraits", "keepers", "traits_of"]


def traits_of(kind: SchedulerKind) -> SchedulerTraits:
    match kind:
        case SchedulerKind.KUBERNETES:
            return KUBERNETES
        case SchedulerKind.KUEUE:
            return KUEUE
        case SchedulerKind.KAI:
            return KAI
        case SchedulerKind.RUNAI:
            return RUNAI
        case unknown:
            assert_never(unknown)


SCHEDULERS: Final[Mapping[str, SchedulerTraits]] = {kind.value: traits_of(kind) for kind in SchedulerKind}
"""All of them, by the name that the policy gives them."""


def keepers(concept: str) -> list[str]:
    """The schedulers that keep a concept of the capability matrix as it is said, as people call them."""
    return [found.title for found in SCHEDULERS.values() if found.capability(concept).support is Support.EXACT]
