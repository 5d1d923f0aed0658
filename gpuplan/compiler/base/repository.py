"""Find the Git repository around a folder without asking git, and the links that it holds.

Git checks out links to anywhere, but nothing called `.git`. So `.git` is the user's, and a link beside it is not.
"""

from __future__ import annotations

import os
from pathlib import Path

from gpuplan.compiler.base.values import NamedTuple

GIT = ".git"
OVERLAYS = "overlays"
"""The folder of a platform that has a folder for each cluster."""
_MOST_LINKS = 40
"""The number of links that Linux follows from one path."""


class Repository(NamedTuple):
    """The folder that holds `.git`, and the way from there to the folder that was asked for: empty, or with a `/`."""

    top: Path
    prefix: str


class Link(NamedTuple):
    """A link that a branch may have brought, and the top of what it is in."""

    path: str
    top: str


def find_repository(folder: str | os.PathLike[str], *, has_ceilings: bool = True) -> Repository | None:
    """Return the nearest whole `.git` from a folder upwards, below GIT_CEILING_DIRECTORIES unless those do not count.

    Git looks for it in the same way, but that it stops where a file system ends.
    """
    real = Path(os.path.realpath(folder))
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep) if has_ceilings else ()
    limits = {os.path.realpath(ceiling) for ceiling in ceilings if ceiling}
    for top in (real, *real.parents):
        if top != real and os.fspath(top) in limits:
            return None
        if _stops_git(top / GIT):
            way = real.relative_to(top).as_posix()
            return Repository(top, "" if way == "." else f"{way}/")
    return None


def branch_of(repository: Repository) -> str:
    """Return the name of the branch that is checked out; empty without one, and in a work tree of another clone."""
    head = repository.top / GIT / "HEAD"
    first = head.read_text(encoding="utf-8", errors="replace").partition("\n")[0] if head.is_file() else ""
    return first.partition("refs/heads/")[2].strip()


def _stops_git(place: Path) -> bool:
    """Whether git looks no further: `.git` is a file, or a folder that `is_git_directory` of its setup.c takes.

    Where objects are may be said by GIT_OBJECT_DIRECTORY. A HEAD may be a link that leads nowhere.
    """
    if place.is_file():
        return True
    has_objects = "GIT_OBJECT_DIRECTORY" in os.environ or (place / "objects").is_dir()
    is_whole = (place / "refs").is_dir() and has_objects
    return os.path.lexists(place / "HEAD") and (is_whole or os.path.lexists(place / "commondir"))


def find_link(path: str | os.PathLike[str], platform: str | os.PathLike[str] = "") -> Link | None:
    """Return the first link on the way to a path that a branch may have brought, or None.

    That is one in a Git repository, or below a platform that is in none. Links elsewhere are the user's and followed,
    one after the other, for what lies behind them.
    """
    text = os.fspath(path)
    here = os.sep if os.path.isabs(text) else os.getcwd()  # noqa: PTH109, PTH117 - of texts
    waiting, followed = text.split(os.sep)[::-1], 0  # noqa: PTH206 - as above
    while waiting:
        part = waiting.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            here = os.path.dirname(here)  # noqa: PTH120 - as above
            continue
        inner = os.path.join(here, part)  # noqa: PTH118 - as above
        if not os.path.islink(inner):  # noqa: PTH114 - as above
            here = inner
            continue
        repository = find_repository(here, has_ceilings=False)
        top = os.fspath(repository.top) if repository else os.path.realpath(platform or os.sep)
        if (repository or platform) and is_below(inner, top):
            return Link(inner, top)
        followed += 1
        if followed > _MOST_LINKS:
            return None
        target = os.readlink(inner)  # noqa: PTH115 - as above
        here = os.sep if os.path.isabs(target) else here  # noqa: PTH117 - as above
        waiting += target.split(os.sep)[::-1]  # noqa: PTH206 - as above
    return None


def is_below(path: str, top: str) -> bool:
    """Whether a path is in a folder; of both no part is a link."""
    return path.startswith(top.rstrip(os.sep) + os.sep)


def is_kept_inside(path: str | os.PathLike[str], top: str | os.PathLike[str]) -> bool:
    """Whether what a path leads to is below ``top``, and is none of Git's own files, which may hold credentials.

    No part of ``top`` is a link.
    """
    real, folder = os.path.realpath(path), os.fspath(top)
    return real == folder or (is_below(real, folder) and GIT not in Path(os.path.relpath(real, folder)).parts)
