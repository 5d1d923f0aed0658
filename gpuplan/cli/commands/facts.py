"""The work of `gpuplan version` and `gpuplan schema`."""

from __future__ import annotations

import platform

from gpuplan.compiler.base.version import __version__
from gpuplan.compiler.catalog import load
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.schemas import schema_text
from gpuplan.terminal.session import Terminal


def version(terminal: Terminal, format_: str) -> None:
    facts = {
        "gpuplan": __version__,
        "policy_language": API_VERSION,
        "gpu_models": len(load().ids()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if format_ == "json":
        terminal.print(json_text({"format_version": "1.0", **facts}))
    else:
        terminal.print("".join(f"{key.replace('_', ' ')}: {value}\n" for key, value in facts.items()))


def schema(terminal: Terminal, name: str) -> None:
    terminal.print(schema_text(name))
