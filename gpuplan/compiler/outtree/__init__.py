"""The output on the disk: compared with what it should be, written safely, pruned only of what gpuplan wrote.

Whoever needs something of it imports the module: `validate` reads the inventory and writes nothing.
"""

from __future__ import annotations

from gpuplan.compiler.outtree.rules import RULES

__all__ = ["RULES"]
