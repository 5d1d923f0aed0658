"""Rules on the files of the output (GPU90x)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

EDITED = Rule("GPU901", _HERE)
FOREIGN = Rule("GPU902", _HERE)
STALE = Rule("GPU903", _HERE)
LINE_ENDS = Rule("GPU904", _HERE)
PRUNED = Rule("GPU905", _HERE)
UNBUILT = Rule("GPU906", _HERE)
INCOMPLETE = Rule("GPU907", _HERE)
ELSEWHERE = Rule("GPU908", _HERE)
UNREAD = Rule("GPU909", _HERE)

RULES: Final = rules_among(globals())
