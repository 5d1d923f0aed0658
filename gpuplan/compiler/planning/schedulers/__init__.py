"""The schedulers that can divide a cluster's GPUs, their traits, and how tenants are capped under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from gpuplan.compiler.catalog.schedulers import Support
from gpuplan.compiler.planning.schedulers.kai import KAI
from gpuplan.compiler.planning.schedulers.kubernetes import KUBERNETES
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.compiler.planning.schedulers.runai import RUNAI
from gpuplan.compiler.planning.schedulers.traits import Evicts, Protects, SchedulerTraits
from gpuplan.compiler.policy.models import Cap, Scheduler, SchedulerKind

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
"""The traits of all schedulers by their names in the policy."""


def keepers(concept: str) -> list[str]:
    """Return the titles of the schedulers that support a concept of the capability matrix exactly."""
    return [found.title for found in SCHEDULERS.values() if found.capability(concept).support is Support.EXACT]


_POLICIES_SINCE_MINOR = 30
"""ValidatingAdmissionPolicy is `admissionregistration.k8s.io/v1` since Kubernetes 1.30."""


def knows_admission_policies(kubernetes: str) -> bool:
    """Whether an API server of this version knows ValidatingAdmissionPolicy."""
    major, _, minor = kubernetes.partition(".")
    return (int(major), int(minor)) >= (1, _POLICIES_SINCE_MINOR)


def chosen_cap(scheduler: Scheduler, kubernetes: str) -> Cap:
    """Return the policy's way of capping, or the scheduler's default.

    A queue caps what goes through it, and without admission policies nothing makes pods do so.
    """
    if scheduler.cap is not None:
        return scheduler.cap
    is_queue = traits_of(scheduler.kind).caps_in_queues and knows_admission_policies(kubernetes)
    return Cap.QUEUE if is_queue else Cap.LIMIT


def caps_in_queue(cap: Cap, scheduler: SchedulerTraits, device_class: str | None) -> bool:
    """Whether a queue alone caps what is granted of a unit, and no ResourceQuota; ``device_class`` if it is claimed."""
    return cap is Cap.QUEUE and (device_class is None or scheduler.caps_claims_in_queues)
