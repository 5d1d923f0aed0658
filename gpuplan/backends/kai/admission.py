"""The admission policy `gpuplan-queues` with KAI-Scheduler: what it refuses, and why, is said in `policies.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import admission_policy
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.grants import QUEUES_POLICY
from gpuplan.planning.schedulers.kai import OWN_CLASSES, QUEUE_LABEL

_FILE: Final = Path(__file__).with_name("policies.yaml")


def queues_policy() -> dict[str, Any]:
    """The policy; the folder of each namespace has a binding for it."""
    values = {"own_classes": str(list(OWN_CLASSES)), "queue_label": QUEUE_LABEL}
    return admission_policy(QUEUES_POLICY, read_rows(_FILE)["queues"], (), values)
