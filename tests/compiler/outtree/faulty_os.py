"""A stand-in for `os` that ends a run at a chosen call, and that knows what a power failure may do to the files."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuplan.compiler.outtree.disk import TEMPORARY

BLOCK = 32
"""As `writing` is told, to keep what tests print short."""


Choose = Callable[[Path, list[bytes | None]], bytes | None]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FaultyOs:
    """Does what `os` does, while there is space and ``calls_left`` to change the disk; the next call is the end.

    ``possible`` are, by path, the contents that may be found after a power failure (None: no file). It is as bad as
    can be: names reach the disk when their folder is synchronised, data when their file is, and in any order else.
    Data of one block is there as a whole, or as nothing, or as zeros.
    """

    calls_left: int = 1 << 30
    space_left: int = 1 << 30
    possible: dict[Path, set[bytes | None]] = field(default_factory=dict)
    _safe_data: set[bytes] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            self._step()
        if flags & os.O_EXCL:
            self._note(path, None, b"")
        return os.open(path, flags, mode)

    def write(self, handle: int, data: bytes) -> int:
        self._step()
        written = os.write(handle, data[: self.space_left])
        self.space_left -= written
        if not written and data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if _path(handle) in self.possible:
            self._note(_path(handle), *self._outcomes(data))
        return written

    def fsync(self, handle: int) -> None:
        self._step()
        synchronised = _path(handle)
        if synchronised.is_dir():
            for path in self.possible:
                if _existing(path.parent) == synchronised:  # with a folder goes what was in it
                    self._settle(path)
        else:
            self._safe_data.add(synchronised.read_bytes())

    def sync(self) -> None:
        self._step()
        for path in self.possible:
            self._safe_data |= {data for data in [_content(path)] if data is not None}
            self._settle(path)

    def replace(self, source: str, target: str) -> None:
        self._step()
        self._note(target, _content(Path(target)), *self._outcomes(Path(source).read_bytes()))
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        self._step()
        self._note(path, _content(Path(path)), None)
        os.unlink(path)

    def rmdir(self, path: str) -> None:
        self._step()
        os.rmdir(path)

    def mkdir(self, path: str) -> None:
        self._step()
        os.mkdir(path)

    def lose_power(self, choose: Choose) -> None:
        """Let every file hold one of the contents that are possible; the outer names first."""
        for path, contents in sorted(self.possible.items()):
            data = choose(path, sorted(contents, key=repr))
            if data is None:
                if path.is_file():
                    path.unlink()
            elif not any(parent.is_file() for parent in path.parents):
                if path.is_dir():
                    shutil.rmtree(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self.possible.clear()

    def _step(self) -> None:
        if self.calls_left <= 0:
            raise Killed
        self.calls_left -= 1

    def _note(self, path: str | Path, *contents: bytes | None) -> None:
        if not str(path).endswith(TEMPORARY):  # which nobody ever reads
            self.possible.setdefault(Path(path), set()).update(contents)

    def _outcomes(self, data: bytes) -> set[bytes | None]:
        if data in self._safe_data:
            return {data}
        assert len(data) <= BLOCK, "more than a block could be half written"
        return {data, b"", bytes(len(data))}

    def _settle(self, path: Path) -> None:
        data = _content(path)
        self.possible[path] = {None} if data is None else self._outcomes(data)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _path(handle: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{handle}"))


def _existing(folder: Path) -> Path:
    return folder if folder.is_dir() else _existing(folder.parent)
