"""`gpuplan retain`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.commands import option, verb
from gpuplan.cli.options import cluster_option, write_findings
from gpuplan.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpuplan.pipeline.retaining import Keeper


@verb("retain")
@cluster_option
@option(
    "--against",
    default="HEAD",
    metavar="REV|DIR",
    section="Input",
    help="What the cluster is at: a Git revision, or a folder with a platform [default: HEAD].",
)
@option("--write", is_flag=True, section="Mode", help="Write the documents to `overlays/<cluster>/retained/`.")
@option(
    "--prune",
    is_flag=True,
    section="Mode",
    help="Delete documents that nothing at REV names and that nobody edited; without --write, say which, and what "
    "to look at in the cluster first.",
)
def command(terminal: Terminal, clusters: tuple[str, ...], against: str, *, write: bool, prune: bool) -> int:
    """Write what must outlive a change of the policies.

    Nodes go on naming a MIG layout, or a configuration of the device plugin, until a person lets the change reach them,
    and Kueue holds on to queues in use. What the working tree does not define any more is kept as documents of the kind
    Retained, each saying until when. Ends with 1 when documents are missing and --write is not given.

    --prune reads policies alone: a node may name what they do not. Run it without --write first, then the command
    that it names for each document, and delete when that finds nothing.

    \b
      gpuplan retain                   # what would be missing after this change?
      gpuplan retain --write
      gpuplan retain --prune           # which may go, and what to look at first?
      gpuplan retain --prune --write   # after the change has reached all nodes
    """
    from gpuplan.pipeline.retaining import retain
    from gpuplan.views import retaining as view

    retention = retain(terminal.root, clusters, against)
    if not retention.report.is_valid:
        write_findings(terminal, retention.report, (), to_stderr=True)
        terminal.say("nothing was compared\n")
        return 1
    leftovers = [leftover.path for leftover in retention.leftovers if prune and leftover.is_ours]
    if write:
        _write(terminal.root, retention.missing)
        _delete(terminal.root, leftovers)
        terminal.say(view.written(retention))
    else:
        terminal.print(view.documents(retention))
        terminal.say(view.missing(retention))
    terminal.say(view.leftovers(retention, prune=prune, write=write))
    return 0 if write or not (retention.missing or leftovers) else 1


def _write(root: Path, keepers: Sequence[Keeper]) -> None:
    """Write none of the files over another."""
    from gpuplan.diagnostics import GpuplanError
    from gpuplan.pipeline import writing

    for keeper in keepers:
        if os.path.lexists(root / keeper.path):
            raise GpuplanError(f"`{keeper.path}` exists already, so nothing was written", "move it away")
    for keeper in keepers:
        writing.create(root, keeper.path, keeper.text)


def _delete(root: Path, paths: Iterable[str]) -> None:
    """Delete files, and their folder when nothing else is in it."""
    from gpuplan.pipeline import writing

    for path in paths:
        writing.remove(root, path)
        with suppress(OSError):
            (root / path).parent.rmdir()
