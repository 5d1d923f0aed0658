"""What caps the tenants of a cluster, where its policy does not say it."""

from __future__ import annotations

from gpuplan.compiler.planning.schedulers import SchedulerTraits, traits_of
from gpuplan.compiler.policy.models import Cap, Scheduler

_POLICIES_SINCE_MINOR = 30
"""ValidatingAdmissionPolicy is `admissionregistration.k8s.io/v1` since Kubernetes 1.30."""


def knows_admission_policies(kubernetes: str) -> bool:
    """Whether an API server of this version knows ValidatingAdmissionPolicy."""
    major, _, minor = kubernetes.partition(".")
    return (int(major), int(minor)) >= (1, _POLICIES_SINCE_MINOR)


def chosen_cap(scheduler: Scheduler, kubernetes: str) -> Cap:
    """What the policy says, or what its scheduler is good for.

    A queue caps what goes through it, and without admission policies nothing makes pods do so.
    """
    if scheduler.cap is not None:
        return scheduler.cap
    is_queue = traits_of(scheduler.kind).caps_in_queues and knows_admission_policies(kubernetes)
    return Cap.QUEUE if is_queue else Cap.LIMIT


def caps_in_queue(cap: Cap, scheduler: SchedulerTraits, device_class: str | None) -> bool:
    """Whether a queue alone caps what is granted of a unit, and no ResourceQuota; ``device_class`` if it is claimed."""
    return cap is Cap.QUEUE and (device_class is None or scheduler.caps_claims_in_queues)
