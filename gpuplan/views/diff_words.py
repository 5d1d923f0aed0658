"""What is said of a change, whether for a terminal or as Markdown; names are marked with backticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from gpuplan.changes.model import CapacityChange, GrantChange, NodeImpact
from gpuplan.changes.pods import Holder
from gpuplan.delivery import TOOLS
from gpuplan.delivery.appliers import Applier
from gpuplan.disturbance import ChangeClass
from gpuplan.pipeline.comparing import Diff, Impact, Platform, Side, SideKind
from gpuplan.pipeline.git import SHORT
from gpuplan.pipeline.loading import OVERLAYS
from gpuplan.planning.plan import Amount
from gpuplan.policy.models import Approval, Window
from gpuplan.views.theme import Theme
from gpuplan.wording import count, joined, listing

MOST_PODS: Final = 10
"""How many pods are named for one change; JSON has all of them."""
MOST_LINES: Final = 10
"""How many grants, and how many objects, are named."""


class Fact(NamedTuple):
    """Something that is known of a change, in one or more lines."""

    about: str
    lines: tuple[str, ...]


def verdict(diff: Diff) -> str:
    """``repartition: 2 changes in 1 cluster, 4 nodes touched, up to 24 pods disturbed``."""
    changes = len(diff.impacts) + len(diff.objects)
    if not changes:
        known = "nothing differs in what has no errors" if _has_errors(diff) else "nothing that is applied differs"
        return f"{ChangeClass.NONE}: {known}"
    parts = [f"{count(changes, 'change')} in {count(len(diff.clusters), 'cluster')}"]
    if diff.nodes:
        parts.append(f"{count(diff.nodes, 'node')} touched")
    if diff.knows_pods or diff.pods:
        parts.append(f"{pods_of(diff)} disturbed")
    return f"{diff.worst}: {', '.join(parts)}"


def pods_of(diff: Diff) -> str:
    """``up to 24 pods``, or how many it is where pods are known."""
    return f"{'' if diff.knows_pods else 'up to '}{count(diff.pods, 'pod')}"


def notes(diff: Diff) -> Iterator[str]:
    """What a reader has to know of how it was compared."""
    yield f"from {side_name(diff.earlier.side)} to {side_name(diff.later.side)}"
    if diff.earlier.side.kind is SideKind.OUTPUT:
        yield "compared object by object: the earlier side holds no policies to know nodes, units and pods by"
    elif not diff.earlier.clusters:
        yield f"all of it is new: {_lacking(diff.earlier.side)}"
    if not diff.later.clusters:
        yield f"all of it goes: {_lacking(diff.later.side)}"
    yield from filter(None, map(_staleness, (diff.earlier, diff.later)))
    if diff.skipped:
        yield f"not compared, because of errors: cluster {listing(diff.skipped, None)}"
    elif _has_errors(diff):
        yield "what has errors is left out"


def _has_errors(diff: Diff) -> bool:
    """Whether a side has errors: what they are in is not compared."""
    return bool(diff.earlier.errors or diff.later.errors)


def _staleness(platform: Platform) -> str:
    """What is applied is what was built, and that may be something else."""
    found = platform.staleness
    if not found:
        return ""
    where = f"`out/` in {side_name(platform.side)}"
    if found.trouble:
        return f"{where} cannot be compared with its policies: {found.trouble}"
    numbers = [f"{count(found.differing, 'file')} differ{'s' * (found.differing == 1)}"] if found.differing else []
    numbers += (
        [f"{count(found.missing, 'file')} {'is' if found.missing == 1 else 'are'} missing"] if found.missing else []
    )
    remedy = "; run `gpuplan build`, then `git add out`" if platform.side.kind is SideKind.WORK_TREE else ""
    return f"{where} is not what its policies make: {joined(numbers)}{remedy}"


def _lacking(side: Side) -> str:
    folder = side.revision.folder if side.revision else ""
    return f"{side_name(side)} has none of these clusters below `{folder}{OVERLAYS}/`"


def side_name(side: Side) -> str:
    """``HEAD` (0123456789ab)``, `./old`, or the working tree."""
    if side.revision is None:
        return side.name if side.kind is SideKind.WORK_TREE else f"`{side.name}`"
    is_commit = side.revision.commit.startswith(side.name)
    return f"`{side.name}`" if is_commit else f"`{side.name}` ({side.revision.commit[:SHORT]})"


def seen_from(side: Side, theme: Theme) -> Theme:
    """The theme by which a side's files can be opened; of a revision as git names them: ``HEAD:policies/pool.yaml``."""
    if side.revision is not None:
        return replace(theme, root=f"{side.name}:{side.revision.folder}")
    return theme if side.kind is SideKind.WORK_TREE else replace(theme, root=f"{side.name.rstrip('/')}/")


def place(impact: Impact, diff: Diff, theme: Theme) -> str:
    """Where the change was written."""
    side = diff.earlier.side if impact.is_earlier else diff.later.side
    return seen_from(side, theme).place(impact.change.at.locate())


def facts(impact: Impact) -> tuple[Fact, ...]:
    """What is known of a change beside what it is, most urgent first."""
    change = impact.change
    found = (
        Fact("effect", (change.effect,)),
        Fact("nodes", tuple(_nodes(impact))),
        Fact("pods", tuple(_pods(impact))),
        Fact("units", tuple(map(_capacity, change.capacity))),
        Fact("tenants", _shortened([_grant(grant) for grant in change.grants])),
        Fact("applied", tuple(_applied(impact))),
        Fact("undo", (change.undo,)),
    )
    return tuple(fact for fact in found if any(fact.lines))


def nodes_text(nodes: NodeImpact) -> str:
    """``2, matching `gpu-[0-9]+```, or by their names."""
    if nodes.names and len(nodes.names) >= nodes.count:
        return f"{nodes.count}: {listing(nodes.names)}"
    if nodes.names:
        return f"{nodes.count}, among them {listing(nodes.names)}"
    return f"{nodes.count}, matching `{nodes.pattern}`" if nodes.pattern else str(nodes.count)


def _nodes(impact: Impact) -> Iterator[str]:
    change = impact.change
    needs = ["drain them first"] * change.needs_drain + ["they may reboot"] * change.needs_reboot
    if change.nodes is not None:
        yield "; ".join((nodes_text(change.nodes), *needs))
    elif needs:
        yield "; ".join(needs)


def _pods(impact: Impact) -> Iterator[str]:
    if impact.holders is None:
        if impact.change.pods:
            yield f"up to {impact.change.pods}"
        return
    if impact.change.pods or impact.holders:
        yield str(len(impact.holders)) if impact.holders else "none holds what goes"
    yield from _shortened([_holder(holder) for holder in impact.holders], MOST_PODS)


def _holder(holder: Holder) -> str:
    units = joined([f"{number} `{unit}`" for unit, number in holder.units.items()])
    tenant = f" of tenant `{holder.tenant}`" if holder.tenant else ""
    return f"`{holder.namespace}/{holder.name}`{tenant} on `{holder.node}` holds {units}"


def _capacity(change: CapacityChange) -> str:
    return f"`{change.unit}` of `{change.pool}`: {change.before} to {change.after}"


def _grant(change: GrantChange) -> str:
    parts = [
        f"{what} {amount(before)} to {amount(after)}"
        for what, before, after in (
            ("guaranteed", change.guaranteed_before, change.guaranteed_after),
            ("limit", change.limit_before, change.limit_after),
        )
        if before != after
    ]
    return f"`{change.tenant}`, `{change.unit}` of `{change.pool}`: {', '.join(parts)}"


def amount(number: Amount | None) -> str:
    """A number of units; no number is no bound."""
    return "none" if number is None else f"{number:f}".rstrip("0").rstrip(".") if number % 1 else str(int(number))


def _applied(impact: Impact) -> Iterator[str]:
    """What applies it: those that are started alike in one line."""
    groups: dict[tuple[object, ...], list[Applier]] = {}
    for applier in impact.appliers:
        groups.setdefault((applier.kind, applier.approval, applier.windows), []).append(applier)
    for group in groups.values():
        first, names = group[0], [applier.name for applier in group]
        is_one = len(names) == 1 and not first.name.endswith("*")
        by_themselves = "by itself" if is_one else "by themselves"
        how = f"a person starts {'it' if is_one else 'them'}" if first.approval is Approval.MANUAL else by_themselves
        yield f"{first.kind}{'' if is_one else 's'} {listing(names)}: {how}{_within(first)}"
    synced = {applier.folder for applier in impact.appliers}
    others = [folder for folder in impact.change.folders if folder not in synced]
    if tools := tuple(f"{folder}/" for folder in others if folder in TOOLS):
        yield f"whatever applies {listing(tools)}"
    if unsynced := tuple(f"{folder}/" for folder in others if folder not in TOOLS):
        yield f"nothing syncs {listing(unsynced)}: by hand"


def _within(applier: Applier) -> str:
    when = joined([window_text(window) for window in applier.windows], "or")
    if not when:
        return ""
    return f", within {when}" if applier.keeps_windows else f"; Flux does not keep the window {when}"


def window_text(window: Window) -> str:
    """```0 2 * * 6` for 4h, UTC``."""
    return f"`{window.schedule}` for {window.duration}, {window.time_zone}"


def _shortened(lines: Sequence[str], most: int = MOST_LINES) -> tuple[str, ...]:
    if len(lines) <= most:
        return tuple(lines)
    return (*lines[: most - 1], f"{len(lines) - most + 1} more")
