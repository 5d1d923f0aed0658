"""Policies from the disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gpuplan.diagnostics import Diagnostic, Finding, GpuplanError, Origin, Rule, SourceFile, WholeFile
from gpuplan.documents.document import Document
from gpuplan.documents.parse import parse
from gpuplan.documents.rules import NOT_A_FILE, REFUSED_LINK
from gpuplan.documents.text import MAX_BYTES, decode

Read = tuple[tuple[Document, ...], tuple[Diagnostic, ...]]
"""What can be read, with the findings about the rest."""


def read_folder(root: Path, folder: str, *, skip: frozenset[str] = frozenset()) -> Read:
    """The policies of all `*.yaml` and `*.yml` files below a folder of the repository, in the order of their names.

    Hidden names are passed over, and so are the names of ``skip`` directly below the folder.
    """
    return _read(root, folder, skip, strict=True)


def read_manifests(root: Path, folder: str) -> Read:
    """Hand-written Kubernetes objects, in whatever YAML their tools read; only what is no YAML at all is reported."""
    return _read(root, folder, frozenset(), strict=False)


def read_text(path: str, text: str, *, strict: bool = True) -> Read:
    """The policies of a text that is not on the disk, such as standard input; objects, as above, without ``strict``."""
    return parse(SourceFile(path, text.removeprefix("\ufeff")), strict=strict)


def read_bytes(path: str, data: bytes) -> Read:
    """Objects of a file that was read already, in whatever YAML their tools read."""
    file, refusal = decode(path, data)
    return parse(file, strict=False) if refusal is None else ((), (refusal,))


def has_folder(root: Path, folder: str) -> bool:
    """Whether the repository has this folder; one outside of it is none of its folders."""
    pure = PurePosixPath(folder)
    return not pure.is_absolute() and ".." not in pure.parts and _is_folder(root / folder)


def find_folders(root: Path, folder: str) -> tuple[str, ...]:
    """The names of the folders directly below a folder, hidden ones left out; none when it does not exist."""
    if not _is_folder(root / folder):
        return ()
    return tuple(sorted(entry.name for entry in _entries(_top(root, folder), folder) if _leads_to_folder(entry)))


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """``DirEntry.is_dir`` raises when a link leads to itself."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _read(root: Path, folder: str, skip: frozenset[str], *, strict: bool) -> Read:
    documents: list[Document] = []
    diagnostics: list[Diagnostic] = []
    for found in _walk(root, folder, skip):
        if isinstance(found, Diagnostic):
            diagnostics.append(found)
            continue
        file, refusal = decode(found.label, _bytes(found))
        read, problems = parse(file, strict=strict) if refusal is None else ((), (refusal,))
        documents += read
        diagnostics += problems
    return tuple(documents), tuple(diagnostics)


class _Entry(NamedTuple):
    """Something on the disk; ``label`` is its path from the repository's root, as findings show it."""

    path: str
    label: str


def _walk(root: Path, folder: str, skip: frozenset[str]) -> Iterator[_Entry | Diagnostic]:
    """The files to read, depth first, in the order of their names."""
    real_root = os.path.realpath(root)
    top = PurePosixPath(folder).as_posix()
    pending = _children(_top(root, folder), "" if top == "." else f"{top}/", skip)
    while pending:
        entry, label = pending.pop()
        is_policy = entry.name.lower().endswith((".yaml", ".yml"))
        if entry.is_symlink():
            yield from _linked(entry, label, real_root, is_policy=is_policy)
        elif entry.is_dir() and not is_policy:
            pending += _children(entry.path, f"{label}/")
        elif is_policy:
            yield from _plain(entry, label)


def _children(path: str | Path, label: str, skip: frozenset[str] = frozenset()) -> list[tuple[os.DirEntry[str], str]]:
    """Last name first, as a stack wants it."""
    entries = [entry for entry in _entries(path, label) if entry.name not in skip]
    entries.sort(key=lambda entry: entry.name, reverse=True)
    return [(entry, label + _printable(entry.name)) for entry in entries]


def _entries(path: str | Path, label: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise _trouble(label.rstrip("/"), error) from error


def _plain(entry: os.DirEntry[str], label: str) -> Iterator[_Entry | Diagnostic]:
    if entry.is_file():
        yield _Entry(entry.path, label)
    else:
        what = "a folder" if entry.is_dir() else "a pipe, a socket or a device"
        yield _refuse(NOT_A_FILE, label, f"`{label}` is {what}, not a file", "rename or remove it")


def _linked(entry: os.DirEntry[str], label: str, root: str, *, is_policy: bool) -> Iterator[_Entry | Diagnostic]:
    """Links to files inside the repository are read; links that hide policies elsewhere are findings."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        if is_policy:
            yield _refuse(REFUSED_LINK, label, f"link `{label}` points nowhere or to itself", "remove the link")
        return
    if stat.S_ISDIR(mode):
        help_text = "name the folder in `bases` of the `Cluster`, or copy it here"
        yield _refuse(REFUSED_LINK, label, f"link `{label}` points to a folder", help_text)
    elif is_policy and not Path(os.path.realpath(entry.path)).is_relative_to(root):
        yield _refuse(REFUSED_LINK, label, f"link `{label}` leaves the repository", "copy the file into the repository")
    elif is_policy:
        yield from _plain(entry, label)


def _refuse(rule: Rule, label: str, message: str, help_text: str) -> Diagnostic:
    return rule.report(Finding(Origin(WholeFile(SourceFile(label, ""))), message, help=help_text))


def _bytes(entry: _Entry) -> bytes:
    """The content, and no more of it than shows that it is too large."""
    try:
        with Path(entry.path).open("rb") as stream:
            start = stream.read(_CHUNK)
            return start if len(start) < _CHUNK else start + stream.read(MAX_BYTES + 1 - _CHUNK)
    except OSError as error:
        raise _trouble(entry.label, error) from error


_CHUNK = 64 * 1024  # as much memory is taken as is asked for, and most files are small


def _top(root: Path, folder: str) -> Path:
    """The folder on the disk, which has to be inside the repository."""
    pure = PurePosixPath(folder)
    path = root / folder
    if pure.is_absolute() or ".." in pure.parts:
        raise GpuplanError(f"folder `{folder}` is outside of the repository", "name a folder below its root")
    if not _is_folder(path):
        raise GpuplanError(f"folder `{folder}` does not exist", "create it, or name another one")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise GpuplanError(f"folder `{folder}` is a link out of the repository", "copy the folder into the repository")
    return path


def _is_folder(path: Path) -> bool:
    """``Path.is_dir`` raises when a name is longer than the file system allows."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _trouble(label: str, error: OSError) -> GpuplanError:
    reason = (error.strerror or type(error).__name__).lower()
    return GpuplanError(f"cannot read `{label or '.'}`: {reason}", "check that it exists and that you may read it")


def _printable(name: str) -> str:
    """File names on Linux are bytes; those that are not UTF-8 are shown with escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
