"""The output on the disk: compared with what it should be, written safely, pruned only of what gpuplan wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.outtree.comparing import Action, ChangeSet, FileChange, Reason, compare
    from gpuplan.outtree.disk import Disk
    from gpuplan.outtree.inventory import INVENTORY, Inventory, read_inventory, titles
    from gpuplan.outtree.locking import Lock
    from gpuplan.outtree.paths import IGNORE
    from gpuplan.outtree.reporting import diff, findings
    from gpuplan.outtree.rules import INCOMPLETE, PRUNED, RULES, UNBUILT
    from gpuplan.outtree.writing import apply

__all__ = [
    "IGNORE",
    "INCOMPLETE",
    "INVENTORY",
    "PRUNED",
    "RULES",
    "UNBUILT",
    "Action",
    "ChangeSet",
    "Disk",
    "FileChange",
    "Inventory",
    "Lock",
    "Reason",
    "apply",
    "compare",
    "diff",
    "findings",
    "read_inventory",
    "titles",
]

_HOMES = {
    "comparing": ("Action", "FileChange", "ChangeSet", "Reason", "compare"),
    "disk": ("Disk",),
    "inventory": ("INVENTORY", "Inventory", "read_inventory", "titles"),
    "locking": ("Lock",),
    "paths": ("IGNORE",),
    "reporting": ("diff", "findings"),
    "rules": ("INCOMPLETE", "PRUNED", "RULES", "UNBUILT"),
    "writing": ("apply",),
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for (PEP 562): `validate` reads the inventory and writes nothing."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
