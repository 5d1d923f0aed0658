"""What runs beside what is written: fields that differ, objects that are missing or left, nodes that are otherwise.

Nothing here knows who applies what, nor what a change disturbs: `pipeline.drifting` adds that.
"""

from __future__ import annotations

from gpuplan.adoption.drift.foreign import opponents
from gpuplan.adoption.drift.nodes import NodeDifference, compare_nodes, count_nodes
from gpuplan.adoption.drift.objects import (
    Compared,
    Differing,
    Leftover,
    Unjudged,
    applied_by,
    compare,
    leftovers,
)
from gpuplan.adoption.drift.owners import Owner, find_owner
from gpuplan.manifests.applied import Difference, as_found, with_left
from gpuplan.manifests.shapes import ABSENT

__all__ = [
    "ABSENT",
    "Compared",
    "Difference",
    "Differing",
    "Leftover",
    "NodeDifference",
    "Owner",
    "Unjudged",
    "applied_by",
    "as_found",
    "compare",
    "compare_nodes",
    "count_nodes",
    "find_owner",
    "leftovers",
    "opponents",
    "with_left",
]
