"""Lists that other programs printed, from a file, a pipe or standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final

from gpuplan.cli.commands import option

if TYPE_CHECKING:
    from gpuplan.changes.node_list import Node

LARGEST: Final = 2**30
"""Bytes: a hundred thousand pods."""
_CHUNK: Final = 2**20


def read_list(file: str, way: str, *, is_judged: bool = False) -> bytes:
    """What is in a file, or comes by stdin for ``-``; trouble when it is no text, or without end.

    ``way`` is the command that prints such a list. A pipe is read until whoever writes to it has ended. Of what
    ``is_judged`` a zero byte is for a finding to tell, and nothing behind it is read.
    """
    if file == "-":  # it may be closed
        return b"" if sys.stdin is None else _read(sys.stdin.buffer, "stdin", way, is_judged=is_judged)
    with open(file, "rb") as stream:  # noqa: PTH123 - as the user typed it
        return _read(stream, file, way, is_judged=is_judged)


nodes_option = option(
    "--nodes",
    metavar="FILE",
    section="Input",
    help="The cluster's nodes, from `kubectl get nodes -o json` (or yaml), or - for stdin: what they name, and which of"
    " them patterns match, are facts then.",
)


def read_node_list(file: str | None) -> tuple[Node, ...] | None:
    """The nodes in a file as kubectl writes it; None without a file."""
    if file is None:
        return None
    from gpuplan.changes.node_list import LIST_NODES, read_nodes

    name = "stdin" if file == "-" else file
    return read_nodes(read_list(file, LIST_NODES).decode("utf-8-sig", errors="replace"), name)


def _read(stream: BinaryIO, name: str, way: str, *, is_judged: bool) -> bytes:
    from gpuplan.diagnostics import GpuplanError

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
