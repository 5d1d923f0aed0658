"""`gpuplan retain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING

import click

from gpuplan.terminal.lists import nodes_option, read_nodes_and_others
from gpuplan.terminal.options import against_option, cluster_option, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb

if TYPE_CHECKING:
    from gpuplan.features.changes.retaining import Keeper, Leftover


@verb("retain")
@cluster_option
@against_option("What the cluster is at: a Git revision, or a folder with a platform", "HEAD")
@nodes_option
@option("--write", is_flag=True, section="Mode", help="Write the documents to `overlays/<cluster>/retained/`.")
@option(
    "--prune",
    is_flag=True,
    section="Mode",
    help="Delete documents that nothing at REV names, no node needs and nobody edited; without --write, say which, and"
    " what to look at in the cluster first.",
)
@option(
    "--without-evidence",
    is_flag=True,
    section="Mode",
    help="Let --prune --write delete what nodes may still name, as far as --nodes would show it, and queues.",
)
def command(
    terminal: Terminal,
    clusters: tuple[str, ...],
    against: str,
    nodes: tuple[str, ...],
    *,
    write: bool,
    prune: bool,
    without_evidence: bool,
) -> int:
    """Write what must outlive a change of the policies.

    Nodes go on naming a MIG layout, or a configuration of the device plugin, until a person lets the change reach them,
    and Kueue holds on to queues in use. What the working tree does not define any more is kept as documents of the kind
    Retained, each saying until when. Ends with 1 when documents are missing and --write is not given.

    Policies do not say what nodes still name. So --prune --write wants --nodes, and deletes what none of them needs.
    Queues of Kueue go where the same files list them and show that nothing uses them; else they stay, with what to look
    at. With --without-evidence all go.

    \b
      gpuplan retain                   # what would be missing after this change?
      gpuplan retain --write
      gpuplan retain --prune           # which may go, and what to look at first?
      kubectl get nodes -o json | gpuplan retain -c prod --prune --write --nodes -
      kubectl get nodes,clusterqueues,localqueues,resourceflavors -A -o json | gpuplan retain -c prod --prune --nodes -
    """
    from gpuplan.compiler.pipeline import writing
    from gpuplan.features.changes.retaining import retain
    from gpuplan.features.changes.views import retaining as view

    if without_evidence and (nodes or not prune):
        raise click.UsageError("--without-evidence is said to --prune in place of --nodes.")
    retention = retain(terminal.root, clusters, against, *read_nodes_and_others(nodes))
    if not retention.is_compared:
        write_findings(terminal, retention.report, (), to_stderr=True)
        terminal.say("nothing was compared\n")
        return 1
    is_guess = without_evidence or not nodes
    pruned = [item for item in retention.leftovers if prune and item.is_ours and (is_guess or item.may_go)]
    if write:
        if not without_evidence:
            _refuse_to_guess(pruned)
        _write(terminal.root, retention.missing)
        for leftover in pruned:
            writing.remove(terminal.root, leftover.path)
            writing.remove_folder(terminal.root, dirname(leftover.path))
        terminal.say(view.written(retention))
    else:
        terminal.print(view.documents(retention))
        terminal.say(view.missing(retention))
    terminal.say(view.leftovers(retention, pruned, prune=prune, write=write))
    return 0 if write or not (retention.missing or pruned) else 1


def write_missing(terminal: Terminal, clusters: Sequence[str]) -> None:
    """Retain what the change since HEAD leaves behind, and say what; of policies with errors the build says more."""
    from gpuplan.features.changes.retaining import retain
    from gpuplan.features.changes.views import retaining as view

    retention = retain(terminal.root, clusters)
    _write(terminal.root, retention.missing)
    if retention.missing:
        terminal.say(view.written(retention))


def _refuse_to_guess(pruned: Sequence[Leftover]) -> None:
    """Stop before anything is deleted that nodes may still name."""
    from gpuplan.compiler.base.diagnostics import GpuplanError

    if unseen := [item for item in pruned if not item.may_go]:
        raise GpuplanError(
            f"policies do not say whether nodes still need {unseen[0].title}"
            + (f", nor {len(unseen) - 1} more" if len(unseen) > 1 else "")
            + "; so nothing was deleted",
            "pass the nodes: `kubectl get nodes -o json | gpuplan retain --prune --write --nodes -`; or look at what "
            "`gpuplan retain --prune` says, and add `--without-evidence`",
        )


def _write(root: Path, keepers: Sequence[Keeper]) -> None:
    """Write none of the files over another."""
    from gpuplan.compiler.pipeline import writing

    writing.create_all(root, {keeper.path: keeper.text for keeper in keepers})
