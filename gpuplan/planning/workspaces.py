"""What a workspace has beside its program: the files and the variable that end it when nobody works in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from gpuplan.planning.plan import Workload
from gpuplan.planning.projects import seconds

FILES: Final = "/etc/workload"
"""Where a container has the files of its workload."""

SETTINGS: Final = "jupyter_server_config.json"
"""What a Jupyter server reads of every folder of its search path, JSON after Python (`load_config_file` in
`jupyter_core/application.py`, `_load_config_files` in `traitlets/config/application.py`)."""

SEARCH_PATH: Final = "JUPYTER_CONFIG_PATH"
"""The folders that come before all others in that path (`jupyter_config_path` in `jupyter_core/paths.py`): what a home
directory on a volume says of the same settings counts for nothing."""

WITHOUT_SETTINGS: Final = "JUPYTER_NO_CONFIG"
"""With it a Jupyter server looks at no folder of that path."""

_LOOKS_EVERY: Final = 60
"""Seconds after which kernels and terminals are looked at once more, as the server looks at itself."""


def files_of(workload: Workload) -> Mapping[str, str]:
    """The files of a workload's container by name, those of the policy and what ends it when it is idle."""
    return {**workload.spec.config, **({SETTINGS: _ending_after(workload.idle)} if workload.idle else {})}


def _ending_after(idle: str) -> str:
    """What ends kernels and terminals that nobody uses, and the server when it has none and nobody asks it anything.

    A kernel that computes is never idle; one that waits is, also where somebody's browser still shows it.
    (`cull_kernels` in `jupyter_server/services/kernels/kernelmanager.py` and `shutdown_no_activity` in
    `jupyter_server/serverapp.py`, 2.21; `cull_terminals` in `jupyter_server_terminals/terminalmanager.py`, 0.5.)
    """
    length = seconds(idle)
    settings = {
        "ServerApp": {"shutdown_no_activity_timeout": length},
        "MappingKernelManager": {
            "cull_idle_timeout": length,
            "cull_interval": _LOOKS_EVERY,
            "cull_connected": True,
        },
        "TerminalManager": {"cull_inactive_timeout": length, "cull_interval": _LOOKS_EVERY},
    }
    return json.dumps(settings, indent=2) + "\n"
