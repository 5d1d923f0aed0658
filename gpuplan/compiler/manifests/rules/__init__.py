"""Rules on the objects of one cluster as files (GPU91x)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

OBJECT_WRITTEN_TWICE = Rule("GPU911", _HERE)
FILE_WRITTEN_TWICE = Rule("GPU912", _HERE)
UNUSABLE_DEFINITION = Rule("GPU913", _HERE)

RULES: Final = rules_among(globals())
