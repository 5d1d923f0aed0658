"""What must be retained, as documents, and what of it is left over, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.views.text import printable
from gpuplan.wording import count

if TYPE_CHECKING:
    from gpuplan.pipeline.retaining import Retention


def documents(retention: Retention) -> str:
    """The documents that are missing, as one stream, each with its path."""
    return "---\n".join(f"# {keeper.path}\n{keeper.text}" for keeper in retention.missing)


def missing(retention: Retention) -> str:
    """What is named at the revision and would be gone."""
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


def leftovers(retention: Retention, *, prune: bool, write: bool) -> str:
    """What is retained and named no more, with what to look at in the cluster before it is deleted."""
    lines: list[str] = []
    for leftover in retention.leftovers:
        path, title, until = map(printable, (leftover.path, leftover.title, leftover.until))
        if prune and write and leftover.is_ours:
            lines.append(f"deleted {path}: {title}\n")
            lines.append(f"  nobody looked into the cluster: build this once {until}\n" if until else "")
            continue
        if prune and leftover.is_ours:
            lines.append(f"would delete {path}: {title}\n")
        else:
            edited = "; it was edited, so it is yours to delete" if prune else ""
            lines.append(f"{path}: the policies of {printable(retention.revision)} do not name {title}{edited}\n")
        lines.append(f"  it may go once {until}\n" if until else "  it may go: the policies make that themselves\n")
    return "".join(lines)
