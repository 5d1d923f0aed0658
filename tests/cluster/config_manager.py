"""The device plugin's config-manager on a node that tests play: its label, its ConfigMap and the pod that it is in."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import NotReadyError, Process, until
from tests.cluster.programs import program

LABEL = "nvidia.com/device-plugin.config"
EMPTY = "/dev/null"
_NAME = "nvidia-device-plugin"

_READER = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
print("reads", flush=True)
while True:
    print(signal.sigwait({signal.SIGHUP}).name, flush=True)
"""
"""Stands for the device plugin, which reads its file again when it gets this signal."""


@dataclass
class Node:
    """A node with its label, the folder that kubelet brings the ConfigMap to, and what reads the file."""

    plane: ControlPlane
    name: str
    folder: Path
    within: tuple[str, ...]
    """How a command is run among the processes of the pod, which sees no others."""
    default: str = ""
    """The key of a node without a label."""
    _versions: Iterator[int] = field(default_factory=count)
    reader: Process = field(init=False)
    heard: int = 0
    processes: list[Process] = field(default_factory=list)

    def read(self, name: str = _NAME) -> None:
        """Start what reads the file; it is found by the first word of its command line."""
        command = f"exec -a {name} {shlex.quote(sys.executable)} -c {shlex.quote(_READER)}"
        self.reader = self.run("plugin", "/bin/bash", "-c", command)
        until(lambda: "reads" in self.reader.tail(), "the reader has started", processes=[self.reader])

    def run(self, name: str, *command: str) -> Process:
        process = Process([*self.within, *command], self.folder / f"{name}.log")
        self.processes.append(process)
        return process

    @property
    def link(self) -> Path:
        return self.folder / "config" / "config.yaml"

    @property
    def reads(self) -> str:
        """The key that the link leads to, or nothing while the program replaces it."""
        try:
            return os.path.basename(os.readlink(self.link))
        except FileNotFoundError:
            return ""

    @property
    def signals(self) -> int:
        """How often the reader has been told since its pod had started."""
        return self.reader.log.read_text().count("SIGHUP") - self.heard

    def bring(self, data: Mapping[str, str]) -> None:
        """What the kubelet does: all files anew in a folder with a date, and one rename (`AtomicWriter`)."""
        configs = self.folder / "available-configs"
        configs.mkdir(exist_ok=True)
        dated = configs / f"..2026_{next(self._versions)}"
        dated.mkdir()
        for key, text in data.items():
            (dated / key).write_text(text)
        (configs / "..data_tmp").symlink_to(dated.name)
        (configs / "..data_tmp").rename(configs / "..data")
        for key in data:
            if not (configs / key).is_symlink():
                (configs / key).symlink_to(f"..data/{key}")
        for path in configs.iterdir():
            if not path.name.startswith("..") and path.name not in data:
                path.unlink()
        for path in configs.glob("..2026_*"):
            if path != dated:
                shutil.rmtree(path)

    def label(self, value: str | None) -> None:
        self.plane.api.patch(f"/api/v1/nodes/{self.name}", {"metadata": {"labels": {LABEL: value}}})

    def start(self, tells: str = _NAME) -> Process:
        """The sidecar, as kubelet starts it."""
        own = f"PROCESS_TO_SIGNAL={tells}"
        return self.run("sidecar", "/usr/bin/env", *self._environment("false"), own, str(_program()))

    def begin(self) -> subprocess.CompletedProcess[str]:
        """The init container, which ends."""
        command = [*self.within, "/usr/bin/env", *self._environment("true"), str(_program())]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def _environment(self, oneshot: str) -> list[str]:
        """As `assets/state-device-plugin/0500_daemonset.yaml` of NVIDIA/gpu-operator has it, and what it is given."""
        found = {
            "ONESHOT": oneshot,
            "KUBECONFIG": str(self.plane.kubeconfig),
            "NODE_NAME": self.name,
            "NODE_LABEL": LABEL,
            "CONFIG_FILE_SRCDIR": str(self.folder / "available-configs"),
            "CONFIG_FILE_DST": str(self.link),
            "DEFAULT_CONFIG": self.default,
            "FALLBACK_STRATEGIES": "empty",
            "SEND_SIGNAL": "false" if oneshot == "true" else "true",
            "SIGNAL": "1",
            "PROCESS_TO_SIGNAL": _NAME,
        }
        return [f"{key}={value}" for key, value in found.items()]


def _program() -> Path:
    return program("config-manager", "config-manager")


@contextmanager
def pod(folder: Path) -> Iterator[tuple[str, ...]]:
    """The processes of a pod, which share a namespace (`shareProcessNamespace`): the first one does nothing."""
    unshare, nsenter = shutil.which("unshare"), shutil.which("nsenter")
    if unshare is None or nsenter is None:
        pytest.skip("unshare and nsenter of util-linux make the processes of a pod")
    own = ("--user", "--pid", "--mount")
    options = (*own, "--map-root-user", "--fork", "--mount-proc", "--kill-child")
    pause = Process([unshare, *options, "/bin/sleep", "infinity"], folder / "pause.log")
    children = Path(f"/proc/{pause.pid}/task/{pause.pid}/children")
    try:
        first = until(lambda: children.read_text().split(), "the pod has a process", processes=[pause])[0]
        until(lambda: b"sleep" in Path(f"/proc/{first}/cmdline").read_bytes(), "it sleeps", processes=[pause])
        yield nsenter, "--target", first, *own, "--preserve-credentials"
    except NotReadyError as error:
        if "Operation not permitted" in str(error):
            pytest.skip("this user may make no namespace of processes")
        raise
    finally:
        pause.stop()
