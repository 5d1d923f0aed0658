"""Rules on files without a platform (GPU800-801)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

POLICY_AMONG_FILES = Rule("GPU800", _HERE)
NOTHING_JUDGED = Rule("GPU801", _HERE)

RULES: Final = rules_among(globals())
