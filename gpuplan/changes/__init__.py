"""Changes: what the step from one plan to another disturbs, in classes of fixed meaning."""

from __future__ import annotations

from gpuplan.changes.compare import compare
from gpuplan.changes.model import (
    CapacityChange,
    Change,
    ChangeClass,
    Comparison,
    GrantChange,
    NodeImpact,
    ObjectChange,
    Subject,
    worst,
)
from gpuplan.changes.objects import compare_objects

__all__ = [
    "CapacityChange",
    "Change",
    "ChangeClass",
    "Comparison",
    "GrantChange",
    "NodeImpact",
    "ObjectChange",
    "Subject",
    "compare",
    "compare_objects",
    "worst",
]
