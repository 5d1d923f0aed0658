"""What is on the disk, read by nobody's link but the root itself."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

from gpuplan.diagnostics import GpuplanError
from gpuplan.outtree.paths import folders_of

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not make us wait


class Disk:
    """Reads files below a root and never through a symbolic link in it.

    ``ours`` are the files that are or will be ours. Where one of them is on the way to another, the one that is on the
    disk has yet to make room, and the other does not exist.
    """

    def __init__(self, root: Path, ours: Collection[str] = ()) -> None:
        self._base = f"{os.fspath(root)}/"
        self._ours = ours
        device = _find_device(root)
        self._device = device
        self._folders: dict[str, bool] = {"": device is not None}
        self.mounts: list[str] = []

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None when it does not exist."""
        if not self._has_folder(path.rpartition("/")[0]):
            return None
        full = self._base + path
        try:
            handle = os.open(full, _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(full, error) from error
        try:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode):
                return _read_all(handle, status.st_size)
        finally:
            os.close(handle)
        if stat.S_ISDIR(status.st_mode) and path in folders_of(self._ours):
            return None
        raise _blocked(full, "is not a regular file")

    def has(self, path: str) -> bool:
        """Whether something has this name, whatever it is."""
        return self._has_folder(path.rpartition("/")[0]) and os.path.lexists(self._base + path)

    def _has_folder(self, folder: str) -> bool:
        known = self._folders.get(folder)
        if known is None:
            known = self._has_folder(folder.rpartition("/")[0]) and self._is_folder(folder)
            self._folders[folder] = known
        return known

    def _is_folder(self, folder: str) -> bool:
        full = self._base + folder
        try:
            status = os.lstat(full)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(full, error) from error
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            if status.st_dev != self._device:
                self.mounts.append(folder)
            return True
        if stat.S_ISREG(mode) and folder in self._ours:
            return False
        raise _blocked(full, "is a symbolic link" if stat.S_ISLNK(mode) else "is not a folder")


def _find_device(root: Path) -> int | None:
    """The file system that the root is on; None where there is no root yet."""
    try:
        status = root.stat()  # the root itself may be a link: that is the user's word, not the tree's
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(os.fspath(root), error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise _blocked(os.fspath(root), "is not a folder")
    return status.st_dev


def _read_all(handle: int, size: int) -> bytes:
    data = os.read(handle, size + 1)
    while len(data) > size and (more := os.read(handle, 1 << 20)):  # it grew meanwhile
        data += more
    return data


def _unreadable(path: str, error: OSError) -> GpuplanError:
    if error.errno == errno.ELOOP:
        return _blocked(path, "is a symbolic link")
    return GpuplanError(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", "give yourself read access")


def _blocked(path: str, what: str) -> GpuplanError:
    return GpuplanError(f"`{path}` {what}, and gpuplan writes nothing through or over it", "move it away")
