"""What runs beside what is written: fields that differ, objects that are missing or left, nodes that are otherwise.

Nothing here knows who applies what, nor what a change disturbs: `pipeline.drifting` adds that.
"""

from __future__ import annotations

from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests.merging.applied import Difference, as_found, with_left
from gpuplan.features.live.drifting.comparing.foreign import opponents
from gpuplan.features.live.drifting.comparing.nodes import NodeDifference, compare_nodes, count_nodes
from gpuplan.features.live.drifting.comparing.objects import (
    Compared,
    Differing,
    Leftover,
    Unjudged,
    applied_by,
    compare,
    leftovers,
)
from gpuplan.features.live.drifting.comparing.owners import Owner, find_owner

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
