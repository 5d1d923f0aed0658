"""Read and write the files that arguments name, and through no link that a branch may have brought."""

from __future__ import annotations

import os
from pathlib import Path

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import find_link, is_kept_inside


def write_named(root: Path, file: str, text: str) -> None:
    """Write a text to the file that an argument names; trouble if a link of a repository is on the way."""
    refuse_links(root, file)
    with open(file, "w", encoding="utf-8") as stream:  # noqa: PTH123 - as the user typed it
        stream.write(text)


def refuse_links(root: Path, path: str | os.PathLike[str], hint: str = "delete it, or name another file") -> None:
    """Raise `GpuplanError` if a link of a repository, or of the platform, is on the way to a path."""
    from gpuplan.compiler.pipeline.loading import OVERLAYS

    link = find_link(path, root if (root / OVERLAYS).is_dir() else "")
    if link:
        raise GpuplanError(f"`{os.path.relpath(link.path)}` is a link, and nothing is written through it", hint)


def refuse_leaving(path: str | os.PathLike[str]) -> None:
    """Raise `GpuplanError` if a link of a repository leads what is to be read out of it, or among Git's own files."""
    link = find_link(path)
    if link and not is_kept_inside(path, link.top):
        message = f"`{os.path.relpath(link.path)}` is a link out of the repository, and not followed"
        raise GpuplanError(message, "copy the file there, or name where the link leads")
