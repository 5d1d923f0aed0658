"""Rules on what comes of hand-written Components (GPU648, GPU680-683)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

COMPONENTS_NOT_BUILT = Rule("GPU680", _HERE)
COMPONENT_DOES_NOT_BUILD = Rule("GPU681", _HERE)
COMPONENT_FILE_UNUSABLE = Rule("GPU648", _HERE)
PATCHED_OBJECT_INVALID = Rule("GPU683", _HERE)

RULES: Final = rules_among(globals())
