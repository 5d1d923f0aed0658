"""Write documents below the repository's root, and nowhere else.

A work tree may hold links that a branch brought along. The overlay's folder may be one, to another folder of the
repository; below it none is followed, whether it is a folder's, the file's, or in the place of an unfinished file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from posixpath import dirname
from secrets import token_hex
from typing import Any, Final

from gpuplan.compiler.base import handles
from gpuplan.compiler.base.diagnostics import GpuplanError, reason_of
from gpuplan.compiler.base.repository import is_kept_inside
from gpuplan.compiler.policy.models import API_VERSION

_OVERLAY: Final = 2
"""Parts of the path of an overlay's folder: ``overlays/dev``."""
_OVERLAYS: Final = "overlays"


def document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of the policy language; an empty spec is left out."""
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": dict(spec)} if spec else head


def merge_patch(base: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that makes the one of the other by RFC 7386; it is empty if they are the same."""
    patch: dict[str, Any] = {key: None for key in base if key not in wanted}
    for key, value in wanted.items():
        before = base.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in base or before != value:
            patch[key] = value
    return patch


def create(root: Path, path: str, text: str) -> None:
    """Write a file that is not there, and make its folders; raise an error if something is."""
    with _folder(root, path) as (folder, name):
        handles.create(folder, name, text.encode())


def create_all(root: Path, files: Mapping[str, str]) -> None:
    """Write files that are not there, all or none of them; folders are made, and removed again where that fails."""
    created: list[str] = []
    parents = {parent for path in files for parent in PurePosixPath(path).parents}
    missing = [parent for parent in parents if not os.path.lexists(root / parent)]
    try:
        for path, text in files.items():
            create(root, path, text)
            created.append(path)
    except BaseException:
        for path in created:
            with suppress(GpuplanError):
                remove(root, path)
        for folder in sorted(missing, key=lambda folder: len(folder.parts), reverse=True):
            remove_folder(root, folder.as_posix())
        raise


def write_all(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files whatever they were before, and remove those without a text: all, or everything is as it was."""
    before = {path: read(root, path) for path in files}
    done: list[str] = []
    try:
        for path, text in files.items():
            done.append(path)
            _put(root, path, None if text is None else text.encode())
    except BaseException:
        for path in done:
            with suppress(GpuplanError):
                _put(root, path, before[path])
        raise


def read(root: Path, path: str) -> bytes | None:
    """Return what stands in a file; None if nothing does. A link is trouble: it may lead out of the repository."""
    with _folder(root, path) as (folder, name):
        try:
            return handles.read_in(folder, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise GpuplanError(f"cannot read `{path}`: {reason_of(error)}", "put a file in its place") from error


def replace(root: Path, path: str, text: str) -> None:
    """Write a file as a whole or not at all, whatever it was before."""
    _put(root, path, text.encode())


def _put(root: Path, path: str, content: bytes | None) -> None:
    """Write a file as a whole; without content, remove it."""
    if content is None:
        remove(root, path)
        return
    with _folder(root, path) as (folder, name):
        unfinished = f".{name}.{token_hex(4)}"  # hidden names are not read
        handles.create(folder, unfinished, content)
        try:
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(unfinished, dir_fd=folder)
            raise


def remove(root: Path, path: str) -> None:
    """Delete a file, if it is there; a link is deleted, not what it leads to."""
    with _folder(root, path) as (folder, name), suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def remove_folder(root: Path, path: str) -> None:
    """Delete a folder in which nothing is left; a link and anything else stays."""
    with suppress(GpuplanError, OSError), _folder(root, path) as (folder, name):
        os.rmdir(name, dir_fd=folder)


@contextmanager
def _folder(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder that a file is in, and yield its handle and the file's name; what goes wrong there is trouble."""
    *parts, name = path.split("/")
    top = _OVERLAY if parts[:1] == [_OVERLAYS] else 1
    try:
        with handles.open_folder(_top(root, "/".join(parts[:top])), parts[top:]) as handle:
            yield handle, name
    except FileExistsError as error:
        raise GpuplanError(f"`{path}` is there already, so nothing was written", "remove it, or rename it") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise GpuplanError(
                f"`{dirname(path)}` is a link or a file, not a folder, so nothing is written there", "remove it"
            ) from error
        raise GpuplanError(f"cannot write `{path}`: {reason_of(error)}", "check that you may write there") from error


def _top(root: Path, folder: str) -> str:
    """Return where the folder of an overlay or of a base is; it is made if it is missing."""
    real = os.path.realpath(root / folder)
    if not is_kept_inside(real, os.path.realpath(root)):
        raise GpuplanError(f"folder `{folder}` is a link out of the repository", "copy the folder into the repository")
    os.makedirs(real, exist_ok=True)  # noqa: PTH103 - of a path as text
    return real
