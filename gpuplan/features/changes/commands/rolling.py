"""The work of `gpuplan rollout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.node_list import LIST_NODES
from gpuplan.features.changes import rollouts
from gpuplan.features.changes.rollouts import Action, Proposal, Wish, find_hindrance, propose
from gpuplan.features.changes.views.rollout import shown_rollout
from gpuplan.terminal.formats import write_findings
from gpuplan.terminal.lists import in_one, read_texts
from gpuplan.terminal.session import Terminal


def rollout(
    terminal: Terminal,
    pool: str,
    to: str,
    nodes: Sequence[str],
    batch: int | None,
    max_unavailable: str,
    clusters: Sequence[str],
    format_: str,
    *,
    back: bool,
    write: bool,
) -> int:
    if to and back:
        raise click.UsageError("--to and --back lead to different ends: give one of them.")
    if batch is not None and max_unavailable:
        raise click.UsageError("--batch and --max-unavailable both say how many nodes go together: give one of them.")
    wish = Wish(pool, to, back, batch, max_unavailable, in_one(read_texts(nodes, LIST_NODES)) if nodes else None)
    report, proposal = propose(terminal.root, clusters, wish)
    if proposal is None:
        write_findings(terminal, report, (), to_stderr=True)
        return 1
    report_of_step, is_written = (
        _write_next(terminal, proposal, wish.listed) if write and proposal.edits else ("", True)
    )
    terminal.print(shown_rollout(proposal, format_, terminal.out_theme))
    terminal.say(report_of_step)
    return 0 if proposal.is_safe and is_written else 1


def _write_next(terminal: Terminal, proposal: Proposal, listed: Mapping[str, str] | None) -> tuple[str, bool]:
    """Write the first step; return what there is to say of it, and whether it was written."""
    if why := find_hindrance(terminal.root, proposal, listed):
        return f"nothing was written: {why}\n", False
    edit = proposal.edits[0]
    if edit.action is Action.CHANGE:
        raise GpuplanError(
            f"`{edit.path}` says other things too, and an overlay has one document for a pool, so nothing was written",
            "change it there as step 1 says, which `gpuplan rollout` shows without --write",
        )
    rollouts.write(terminal.root, edit)
    done = "removed" if edit.action is Action.REMOVE else "wrote"
    return f"{done} {terminal.err_theme.path(edit.path)}: step 1\n", True
