"""Where files are read from: the disk, or whatever else has folders with names in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence, Set as AbstractSet
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import Protocol

from gpuplan.compiler.base.diagnostics import GpuplanError, reason_of
from gpuplan.compiler.base.repository import is_kept_inside
from gpuplan.compiler.base.values import NamedTuple


class Kind(Enum):
    """The kind of thing that a name in a folder stands for."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()
    """A pipe, a socket or a device."""


class Entry(NamedTuple):
    """A name in a folder; ``kind`` is the name's own: a link is not followed."""

    name: str
    kind: Kind


class Target(NamedTuple):
    """The end of a path when all links are followed."""

    kind: Kind | None
    is_inside: bool = True


def is_passed_over(name: str) -> bool:
    return name.startswith(".")


def is_policy_file(name: str) -> bool:
    """Whether a name is that of a file to read; a folder of such a name is not looked into."""
    return name.lower().endswith((".yaml", ".yml"))


class FileTree(Protocol):
    """Folders and files below a root, by paths relative to it; the root itself is ``.``."""

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        """Refuse a folder if there is too much below it, before all that is not passed over is listed and read.

        Names of ``skip`` directly in the folder are passed over.
        """
        ...  # pragma: no cover

    def entries(self, folder: str) -> Sequence[Entry]:
        """Return the entries directly in a folder, in any order."""
        ...  # pragma: no cover

    def target(self, path: str) -> Target:
        """Return the end of a path; ``is_inside`` says whether that is below the root."""
        ...  # pragma: no cover

    def read(self, path: str, most: int) -> bytes:
        """The content of a file, and no more of it than so many bytes."""
        ...  # pragma: no cover


class DiskTree:
    """A folder of the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        """Nothing is too much: what is below a folder of the disk takes room there."""

    def entries(self, folder: str) -> Sequence[Entry]:
        try:
            with os.scandir(self._root / folder) as entries:
                return [Entry(entry.name, _kind_of(entry)) for entry in entries]
        except OSError as error:
            raise _trouble(folder, error) from error

    def target(self, path: str) -> Target:
        place = os.path.join(self._root, path)  # noqa: PTH118 - a `Path` takes longer than the system does
        try:
            mode = os.stat(place).st_mode  # noqa: PTH116
        except (OSError, ValueError):  # no such thing, or no such name on any file system
            return Target(None)
        kind = Kind.FOLDER if stat.S_ISDIR(mode) else Kind.FILE if stat.S_ISREG(mode) else Kind.OTHER
        return Target(kind, is_kept_inside(place, self._real_root))

    def read(self, path: str, most: int) -> bytes:
        try:
            with (self._root / path).open("rb") as stream:
                start = stream.read(min(_CHUNK, most))
                return start if len(start) < _CHUNK else start + stream.read(most - _CHUNK)
        except OSError as error:
            raise _trouble(path, error) from error

    @cached_property
    def _real_root(self) -> str:
        return os.path.realpath(self._root)


_CHUNK = 64 * 1024  # as much memory is taken as is asked for, and most files are small


def printable(path: str) -> str:
    """File names on Linux are bytes; those that are not UTF-8 are shown with escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _kind_of(entry: os.DirEntry[str]) -> Kind:
    """Most file systems tell this with the name."""
    if entry.is_symlink():
        return Kind.LINK
    if entry.is_dir():
        return Kind.FOLDER
    return Kind.FILE if entry.is_file() else Kind.OTHER


def _trouble(path: str, error: OSError) -> GpuplanError:
    message = f"cannot read `{printable(path)}`: {reason_of(error)}"
    return GpuplanError(message, "check that the file exists and that you may read it")


class Written:
    """Files, above those of another tree if there is one; a `FileTree`."""

    def __init__(self, below: FileTree | None, files: Mapping[str, bytes]) -> None:
        self._below = below
        self._files = files
        self._folders: dict[str, dict[str, Kind]] = {".": {}}
        for path in files:
            above, kind = path, Kind.FILE
            while above:
                folder, _, name = above.rpartition("/")
                self._folders.setdefault(folder or ".", {})[name] = kind
                above, kind = folder, Kind.FOLDER

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        if self._below is not None and self._below.target(folder).kind is Kind.FOLDER:
            self._below.expect(folder, skip)

    def entries(self, folder: str) -> Sequence[Entry]:
        added = self._folders.get(folder, {})
        below = self._below
        there = below.entries(folder) if below is not None and below.target(folder).kind is Kind.FOLDER else ()
        known = [entry for entry in there if entry.name not in added]
        return [*known, *(Entry(name, kind) for name, kind in added.items())]

    def target(self, path: str) -> Target:
        kind = Kind.FILE if path in self._files else Kind.FOLDER if path in self._folders else None
        return Target(kind) if kind or self._below is None else self._below.target(path)

    def read(self, path: str, most: int) -> bytes:
        if path in self._files or self._below is None:
            return self._files[path][:most]
        return self._below.read(path, most)
