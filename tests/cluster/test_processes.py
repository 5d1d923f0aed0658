"""Programs get a port that is free, and end with the tests, however these end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cluster import processes
from tests.cluster.conftest import once
from tests.cluster.control_plane import is_ready
from tests.cluster.example import REPOSITORY
from tests.cluster.processes import NotReadyError, Process, serve, until

_ENDLESS = (sys.executable, "-c", "import time; time.sleep(600)")
_STARTS_ONE = f"""
import signal, sys, time
from pathlib import Path
from tests.cluster.processes import Process

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
process = Process({_ENDLESS!r}, Path(sys.argv[1]))
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_ends_with_what_started_it(sent: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS_ONE, str(tmp_path / "log")]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert is_alive(pid)
        starter.send_signal(sent)
    until(lambda: not is_alive(pid), "the program has ended")


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended may wait for its new parent to hear of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_is_stopped(tmp_path: Path) -> None:
    process = Process(_ENDLESS, tmp_path / "log")
    assert process.is_running
    process.stop()
    assert not process.is_running


def test_a_port_that_another_took_is_left_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ports = iter([1, 2])
    monkeypatch.setattr(processes, "free_port", lambda: next(ports))
    taken = (sys.executable, "-c", "raise SystemExit('listen tcp: address already in use')")
    process, port = serve(lambda port: taken if port == 1 else _ENDLESS, lambda port: port == 2, tmp_path / "log")
    process.stop()
    assert port == 2


def test_a_cluster_that_does_not_start_is_not_tried_again() -> None:
    tried: list[str] = []

    def start(name: str) -> str:
        tried.append(name)
        if name == "broken":
            raise NotReadyError("etcd ended")
        return name.upper()

    get = once(start)
    assert [get("dev"), get("dev")] == ["DEV", "DEV"]
    with pytest.raises(NotReadyError):
        get("broken")
    with pytest.raises(pytest.fail.Exception, match="broken has not started before: etcd ended"):
        get("broken")
    assert tried == ["dev", "broken"]


def test_a_program_that_ends_by_itself_is_not_waited_for(tmp_path: Path) -> None:
    ends = (sys.executable, "-c", "raise SystemExit('there is no such flag')")
    with pytest.raises(NotReadyError, match="log ended\n--- log\nthere is no such flag"):
        serve(lambda _: ends, lambda _: False, tmp_path / "log")


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), _Ready) as started:
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_request(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_loopback_is_not_looked_for_behind_a_proxy(
    name: str, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert is_ready(server.server_port)


def test_what_does_not_answer_is_not_ready() -> None:
    assert not is_ready(processes.free_port())
