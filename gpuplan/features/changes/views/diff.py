"""The effects of the step from one platform to another, for a terminal, a merge request or programs.

What is said of a change is the same for all readers; names are marked with backticks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.manifests import Subject, to_yaml
from gpuplan.compiler.pipeline.loading import OVERLAYS
from gpuplan.compiler.pipeline.output import Staleness
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Stage
from gpuplan.features.changes.comparing import Diff, Impact, Platform, Side, SideKind
from gpuplan.features.changes.costs import AmountChange, CostChange
from gpuplan.features.changes.git import SHORT
from gpuplan.features.changes.model import GrantChange, NodeImpact, ObjectChange, Wait, deletion
from gpuplan.features.changes.orders import FILES, concerns_nodes
from gpuplan.features.changes.pods import Holder
from gpuplan.terminal.costs import money_as_data, month_text
from gpuplan.terminal.fitting import folded
from gpuplan.terminal.full import frame
from gpuplan.terminal.json_findings import diagnostic_as_data, json_text
from gpuplan.terminal.markdown import code, escape, finding_row, findings_table, fitting, prose
from gpuplan.terminal.plan import amount
from gpuplan.terminal.plan_json import Published, as_data
from gpuplan.terminal.syncing import started, within
from gpuplan.terminal.text import Style, Theme, indent, marked_up, printable, section

MOST_LINES: Final = 10
"""The number of pods and grants that are named for one change, and of objects. JSON has all of them."""


def shown_diff(diff: Diff, format_: str, theme: Theme) -> str:
    """The difference as ``table``, ``name``, ``markdown``, ``json`` or ``yaml``."""
    match format_:
        case "json":
            return json_text(diff_as_data(diff, theme))
        case "yaml":
            return to_yaml(diff_as_data(diff, theme))
        case "name":
            # The documents that change, worst first and each once: ``pool/a100-mixed``, as `gpuplan trace` takes
            # them.
            named = (impact.change.subject for impact in diff.impacts)
            lines = dict.fromkeys(f"{subject.kind.lower()}/{subject.name}" for subject in named)
            return "".join(f"{printable(line)}\n" for line in lines)
        case "markdown":
            return _markdown(diff, theme)
        case _:
            change_class, _, rest = verdict(diff).partition(":")
            head = f"{theme.paint(change_class, class_style(diff.worst))}:{rest}\n"
            head += "".join(f"{marked_up(printable(note), theme)}\n" for note in notes(diff))
            later = seen_from(diff.later.side, theme)
            findings = (frame(found, later, diff.clusters) for found in diff.findings)
            return "\n".join((folded(head, theme), *(_cluster(diff, name, theme) for name in diff.clusters), *findings))


# --- What is said ------------------------------------------------------------------------------------------------


class Fact(NamedTuple):
    """Something that is known of a change, in one or more lines."""

    about: str
    lines: tuple[str, ...]


def verdict(diff: Diff) -> str:
    """``repartition: 2 changes in 1 cluster, 1 node to drain, 3 other nodes touched, up to 24 pods disturbed``."""
    changes = len(diff.impacts) + len(diff.objects)
    sums = [f"{month_text(amount, currency, '+')} {currency}" for currency, amount in _sums(diff).items()]
    costs = [f"{joined(sums)} a month"] if sums else []
    if not changes:
        known = "nothing differs in what has no errors" if _has_errors(diff) else "nothing that is applied differs"
        return f"{ChangeClass.NONE}: {', '.join((known, *costs))}"
    parts = [f"{count(changes, 'change')} in {count(len(diff.changed_clusters), 'cluster')}"]
    if diff.nodes_to_drain:
        parts.append(f"{count(diff.nodes_to_drain, 'node')} to drain")
        parts += [f"{count(others, 'other node')} touched"] if (others := diff.nodes - diff.nodes_to_drain) else []
    elif diff.nodes:
        parts.append(f"{count(diff.nodes, 'node')} touched, none to drain")
    if diff.knows_pods or diff.pods:
        parts.append(f"{pods_of(diff)} disturbed")
    return f"{diff.worst}: {', '.join((*parts, *costs))}"


def pods_of(diff: Diff) -> str:
    """``up to 24 pods``, or how many it is where pods are known."""
    return f"{'' if diff.knows_pods else 'up to '}{count(diff.pods, 'pod')}"


def notes(diff: Diff) -> Iterator[str]:
    """Yield notes on the comparison itself."""
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
        yield "parts with errors are not compared"


def _has_errors(diff: Diff) -> bool:
    """Whether a side has errors: what they are in is not compared."""
    return bool(diff.earlier.errors or diff.later.errors)


def _staleness(platform: Platform) -> str:
    """Return a note if the files in `out/` differ from those of the policies, or ""."""
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
    return _seen(impact.change.at, diff, theme, is_earlier=impact.is_earlier)


def _seen(at: Origin, diff: Diff, theme: Theme, *, is_earlier: bool) -> str:
    side = diff.earlier.side if is_earlier else diff.later.side
    return seen_from(side, theme).place(at.locate())


def facts(impact: Impact) -> tuple[Fact, ...]:
    """Return the facts about a change, most urgent first."""
    change = impact.change
    nodes = [nodes_text(change.nodes)] if change.nodes is not None else []
    needs = ["drain them first"] * change.needs_drain + ["they may reboot"] * change.needs_reboot
    found = (
        Fact("effect", (change.effect,)),
        Fact("nodes", ("; ".join((*nodes, *needs)),)),
        Fact("rolls", (listing(change.daemon_sets, None),) if change.daemon_sets else ()),
        Fact("pods", tuple(_pod_lines(impact))),
        Fact("kept off", tuple(_outsider_lines(impact))),
        Fact("units", tuple(f"`{one.unit}` of `{one.pool}`: {one.before} to {one.after}" for one in change.capacity)),
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


def _pod_lines(impact: Impact) -> Iterator[str]:
    if impact.holders is None:
        if impact.change.pods:
            yield f"up to {impact.change.pods}"
        return
    if impact.change.pods or impact.holders:
        yield str(len(impact.holders)) if impact.holders else "none holds what goes"
    yield from _shortened([_holder(holder) for holder in impact.holders])


def _holder(holder: Holder) -> str:
    units = joined([f"{number} `{unit}`" for unit, number in holder.units.items()])
    tenant = f" of tenant `{holder.tenant}`" if holder.tenant else ""
    return f"`{holder.namespace}/{holder.name}`{tenant} on `{holder.node}` holds {units}"


def _outsider_lines(impact: Impact) -> Iterator[str]:
    if impact.change.closing and impact.outsiders is not None:
        lines = (
            f"{one.kind} `{one.namespace}/{one.name}` ({count(one.pods, 'pod')} there)" for one in impact.outsiders
        )
        yield from _shortened([*lines]) or ("nothing that is there: all tolerate it",)


def _grant(change: GrantChange) -> str:
    numbers = ((name, old, new) for name, (old, new) in change.numbers.items() if old != new)
    parts = [f"{name} {amount(old)} to {amount(new)}" for name, old, new in numbers]
    return f"`{change.tenant}`, `{change.unit}` of `{change.pool}`: {', '.join(parts)}"


def _applied(impact: Impact) -> Iterator[str]:
    """Yield the appliers of a change. Those that start alike share a line."""
    groups: dict[tuple[object, ...], list[Applier]] = {}
    for applier in impact.appliers:
        is_blocked = applier.name in impact.blocked
        key = applier.kind, applier.approval, applier.windows, applier.root, applier.merged, is_blocked
        groups.setdefault(key, []).append(applier)
    for group in groups.values():
        first, names = group[0], [applier.name for applier in group]
        is_one = len(names) == 1 and not first.name.endswith("*")
        merged = f"; then the ClusterPolicy's owner merges `{first.merged}`" if first.merged else ""
        blocked = ", once what cannot be changed is deleted" if first.name in impact.blocked else ""
        what = f"{first.kind}{'' if is_one else 's'} {listing(names)}"
        yield f"{what}: {started(first, is_one=is_one)}{within(first)}{blocked}{merged}"
    synced = {applier.folder for applier in impact.appliers}
    others = [folder for folder in impact.change.folders if folder not in synced and folder not in impact.gone]
    is_rooted = any(applier.root for applier in impact.appliers)
    if (tools := tuple(f"{folder}/" for folder in others if folder in TOOLS)) and not is_rooted:
        yield f"whatever applies {listing(tools)}"
    if unsynced := tuple(f"{folder}/" for folder in others if folder not in TOOLS):
        yield f"nothing syncs {listing(unsynced)}: by hand"
    if gone := tuple(f"{folder}/" for folder in impact.change.folders if folder in impact.gone):
        yield f"nothing any more: {listing(gone)} {'is' if len(gone) == 1 else 'are'} gone"


def _shortened(lines: Sequence[str]) -> tuple[str, ...]:
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[: MOST_LINES - 1], f"{len(lines) - MOST_LINES + 1} more")


def orders_of(diff: Diff, cluster: str) -> tuple[str, ...]:
    """The first order of syncs that is not safe, and one that is; or that all are, where there are several."""
    bad = diff.orders.get(cluster, ())
    if not bad:
        return ("safe in any order of syncs",) if diff.has_orders(cluster) else ()
    more = (f"{count(len(bad) - 1, 'more order')} in JSON",) if len(bad) > 1 else ()
    return (bad[0].text, bad[0].advice, *more)


def timeline_of(diff: Diff, cluster: str) -> tuple[str, ...]:
    """Return the moments at which a merge is applied, in order. It is empty if all is applied at one moment."""
    moments: dict[tuple[bool, str], dict[str, list[str]]] = {}
    for impact in diff.of(cluster):
        for applier in impact.appliers:
            moment = not applier.is_automatic, f"{started(applier)}{within(applier)}"
            effects = moments.setdefault(moment, {}).setdefault(applier.name, [])
            effects += {*_effects_on_nodes(impact, applier.folder)} - {*effects}
    lines = [
        f"{'then' if is_later else 'at the merge'} {who}: "
        + joined([f"`{name}`{f' ({joined(effects)})' if effects else ''}" for name, effects in syncs.items()])
        for (is_later, who), syncs in sorted(moments.items())
    ]
    waiting = [wait.application for wait in diff.waits if wait.cluster == cluster]
    lines += [f"until somebody acts: {listing(waiting)}"] if waiting else []
    return tuple(f"{number}. {line}" for number, line in enumerate(lines, 1)) if len(lines) > 1 else ()


def _effects_on_nodes(impact: Impact, folder: str) -> Iterator[str]:
    """Yield the effects of a sync on nodes, if the folder reaches nodes.

    The labels of a pool decide when its GPUs are partitioned, and not the operator's files that come before them.
    """
    change = impact.change
    if change.nodes is not None and concerns_nodes(folder):
        nodes = count(change.nodes.count, "node")
        if not change.needs_drain:
            yield from (f"operator pods restart on {nodes}",) if change.daemon_sets else ()
        elif folder != FILES or not any(one.folder != FILES and concerns_nodes(one.folder) for one in impact.appliers):
            yield f"drain {nodes} before"


def waits_of(diff: Diff, cluster: str) -> tuple[str, ...]:
    """Return the reasons for which Applications wait, with commands."""
    return tuple(line for wait in diff.waits if wait.cluster == cluster for line in _wait_lines(wait))


def _wait_lines(wait: Wait) -> Iterator[str]:
    name, listed = wait.application, {items: listing([str(item) for item in items]) for items in wait[3:]}
    if wait.refused:
        verb = "is" if len(wait.refused) == 1 else "are"
        delete = joined([deletion(item) for item in wait.refused])
        yield (
            f"`{name}` changes nothing until {listed[wait.refused]} {verb} deleted or the commit is reverted: "
            f"once Argo CD has read the commit, {delete}"
        )
    if wait.pruned:
        may_go = f"the deletion of {listed[wait.pruned]}: `argocd app confirm-deletion {name}`"
        yield f"`{name}` takes no other commit until a person confirms {may_go}"
    if wait.ended:
        verb = "has" if len(wait.ended) == 1 else "have"
        mend = f"mend it in Git, then `argocd app terminate-op {name}` and `argocd app sync {name}`"
        yield f"`{name}` takes no other commit until {listed[wait.ended]} {verb} ended; where that hangs, {mend}"
    if wait.left:
        by_hand = [item for item in wait.left if item.kind == "Namespace" or wait.folder == Stage.MONITORING]
        first = "".join(f"{deletion(item)}, then " for item in by_hand)  # the project allows them no more
        yield (
            f"`{name}` syncs nothing any more, since its folder is gone, and what it applied stays; to remove that, "
            f"{first}`argocd app delete {name}`, and where it asks `argocd app confirm-deletion {name}`"
        )


def costs_of(diff: Diff, cluster: str) -> tuple[str, ...]:
    """Return the difference in a cluster's monthly cost, or nothing if there is none or it is not known."""
    change = diff.costs.get(cluster)
    return tuple(_cost_lines(change)) if change else ()


# --- For a terminal ----------------------------------------------------------------------------------------------


_LABEL: Final = 8


def class_style(change_class: ChangeClass) -> Style:
    """Red from where pods must end, yellow where what runs goes on and something else does not."""
    if change_class.rank >= ChangeClass.REPARTITION.rank:
        return Style.ERROR
    if change_class.rank >= ChangeClass.PLUGIN_RESTART.rank:
        return Style.WARNING
    return Style.NOTE if change_class is not ChangeClass.NONE else Style.HELP


def _cluster(diff: Diff, name: str, theme: Theme) -> str:
    inner = theme.indented()
    objects = [item for item in diff.objects if item.cluster == name]
    parts = [*_impacts(diff.of(name), diff, inner), *(folded(line, inner) for line in _objects(objects, diff, theme))]
    for about, read in (("in time", timeline_of), ("orders", orders_of), ("waits", waits_of), ("costs", costs_of)):
        parts += _fact_lines(Fact(about, lines), inner) if (lines := read(diff, name)) else ()
    return section(f"Cluster {name}", "".join(parts), theme)


def _impacts(impacts: Iterable[Impact], diff: Diff, theme: Theme) -> Iterator[str]:
    """Each change; what was said of the same thing already is left out, but for the effect."""
    told: defaultdict[Subject, set[Fact]] = defaultdict(set)
    for impact in impacts:
        known = told[impact.change.subject]
        found = [fact for fact in facts(impact) if fact not in known or fact.about == "effect"]
        known.update(found)
        below = "".join(_fact_lines(fact, theme.indented(4)) for fact in found)
        change = impact.change
        kind = theme.paint(change.change_class, class_style(change.change_class))
        what = _text(f"{change.subject.kind} `{change.subject.name}`: {change.what}", theme)
        yield folded(
            f"{kind}  {what}  {theme.paint(printable(place(impact, diff, theme)), Style.FAINT)}\n", theme
        ) + indent(below, "    ")


def _fact_lines(fact: Fact, theme: Theme) -> str:
    """The label stands before the first line only, and what does not fit goes on below the text."""
    first, *others = (f"{_text(line, theme)}\n" for line in fact.lines)
    label = theme.paint(f"{fact.about:<{_LABEL}}", Style.FAINT)
    below = (folded(" " * _LABEL + line, theme, hanging=0) for line in others)
    return "".join((folded(label + first, theme, hanging=_LABEL), *below))


def _objects(objects: Sequence[ObjectChange], diff: Diff, theme: Theme) -> Iterator[str]:
    for item in objects[:MOST_LINES]:
        kind = theme.paint(item.change_class, class_style(item.change_class))
        where = (
            f"  {theme.paint(printable(_seen(item.at, diff, theme, is_earlier=item.is_earlier)), Style.FAINT)}"
            if item.at
            else ""
        )
        yield f"{kind}  {printable(f'{item.identity} is {item.verb} in {item.folder}/')}{where}\n"
    if len(objects) > MOST_LINES:
        yield f"{count(len(objects) - MOST_LINES, 'more object')}\n"


def _text(text: str, theme: Theme) -> str:
    return marked_up(printable(text), theme)


# --- For a merge request -----------------------------------------------------------------------------------------

LIMIT: Final = 60_000
"""Bytes of UTF-8. GitHub takes 65,536 characters in a comment, and whoever posts it adds a line of its own."""

_FINDINGS_RESERVE: Final = 15_000
_DETAILS_RESERVE: Final = 15_000


def _markdown(diff: Diff, theme: Theme) -> str:
    """The verdict, a table of the changes with the worst of each cluster first, and each change folded up.

    What a policy says cannot become markup, a link or a mention.
    """
    rows = [*map(_row, diff.impacts)]
    for item in diff.objects:
        what = f"{code(str(item.identity))} is {item.verb} in {code(f'{item.folder}/')}"
        rows.append(f"| **{item.change_class}** | {code(item.cluster)} | {what} | | | | |\n")
    shown = list(fitting(rows, LIMIT - _FINDINGS_RESERVE - _DETAILS_RESERVE))
    findings = _findings_table(diff.findings, seen_from(diff.later.side, theme))
    errors = (*_errors(diff.earlier, theme), *_errors(diff.later, theme))
    change_class, _, rest = verdict(diff).partition(": ")
    head = [f"## gpuplan: {change_class}\n\n{prose(rest)}\n", *(f"\n{prose(note)}\n" for note in notes(diff))]
    if shown:
        head += ["\n| | Cluster | Change | Nodes | Pods | Drain | Reboot |\n|---|---|---|---|---|---|---|\n", *shown]
    if left_out := len(rows) - len(shown):
        head.append(f"\n{left_out} of {count(len(rows), 'change')} are not shown; `gpuplan diff` prints them all.\n")
    start = "".join((*head, *_lists(diff), *findings, *errors))
    room = LIMIT - len(start.encode(errors="replace"))
    return "".join((start, *fitting((_details(impact, diff, theme) for impact in diff.impacts), room)))


def _row(impact: Impact) -> str:
    change = impact.change
    cells = (
        f"**{change.change_class}**",
        code(change.cluster),
        f"{escape(change.subject.kind)} {code(change.subject.name)}: {prose(change.what)}",
        str(change.nodes.count) if change.nodes else "",
        f"up to {change.pods}" if impact.holders is None and change.pods else str(len(impact.holders or ()) or ""),
        "yes" if change.needs_drain else "",
        "maybe" if change.needs_reboot else "",
    )
    return f"| {' | '.join(cells)} |\n"


def _lists(diff: Diff) -> Iterator[str]:
    """Yield a section for the costs, for the orders and for the waits of the clusters."""
    costs = [(name, "; ".join(map(prose, costs_of(diff, name)))) for name in diff.costs]
    orders = [(name, "; ".join(map(prose, lines))) for name in diff.clusters if (lines := orders_of(diff, name))]
    waits = [(name, prose(line)) for name in diff.clusters for line in waits_of(diff, name)]
    times = [(name, prose(line)) for name in diff.clusters for line in timeline_of(diff, name)]
    for title, texts in (
        ("What it costs", costs),
        ("When it is applied", times),
        ("In which order", orders),
        ("What waits", waits),
    ):
        if texts:
            yield f"\n### {title}\n\n"
            yield from fitting((f"- {code(name)}: {text}\n" for name, text in texts), _DETAILS_RESERVE // 3)


def _details(impact: Impact, diff: Diff, theme: Theme) -> str:
    change = impact.change
    title = (
        f"{change.change_class}: {escape(change.subject.kind)} {code(change.subject.name)} in {code(change.cluster)}"
    )
    where = f"- {code(place(impact, diff, theme))}"
    bullets = [where]
    for about, lines in facts(impact):
        texts = [*map(prose, lines)]
        bullets.append(f"- **{about}**: {texts[0]}" if len(texts) == 1 else "\n  - ".join((f"- **{about}**:", *texts)))
    listed = "\n".join(bullets)
    return f"\n<details><summary>{title}</summary>\n\n{listed}\n\n</details>\n"


def _errors(platform: Platform, theme: Theme) -> Iterator[str]:
    if platform.errors:
        yield f"\n### {count(len(platform.errors), 'error')} in {code(platform.side.name)}\n"
        yield from _findings_table(platform.errors, seen_from(platform.side, theme))


def _findings_table(diagnostics: Sequence[Diagnostic], theme: Theme) -> Iterator[str]:
    rows = list(fitting((finding_row(item, theme) for item in diagnostics), _FINDINGS_RESERVE // 3))
    yield from findings_table(rows, len(diagnostics))


# --- For programs ------------------------------------------------------------------------------------------------

FORMAT_VERSION: Final = "1.7"
"""A minor step only adds keys; lists are never null or absent."""


def diff_as_data(diff: Diff, theme: Theme) -> dict[str, Any]:
    """Everything that is known, with clusters by name and changes worst first: a contract, `diff.schema.json`."""
    return {
        "format_version": FORMAT_VERSION,
        "class": diff.worst.value,
        "earlier": _side(diff.earlier, theme),
        "later": _side(diff.later, theme),
        "summary": {
            "changes": len(diff.impacts) + len(diff.objects),
            "nodes": diff.nodes,
            "nodes_to_drain": diff.nodes_to_drain,
            "pods": diff.pods,
            "pods_are_exact": diff.knows_pods,
        },
        "costs": [{"currency": currency, "change": money_as_data(amount)} for currency, amount in _sums(diff).items()],
        "clusters": [
            {
                "name": name,
                "class": diff.worst_of(name).value,
                "nodes": diff.nodes_of(name),
                "pods": diff.pods_of(name),
                "nodes_to_drain": diff.nodes_to_drain_of(name),
                "timeline": list(timeline_of(diff, name)),
                "changes": [_impact(impact, diff, theme) for impact in diff.of(name)],
                "objects": [
                    {
                        "class": item.change_class.value,
                        "verb": item.verb,
                        "folder": item.folder,
                        **item.identity._asdict(),
                        "location": item.at and _location(item.at, diff, theme, is_earlier=item.is_earlier),
                    }
                    for item in diff.objects
                    if item.cluster == name
                ],
                "costs": cost_change_as_data(diff.costs.get(name)),
                "waits": [
                    {"application": wait.application, "folder": wait.folder}
                    | {group: [item._asdict() for item in getattr(wait, group)] for group in _WAITS}
                    for wait in diff.waits
                    if wait.cluster == name
                ],
            }
            for name in diff.clusters
        ],
        "orders": [
            {
                "cluster": bad.cluster,
                "hazard": bad.hazard.value,
                "nodes": as_data(bad.nodes, _CONTRACT),
                "synced": list(bad.synced),
                "waiting": list(bad.waiting),
                "text": bad.text,
                "unasked": bad.is_unasked,
                "safe": list(bad.safe or ()),
            }
            for cluster in sorted(diff.orders)
            for bad in diff.orders[cluster]
        ],
        "not_compared": list(diff.skipped),
        "findings": _findings_as_data(diff.findings, seen_from(diff.later.side, theme)),
    }


def _side(platform: Platform, theme: Theme) -> dict[str, Any]:
    side = platform.side
    return {
        "kind": side.kind.value,
        "name": side.name,
        "commit": side.revision.commit if side.revision else None,
        "errors": _findings_as_data(platform.errors, seen_from(side, theme)),
        "output": None if platform.staleness is None else as_data(platform.staleness, _CONTRACT),
    }


def _findings_as_data(diagnostics: Iterable[Diagnostic], theme: Theme) -> list[dict[str, Any]]:
    return [diagnostic_as_data(diagnostic, theme) for diagnostic in diagnostics]


def _impact(impact: Impact, diff: Diff, theme: Theme) -> dict[str, Any]:
    change = impact.change
    return {
        "class": change.change_class.value,
        "subject": {"kind": change.subject.kind, "name": change.subject.name},
        "what": change.what,
        "effect": change.effect,
        "undo": change.undo,
        "location": _location(change.at, diff, theme, is_earlier=impact.is_earlier),
        "nodes": change.nodes and as_data(change.nodes, _CONTRACT),
        "units": [as_data(item) for item in change.capacity],
        "grants": [as_data(item, _CONTRACT) for item in change.grants],
        "pods": {
            "at_most": change.pods,
            "found": None if impact.holders is None else [as_data(item, _CONTRACT) for item in impact.holders],
        },
        "kept_off": None if impact.outsiders is None else [as_data(item, _CONTRACT) for item in impact.outsiders],
        "needs_drain": change.needs_drain,
        "needs_reboot": change.needs_reboot,
        "windows": [as_data(window) for window in change.windows],
        "folders": list(change.folders),
        "daemonSets": list(change.daemon_sets),
        "applied_by": [as_data(applier, _CONTRACT) for applier in impact.appliers],
    }


_WAITS: Final = ("pruned", "ended", "refused", "left")


def _location(at: Origin, diff: Diff, theme: Theme, *, is_earlier: bool) -> dict[str, Any]:
    platform = diff.earlier if is_earlier else diff.later
    location = at.locate()
    return {
        "side": "earlier" if is_earlier else "later",
        "file": seen_from(platform.side, theme).path(location.file.path),
        "line": location.span.start.line,
        "path": str(at),
    }


_CONTRACT: Final = {
    Staleness: Published(more=lambda staleness: {"trouble": staleness.trouble or None}),
    NodeImpact: Published(left_out=("are_new",)),
    GrantChange: Published(
        left_out=("guaranteed_before", "guaranteed_after", "limit_before", "limit_after"),
        more=lambda change: {name: {"before": old, "after": new} for name, (old, new) in change.numbers.items()},
    ),
    Holder: Published(more=lambda holder: {"tenant": holder.tenant or None}),
    Applier: Published(
        left_out=("pool", "root", "merged"), more=lambda applier: {"keeps_windows": applier.keeps_windows}
    ),
}


def _sums(diff: Diff) -> dict[str, Ratio]:
    """Return the sum of the differences, by currency."""
    found: dict[str, Ratio] = {}
    for change in diff.costs.values():
        if change.total is not None:
            found[change.currency] = found.get(change.currency, Ratio(0)) + change.total.difference
    return dict(sorted(found.items()))


def _cost_lines(change: CostChange) -> Iterator[str]:
    """Yield the differences in cost: in all, idle, by pool and by tenant. Of each `MOST_LINES` are named."""
    currency = change.currency
    if change.total is None or change.idle is None:
        yield _without_difference(change)
        return
    yield f"{_amounts_text(change.total, currency)} {currency} a month"
    if change.idle.difference:
        yield f"idle: {_amounts_text(change.idle, currency)}"
    yield from _named("pool", change.pools, currency)
    yield from _named("tenant", change.tenants, currency)
    if change.left_out:
        are = "has" if len(change.left_out) == 1 else "have"
        yield f"without {listing(change.left_out)}, which {are} no price on a side"


def _amounts_text(amounts: AmountChange, currency: str) -> str:
    before, after = (month_text(amount, currency) for amount in amounts)
    return f"{month_text(amounts.difference, currency, '+')}, from {before} to {after}"


def _named(kind: str, changes: Mapping[str, AmountChange], currency: str) -> Iterator[str]:
    """The greatest differences first."""
    found = sorted(changes.items(), key=lambda change: (-abs(change[1].difference), change[0]))
    for name, amounts in found[:MOST_LINES]:
        yield f"{kind} `{name}`: {_amounts_text(amounts, currency)}"
    if len(found) > MOST_LINES:
        rest = sum((amounts.difference for _, amounts in found[MOST_LINES:]), Ratio(0))
        yield f"{len(found) - MOST_LINES} more {kind}s: {month_text(rest, currency, '+')}"


def _without_difference(change: CostChange) -> str:
    was, is_now = (
        f"{month_text(side.total, side.currency)} {side.currency} a month" if side else ""
        for side in (change.before, change.after)
    )
    if was and is_now:
        return f"{was} before, and {is_now} after: in two currencies no difference is known"
    return f"{is_now}; nobody said prices before" if is_now else f"{was} before; nobody says prices any more"


# --- For programs ------------------------------------------------------------------------------------------------


def cost_change_as_data(change: CostChange | None) -> dict[str, Any] | None:
    """A part of `diff.schema.json`."""
    if change is None:
        return None
    sides = {"before": change.before, "after": change.after}
    return {
        "currency": {name: side and side.currency for name, side in sides.items()},
        "total": _amounts(change.total),
        "idle": _amounts(change.idle),
        "pools": _named_amounts("pool", change.pools),
        "tenants": _named_amounts("tenant", change.tenants),
        "left_out_pools": list(change.left_out),
    }


def _amounts(amounts: AmountChange | None) -> dict[str, Any] | None:
    if amounts is None:
        return None
    found = {"before": amounts.before, "after": amounts.after, "change": amounts.difference}
    return {name: money_as_data(amount) for name, amount in found.items()}


def _named_amounts(kind: str, changes: Mapping[str, AmountChange]) -> Sequence[dict[str, Any]]:
    return [{kind: name, **(_amounts(amounts) or {})} for name, amounts in changes.items()]
