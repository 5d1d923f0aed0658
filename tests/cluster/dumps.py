"""What the commands of `gpuplan import --commands` print of a control plane."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from gpuplan.compiler.manifests.kinds.imported import COLLECTED
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane


def collect(plane: ControlPlane, cache: Path) -> Iterator[tuple[str, bytes]]:
    """What kubectl prints for each command that the cluster has kinds for, by the file that it goes to.

    The cluster serves the kinds of its own objects alone, of which a command may name more.
    """
    for collected in COLLECTED:
        kinds = {
            group: " ".join(kind for kind in names.split() if _is_served(plane.api, group, kind))
            for group, names in collected.kinds.items()
        }
        if any(kinds.values()):
            command = collected._replace(kinds=kinds).command.partition(" > ")[0]
            for inner in _INNER.finditer(command):
                # A shell goes on with nothing where kubectl fails: no such kind, or no object of it.
                told = plane.ask_kubectl(*shlex.split(inner[1]), "--cache-dir", cache)
                command = command.replace(inner[0], told.stdout or _operators(plane.api))
            _, *arguments = shlex.split(command)
            if "-n" not in arguments or not arguments[arguments.index("-n") + 1].startswith("-"):
                yield collected.file, plane.kubectl(*arguments, "--cache-dir", cache).encode()


def _operators(api: Api) -> str:
    """The namespace of the GPU Operator, which writes it into the status of its ClusterPolicy where it runs."""
    namespaces = ("nvidia-gpu-operator", "gpu-operator")
    return next((name for name in namespaces if api.find(f"/api/v1/namespaces/{name}")), "")


_INNER = re.compile(r'"\$\(kubectl ([^)]*)\)"')
"""A command within a command, which a shell runs first."""


def _is_served(api: Api, group: str, kind: str) -> bool:
    """Whether any version of the group has the kind."""
    found = api.find(f"/apis/{group}") if group else {"versions": [{"groupVersion": "v1"}]}
    return any(api.find_kind(version["groupVersion"], kind) for version in (found or {}).get("versions", ()))
