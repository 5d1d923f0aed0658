"""Run commands of gpuplan under Python's audit hook, each in a process of its own, and say what they did.

This is a program: it reads jobs as lines of JSON and answers each with a line. It imports gpuplan once and forks for
every job, since to start Python takes longer than most commands. Nothing but the command runs in the child.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

PACKAGE: Final = "gpuplan"
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PROGRAMS: Final = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn", "os.fork")
_CHANGES: Final[Mapping[str, tuple[int, int | None]]] = {
    # The events by which a name of the disk changes: which argument is the path, and which the folder's handle.
    "os.mkdir": (0, 2),
    "os.rename": (1, 3),
    "os.remove": (0, 1),
    "os.rmdir": (0, 1),
    "os.symlink": (1, 2),
    "os.link": (1, 3),
    "os.truncate": (0, None),
    "os.chmod": (0, 2),
    "os.chown": (0, 3),
    "os.utime": (0, 3),
    "os.setxattr": (0, None),
}
_NETWORK: Final = ("socket.", "urllib.", "http.client.", "ftplib.", "smtplib.", "imaplib.", "poplib.", "telnetlib.")
_STRANGE: Final = ("ctypes.dlopen", "webbrowser.open", "pickle.find_class", "code.interact", "sqlite3.connect")


class Watch:
    """What was seen in this process, as events that JSON can hold."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []
        self._here = threading.local()
        self._open = os.open

    def start(self) -> None:
        os.open = self._opened
        sys.addaudithook(self._saw)

    def _opened(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Keep the folder's handle, which the event does not have."""
        self._here.folder = dir_fd
        try:
            return self._open(path, flags, mode, dir_fd=dir_fd)
        finally:
            self._here.folder = None

    def _saw(self, event: str, arguments: tuple[Any, ...]) -> None:
        if getattr(self._here, "is_busy", False):
            return
        self._here.is_busy = True
        try:
            found = self._judge(event, arguments)
            if found is not None:
                self.events.append({**found, "event": event, "module": _module()})
        finally:
            self._here.is_busy = False

    def _judge(self, event: str, arguments: tuple[Any, ...]) -> dict[str, object] | None:
        if event == "open":
            path, mode, flags = arguments
            is_writing = bool((flags or 0) & _WRITING) or any(letter in (mode or "") for letter in "wax+")
            return self._written(path, getattr(self._here, "folder", None)) if is_writing else None
        if event in _CHANGES:
            place, handle = _CHANGES[event]
            return self._written(arguments[place], None if handle is None else arguments[handle])
        if event == "subprocess.Popen":
            program, words, folder, variables = arguments
            told = {os.fsdecode(name): os.fsdecode(value) for name, value in (variables or {}).items()}
            line = [os.fsdecode(word) for word in words]
            return {"kind": "program", "what": os.fsdecode(program), "line": line, "in": str(folder), "env": told}
        if event.startswith(_PROGRAMS):
            return {"kind": "program", "what": repr(arguments), "line": [], "in": "", "env": {}}
        if event.startswith(_NETWORK):
            return {"kind": "network", "what": f"{event} {arguments[1:]!r}"}
        if event.startswith(_STRANGE) and arguments[:1] != (None,):
            return {"kind": "strange", "what": repr(arguments)}
        return None

    def _written(self, path: Any, folder: int | None) -> dict[str, object] | None:
        if isinstance(path, int):
            return None
        above = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.getcwd()
        whole = os.path.normpath(os.path.join(above, os.fsdecode(path)))
        if whole == os.devnull:
            return None
        head, name = os.path.split(whole)
        return {"kind": "write", "what": os.path.join(os.path.realpath(head), name)}


def _module() -> str:
    """The innermost module of gpuplan that did it; empty where none had a hand in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            return name
        frame = frame.f_back
    return ""


def _run(job: Mapping[str, Any], answer: int) -> None:
    """Be the command, in a child."""
    os.chdir(job["in"])
    os.environ.clear()
    os.environ.update(job["env"])
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import tempfile

    from gpuplan.cli import main

    tempfile.tempdir = None
    sys.argv = ["gpuplan", *job["arguments"]]
    if job["seconds"]:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, job["seconds"])
    watch = Watch()
    watch.start()
    _plant(os.environ.get("GPUPLAN_PLANT", ""), job["in"])
    code = main._run()
    os.write(answer, json.dumps({"code": code, "events": watch.events}).encode())


def _plant(what: str, folder: str) -> None:
    """Do what no command may, so that a test can see that it is seen."""
    import socket
    import subprocess

    if what == "program":
        subprocess.run(["/bin/true"], check=False)
    elif what == "write":
        Path(folder, "policies/planted").write_text("")
    elif what == "network":
        with socket.socket() as made:
            made.connect_ex(("127.0.0.1", 9))


def _fork(job: Mapping[str, Any]) -> str:
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        status = 1
        try:
            _run(job, here)
            status = 0
        except BaseException:  # noqa: BLE001 - told by whoever waits
            os.write(here, json.dumps({"code": -1, "events": [], "trace": traceback.format_exc()}).encode())
        finally:
            os._exit(status)
    os.close(here)
    with os.fdopen(there, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said or json.dumps({"code": -1, "events": [], "trace": "it ended without a word"})


def _warm(platform: str) -> None:
    """Import what commands import, so that a child need not; what it does stays within the children."""
    from click.testing import CliRunner

    from gpuplan.cli.main import main

    runner = CliRunner()
    out: Sequence[str]
    for out in (("validate",), ("build", "--check"), ("diff", "--against", "."), ("show",), ("report",), ("rules",)):
        runner.invoke(
            main, ["-C", platform, *out, *(("--kustomize", "off") if out[0] in ("validate", "build") else ())]
        )


def serve() -> None:
    """Answer jobs until there are no more."""
    _warm(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        print(_fork(json.loads(line)), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    serve()
