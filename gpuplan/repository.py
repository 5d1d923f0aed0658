"""Find the Git repository around a folder without asking git, and the links that it holds.

Git checks out links to anywhere, but nothing called `.git`. So `.git` is the user's, and a link beside it is not.
"""

from __future__ import annotations

import os
from pathlib import Path

from gpuplan.values import NamedTuple

GIT = ".git"


class Repository(NamedTuple):
    """The folder that holds `.git`, and the way from there to the folder that was asked for: empty, or with a `/`."""

    top: Path
    prefix: str


def find_repository(folder: Path) -> Repository | None:
    """Return the nearest whole `.git` from a folder upwards, below GIT_CEILING_DIRECTORIES.

    Git looks for it in the same way, but that it stops where a file system ends.
    """
    real = Path(os.path.realpath(folder))
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    limits = {os.path.realpath(ceiling) for ceiling in ceilings if ceiling}
    for top in (real, *real.parents):
        if top != real and os.fspath(top) in limits:
            return None
        if _stops_git(top / GIT):
            way = real.relative_to(top).as_posix()
            return Repository(top, "" if way == "." else f"{way}/")
    return None


def _stops_git(place: Path) -> bool:
    """Whether git looks no further: `.git` is a file, or a folder that `is_git_directory` of its setup.c takes.

    Where objects are may be said by GIT_OBJECT_DIRECTORY. A HEAD may be a link that leads nowhere.
    """
    if place.is_file():
        return True
    has_objects = "GIT_OBJECT_DIRECTORY" in os.environ or (place / "objects").is_dir()
    is_whole = (place / "refs").is_dir() and has_objects
    return os.path.lexists(place / "HEAD") and (is_whole or os.path.lexists(place / "commondir"))


def find_link(path: str | os.PathLike[str], top: str | os.PathLike[str]) -> str | None:
    """Return the first link on the way to a path that is below ``top``, or None; links elsewhere are the user's."""
    top = os.path.realpath(top)
    text = os.fspath(path)
    here = os.sep if os.path.isabs(text) else os.getcwd()  # noqa: PTH109, PTH117 - of texts
    for part in text.split(os.sep):  # noqa: PTH206 - as above
        if part in ("", os.curdir):
            continue
        here = os.path.dirname(here) if part == os.pardir else os.path.join(here, part)  # noqa: PTH118, PTH120
        if os.path.islink(here):  # noqa: PTH114 - as above
            if is_below(here, top):
                return here
            here = os.path.realpath(here)
    return None


def is_below(path: str, top: str) -> bool:
    """Whether a path is in a folder; of both no part is a link."""
    return path.startswith(top.rstrip(os.sep) + os.sep)


def is_kept_inside(path: str | os.PathLike[str], top: str | os.PathLike[str]) -> bool:
    """Whether what a path leads to is below ``top``, and is none of Git's own files, which may hold credentials."""
    real, folder = os.path.realpath(path), os.path.realpath(top)
    return real == folder or (is_below(real, folder) and GIT not in Path(os.path.relpath(real, folder)).parts)
