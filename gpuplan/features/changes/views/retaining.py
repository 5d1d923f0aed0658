"""The documents that must be retained, and those that are left over, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.terminal.text import printable

if TYPE_CHECKING:
    from gpuplan.features.changes.retaining import Leftover, Retention


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
    unseen = "nodes do not show it: " if retention.doubts is not None else ""
    return f"{unseen}it may go once {printable(leftover.until)}"
