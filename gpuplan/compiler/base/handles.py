"""Read and write below a folder through handles, so that no link that somebody put there is followed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe is opened without waiting for whoever writes to it."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_folder(top: str | os.PathLike[str], way: Iterable[str], mode: int = 0o777) -> Iterator[int]:
    """A handle of a folder below the top; folders on the way are made where they are missing, and none is a link."""
    handle = os.open(top, _FOLDER)
    try:
        for name in way:
            with suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=handle)
            inner = os.open(name, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def create(folder: int, name: str, data: bytes, mode: int = 0o666) -> None:
    """Write a file that is not there as a whole or not at all; `FileExistsError` when something is, a link as well."""
    handle = os.open(name, _NEW, mode, dir_fd=folder)
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123 - of a handle
            stream.write(data)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise


def read_in(folder: int, name: str) -> bytes:
    """Return the bytes of a file in a folder; `OSError`, ELOOP for a link, EISDIR for what is no regular file."""
    handle = os.open(name, _ANY, dir_fd=folder)
    with open(handle, "rb") as stream:  # noqa: PTH123 - of a handle
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        return stream.read()


def read(top: str | os.PathLike[str], way: Iterable[str], most: int) -> bytes | None:
    """At most so many bytes of a file below the top; None where it is no regular one; `OSError`, ELOOP for a link.

    The top itself may be one: whoever named it runs this.
    """
    handle = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in way:
            inner = os.open(name, _ANY, dir_fd=handle)
            os.close(handle)
            handle = inner
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(handle)
