"""Rollouts of pools: the steps, what to type at each, and how capacity goes on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.checks.disruptions import unit_text
from gpuplan.compiler.checks.wording import number, total_text
from gpuplan.compiler.planning.appliers import OWNERS_PATCH_FILE, Applier, find_applier
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Amount, Plan, Pool, Stage
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes import rollouts
from gpuplan.features.changes.edits import Action, Edit
from gpuplan.terminal.fitting import Table, folded, folded_commands
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.markdown import escape, fenced, markdown_table
from gpuplan.terminal.plan import sharing_of, sharing_text
from gpuplan.terminal.syncing import started, windows_text, within
from gpuplan.terminal.text import Style, Theme, indent, printable, section

FORMAT_VERSION: Final = "2.0"
"""A minor step only adds keys; lists are never null or absent."""


def shown_rollout(proposal: rollouts.Proposal, format_: str, theme: Theme, *, is_written: bool = False) -> str:
    """Return a proposal as ``table``, ``markdown`` or ``json``; of the table only the first step if it was written."""
    match format_:
        case "json":
            return json_text(rollout_as_data(proposal))
        case "markdown":
            return _markdown(proposal)
        case _:
            return _page(proposal, theme, is_written=is_written)


# --- For people --------------------------------------------------------------------------------------------------


def _page(proposal: rollouts.Proposal, theme: Theme, *, is_written: bool) -> str:
    outcome = proposal.outcome
    heading = folded(f"{theme.paint(printable(_heading(proposal)), Style.STRONG)}\n", theme)
    if isinstance(outcome, rollouts.Refusal):
        return heading + folded(_printable_lines(_reasons(outcome)), theme)
    if is_written:
        heading, capacity = "", ""
    else:
        heading += folded(f"{_summary(outcome)}\n", theme)
        capacity = Table(_HEADINGS, list(_capacity_rows(proposal)), right=range(2, 6)).shown(theme.indented())
    steps = list[str]()
    for index, title, blocks in _instructions(proposal, outcome):
        told = [] if is_written and index > 1 else [block for block in blocks if not (is_written and block.is_written)]
        head = theme.paint(printable(f"{number_of(proposal, index).capitalize()}: {title}"), Style.STRONG)
        steps.append(folded(f"{head}\n", theme) + indent("".join(_block_page(one, theme.indented()) for one in told)))
    return "\n".join(part for part in (heading, section("Capacity, in units", capacity, theme), *steps) if part)


def number_of(proposal: rollouts.Proposal, index: int) -> str:
    """Return ``step 3 of 4``, counted from the first step of the rollout."""
    if proposal.done is None:
        return f"step {index} of the {len(proposal.edits)} that are left"
    return f"step {proposal.done + index} of {proposal.done + len(proposal.edits)}"


class _Block(NamedTuple):
    """An instruction and its lines: commands if they are typed, a part of a file if they are written."""

    name: str
    text: str
    is_typed: bool = False
    is_written: bool = False


def _instructions(
    proposal: rollouts.Proposal, outcome: rollouts.RolloutPlan
) -> Iterator[tuple[int, str, list[_Block]]]:
    """The number of each step, what it is, and what to do at it."""
    for index, (step, edits) in enumerate(zip(outcome.steps, proposal.edits, strict=True), start=1):
        yield index, _title(proposal, step), list(_blocks(proposal, step, edits))


def _block_page(block: _Block, theme: Theme) -> str:
    head, text = folded(f"{printable(block.name)}\n", theme), _printable_lines(block.text.splitlines())
    if not block.is_written:
        text = (folded_commands if block.is_typed else folded)(text, theme.indented())
    return head + indent(text)


def _printable_lines(lines: Iterable[str]) -> str:
    return _lines([printable(line) for line in lines])


def _heading(proposal: rollouts.Proposal) -> str:
    outcome = proposal.outcome
    return (
        f"Pool {outcome.pool.name} of cluster {proposal.plan.cluster.name}: from {sharing_of(outcome.pool)} "
        f"to {sharing_text(outcome.target.sharing)}"
    )


def _summary(outcome: rollouts.RolloutPlan) -> str:
    if not outcome.steps:
        return "nothing is left to do"
    away = max((len(step.nodes) for step in outcome.steps), default=0)
    moved = len(outcome.pool.rollout.moved.nodes.names) if outcome.pool.rollout else 0
    done = f", {moved} moved already" if moved else ""
    together = f", {away} at a time" if away else ""
    return f"{count(outcome.pool.nodes.count, 'node')}{done}{together}, {count(len(outcome.steps), 'step')}"


def _title(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> str:
    outcome, names = proposal.outcome, joined(step.nodes)
    target = sharing_text(outcome.target.sharing)
    rest = (
        "MPS daemons restart, and end what runs there"
        if rollouts.mps_configs(proposal, step)
        else "nothing changes on nodes"
    )
    match step.kind:
        case rollouts.StepKind.PREPARE:
            return f"make {target} known; {rest}"
        case rollouts.StepKind.MOVE:
            return f"move {names} to {target}"
        case rollouts.StepKind.RETURN:
            return f"take {names} back to {sharing_text(outcome.pool.sharing)}"
        case rollouts.StepKind.SETTLE:
            quiet = "no node is repartitioned"
            return f"{target} becomes the pool's own; {rest if rollouts.mps_configs(proposal, step) else quiet}"
        case rollouts.StepKind.FORGET:
            return f"drop what the rollout needed; {rest}"


def _reasons(refusal: rollouts.Refusal) -> Iterator[str]:
    name = refusal.pool.name
    if refusal.clash:
        old, new = refusal.clash
        yield (
            f"no safe way: `{new.asked_as or new.name}` would be two things while nodes move, {unit_text(old)} and "
            f"{unit_text(new)}, and pods and quotas know them by that name alone"
        )
        yield "instead: publish units by names of their own (`strategy: mixed`, `rename: true`), or make a second pool"
    for shortage in refusal.shortages:
        gone = f", {shortage.moved} moved," if shortage.moved else ""
        yield (
            f"no safe way: with one node away{gone} pool `{name}` has {shortage.left} `{shortage.unit}`, and "
            f"{number(shortage.guaranteed)} are guaranteed"
        )
        yield f"  {total_text(shortage.holders)}"
        yield f"instead: {_instead(refusal, shortage)}"
    yield (
        "or all nodes at once, in a window that the teams agree to: write the new `sharing` into the pool, run "
        "`gpuplan retain --write`, and drain the nodes before the sync"
    )


def _instead(refusal: rollouts.Refusal, shortage: rollouts.Shortage) -> str:
    missing = number(shortage.guaranteed - shortage.left)
    lower = f"lower these guarantees by {missing} first, or move them to another pool"
    if refusal.target.find_unit(shortage.unit) is None:
        kept = listing([unit.name for unit in refusal.target.units])
        return f"{lower}: in the end the pool has no `{shortage.unit}`, but {kept}"
    added = refusal.find_nodes_missing(shortage)
    return lower if added is None else f"{lower}, or add {count(added, 'node')}"


# --- Capacity ----------------------------------------------------------------------------------------------------

_HEADINGS: Final = ("UNIT", "STEP", "BEFORE", "AWAY", "AFTER", "GUARANTEED", "WHILE NODES ARE AWAY")
_WIDTH: Final = 32


def _capacity_rows(proposal: rollouts.Proposal) -> Iterator[tuple[str, ...]]:
    """Unit by unit, one row for each step that takes nodes away."""
    steps = proposal.outcome.steps if isinstance(proposal.outcome, rollouts.RolloutPlan) else ()
    curve = [(index, level) for index, step in enumerate(steps, (proposal.done or 0) + 1) for level in step.levels]
    for unit in dict.fromkeys(level.unit for _, level in curve):
        levels = [(index, level) for index, level in curve if level.unit == unit]
        most = max(max(level.before, level.after) for _, level in levels)
        for index, level in levels:
            numbers = (level.before, level.during, level.after)
            filled = level.during * _WIDTH // most if most else 0
            mark = -(-int(level.guaranteed) * _WIDTH // most) if most else 0
            cells = "#" * filled + "." * (_WIDTH - filled)
            yield unit, str(index), *map(str, numbers), number(level.guaranteed), f"{cells[:mark]}|{cells[mark:]}"


# --- What to type ------------------------------------------------------------------------------------------------


def _blocks(proposal: rollouts.Proposal, step: rollouts.RolloutStep, edits: Sequence[Edit]) -> Iterator[_Block]:
    """Yield the instructions of a step, in order.

    Where a merge is applied without a person, the nodes must be empty before it. No node is emptied while Argo CD would
    refuse the sync.
    """
    syncs = _syncs(proposal, step)
    applies_itself = all(sync.applier is not None and sync.applier.is_automatic for sync in syncs if sync.disturbed)
    empty: list[_Block] = []
    if before := _before(proposal, step):
        take_off = "take their pods off" if step.nodes else "take pods off nodes with MPS, whose daemons restart"
        empty = [_Block(words, "") for sync in syncs for words in sync.beginnings]
        empty.append(_Block(take_off, _lines(before), is_typed=True))
    if left := _left_over(proposal, step):
        yield _Block("in the same commit, take out what names a unit that the pool no longer hands out", _lines(left))
    if applies_itself:
        yield from empty
    for edit in edits:
        verb = {Action.WRITE: "write", Action.CHANGE: "change in"}.get(edit.action, "remove")
        yield _Block(f"{verb} {edit.path}", edit.text, is_written=True)
    yield _Block("build, commit, and merge", "gpuplan build\n", is_typed=True)
    if any(sync.applier for sync in syncs):
        yield _Block("when it can sync", _lines([sync.when for sync in syncs]))
    if not applies_itself:
        yield from empty
    is_followed = all(sync.applier is not None and sync.applier.is_automatic for sync in syncs)
    order = "wait for these syncs, in this order" if is_followed else "apply in this order"
    yield _Block(order, _lines(_apply(proposal, step)), is_typed=True)
    if wait := _wait(proposal, step):
        yield _Block("wait", _lines(wait), is_typed=True)
    if after := _after(proposal, step):
        yield _Block("let pods in again", _lines(after), is_typed=True)


def _left_over(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[str]:
    """Return the quotas and workloads that name a unit which goes with this step."""
    steps = proposal.outcome.steps if isinstance(proposal.outcome, rollouts.RolloutPlan) else ()
    if step is not next((other for other in steps if other.state.rollout is None), None):
        return []
    verbs = {"Tenant": "quota on"}
    return [f"{item.kind} {item.name}: {verbs.get(item.kind, 'runs on')} {item.unit}" for item in proposal.left_over]


def _lines(commands: Sequence[str]) -> str:
    return "".join(f"{command}\n" for command in commands)


# --- When it can sync --------------------------------------------------------------------------------------------


class _Sync(NamedTuple):
    """A part of a step in the cluster: a folder, or, if the folder is empty, labels of nodes that nothing applies.

    ``disturbed`` are the pools whose nodes must be empty for it.
    """

    folder: str
    applier: Applier | None
    disturbed: tuple[Pool, ...]

    @property
    def is_kept(self) -> bool:
        """Whether whoever applies it refuses to do so outside the windows, whoever asks (`manualSync: false`)."""
        return self.applier is not None and bool(self.applier.windows) and self.applier.keeps_windows

    @property
    def when(self) -> str:
        if self.applier is None:
            return f"{self.folder or 'labels of nodes'}: whenever you apply {'it' if self.folder else 'them'}"
        return f"{self.applier.name}: {started(self.applier)}{within(self.applier)}"

    @property
    def beginnings(self) -> Iterator[str]:
        """The windows in which its nodes may be emptied, and who keeps them."""
        for pool in self.disturbed:
            when = windows_text(pool.windows)
            if when and self.is_kept:
                yield f"begin within {when}: until then Argo CD refuses the sync, and empty nodes would wait for it"
            elif when:
                yield f"begin within {when}, as pool {pool.name} has it: nobody but you keeps this window"


def _syncs(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[_Sync]:
    """In the order in which they are applied: a node must not name what the operator's files do not say yet."""
    plan, pool, restarting = proposal.plan, proposal.outcome.pool, rollouts.mps_configs(proposal, step)
    names = {part.name for part in plan.parts if part.labels[DEVICE_PLUGIN_CONFIG_LABEL] in restarting}
    with_mps = tuple(other for other in plan.pools if other.name in names)
    found = [_Sync(Stage.GPU_OPERATOR.value, find_applier(plan, Stage.GPU_OPERATOR.value), with_mps)]
    own, disturbed = f"{Stage.PARTITIONS}/{pool.name}", (pool,) if step.nodes else ()
    if plan.cluster.spec.node_labels is NodeLabels.EXTERNAL:
        return [*found, *([_Sync("", None, disturbed)] if step.becomes else [])]
    if step.kind in (rollouts.StepKind.PREPARE, rollouts.StepKind.FORGET):
        return found
    return [*found, _Sync(own, find_applier(plan, own), disturbed)]


# --- Commands ----------------------------------------------------------------------------------------------------


def _before(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[str]:
    """Return the commands that empty nodes, after those that fail while the sync would be refused.

    (``SyncWindow`` of `printAppSummaryTable` in `cmd/argocd/commands/app.go` of Argo CD.)
    """
    which = _emptied(proposal, step)
    if not which:
        return []
    kept = [sync.applier.name for sync in _syncs(proposal, step) if sync.applier and sync.disturbed and sync.is_kept]
    return [
        *(f"argocd app get {name} | grep 'SyncWindow: *Sync Allowed'" for name in kept),
        f"kubectl cordon {which}",
        f"kubectl drain {which} --ignore-daemonsets --delete-emptydir-data",
    ]


def _after(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[str]:
    which = _emptied(proposal, step)
    return [f"kubectl uncordon {which}"] if which else []


def _emptied(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> str:
    """The nodes on which nothing may run, as kubectl takes them: the step's own, or those with MPS."""
    if step.nodes:
        return " ".join(step.nodes)
    configs = rollouts.mps_configs(proposal, step)
    return f"--selector='{DEVICE_PLUGIN_CONFIG_LABEL} in ({','.join(configs)})'" if configs else ""


def _apply(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[str]:
    """Return the commands that start each sync, or change labels that no folder has."""
    plan, commands = proposal.plan, list[str]()
    for sync in _syncs(proposal, step):
        if sync.folder:
            commands += _sync(plan, sync.folder, sync.applier)
            if sync.folder == Stage.GPU_OPERATOR and plan.cluster.gpu_operator.is_merged_by_owner:
                commands += _until_merged(plan)
        elif step.becomes:
            labels = " ".join(f"{key}={step.becomes.labels[key]}" for key in _SWITCHES if key in step.becomes.labels)
            commands.append(f"kubectl label node {' '.join(step.nodes)} --overwrite {labels}")
    return commands


def _until_merged(plan: Plan) -> list[str]:
    """Return commands that end when the ClusterPolicy's owner has merged the file and mig-manager has restarted."""
    operator, file = plan.cluster.gpu_operator, f"out/{plan.cluster.name}/{Stage.GPU_OPERATOR}/{OWNERS_PATCH_FILE}"
    patch = f"kubectl patch clusterpolicies.nvidia.com {operator.cluster_policy} --type merge --dry-run=server"
    return [
        f"until {patch} --patch-file {file} | grep -q '(no change)'; do sleep 30; done   # its owner merges the file",
        f"kubectl rollout status daemonset/nvidia-mig-manager -n {operator.namespace}",
    ]


def _sync(plan: Plan, folder: str, applier: Applier | None) -> list[str]:
    if applier is None:
        return [f"kubectl apply --server-side -k out/{plan.cluster.name}/{folder}"]
    name, is_automatic = applier.name, applier.is_automatic
    if plan.cluster.argocd is not None:
        if is_automatic:
            return [f"argocd app get {name} --refresh", f"argocd app wait {name} --sync --health"]
        return [f"argocd app sync {name}", f"argocd app wait {name} --health"]
    return [f"flux {'reconcile' if is_automatic else 'resume'} {applier.kind.lower()} {name}"]


_SWITCHES: Final = (DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL)


def _wait(proposal: rollouts.Proposal, step: rollouts.RolloutStep) -> list[str]:
    if step.becomes:
        return list(wait_for_nodes(step.nodes, step.becomes))
    left = [f"kubectl get nodes -l {left.label}={left.value}   # until there are none" for left in step.state.kept]
    if step.kind is rollouts.StepKind.SETTLE and not step.changes_file:
        return left
    if proposal.plan.cluster.gpu_operator.keeps_plugin_file:
        return [_KUBELETS] if step.kind is rollouts.StepKind.PREPARE else []
    namespace = proposal.plan.cluster.gpu_operator.namespace
    return [f"kubectl rollout status daemonset/nvidia-device-plugin-daemonset -n {namespace}"]


_KUBELETS: Final = "sleep 120   # until kubelets have brought the new key to their nodes"
"""They look once a minute or so, and no object says when (`syncFrequency`, `configMapAndSecretChangeDetectionStrategy`
in the kubelet's configuration)."""


def wait_for_nodes(names: Iterable[str], becomes: Pool) -> Iterator[str]:
    """Commands that end when these nodes are as a pool has them.

    The label comes first: until mig-manager has seen it, the state is that of the last change.
    """
    nodes = " ".join(f"node/{name}" for name in names)
    if config := becomes.labels.get(MIG_CONFIG_LABEL):
        yield _wait_for(nodes, ".metadata.labels", MIG_CONFIG_LABEL, config)
        yield _wait_for(nodes, ".metadata.labels", f"{MIG_CONFIG_LABEL}.state", "success")
    for unit in becomes.units:
        if unit.resource:
            yield _wait_for(nodes, ".status.allocatable", unit.resource, str(unit.per_node))


def _wait_for(nodes: str, where: str, key: str, value: str) -> str:
    path = key.replace(".", "\\.")
    return f"kubectl wait --timeout=30m --for=jsonpath='{{{where}.{path}}}'={value} {nodes}"


# --- For a merge request -----------------------------------------------------------------------------------------


def _markdown(proposal: rollouts.Proposal) -> str:
    outcome = proposal.outcome
    start = f"## {escape(_heading(proposal))}\n\n"
    if isinstance(outcome, rollouts.Refusal):
        return start + "".join(f"- {escape(line.strip())}\n" for line in _reasons(outcome))
    parts = [f"{start}{_summary(outcome)}\n"]
    if rows := list(_capacity_rows(proposal)):
        headings = [heading.capitalize() for heading in _HEADINGS[:-1]]
        parts.append(markdown_table(headings, (map(escape, row[:-1]) for row in rows)))
    for index, title, blocks in _instructions(proposal, outcome):
        told = "".join(
            f"{name[:1].upper()}{escape(name[1:])}" + (f":\n\n{fenced(text)}\n\n" if text else ".\n\n")
            for name, text, *_ in blocks
        )
        parts.append(f"### {number_of(proposal, index).capitalize()}: {escape(title)}\n\n{told}".rstrip("\n") + "\n")
    return "\n".join(parts)


# --- For programs ------------------------------------------------------------------------------------------------


def rollout_as_data(proposal: rollouts.Proposal) -> dict[str, Any]:
    """A contract, `rollout.schema.json`: ``steps`` where there is a safe way, else ``refusal``."""
    outcome = proposal.outcome
    steps = () if isinstance(outcome, rollouts.Refusal) else zip(outcome.steps, proposal.edits, strict=True)
    return {
        "format_version": FORMAT_VERSION,
        "cluster": proposal.plan.cluster.name,
        "pool": outcome.pool.name,
        "from": sharing_of(outcome.pool),
        "to": sharing_text(outcome.target.sharing),
        "safe": not isinstance(outcome, rollouts.Refusal),
        "done": proposal.done,
        "steps": [
            {
                "step": index,
                "kind": step.kind.value,
                "nodes": list(step.nodes),
                "moved": list(step.state.moved),
                "edits": [{"path": edit.path, "action": edit.action.value, "text": edit.text} for edit in edits],
                "syncs": [_sync_data(sync) for sync in _syncs(proposal, step)],
                "before": _before(proposal, step),
                "apply": _apply(proposal, step),
                "wait": _wait(proposal, step),
                "after": _after(proposal, step),
                "restarts_mps": list(rollouts.mps_configs(proposal, step)),
                "needs_person": False,
                "capacity": [level._asdict() | {"guaranteed": _plain(level.guaranteed)} for level in step.levels],
            }
            for index, (step, edits) in enumerate(steps, start=1)
        ],
        "refusal": _refusal(outcome) if isinstance(outcome, rollouts.Refusal) else None,
        "left_over": [item._asdict() for item in proposal.left_over],
    }


def _sync_data(sync: _Sync) -> dict[str, Any]:
    applier = sync.applier
    return {
        "folder": sync.folder or None,
        "applied_by": applier.name if applier else None,
        "kind": applier.kind if applier else None,
        "approval": applier.approval.value if applier else None,
        "keeps_windows": sync.is_kept,
        "disturbs": [pool.name for pool in sync.disturbed],
        "windows": [window.model_dump(mode="json") for pool in sync.disturbed for window in pool.windows],
    }


def _refusal(refusal: rollouts.Refusal) -> dict[str, Any]:
    clash = refusal.clash
    return {
        "clash": None if clash is None else {"resource": clash[1].asked_as, "units": [unit.name for unit in clash]},
        "shortages": [
            found._asdict()
            | {
                "guaranteed": _plain(found.guaranteed),
                "holders": [*({"tenant": name, "guaranteed": _plain(amount)} for name, amount in found.holders)],
            }
            for found in refusal.shortages
        ],
    }


def _plain(amount: Amount) -> int | float:
    return amount if isinstance(amount, int) else float(amount)
