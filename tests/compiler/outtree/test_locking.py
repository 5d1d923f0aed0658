"""One writer at a time, and no lock outlives its process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.outtree.comparing import compare
from gpuplan.compiler.outtree.reporting import findings
from gpuplan.compiler.outtree.writing import Lock
from tests.compiler.outtree.building import build, read_all

_HOLD = """
import sys, time
from pathlib import Path
from gpuplan.compiler.outtree.writing import Lock
with Lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_told_so(tmp_path: Path) -> None:
    with Lock(tmp_path), pytest.raises(GpuplanError) as caught, Lock(tmp_path):
        pytest.fail("two writers")
    assert caught.value.message == f"another gpuplan is writing `{tmp_path}`"
    assert caught.value.hint == "run it again when that one is done"


def test_the_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with Lock(tmp_path):
            pass
    assert os.listdir(tmp_path) == []


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Lock(tmp_path):
        raise KeyboardInterrupt
    build(tmp_path, {"dev/x": b"1"})
    assert read_all(tmp_path) == {"dev/x": b"1"}


def test_the_lock_of_a_process_that_was_killed_does_not_block(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(GpuplanError, match="another gpuplan"):
            build(tmp_path, {"dev/x": b"1"})
        holder.send_signal(signal.SIGKILL)
    assert os.listdir(tmp_path) == []
    build(tmp_path, {"dev/x": b"1"})
    assert read_all(tmp_path) == {"dev/x": b"1"}


def test_a_lock_on_a_folder_that_was_replaced_meanwhile_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody removes the output between the moments when we open its folder and when we lock it."""
    import fcntl

    out = tmp_path / "out"
    out.mkdir()

    flock = fcntl.flock
    calls: list[int] = []

    def ends_first(handle: int, operation: int) -> None:
        if not calls:
            out.rename(tmp_path / "old")
        calls.append(operation)
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", ends_first)
    with Lock(out), pytest.raises(GpuplanError), Lock(out):
        pytest.fail("two writers")
    assert len(calls) == 3


@pytest.mark.parametrize("name", ["new", "lock"])
def test_what_a_killed_build_of_any_release_left_is_told_and_removed(tmp_path: Path, name: str) -> None:
    build(tmp_path, {"dev/x": b"1"})
    (tmp_path / ".gpuplan" / name).write_text("half")
    changes = compare(tmp_path, {"dev/x": b"1"})
    (found,) = findings(changes, check=True)
    assert (found.code, found.finding.message) == (
        "GPU903",
        f"`out/.gpuplan/{name}` was left behind by a build that was killed",
    )
    build(tmp_path, {"dev/x": b"1"})
    assert sorted(os.listdir(tmp_path / ".gpuplan")) == [".gitignore", "inventory"]


def test_a_folder_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_none(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", has_none)
    with pytest.raises(GpuplanError) as caught, Lock(tmp_path):
        pytest.fail("no lock")
    assert caught.value.message == f"cannot write `{tmp_path}`: no locks available"
