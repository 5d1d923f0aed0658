"""The output on the disk: compared with what it should be, written safely, pruned only of what gpuplan wrote."""

from __future__ import annotations

from gpuplan.outtree.comparing import Action, Change, ChangeSet, Reason, compare
from gpuplan.outtree.inventory import INVENTORY, Inventory
from gpuplan.outtree.locking import Lock
from gpuplan.outtree.reporting import diff, findings
from gpuplan.outtree.rules import RULES
from gpuplan.outtree.writing import apply

__all__ = [
    "INVENTORY",
    "RULES",
    "Action",
    "Change",
    "ChangeSet",
    "Inventory",
    "Lock",
    "Reason",
    "apply",
    "compare",
    "diff",
    "findings",
]
