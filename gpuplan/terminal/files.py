"""Files and folders that other programs wrote, as the user names them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from gpuplan.compiler.base import handles
from gpuplan.terminal.lists import read_list

_ENDINGS: Final = (".yaml", ".yml", ".json")
_WAY: Final = "kubectl get ... -o yaml"


def contents(names: Iterable[str], way: str = _WAY, *, is_judged: bool = True) -> Iterator[tuple[str, bytes]]:
    """What is in the files, by the names that findings have; a folder's in the order of their paths.

    Of a folder only regular files count: somebody else may have put a link or a pipe there. ``way`` and ``is_judged``
    are for what `read_list` tells.
    """
    for name in names:
        if name != "-" and os.path.isdir(name):  # noqa: PTH112 - as the user typed it
            # Servers of CI know `a.yaml`, and not `./a.yaml`.
            yield from ((path.removeprefix("./"), read_list(path, way, is_judged=is_judged)) for path in _below(name))
        else:
            yield "stdin" if name == "-" else name, read_list(name, way, is_judged=is_judged)


def content_below(folder: str, path: str, most: int) -> bytes | None:
    """At most so many bytes of a regular file below a folder; None where there is none.

    Whoever wrote the path is not who runs this: a link on the way is trouble, for it may lead to anything that the
    user can read.
    """
    try:
        return handles.read(folder or ".", path.split("/"), most)
    except OSError as error:
        if error.errno == errno.ELOOP:
            from gpuplan.compiler.base.diagnostics import GpuplanError

            raise GpuplanError(f"`{path}` is a link, and not followed", "copy the file there, or name it") from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _below(folder: str) -> Iterator[str]:
    """YAML and JSON of a folder, but for what is hidden."""
    found: list[str] = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += (
            os.path.join(here, name)  # noqa: PTH118 - as the user typed the first part
            for name in files
            if name.endswith(_ENDINGS) and not name.startswith(".") and _is_regular(os.path.join(here, name))  # noqa: PTH118
        )
    if not found:
        from gpuplan.compiler.base.diagnostics import GpuplanError

        raise GpuplanError(f"there is no file below `{folder}` that ends in {', '.join(_ENDINGS)}", "name another one")
    yield from sorted(found)


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)
