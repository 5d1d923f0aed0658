"""Which paths may be written: portable, inside of the output, and apart from each other on any file system."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import filterfalse
from typing import Final

from gpuplan.diagnostics import GpuplanError
from gpuplan.patterns import regex

STATE: Final = ".gpuplan"
"""The folder that gpuplan keeps for itself; no other name may start with a dot."""

TEMPORARY: Final = f"{STATE}/new"
"""What a file holds next, until it is renamed over that file."""

IGNORE: Final = f"{STATE}/.gitignore"
IGNORED: Final = b"*\n!.gitignore\n!inventory\n"
"""So that whatever a build that was killed leaves in that folder, `git add` leaves there as well."""

LEFTOVERS: Final = (f"{STATE}/lock", TEMPORARY)
"""What builds that were killed have left, those of earlier releases too."""

_NAME: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?"
_PATH: Final = regex(rf"{_NAME}(?:/{_NAME})*")
_LONGEST: Final = 1024
"""Bytes of a path on macOS, on Linux four times that; ours have fewer than half."""


def check_paths(paths: Iterable[str]) -> None:
    """Refuse absolute paths, ``..``, hidden names, and what some file system does not have."""
    wrong = next(filterfalse(_is_possible, paths), None)
    if wrong is not None:
        raise GpuplanError(
            f"`{wrong}` is not a path that gpuplan writes",
            "names in the output are made of ASCII letters, digits, `.`, `_` and `-`, and do not start with a dot",
        )


def _is_possible(path: str) -> bool:
    return len(path) <= _LONGEST and _PATH.fullmatch(path) is not None


def check_apart(paths: Iterable[str]) -> None:
    """Refuse paths that are one on a file system without case, and files that others need as a folder."""
    files = set(paths)
    folders = folders_of(files)
    seen: dict[str, str] = {}
    if (text := "\n".join(files)) != text.lower():
        for name in sorted(files | folders):
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise GpuplanError(
                    f"`{other}` and `{name}` are one file where case does not count", "rename one of them"
                )
    if both := files & folders:
        raise GpuplanError(f"`{min(both)}` would have to be a file and a folder", "rename one of them")


def folders_of(paths: Iterable[str]) -> set[str]:
    """All folders above the paths, but for the top."""
    folders = {path.rpartition("/")[0] for path in paths}
    waiting = list(folders)
    while waiting:
        parent = waiting.pop().rpartition("/")[0]
        if parent not in folders:
            folders.add(parent)
            waiting.append(parent)
    return folders - {""}
