"""Starts programs that end with the process that started them, however that ends."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
"""Of prctl(2), in <linux/prctl.h>: the signal that the kernel sends when the parent dies, kept across execve."""


_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 0.5
"""Seconds between two looks: whoever waits long asks less often, for what is awaited needs the processors as well."""


class Process:
    """A running program whose output goes to a file."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(os.getpid()), *map(str, command)],
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def tail(self, lines: int = 20) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"--- {self.log.name}", *text[-lines:]])

    def stop(self) -> None:
        """End it at once: nothing that it holds outlives the tests."""
        self._process.kill()
        self._process.wait()


class NotReadyError(Exception):
    """What was waited for did not come about."""


def until(condition: Callable[[], T], what: str, *, seconds: float = 30, processes: Sequence[Process] = ()) -> T:
    """The first true value of the condition; the error shows the logs when time is up or one of the processes ended."""
    deadline, pause = time.monotonic() + seconds, _SHORTEST_PAUSE
    while not (value := condition()):
        ended = [process for process in processes if not process.is_running]
        if ended or time.monotonic() > deadline:
            why = f"{ended[0].log.stem} ended" if ended else f"waited {seconds:g} s"
            raise NotReadyError("\n".join([f"{what}: {why}", *(process.tail() for process in ended or processes)]))
        time.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_PAUSE)
    return value


def serve(
    command: Callable[[int], Sequence[str | Path]],
    is_ready: Callable[[int], bool],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[Process, int]:
    """A program that listens on a free port of loopback, and the port; started anew when another took it meanwhile."""
    for _ in range(5):
        port = free_port()
        process = Process(command(port), log, env, cwd)
        try:
            answers = functools.partial(_answers, process, is_ready, port)
            until(answers, f"{log.stem} is ready", seconds=60, processes=[process])
        except NotReadyError:
            process.stop()
            if "address already in use" not in process.tail():
                raise
        else:
            return process, port
    raise NotReadyError(f"{log.stem}: no port stayed free")


def _answers(process: Process, is_ready: Callable[[int], bool], port: int) -> bool:
    """Whether it is this process that is ready, and not the one that took its port."""
    return is_ready(port) and process.is_running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _become(parent: int, command: Sequence[str]) -> None:
    """Turn into the program. On Linux the kernel ends it with the parent; one that has died meanwhile sends nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the parent has ended")
    os.execv(command[0], list(command))


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
