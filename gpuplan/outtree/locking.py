"""One writer at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gpuplan.diagnostics import GpuplanError
from gpuplan.outtree.paths import STATE
from gpuplan.outtree.writing import TEMPORARY, as_trouble

_LOCK: Final = f"{STATE}/lock"


class Lock:
    """The right to write to an output, from `compare` to `apply`. A second writer is told so and does not wait.

    The lock is the kernel's (``flock``), so that one of a process that died never blocks. The file that carries it is
    removed in the end, lest it be committed; whoever locked a file that is no longer the one of that name tries again.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / _LOCK
        self._temporary = root / TEMPORARY
        self._handle = -1

    def __enter__(self) -> Self:
        with as_trouble(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            while not self._acquire():
                pass
            self._temporary.unlink(missing_ok=True)  # of a run that was killed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)
            self._path.unlink()
            self._path.parent.rmdir()  # unless there is an inventory in it
        os.close(self._handle)

    def _acquire(self) -> bool:
        _make_state(self._root)
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return False  # another writer has just removed the folder
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise GpuplanError(
                f"another gpuplan is writing `{self._root}`", "run it again when that one is done"
            ) from error
        if self._is_current(handle):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def _is_current(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self._path.lstat())
        except FileNotFoundError:
            return False


def _make_state(root: Path) -> None:
    """Make the folder that gpuplan keeps for itself; it must be a real one."""
    try:
        (root / STATE).mkdir()
    except FileExistsError:
        if not stat.S_ISDIR((root / STATE).lstat().st_mode):
            raise GpuplanError(f"`{root / STATE}` is not a folder", "move it away") from None
