"""The admission policy `gpuplan-queues` with Kueue: what it refuses, and why, is said in `policies.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import admission_policy
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.grants import QUEUES_POLICY
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers.kueue import PRIORITY_LABEL

_FILE: Final = Path(__file__).with_name("policies.yaml")


def queues_policy(plan: Plan) -> dict[str, Any]:
    """The policy; the folder of each namespace has a binding for it."""
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    values = {
        "default_priority": str(default),
        "harmless_labels": str(sorted(_harmless_labels(plan, default))),
        "priority_label": PRIORITY_LABEL,
    }
    return admission_policy(QUEUES_POLICY, read_rows(_FILE)["queues"], (), values)


def _harmless_labels(plan: Plan, most: int) -> Iterator[str]:
    """None, which Kueue takes for no class, and names of classes with no more than a priority.

    Where a class `default` exists Kueue's webhook gives it to all that names none (`ApplyDefaultWorkloadPriorityClass`
    in `pkg/controller/jobframework/defaults.go`): it is judged by its number if it is not the policy's own.
    """
    values = {"": most, "default": most} | {priority.name: priority.spec.value for priority in plan.priority_classes}
    return (name for name, value in values.items() if value <= most)
