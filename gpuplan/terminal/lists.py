"""Lists that other programs printed, from a file, a pipe or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from gpuplan.terminal.verbs import option

if TYPE_CHECKING:
    from gpuplan.compiler.base.plain import Body
    from gpuplan.compiler.planning.node_list import Node

LARGEST: Final = 2**30
"""Bytes: a hundred thousand pods."""
_CHUNK: Final = 2**20
_NONE: Final[Mapping[str, Mapping[str, str]]] = {}


def read_list(file: str, way: str, *, is_judged: bool = False) -> bytes:
    """What is in a file, or comes by stdin for ``-``; trouble when it is no text, or without end.

    ``way`` is the command that prints such a list. A pipe is read until whoever writes to it has ended. Of what
    ``is_judged`` a zero byte is for a finding to tell, and nothing behind it is read.
    """
    if file == "-":  # it may be closed
        return b"" if sys.stdin is None else _read(sys.stdin.buffer, "stdin", way, is_judged=is_judged)
    from gpuplan.terminal.named import refuse_leaving

    refuse_leaving(file)
    with open(file, "rb") as stream:  # noqa: PTH123 - as the user typed it
        return _read(stream, file, way, is_judged=is_judged)


nodes_option = option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    section="Input",
    help="The cluster's nodes, from `kubectl get nodes -o json` (or yaml): a file, a folder of them, or - for stdin,"
    " whatever else is in it; may be repeated. What they name, and which of them patterns match, are facts then.",
)


def read_texts(
    files: Iterable[str], way: str, known: Mapping[str, Mapping[str, str]] = _NONE
) -> dict[str, dict[str, str]]:
    """The texts of each file or folder by their names; what is ``known`` is not read again, since a pipe cannot be."""
    from gpuplan.terminal.files import contents

    return {
        file: dict(known.get(file) or {name: _text(data) for name, data in contents((file,), way, is_judged=False)})
        for file in files
    }


def in_one(texts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The texts of several files and folders by their names."""
    return {name: text for found in texts.values() for name, text in found.items()}


def read_node_list(files: Sequence[str]) -> tuple[Node, ...] | None:
    """The nodes in files as kubectl writes them; None without a file."""
    if not files:
        return None
    from gpuplan.compiler.planning.node_list import LIST_NODES

    return nodes_of(read_texts(files, LIST_NODES))


def nodes_of(texts: Mapping[str, Mapping[str, str]]) -> tuple[Node, ...] | None:
    """The nodes in the texts of files; None where there are none."""
    from gpuplan.compiler.planning.node_list import nodes_in

    return nodes_in(_objects(texts)) if texts else None


def read_nodes_and_others(files: Sequence[str]) -> tuple[tuple[Node, ...] | None, tuple[Body, ...]]:
    """The nodes in files, and all else that is listed there but Secrets."""
    if not files:
        return None, ()
    from gpuplan.compiler.planning.node_list import LIST_NODES, NODES, nodes_in

    objects = tuple(_objects(read_texts(files, LIST_NODES)))
    return nodes_in(objects), tuple(body for _, body in objects if body.get("kind") != NODES.kind)


def _objects(texts: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, Body]]:
    from gpuplan.compiler.documents.listed import find_objects
    from gpuplan.compiler.planning.node_list import NODES

    return find_objects(in_one(texts), NODES)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="replace")


def _read(stream: BinaryIO, name: str, way: str, *, is_judged: bool) -> bytes:
    from gpuplan.compiler.base.diagnostics import GpuplanError

    found = bytearray()
    while chunk := stream.read(_CHUNK):
        found += chunk
        if b"\0" in chunk:  # no list has one, and devices that never end have little else
            if is_judged:
                break
            raise GpuplanError(f"`{name}` holds a zero byte, so it is no UTF-8 text", f"write it with `{way}`")
        if len(found) > LARGEST:
            raise GpuplanError(
                f"`{name}` is larger than any list: more than {LARGEST:,} bytes", f"write it with `{way}`"
            )
    return bytes(found)
