"""The version, and what this gpuplan knows."""

from __future__ import annotations

import platform

from gpuplan.compiler.base.version import __version__
from gpuplan.compiler.catalog import load
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.terminal.json_findings import json_text


def version_text() -> str:
    """For people who report a problem."""
    facts = _facts()
    return "".join(f"{key.replace('_', ' ')}: {value}\n" for key, value in facts.items())


def version_json() -> str:
    return json_text({"format_version": "1.0", **_facts()})


def _facts() -> dict[str, str | int]:
    return {
        "gpuplan": __version__,
        "policy_language": API_VERSION,
        "gpu_models": len(load().ids()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
