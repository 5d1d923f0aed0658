"""Find the programs that gpuplan starts, and never in a folder that somebody else filled.

A part of the search path that is no whole path, such as ``.`` or nothing, means the folder that a program runs in. That
is the platform's, where a branch may have put a file called `git`.
"""

from __future__ import annotations

import os


def search_path() -> str:
    """Return the user's search path without the parts that depend on where a program runs."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if os.path.isabs(part))  # noqa: PTH117 - of texts


def find_program(name: str) -> str | None:
    """Return the whole path of a program on the search path, or None. A name with a folder in it is taken as it is."""
    import shutil

    found = shutil.which(name, path=search_path())
    return found and os.path.abspath(found)  # noqa: PTH100 - no link is followed
