"""The disk, read through no link, and the paths that may be written there.

Paths are portable, inside of the output, and apart from each other on any file system.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex

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
        """Return the bytes of a file, or None if it does not exist."""
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
                data = os.read(handle, status.st_size + 1)
                while len(data) > status.st_size and (more := os.read(handle, 1 << 20)):  # it grew meanwhile
                    data += more
                return data
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


def find_files(root: Path) -> dict[str, int]:
    """Return the files below a root, but for those that gpuplan keeps for itself, with the time of their last change.

    No link is followed. A folder that cannot be listed has none.
    """
    found: dict[str, int] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        with suppress(OSError), os.scandir(f"{os.fspath(root)}/{folder}") as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    found[path] = entry.stat(follow_symlinks=False).st_mtime_ns
                elif path != STATE:
                    pending.append(f"{path}/")
    return found


def _find_device(root: Path) -> int | None:
    """Return the file system that the root is on, or None if there is no root yet."""
    try:
        status = root.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(os.fspath(root), error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise _blocked(os.fspath(root), "is a symbolic link" if stat.S_ISLNK(status.st_mode) else "is not a folder")
    return status.st_dev


def _unreadable(path: str, error: OSError) -> GpuplanError:
    if error.errno == errno.ELOOP:
        return _blocked(path, "is a symbolic link")
    return GpuplanError(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", "give yourself read access")


def _blocked(path: str, reason: str) -> GpuplanError:
    return GpuplanError(f"`{path}` {reason}, and gpuplan writes nothing through or over it", "move it away")


# --- Paths -----------------------------------------------------------------------------------------------------------

STATE: Final = ".gpuplan"
"""The folder that gpuplan keeps for itself; no other name may start with a dot."""

TEMPORARY: Final = f"{STATE}/new"
"""The file that holds what another holds next, until it is renamed over that."""

IGNORE: Final = f"{STATE}/.gitignore"
IGNORED: Final = b"*\n!.gitignore\n!inventory\n"
"""The text by which `git add` leaves there whatever a build that was killed leaves in that folder."""

LEFTOVERS: Final = (f"{STATE}/lock", TEMPORARY)
"""The files that builds which were killed have left, those of earlier releases too."""

_NAME: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?"
_PATH: Final = regex(rf"{_NAME}(?:/{_NAME})*")
_LONGEST: Final = 1024
"""The bytes of a path on macOS, on Linux four times that; ours have fewer than half."""


def check_paths(paths: Iterable[str]) -> None:
    """Refuse absolute paths, ``..``, hidden names, and what some file system does not have."""
    wrong = next((path for path in paths if len(path) > _LONGEST or not _PATH.fullmatch(path)), None)
    if wrong is not None:
        raise GpuplanError(
            f"`{wrong}` is not a path that gpuplan writes",
            "names in the output are made of ASCII letters, digits, `.`, `_` and `-`, and do not start with a dot",
        )


def check_apart(paths: Iterable[str]) -> None:
    """Refuse paths that are one on a file system without case, and files that others need as a folder."""
    files = set(paths)
    folders = folders_of(files)
    seen: dict[str, str] = {}
    if (text := "\n".join(files)) != text.lower():
        for name in sorted(files | folders):
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise GpuplanError(
                    f"`{other}` and `{name}` are one file where case does not count", "rename one of them"
                )
    if both := files & folders:
        raise GpuplanError(f"`{min(both)}` would have to be a file and a folder", "rename one of them")


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return all folders above the paths, but for the top."""
    folders = {path.rpartition("/")[0] for path in paths}
    waiting = list(folders)
    while waiting:
        parent = waiting.pop().rpartition("/")[0]
        if parent not in folders:
            folders.add(parent)
            waiting.append(parent)
    return folders - {""}
