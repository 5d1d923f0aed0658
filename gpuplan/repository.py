"""Find the Git repository around a folder without asking git, and the links that it holds.

A commit can hold links to anywhere, but nothing called `.git`. So `.git` is the user's, and a link below it is not.
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
    """Return the repository around a folder as git would find it if no folder but `.git` could be one."""
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
    """Whether git looks no further: a folder with a HEAD, or a file that leads to one."""
    return place.is_file() or os.path.lexists(place / "HEAD")


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
