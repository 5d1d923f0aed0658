"""The work of `gpuplan retain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname

import click

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import writing
from gpuplan.features.changes import retaining
from gpuplan.features.changes.retaining import Leftover
from gpuplan.features.changes.views import retaining as view
from gpuplan.terminal.formats import write_findings
from gpuplan.terminal.lists import read_nodes_and_others
from gpuplan.terminal.session import Terminal


def retain(
    terminal: Terminal,
    clusters: Sequence[str],
    against: str,
    nodes: Sequence[str],
    *,
    write: bool,
    prune: bool,
    without_evidence: bool,
) -> int:
    if without_evidence and (nodes or not prune):
        raise click.UsageError("--without-evidence is said to --prune in place of --nodes.")
    retention = retaining.retain(terminal.root, clusters, against, *read_nodes_and_others(nodes))
    if not retention.is_compared:
        write_findings(terminal, retention.report, (), to_stderr=True)
        terminal.say("nothing was compared\n")
        return 1
    is_guess = without_evidence or not nodes
    pruned = [
        document for document in retention.leftovers if prune and document.is_ours and (is_guess or document.may_go)
    ]
    if write:
        if not without_evidence:
            _refuse_to_guess(pruned)
        _create(terminal.root, retention)
        for document in pruned:
            writing.remove(terminal.root, document.path)
            writing.remove_folder(terminal.root, dirname(document.path))
        terminal.say(view.written(retention))
    else:
        terminal.print(view.documents(retention))
        terminal.say(view.missing(retention))
    terminal.say(view.leftovers(retention, pruned, prune=prune, write=write))
    return 0 if write or not (retention.missing or pruned) else 1


def write_missing(terminal: Terminal, clusters: Sequence[str]) -> None:
    """Write what the change since HEAD leaves behind, and say so; the build reports errors in the policies."""
    retention = retaining.retain(terminal.root, clusters)
    _create(terminal.root, retention)
    if retention.missing:
        terminal.say(view.written(retention))


def _refuse_to_guess(pruned: Sequence[Leftover]) -> None:
    """Stop before anything is deleted that nodes may still name."""
    if unseen := [document for document in pruned if not document.may_go]:
        raise GpuplanError(
            f"policies do not say whether nodes still need {unseen[0].title}"
            + (f", nor {len(unseen) - 1} more" if len(unseen) > 1 else "")
            + "; so nothing was deleted",
            "pass the nodes: `kubectl get nodes -o json | gpuplan retain --prune --write --nodes -`; or look at what "
            "`gpuplan retain --prune` says, and add `--without-evidence`",
        )


def _create(root: Path, retention: retaining.Retention) -> None:
    """Write the documents that are missing, and none of them over another file."""
    writing.create_all(root, {keeper.path: keeper.text for keeper in retention.missing})
