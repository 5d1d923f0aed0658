"""The files and the variable that end a workspace when nobody works in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import Workload
from gpuplan.compiler.planning.projects import seconds

FILES: Final = "/etc/workload"
"""Where a container has the files of its workload."""

SETTINGS: Final = "jupyter_server_config.json"
"""The file that a Jupyter server reads in every folder of its search path, JSON after Python (`load_config_file` in
`jupyter_core/application.py`, `_load_config_files` in `traitlets/config/application.py`)."""

SEARCH_PATH: Final = "JUPYTER_CONFIG_PATH"
"""The folders that come before all others in that path (`jupyter_config_path` in `jupyter_core/paths.py`): what a home
directory on a volume says of the same settings counts for nothing."""

WITHOUT_SETTINGS: Final = "JUPYTER_NO_CONFIG"
"""With it a Jupyter server looks at no folder of that path."""

_LOOKS_EVERY: Final = 60
"""Seconds after which kernels and terminals are looked at once more, as the server looks at itself."""


def files_of(workload: Workload) -> Mapping[str, str]:
    """Return the files of a workload's container by name: those of the policy, and settings that end it when idle."""
    files = dict(workload.spec.config)
    if workload.idle:
        files[SETTINGS] = json.dumps(_settings(seconds(workload.idle)), indent=2) + "\n"
    return files


def _settings(length: int) -> Mapping[str, Mapping[str, object]]:
    """Return settings by class that end unused kernels and terminals after ``length`` seconds, and then the server.

    A kernel that computes is never idle; one that waits is, also where somebody's browser still shows it. A terminal is
    when nothing is typed and nothing written, whatever runs in it. (`cull_kernels` in
    `jupyter_server/services/kernels/kernelmanager.py` and `shutdown_no_activity` in `jupyter_server/serverapp.py`,
    2.21; `_cull_inactive_terminal` and `pre_pty_read_hook` in `jupyter_server_terminals/terminalmanager.py`, 0.5.)
    """
    return {
        "ServerApp": {"shutdown_no_activity_timeout": length},
        "MappingKernelManager": {"cull_idle_timeout": length, "cull_interval": _LOOKS_EVERY, "cull_connected": True},
        "TerminalManager": {"cull_inactive_timeout": length, "cull_interval": _LOOKS_EVERY},
    }


# --- What takes it away --------------------------------------------------------------------------------------------


class Overruling(NamedTuple):
    """A word of a command line, as ``field[place]``, that keeps Jupyter from reading or heeding what ends it.

    ``setting`` is what it says otherwise, None where it names a file that is read in place of the others.
    """

    field: str
    place: int
    setting: str | None


def overruling(workload: Workload) -> Iterator[Overruling]:
    """Yield words of the command line that override the files.

    The command line wins over files, and `--config` makes the server look for that name alone, in one folder
    (`load_config_file` in `jupyter_core/application.py`, 5.9).
    """
    said = {setting for settings in _settings(0).values() for setting in settings}
    for field, items in (("command", workload.spec.command), ("args", workload.spec.args)):
        words = [(index, word.strip("'\"")) for index, item in enumerate(items) for word in item.split()]
        for (index, word), (_, after) in pairwise([*words, (0, "")]):
            option, has_value, value = word.partition("=")
            name = option.removeprefix("--").rpartition(".")[2]
            if not option.startswith("--"):
                continue
            if name in said and name != option.removeprefix("--"):
                yield Overruling(field, index, name)
            file = value if has_value else after
            # The server reads its file as Python and as JSON, whatever the suffix.
            if name in _FILE_OPTIONS and file.rpartition(".")[0] != f"{FILES}/{SETTINGS.rpartition('.')[0]}":
                yield Overruling(field, index, None)


_FILE_OPTIONS: Final = ("config", "config_file")
"""`config_file` is the setting of a class that `--config` is short for (`_jupyter_aliases` there)."""
