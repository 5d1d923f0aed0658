"""Changes: what the step from one plan to another disturbs, in classes of fixed meaning."""

from __future__ import annotations

from gpuplan.changes.compare import ClusterState, compare
from gpuplan.changes.model import (
    CapacityChange,
    Change,
    ChangeClass,
    Comparison,
    GrantChange,
    NodeImpact,
    ObjectChange,
    worst,
)
from gpuplan.changes.objects import compare_objects
from gpuplan.manifests import Subject

__all__ = [
    "CapacityChange",
    "Change",
    "ChangeClass",
    "ClusterState",
    "Comparison",
    "GrantChange",
    "NodeImpact",
    "ObjectChange",
    "Subject",
    "compare",
    "compare_objects",
    "worst",
]
