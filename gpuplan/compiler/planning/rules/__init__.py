"""Rules on names that a policy refers to (GPU10x): what they point at must exist."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

UNKNOWN_REFERENCE = Rule("GPU101", _HERE)
UNKNOWN_GPU = Rule("GPU102", _HERE)
UNKNOWN_UNIT = Rule("GPU103", _HERE)
UNIT_NEEDED = Rule("GPU104", _HERE)
NAMESPACE_NEEDED = Rule("GPU105", _HERE)

RULES: Final = rules_among(globals())


def unknown_document(kind: str, name: str) -> str:
    """Return the message on a name that is no document's."""
    return f"unknown {kind} `{name}`"
