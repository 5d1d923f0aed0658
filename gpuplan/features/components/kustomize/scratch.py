"""A temporary copy of what a build needs, which nothing that is written to it can leave."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import field
from pathlib import Path
from posixpath import basename, dirname, join, normpath, relpath
from tempfile import TemporaryDirectory

from gpuplan.compiler.base.handles import create, open_folder
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import Value


class Sources(Value):
    """The things to copy: files with their content, links with their targets, and folders that may be empty.

    Paths are from the top of the file system, and none goes through a link: what is behind one has a path of its own.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()


class Scratch(Value):
    """``top`` stands for the top of the file system, ``root`` for the repository's root in it.

    ``home`` is an empty folder for the program, ``bundles`` one for folders that are no copies.
    """

    top: Path
    root: Path
    home: Path
    bundles: Path

    def path(self, path: str) -> Path:
        """Where the copy has a path of the repository; those that leave the root are below ``top`` as well."""
        return self.top / _below_top(f"/{self.root.relative_to(self.top).as_posix()}", path)


def _below_top(root: str, path: str) -> str:
    """The path from the top of the file system, above which there is nothing, whatever `..` a path has."""
    return normpath(join(root, path)).lstrip("/")


@contextmanager
def laid_out(root: Path, files: Mapping[str, bytes], sources: Sources) -> Iterator[Scratch]:
    """A copy of ``sources`` with files of its own, which win over the copied, and whose paths may leave the root.

    Around the root there is all of its way, so that paths from one folder to another hold.
    """
    with TemporaryDirectory(prefix="gpuplan-") as temporary:
        place = Path(os.path.realpath(temporary))
        top = place / "tree"
        scratch = Scratch(top, top / root.relative_to(root.anchor), place / "home", place / "bundles")
        for folder in (top, scratch.home, scratch.bundles):
            folder.mkdir()
        scratch.root.mkdir(parents=True, exist_ok=True)
        _write(top, {_below_top(root.as_posix(), path): data for path, data in files.items()})
        _write(top, {_below_top("/", path): data for path, data in sources.files.items()})
        _link(top, sources)
        yield scratch


def _write(top: Path, files: Mapping[str, bytes]) -> None:
    """Create files. What is there already, as a file or a folder, stays."""
    for folder, paths in grouped((dirname(path), path) for path in files).items():
        with suppress(NotADirectoryError), _folder(top, folder) as handle:
            for path in paths:
                with suppress(FileExistsError):
                    create(handle, basename(path), files[path], 0o600)


def _link(top: Path, sources: Sources) -> None:
    """Links come last, so that nothing is written through one, and lead to where the copy has what they led to."""
    for path in sorted(sources.folders):
        with suppress(NotADirectoryError), _folder(top, _below_top("/", path)):
            pass
    for path, target in sources.links.items():
        way = relpath(normpath(join("/", target)), dirname(path))
        with suppress(NotADirectoryError, FileExistsError), _folder(top, _below_top("/", dirname(path))) as handle:
            os.symlink(way, basename(path), dir_fd=handle)


def _folder(top: Path, path: str) -> AbstractContextManager[int]:
    return open_folder(top, filter(None, path.split("/")), 0o700)
