"""What pods must say and show to each scheduler, beside what they must to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, assert_never

from gpuplan.backends.scheduling.kai import KAI_ANNOTATIONS_STAY, KAI_RULES, KAI_VARIABLES
from gpuplan.backends.scheduling.kueue import GATE_STAYS, KUEUE_RULES, KUEUE_VARIABLES, jobs_policy
from gpuplan.manifests import AdmissionRule
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.policy.models import SchedulerKind


class PodRules(NamedTuple):
    """Variables and rules of `gpuplan-grants`, for new pods; rules of `gpuplan-devices`, for pods that exist.

    ``policies`` are further ones, in all namespaces of tenants.
    """

    variables: Mapping[str, str]
    rules: tuple[AdmissionRule, ...]
    lasting: tuple[AdmissionRule, ...]
    policies: tuple[Callable[[], dict[str, Any]], ...]


_NOTHING: Final = PodRules({}, (), (), ())


def rules_of(scheduler: SchedulerTraits) -> PodRules:
    match scheduler.kind:
        case SchedulerKind.KUBERNETES | SchedulerKind.RUNAI:
            return _NOTHING
        case SchedulerKind.KUEUE:
            return PodRules(KUEUE_VARIABLES, KUEUE_RULES, (GATE_STAYS,), (jobs_policy,))
        case SchedulerKind.KAI:
            return PodRules(KAI_VARIABLES, KAI_RULES, (KAI_ANNOTATIONS_STAY,), ())
        case unknown:
            assert_never(unknown)
