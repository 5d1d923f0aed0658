"""`gpuplan report --serve`: for this machine alone, and as the files are."""

from __future__ import annotations

import http.client
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from gpuplan.features.report.commands.following import server, state
from tests.cli.platforms import a_broken_platform, a_platform
from tests.cli.runs import REPOSITORY, run


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with server(tmp_path, 0, lambda nonce, found: f"<p>{nonce} {found}</p>") as started:
        Thread(target=started.serve_forever, args=(0.01,), daemon=True).start()
        yield started.server_port
        started.shutdown()


def ask(port: int, path: str, method: str = "GET", host: str = "") -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def test_lets_only_its_own_script_run(port: int) -> None:
    status, headers, text = ask(port, "/")
    assert status == 200
    nonce = text.removeprefix("<p>").split()[0]
    assert f"script-src 'nonce-{nonce}'" in headers["Content-Security-Policy"]
    assert ask(port, "/")[2] != text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1"])
def test_another_name_is_refused(port: int, host: str) -> None:
    assert ask(port, "/", host=host)[0] == 403


@pytest.mark.parametrize("path", ["/policies/", "/../etc/passwd", "/state/x"])
def test_there_is_one_page(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_sent(port: int, method: str) -> None:
    assert ask(port, "/", method)[0] == 501


def test_head_has_no_body(port: int) -> None:
    status, headers, text = ask(port, "/", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 0


def test_a_change_of_a_policy_is_another_state(tmp_path: Path) -> None:
    before = state(tmp_path)
    (tmp_path / "pool.yaml").write_text("kind: Pool\n")
    after = state(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.yaml").write_text("kind: Pool\n")
    assert before != after == state(tmp_path)


def test_a_terminal_shows_no_html(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "gpuplan.cli", "report"],
        cwd=a_platform(tmp_path),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(theirs)
    os.close(ours)

    assert done.returncode == 2
    assert done.stderr == (
        "error: the page is HTML, and stdout is a terminal\n  = help: type `gpuplan report -o report.html`\n"
    )


# --- A file ------------------------------------------------------------------------------------------------------


def test_a_page_is_written_of_policies_with_errors_and_they_are_told(tmp_path: Path) -> None:
    done = run("report", "-o", "page.html", cwd=a_broken_platform(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("1 error in ")
    assert "GPU101" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_is_told_of_at_once(tmp_path: Path) -> None:
    done = run("report", "-o", "none/page.html", cwd=a_platform(tmp_path))
    assert done.code == 2
    assert "there is no folder `none` for the page" in done.err
    assert "`mkdir -p none`" in done.err


def test_what_is_served_is_not_written(tmp_path: Path) -> None:
    done = run("report", "--serve", "-o", "page.html", cwd=a_platform(tmp_path))
    assert (done.code, "--serve writes no file" in done.err) == (2, True)


def test_a_port_that_is_taken_is_named(tmp_path: Path, port: int) -> None:
    done = run("report", "--serve", str(port), cwd=a_platform(tmp_path / "platform"))
    assert done.code == 2
    assert f"error: port {port}: address already in use\n" in done.err
    assert "`--serve` without a number" in done.err
