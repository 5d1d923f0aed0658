"""WorkloadPriorityClasses: the order in which Kueue admits, and whom it evicts within a queue."""

from __future__ import annotations

from typing import Any

from gpuplan.backends.kueue.flavors import API_VERSION
from gpuplan.planning.plan import PriorityClass


def priority_class(priority: PriorityClass) -> dict[str, Any]:
    """The class of a workload, with the name and value of that of its pods, which has the same description."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": priority.name},
        "value": priority.spec.value,
    }
