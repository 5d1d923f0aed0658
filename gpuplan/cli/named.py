"""Read and write the files that arguments name, and through no link that a branch may have brought."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gpuplan.diagnostics import GpuplanError
from gpuplan.repository import find_link, find_repository, is_kept_inside


def write_named(root: Path, file: str, text: str) -> None:
    """Write a text to the file that an argument names; trouble if a link of a repository is on the way."""
    refuse_links(root, file)
    with open(file, "w", encoding="utf-8") as stream:  # noqa: PTH123 - as the user typed it
        stream.write(text)


def refuse_links(root: Path, path: str | os.PathLike[str], hint: str = "delete it, or name another file") -> None:
    """Raise `GpuplanError` if a link of the repository around the platform, or around here, is on the way to a path."""
    for top in _tops(root):
        link = find_link(path, top)
        if link:
            raise GpuplanError(f"`{os.path.relpath(link)}` is a link, and nothing is written through it", hint)


def refuse_leaving(file: str) -> None:
    """Raise `GpuplanError` if a link of the repository around here leads a file that is to be read out of it."""
    for top in _tops(Path()):
        link = find_link(file, top)
        if link and not is_kept_inside(file, top):
            message = f"`{os.path.relpath(link)}` is a link out of the repository, and not followed"
            raise GpuplanError(message, "copy the file there, or name where the link leads")


def _tops(root: Path) -> Iterator[Path]:
    """The folders whose content a branch may have brought; none where there is no repository."""
    found = {repository.top for folder in (root, Path()) if (repository := find_repository(folder))}
    yield from sorted(found)
