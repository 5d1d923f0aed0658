"""Rules on steps of clusters (GPU718-719), and on what is retained for one (GPU720-721)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

RETAINED_FOR_NOTHING = Rule("GPU720", _HERE)
RETAINED_CONTRADICTED = Rule("GPU721", _HERE)
CLUSTER_REMOVED = Rule("GPU718", _HERE)
NOT_JUDGED = Rule("GPU719", _HERE)

RULES: Final = rules_among(globals())
