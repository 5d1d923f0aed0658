"""One writer at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from gpuplan.diagnostics import GpuplanError
from gpuplan.outtree.writing import as_trouble


class Lock:
    """The right to write to an output, from `compare` to `apply`. A second writer is told so and does not wait.

    The lock is the kernel's (``flock``), so that one of a process that died never blocks. It is on the output's folder
    itself: there is no file to be left behind and committed, and an output that is read-only, and current, can be
    locked as well. Where a file system passes locks of files on to other machines (NFS), those of folders stay here.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._handle = -1

    def __enter__(self) -> Self:
        with as_trouble(self._root):
            while not self._acquire():
                pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def _acquire(self) -> bool:
        self._root.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False  # somebody has just removed the folder
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
            return os.path.samestat(os.fstat(handle), self._root.stat())
        except FileNotFoundError:
            return False
