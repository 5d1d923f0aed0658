"""Files, folders and standard input that arguments name, and the lists of other programs in them."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO, Final

from gpuplan.compiler.base import handles
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.documents.listed import find_objects
from gpuplan.compiler.planning.node_list import LIST_NODES, NODES, nodes_in
from gpuplan.terminal.session import refuse_leaving

if TYPE_CHECKING:
    from gpuplan.compiler.base.plain import Body
    from gpuplan.compiler.planning.node_list import Node

LARGEST: Final = 2**30
"""Bytes: a hundred thousand pods."""
_CHUNK: Final = 2**20
_ENDINGS: Final = (".yaml", ".yml", ".json")
_PACKED: Final = ".gz"
_GZIP: Final = b"\x1f\x8b"
_WITH_HEADER: Final = 31
"""The window of zlib that stands for the form of gzip."""
_LARGEST_RATIO: Final = 200
"""The factor by which a packed file may grow beyond 16 MiB: lists of kubectl grow 20 to 40 times."""
_WAY: Final = "kubectl get ... -o yaml"
_NONE: Final[Mapping[str, Mapping[str, str]]] = {}

# --- Bytes -------------------------------------------------------------------------------------------------------


def contents(names: Iterable[str], way: str = _WAY, *, is_judged: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each file, as findings have it, and its content; files of a folder in the order of their paths.

    Only regular files of a folder count: somebody else may have put a link or a pipe there. ``way`` and ``is_judged``
    mean what they mean to `read_list`.
    """
    for name in names:
        if name != "-" and os.path.isdir(name):  # noqa: PTH112 - as the user typed it
            # Servers of CI know `a.yaml`, and not `./a.yaml`.
            yield from ((path.removeprefix("./"), read_list(path, way, is_judged=is_judged)) for path in _below(name))
        else:
            yield "stdin" if name == "-" else name, read_list(name, way, is_judged=is_judged)


def content_below(folder: str, path: str, most: int) -> bytes | None:
    """Return at most ``most`` bytes of a regular file below a folder, or None if there is no such file.

    A link on the way is trouble: a stranger may have written the path, and the link may lead to anything that the user
    can read.
    """
    try:
        return handles.read(folder or ".", path.split("/"), most)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise GpuplanError(f"`{path}` is a link, and not followed", "copy the file there, or name it") from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _below(folder: str) -> Sequence[str]:
    """Return the paths of YAML and JSON below a folder that are not hidden; raise `GpuplanError` if there are none."""
    paths = [path for path in _files_below(folder) if _is_list(path)]
    if not paths:
        raise GpuplanError(f"there is no file below `{folder}` that ends in {', '.join(_ENDINGS)}", "name another one")
    return paths


def _files_below(folder: str) -> Sequence[str]:
    paths: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        named = (os.path.join(parent, name) for name in files if not name.startswith("."))  # noqa: PTH118 - as the user typed the first part
        paths += (path for path in named if stat.S_ISREG(os.lstat(path).st_mode))
    return sorted(paths)


def _is_list(path: str) -> bool:
    return path.removesuffix(_PACKED).endswith(_ENDINGS)


def passed_over(names: Iterable[str]) -> tuple[str, ...]:
    """Return the files of folders that `contents` does not read, as findings have them."""
    folders = (name for name in names if name != "-" and os.path.isdir(name))  # noqa: PTH112 - as the user typed it
    files = (path for folder in folders for path in _files_below(folder) if not _is_list(path))
    return tuple(path.removeprefix("./") for path in files)


def read_list(file: str, way: str, *, is_judged: bool = False) -> bytes:
    """Return the content of a file, or of stdin for ``-``; raise `GpuplanError` if it is no text or too large.

    ``way`` is the command that prints such a list. A pipe is read until whoever writes to it has ended. If
    ``is_judged``, a zero byte is left for a finding to report, and nothing behind it is read.
    """
    if file == "-":  # it may be closed
        return b"" if sys.stdin is None else _read(sys.stdin.buffer, "stdin", way, is_judged=is_judged)
    refuse_leaving(file)
    with open(file, "rb") as stream:  # noqa: PTH123 - as the user typed it
        if stream.peek(len(_GZIP)).startswith(_GZIP):  # a pipe cannot be read again
            return _unpacked(stream, file, way)
        return _read(stream, file, way, is_judged=is_judged)


def _unpacked(stream: BinaryIO, name: str, way: str) -> bytes:
    """Return the content of a packed file; raise `GpuplanError` if it is damaged, or grows as no list does."""
    packed, found = stream.read(LARGEST), bytearray()
    most = min(LARGEST, 2**24 + _LARGEST_RATIO * len(packed))
    try:
        while packed:  # a file may have several parts
            part = zlib.decompressobj(_WITH_HEADER)
            while packed and not part.eof:
                found += part.decompress(packed, _CHUNK)
                packed = part.unconsumed_tail
                if len(found) > most:
                    raise GpuplanError(f"`{name}` grows to more than {most:,} bytes", f"write it with `{way}`")
            if not part.eof:
                raise GpuplanError(f"`{name}` cannot be unpacked: it ends too early", f"write it with `{way}`")
            packed = part.unused_data
    except zlib.error as error:
        raise GpuplanError(f"`{name}` cannot be unpacked: {error}", f"write it with `{way}`") from error
    return bytes(found)


def _read(stream: BinaryIO, name: str, way: str, *, is_judged: bool) -> bytes:
    content = bytearray()
    while chunk := stream.read(_CHUNK):
        content += chunk
        if b"\0" in chunk:  # no list has one, and devices that never end have little else
            if is_judged:
                break
            raise GpuplanError(f"`{name}` holds a zero byte, so it is no UTF-8 text", f"write it with `{way}`")
        if len(content) > LARGEST:
            raise GpuplanError(
                f"`{name}` is larger than any list: more than {LARGEST:,} bytes", f"write it with `{way}`"
            )
    if _KUBECONFIG.search(content, 0, _CHUNK):
        hint = f"type `{way.replace('kubectl', f'kubectl --kubeconfig {quote(name)}')} > list.json`, and name that file"
        if "kubectl" not in way or way == _WAY:
            hint = f"type `export KUBECONFIG={quote(name)}`, and then what `gpuplan import --commands` prints"
        raise GpuplanError(f"`{name}` is a kubeconfig: gpuplan reads none, and never connects to a cluster", hint)
    return bytes(content)


_KUBECONFIG: Final = re.compile(rb"^kind: *Config *\r?$", re.MULTILINE)


# --- Lists -------------------------------------------------------------------------------------------------------


def read_texts(
    files: Iterable[str], way: str, known: Mapping[str, Mapping[str, str]] = _NONE
) -> dict[str, dict[str, str]]:
    """Return the texts of each file or folder by their names; ``known`` ones are not read again, like a pipe."""
    return {
        file: dict(
            known.get(file)
            or {
                name: content.decode("utf-8-sig", errors="replace")
                for name, content in contents((file,), way, is_judged=False)
            }
        )
        for file in files
    }


def in_one(texts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the texts of several files and folders by their names."""
    return {name: text for below in texts.values() for name, text in below.items()}


def read_node_list(files: Sequence[str]) -> tuple[Node, ...] | None:
    """Return the nodes in files as kubectl writes them, or None without a file."""
    return nodes_of(read_texts(files, LIST_NODES))


def nodes_of(texts: Mapping[str, Mapping[str, str]]) -> tuple[Node, ...] | None:
    """Return the nodes in the texts of files, or None without a text."""
    return nodes_in(find_objects(in_one(texts), NODES)) if texts else None


def read_nodes_and_others(files: Sequence[str]) -> tuple[tuple[Node, ...] | None, tuple[Body, ...]]:
    """Return the nodes in files, or None without a file, and all else that is listed there but Secrets."""
    if not files:
        return None, ()
    objects = tuple(find_objects(in_one(read_texts(files, LIST_NODES)), NODES))
    return nodes_in(objects), tuple(body for _, body in objects if body.get("kind") != NODES.kind)
