"""`gpuplan rollout`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal.options import cluster_option, pool_names, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, format_option, option, verb

if TYPE_CHECKING:
    from gpuplan.features.changes.rollouts import Proposal

_SHARE = regex(r"[1-9][0-9]{0,5}|(100|[1-9]?[0-9])%")


def _check_share(_: click.Context, parameter: click.Parameter, share: str) -> str:
    if share and not _SHARE.fullmatch(share):
        raise click.BadParameter("use a number of nodes, or a part of them such as 25%.", param=parameter)
    return share


@verb("rollout")
@click.argument("pool", shell_complete=completing(pool_names))
@option(
    "--to",
    default="",
    metavar="SHARING",
    section="Input",
    help="A MIG layout, exclusive, time-slicing=N or mps=N [default: that of the rollout under way].",
)
@option("--back", is_flag=True, section="Input", help="Take nodes back to the pool's own sharing.")
@option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    section="Input",
    help="Nodes as `kubectl get nodes -o json` (or yaml) lists them, whatever else is in it, or a name a line: a file,"
    " a folder of them, or - for stdin; may be repeated [default: the pool's names].",
)
@option("--batch", type=click.IntRange(min=1), metavar="N", section="Input", help="How many nodes go together at most.")
@option(
    "--max-unavailable",
    default="",
    metavar="N|P%",
    callback=_check_share,
    section="Input",
    help="How many nodes may be away at once, in place of the pool's own `disruption.maxUnavailable`.",
)
@cluster_option
@option("--write", is_flag=True, section="Mode", help="Write the next step into the overlay; the one after it later.")
@format_option("table", "markdown", "json", what="For people, for a merge request, or for programs")
def command(
    terminal: Terminal,
    pool: str,
    to: str,
    nodes: tuple[str, ...],
    batch: int | None,
    max_unavailable: str,
    clusters: tuple[str, ...],
    format_: str,
    *,
    back: bool,
    write: bool,
) -> int:
    """Plan how a pool gets another sharing, node by node.

    Each step is a small commit: which nodes, what to do before, the overlay to write, what to wait for. While its nodes
    are away, the others have what tenants are guaranteed. Where no order keeps that, none is shown, and the reason is.

    --write ends with 0 when a step was written, or when nothing is left to do. Otherwise nothing was written: 1 where
    no order is safe, the policies have errors, the step before is not committed yet, or nodes of --nodes still name
    what the step would drop; 2 where a file of your own has to be changed by hand.

    \b
      kubectl get nodes -o json | gpuplan rollout a100-shared --cluster prod --to seven-small --nodes -
      gpuplan rollout a100-shared --cluster prod --write --nodes nodes.txt   the next step
      gpuplan rollout a100-shared --cluster prod --back --nodes nodes.txt    from the middle, back again
    """
    from gpuplan.features.changes.rollouts import Wish, propose
    from gpuplan.features.changes.views.rollout import shown_rollout

    if to and back:
        raise click.UsageError("--to and --back lead to different ends: give one of them.")
    if batch is not None and max_unavailable:
        raise click.UsageError("--batch and --max-unavailable both say how many nodes go together: give one of them.")
    from gpuplan.compiler.planning.node_list import LIST_NODES
    from gpuplan.terminal.lists import in_one, read_texts

    listed = in_one(read_texts(nodes, LIST_NODES)) if nodes else None
    wish = Wish(pool, to, back, batch, max_unavailable, listed)
    report, proposal = propose(terminal.root, clusters, wish)
    if proposal is None:
        write_findings(terminal, report, (), to_stderr=True)
        return 1
    said, is_written = _write_next(terminal, proposal, wish.listed) if write and proposal.edits else ("", True)
    terminal.print(shown_rollout(proposal, format_, terminal.out_theme))
    terminal.say(said)
    return 0 if proposal.is_safe and is_written else 1


def _write_next(terminal: Terminal, proposal: Proposal, listed: Mapping[str, str] | None) -> tuple[str, bool]:
    """Write the first step, say so, and whether it was."""
    from gpuplan.compiler.base.diagnostics import GpuplanError
    from gpuplan.features.changes.rollouts import Action, find_hindrance, write

    if why := find_hindrance(terminal.root, proposal, listed):
        return f"nothing was written: {why}\n", False
    edit = proposal.edits[0]
    if edit.action is Action.CHANGE:
        raise GpuplanError(
            f"`{edit.path}` says other things too, and an overlay has one document for a pool, so nothing was written",
            "change it there as step 1 says, which `gpuplan rollout` shows without --write",
        )
    write(terminal.root, edit)
    done = "removed" if edit.action is Action.REMOVE else "wrote"
    return f"{done} {terminal.err_theme.path(edit.path)}: step 1\n", True
