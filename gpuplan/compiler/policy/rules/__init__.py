"""Rules on what a policy document may contain (GPU03x)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

UNKNOWN_FIELD = Rule("GPU030", _HERE)
MISSING_FIELD = Rule("GPU031", _HERE)
WRONG_TYPE = Rule("GPU032", _HERE)
VALUE_NOT_ALLOWED = Rule("GPU033", _HERE)
NOT_EXACTLY_ONE = Rule("GPU034", _HERE)
UNKNOWN_KIND = Rule("GPU035", _HERE)
UNKNOWN_API_VERSION = Rule("GPU036", _HERE)

PLAIN_OBJECTS: Final = "plain Kubernetes objects go to"
"""The words of help before a place that is more exact once the clusters are known."""

RULES: Final = rules_among(globals())
