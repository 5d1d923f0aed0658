"""Rules on repositories (GPU110-114), on clusters together (GPU659, GPU677), and on what is rendered (GPU690)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

CLUSTER_DOCUMENT = Rule("GPU110", _HERE)
MISSING_BASE = Rule("GPU111", _HERE)
UNUSED_IGNORE = Rule("GPU112", _HERE)
UNKNOWN_KUBERNETES = Rule("GPU113", _HERE)
UNMATCHED_OVERLAY = Rule("GPU114", _HERE)
SHARED_NAMES = Rule("GPU659", _HERE)
SEVERAL_ARGO_CDS = Rule("GPU677", _HERE)
INVALID_OBJECT = Rule("GPU690", _HERE)

RULES: Final = rules_among(globals())
