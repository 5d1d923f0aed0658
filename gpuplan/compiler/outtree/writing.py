"""Bring the disk to the desired files so that the next run makes good whatever interrupts this one.

Before the first file changes, the inventory says all that is going to happen: the digest that each file will have
and, in ``replaced``, the digests that it had. Then files are deleted, overwritten and created. In the end the inventory
drops ``replaced``. Whatever a file holds in between is thus something that the inventory lists for it, so that the next
run knows the file for ours, and not edited by hand, whether the policies have changed by then or not.

*A killed process* leaves every file as it was or as it will be, since a file is replaced by renaming a whole one over
it. New files are created in place, which saves thousands of renames; one of those may be left empty or, where a
file system writes half of a few bytes, cut short. The file that is renamed is in a folder of ours that tells Git to
leave it alone.

*A power failure* may also undo what was not synchronised with the disk, and to synchronise thousands of files would
take longer than all the rest. These few are: the inventory, each time before anything follows it; files of more than
one block, before they get their name; and the folders of all that was replaced or deleted, before ``replaced`` is
dropped, since until then an old state may come back. A small file may end up empty or, on some file systems, as
zeros. It is not half written, because file systems record a file's size after its data, block by block. gpuplan
writes neither empty files nor zeros, and whoever typed something left more than that: the next run takes such a file
for its own.
"""

# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH112 - for thousands of files, pathlib takes longer than the system does

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.outtree.comparing import ChangeSet
from gpuplan.compiler.outtree.disk import IGNORE, IGNORED, STATE, TEMPORARY, folders_of
from gpuplan.compiler.outtree.inventory import INVENTORY, Inventory, digest

_BLOCK: Final = 4096
_MODE: Final = 0o666
"""The mode of files, less what the umask takes away, as of every file that people and Git write."""
_HINTS: Final[Mapping[int, str]] = {
    errno.EACCES: "give yourself write access",
    errno.EPERM: "give yourself write access",
    errno.EROFS: "give yourself write access",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EEXIST: "move it away",
    errno.EISDIR: "move it away",
    errno.ENOTDIR: "move it away",
}
_MANY_FOLDERS: Final = 64
"""The number of folders from which on one ``sync`` of everything takes less time than one for each."""


class Lock:
    """The right to write to an output, from `compare` to `apply`. A second writer gets an error and does not wait.

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
            handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False  # somebody has just removed the folder
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise GpuplanError(
                f"another gpuplan is writing `{self._root}`", "run it again when that one is done"
            ) from error
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), self._root.lstat()):
                self._handle = handle
                return True
        os.close(handle)
        return False


def apply(root: Path, changes: ChangeSet, *, force: bool = False) -> None:
    """Do what `compare` found, under the `Lock` that was held since then. ``force`` overrules conflicts.

    Touches no file that is as desired, and nothing at all when the change set is clean.
    """
    if changes.conflicts and not force:
        raise ValueError(f"{changes.conflicts[0].path} {changes.conflicts[0].reason}")
    if changes.is_clean:
        return
    # No name leads from one file system to another: refuse that before anything is written.
    for mount in changes.mounts:
        if mount == STATE or any(change.path.startswith(f"{mount}/") for change in changes.changes):
            raise _on_another_device(root / mount)
    with as_trouble(root):
        tree = _Tree(root)
        try:
            _apply(tree, changes)
        except (OSError, KeyboardInterrupt):
            tree.discard(TEMPORARY)
            raise


def _apply(tree: _Tree, changes: ChangeSet) -> None:
    tree.make_state(is_ignoring=changes.is_ignoring)
    for path in changes.leftovers:
        tree.discard(path)
    replaced = _replaced(changes)
    if replaced or not changes.is_recorded:
        unfinished = replace(changes.planned, replaced={**changes.planned.replaced, **replaced})
        tree.write_inventory(unfinished if replaced else changes.planned)  # whose text `compare` has made already
    tree.synchronise(["", STATE])  # also of a run that was killed right after it had written the inventory
    for path in changes.unwanted:
        if path in changes.found:
            tree.delete(path)
    tree.prune(changes.unwanted)
    for change in changes.changes:
        if (data := changes.desired.get(change.path)) is not None:
            tree.write(change.path, data, is_new=change.path not in changes.found)
    if replaced:
        tree.synchronise({path.rpartition("/")[0] for path in replaced})
        tree.write_inventory(changes.planned)
    elif changes.changes:
        tree.touch(INVENTORY)  # only files that are newer may have been edited


def _replaced(changes: ChangeSet) -> dict[str, tuple[str, ...]]:
    """Return what files of ours may hold until the end of this run, besides what they will hold.

    That includes what an unfinished run has replaced, as it may not have come as far as to the disk.
    """
    unfinished = changes.recorded.replaced.keys() - changes.planned.replaced.keys()
    old = {path: set(changes.recorded.digests(path)) for path in unfinished | changes.found.keys()}
    for path, data in changes.found.items():
        old[path].add(digest(data))
    return {path: tuple(sorted(digests - {changes.planned.files.get(path)})) for path, digests in old.items()}


class _Tree:
    """Writes below a root, in folders that `compare` has seen to be real ones."""

    def __init__(self, root: Path) -> None:
        self._base = f"{os.fspath(root)}/"
        self._folders = {""}

    def write(self, path: str, data: bytes, *, is_new: bool) -> None:
        if is_new:
            self._make_folder(path.rpartition("/")[0])
        if is_new and len(data) <= _BLOCK:
            self._create(path, data)
        else:
            self._replace(path, data, is_durable=len(data) > _BLOCK)

    def make_state(self, *, is_ignoring: bool) -> None:
        """Make the folder of ours, in which Git is told what not to add before there is any such thing."""
        self._make_folder(STATE)
        if not is_ignoring:
            self.discard(IGNORE)  # it is cut short, has other line ends, or is not there
            self._create(IGNORE, IGNORED)

    def write_inventory(self, inventory: Inventory) -> None:
        self._replace(INVENTORY, inventory.text, is_durable=True)

    def touch(self, path: str) -> None:
        os.utime(self._base + path)

    def delete(self, path: str) -> None:
        os.unlink(self._base + path)

    def discard(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._base + path)

    def prune(self, deleted: Iterable[str]) -> None:
        """Remove the folders that nothing is left in, from the deepest up."""
        for folder in sorted(folders_of(deleted), reverse=True):
            with suppress(OSError):  # something of others is in it, or it is gone
                os.rmdir(self._base + folder)

    def synchronise(self, folders: Collection[str]) -> None:
        """Wait until the names in these folders are on the disk; folders that are gone count as their parent."""
        if len(folders) > _MANY_FOLDERS:
            os.sync()
            return
        for folder in sorted({self._existing(folder) for folder in folders}):
            handle = os.open(self._base + folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _existing(self, folder: str) -> str:
        while folder and not os.path.isdir(self._base + folder):
            folder = folder.rpartition("/")[0]
        return folder

    def _create(self, path: str, data: bytes) -> None:
        full = self._base + path
        handle = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        try:
            _write_all(handle, data)
        except OSError:
            os.unlink(full)  # a full disk: leave nothing that is neither empty nor whole
            raise
        finally:
            os.close(handle)

    def _replace(self, path: str, data: bytes, *, is_durable: bool) -> None:
        temporary = self._base + TEMPORARY
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        try:
            _write_all(handle, data)
            if is_durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, self._base + path)

    def _make_folder(self, folder: str) -> None:
        if folder in self._folders:
            return
        parent = folder.rpartition("/")[0]
        self._make_folder(parent)
        with suppress(FileExistsError):
            os.mkdir(self._base + folder)
        self._folders.add(folder)


def _write_all(handle: int, data: bytes) -> None:
    written = os.write(handle, data)
    while written < len(data):
        written += os.write(handle, data[written:])


@contextmanager
def as_trouble(root: Path) -> Iterator[None]:
    """Tell people which path could not be written, and what to do about it."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV:  # a mount of the same file system, which has the same number
            raise _on_another_device(Path(error.filename2 or root).parent) from error
        reason = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, "put that right")
        raise GpuplanError(
            f"cannot write `{error.filename or root}`: {reason}", f"{hint}, then run build again"
        ) from error


def _on_another_device(folder: Path) -> GpuplanError:
    return GpuplanError(
        f"`{folder}` is mounted from elsewhere, and gpuplan cannot rename files into it",
        "unmount it, or build with `--out` into a folder that holds no mount point",
    )
