"""Run a program with bounds: in time, in what it prints, and in what it is told of this machine."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.programs import search_path
from gpuplan.compiler.base.values import NamedTuple

MAX_PRINTED: Final = 16 * 2**20
"""Bytes: twice of what can be read as a file."""
_MAX_ERRORS: Final = 2**20
_CHUNK: Final = 2**16
_PATIENCE: Final = 0.25
"""Seconds until a run notices that it is not wanted any more."""


class Excess(Enum):
    """Why a program was stopped."""

    TIME = auto()
    OUTPUT = auto()


class Ended(NamedTuple):
    """The end of a program: ``status`` is its exit code, or None if it was stopped for its ``excess``."""

    status: int | None
    printed: bytes = b""
    errors: bytes = b""
    excess: Excess | None = None


def environment(home: Path) -> Mapping[str, str]:
    """Return the environment of a program that only builds files: without settings, plugins, secrets, or network.

    Git knows no protocol then, and asks nobody. Whoever asks a proxy finds a port that is closed.
    """
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    folders = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    proxies = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {
        **kept,
        **dict.fromkeys(folders, str(home)),
        **dict.fromkeys(proxies, "http://127.0.0.1:9"),
        "PATH": search_path(),
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_SSH_COMMAND": "false",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, seconds: float, unwanted: threading.Event
) -> Ended:
    """Run a program to its end, or until it takes too long, prints too much, or is ``unwanted``.

    It has a session of its own, so that it has no terminal, and that what it started ends with it.
    """
    with subprocess.Popen(  # noqa: S603 - whoever runs gpuplan chooses the program
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            return _follow(process, time.monotonic() + seconds, unwanted)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # macOS: of a group that has ended
                os.killpg(process.pid, signal.SIGKILL)


def _follow(process: subprocess.Popen[bytes], end: float, unwanted: threading.Event) -> Ended:
    printed, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as waiting:
        for stream, kept in ((process.stdout, printed), (process.stderr, errors)):
            if stream is not None:
                waiting.register(stream, selectors.EVENT_READ, kept)
        while waiting.get_map():
            rest = end - time.monotonic()
            if rest <= 0 or unwanted.is_set():
                return Ended(None, excess=Excess.TIME)
            for key, _ in waiting.select(min(rest, _PATIENCE)):
                part = os.read(key.fd, _CHUNK)
                key.data.extend(part)
                if not part:
                    waiting.unregister(key.fileobj)
            if len(printed) > MAX_PRINTED:
                return Ended(None, excess=Excess.OUTPUT)
            del errors[_MAX_ERRORS:]
    try:
        return Ended(process.wait(max(0, end - time.monotonic())), bytes(printed), bytes(errors))
    except subprocess.TimeoutExpired:
        return Ended(None, excess=Excess.TIME)
