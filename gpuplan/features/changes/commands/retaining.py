"""The work of `gpuplan retain` with its words, and that of `gpuplan rollout`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING, Final

import click

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.pipeline import writing
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL
from gpuplan.features.changes import edits, retaining
from gpuplan.features.changes.retaining import Leftover
from gpuplan.terminal.formats import write_findings
from gpuplan.terminal.lists import read_nodes_and_others
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.text import printable

if TYPE_CHECKING:
    from gpuplan.features.changes.retaining import Leftover, Retention


from collections.abc import Mapping

from gpuplan.compiler.planning.node_list import LIST_NODES
from gpuplan.features.changes.edits import Action
from gpuplan.features.changes.rollouts import Proposal, Wish, find_hindrance, propose
from gpuplan.features.changes.views.rollout import number_of, shown_rollout
from gpuplan.terminal.lists import in_one, read_texts


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
        raise click.UsageError("--without-evidence is for --prune without --nodes: type --prune --without-evidence.")
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
        unseen = [] if without_evidence else [document for document in pruned if not document.may_go]
        if unseen:
            more = f", nor {len(unseen) - 1} more" if len(unseen) > 1 else ""
            raise GpuplanError(
                f"policies do not say whether nodes still need {unseen[0].title}{more}; so nothing was deleted",
                "pass the nodes: `kubectl get nodes -o json | gpuplan retain --prune --write --nodes -`; or look at "
                "what `gpuplan retain --prune` says, and add `--without-evidence`",
            )
        _create(terminal.root, retention)
        terminal.say(_keep_keys(terminal.root, retention, pruned))
        for document in pruned:
            writing.remove(terminal.root, document.path)
            writing.remove_folder(terminal.root, dirname(document.path))
        terminal.say(written(retention))
    else:
        terminal.print(documents(retention))
        terminal.say(missing(retention))
    terminal.say(leftovers(retention, pruned, prune=prune, write=write))
    return 0 if write or not (retention.missing or pruned) else 1


def _keep_keys(root: Path, retention: Retention, pruned: Sequence[Leftover]) -> str:
    """Have pools keep the keys that documents decide up to now; return what was changed."""
    decided = {id(document.decided) for document in pruned}
    found = [(plan, pool) for plan in retention.report.plans for pool in plan.pools if id(pool) in decided]
    changes = [(pool, edit) for plan, pool in found for edit in edits.with_key(root, plan, pool)]
    for pool, edit in changes:
        if edit.is_by_hand:
            key = pool.labels[DEVICE_PLUGIN_CONFIG_LABEL]
            raise GpuplanError(
                f"gpuplan cannot change `{edit.path}`, in which a person wrote pool `{pool.name}`; nothing was deleted",
                f"write `names: {{devicePluginConfig: {key}}}` there, and run it again",
            )
    edits.write(root, [edit for _, edit in changes])
    return "".join(
        f"changed {edit.path}: pool {pool.name} keeps the key that its nodes have\n" for pool, edit in changes
    )


def write_missing(terminal: Terminal, clusters: Sequence[str]) -> None:
    """Write what the change since HEAD leaves behind, and say so; the build reports errors in the policies."""
    retention = retaining.retain(terminal.root, clusters)
    _create(terminal.root, retention)
    if retention.missing:
        terminal.say(written(retention))


def _create(root: Path, retention: retaining.Retention) -> None:
    """Write the documents that are missing, and none of them over another file."""
    writing.create_all(root, {keeper.path: keeper.text for keeper in retention.missing})


def documents(retention: Retention) -> str:
    """The documents that are missing, as one stream, each with its path."""
    return "---\n".join(f"# {keeper.path}\n{keeper.text}" for keeper in retention.missing)


def missing(retention: Retention) -> str:
    """Return the names of the revision that would be gone, in words."""
    revision = printable(retention.revision)
    if not retention.missing:
        return f"nothing to retain: what nodes and queues name at {revision} stays\n"
    gone = "".join(f"{keeper.path}: {printable(keeper.title)} would be gone\n" for keeper in retention.missing)
    return f"{gone}{count(len(retention.missing), 'document')} missing; `gpuplan retain --write` writes them\n"


def written(retention: Retention) -> str:
    """The files that were written, and what each retains."""
    if not retention.missing:
        return missing(retention)
    return "".join(f"created {keeper.path}: {printable(keeper.title)} stays\n" for keeper in retention.missing)


def leftovers(retention: Retention, pruned: Sequence[Leftover], *, prune: bool, write: bool) -> str:
    """Return the documents that nothing names any more, with what to look at before they are deleted."""
    items = retention.leftovers
    told = "".join(_leftover(item, retention, prune=prune, write=write, goes=item in pruned) for item in items)
    doubts = "".join(f"{printable(doubt)}: it is no proof of what no node names\n" for doubt in retention.doubts or ())
    is_guess = prune and not write and retention.doubts is None and any(not item.may_go for item in pruned)
    return told + (doubts if told else "") + (_LOOK if is_guess else "")


_LOOK: Final = (
    "only nodes show what they name: `kubectl get nodes -o json | gpuplan retain --prune --write --nodes -` deletes "
    "what none of them does\n"
)


def _leftover(leftover: Leftover, retention: Retention, *, prune: bool, write: bool, goes: bool) -> str:
    path, title, until = map(printable, (leftover.path, leftover.title, leftover.until))
    if goes and write:
        seen = "" if leftover.may_go else f"  nobody looked into the cluster: build this once {until}\n"
        return f"deleted {path}: {title}\n{seen}"
    if goes:
        return f"would delete {path}: {title}\n  {_why(leftover, retention)}\n"
    if prune and leftover.is_ours:
        return f"kept {path}: {title}\n  {_why(leftover, retention)}\n"
    edited = "; it was edited, so it is yours to delete" if prune else ""
    revision = printable(retention.revision)
    return f"{path}: the policies of {revision} do not name {title}{edited}\n  {_why(leftover, retention)}\n"


def _why(leftover: Leftover, retention: Retention) -> str:
    """Why it may go, or what would have to be so."""
    if not leftover.until:
        return "it may go: the policies make that themselves"
    if leftover.needing:
        named = joined(leftover.needing) if leftover.is_object else listing(leftover.needing)
        return f"it stays: {printable(named)} still {'needs' if len(leftover.needing) == 1 else 'need'} it"
    if leftover.needing is not None:
        return f"it may go: {'nothing' if leftover.is_object else 'no node'} needs it"
    unseen = "nodes do not show it: delete the file" if retention.doubts is not None else "it may go"
    return f"{unseen} once {printable(leftover.until)}"


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
    listed = in_one(read_texts(nodes, LIST_NODES)) if nodes else None
    wish = Wish(pool, to, back, batch, max_unavailable, listed, goes_on=write)
    report, proposal = propose(terminal.root, clusters, wish)
    if proposal is None:
        write_findings(terminal, report, (), to_stderr=True)
        return 1
    report_of_step, is_written = (
        _write_next(terminal, proposal, wish.listed) if write and proposal.edits else ("", True)
    )
    page = shown_rollout(proposal, format_, terminal.out_theme, is_written=is_written and bool(report_of_step))
    terminal.print(page)
    terminal.say(report_of_step)
    return 0 if proposal.is_safe and is_written else 1


def _write_next(terminal: Terminal, proposal: Proposal, listed: Mapping[str, str] | None) -> tuple[str, bool]:
    """Write the first step; return what there is to say of it, and whether it was written."""
    if why := find_hindrance(terminal.root, proposal, listed):
        return f"nothing was written: {why}\n", False
    step = proposal.edits[0]
    if by_hand := next((edit for edit in step if edit.is_by_hand), None):
        raise GpuplanError(
            f"gpuplan cannot change `{by_hand.path}`, in which a person wrote the pool, so nothing was written",
            f"change it there as {number_of(proposal, 1)} says, which `gpuplan rollout` shows without --write",
        )
    edits.write(terminal.root, step)
    verbs = {Action.WRITE: "wrote", Action.CHANGE: "changed", Action.REMOVE: "removed"}
    done = [f"{verbs[edit.action]} {terminal.err_theme.path(edit.path)}" for edit in step]
    return f"{' and '.join(done)}: {number_of(proposal, 1)}\n", True
