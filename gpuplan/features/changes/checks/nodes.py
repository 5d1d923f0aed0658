"""Checks on what nodes read during a step: labels, the entries that these name, and taints (GPU700-704, 710, 717)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.diagnostics import Family, Finding, Origin, Severity
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.gpu_operator import writes_nfd
from gpuplan.compiler.planning.layouts import is_divided_alike
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    Layout,
    Mig,
    Plan,
    Pool,
    RetainedDevicePluginConfig,
)
from gpuplan.compiler.policy.models import Allocation, Effect, NodeLabels
from gpuplan.features.changes.meanwhile import without_file
from gpuplan.features.changes.model import NodeImpact, division, from_to, verb, who_names
from gpuplan.features.changes.nodes import Departure, departures
from gpuplan.features.changes.orders import dangling
from gpuplan.features.changes.pods import held
from gpuplan.features.changes.pools import is_plugin_config_gone, taint_key
from gpuplan.features.changes.step import Step
from gpuplan.features.changes.ways import RETAIN, by_edit


def name_of_cluster(step: Step) -> Origin:
    """The place for what is no longer there: nothing else in the later policies is about it."""
    return name_of(step.after.cluster.at)


def earlier(at: Origin, thing: str) -> str:
    """A note on where something was written that is gone."""
    location = at.locate()
    return f"{thing} was in `{location.file.path}`, line {location.span.start.line}"


def sharing_of(pool: Pool) -> Origin:
    """Where a pool, or a part of one, says how its GPUs are shared."""
    return pool.sharing.layout_at if isinstance(pool.sharing, Mig) else pool.sharing.at.key


def chosen_by(pool: Pool) -> Origin:
    """Where a pool says which nodes it has."""
    return pool.nodes.at / ("namePattern" if pool.nodes.name_pattern else "names")


# --- Nodes -------------------------------------------------------------------------------------------------------


def labelled(label: str, value: str, nodes: Sequence[str] | None) -> str:
    """A note on which nodes name an entry, where that is known, or on what says that there are some."""
    if nodes is None:
        return f"their nodes have the label `{label}: {value}`, as policies say; `--nodes FILE` shows which"
    return f"{listing(nodes)} {'has' if len(nodes) == 1 else 'have'} the label `{label}: {value}`"


# --- Pods --------------------------------------------------------------------------------------------------------


def pods_on(step: Step, pool: Pool, nodes: NodeImpact | None = None) -> int | None:
    """Return the number of pods with units on these nodes of an earlier pool, or None without a list of pods."""
    if step.pods is None:
        return None
    named = nodes.names if nodes is not None and nodes.pattern is None else ()
    found = (pod for pod, there, _ in held(step.before, step.pods) if there.name == pool.name)
    return sum(not named or pod.node in named for pod in found)


def pods_of(step: Step, namespaces: Container[str]) -> int | None:
    """Return the number of pods with units in namespaces of the earlier platform, or None without a list of pods."""
    if step.pods is None:
        return None
    return sum(pod.namespace in namespaces for pod, _, _ in held(step.before, step.pods))


def pods_note(number: int | None) -> tuple[str, ...]:
    """A note on how many run, where that is known."""
    return () if number is None else (f"{count(number, 'pod')} {'holds' if number == 1 else 'hold'} GPUs there now",)


# --- Entries that nodes name -------------------------------------------------------------------------------------


@check("GPU700", "layout-edited-in-use", family=Family.STEP)
def layout_edited_in_use(step: Step) -> Iterator[Finding]:
    """A MIG layout is edited while nodes are divided by it.

    ## Why
    The entry of a layout in the MIG manager's file is named after the layout's content. An edit, or a removed
    `configName`, makes a new entry and removes the old entry. Nodes name the old entry until their label changes, which
    may wait for a person's approval. Until then the MIG manager of a node that restarts finds no such entry, calls the
    node `failed` and does nothing more before the label changes; a node that reboots meanwhile comes back without its
    partitions.

    Without `--nodes` gpuplan assumes that nodes name the entry. With `--nodes` the finding lists the nodes that name
    it, and there is no finding if no node does.

    ## Instead
    Leave the layout as it is, write another one, and move the pool to it with `gpuplan rollout POOL --to LAYOUT`. Or
    keep the old entry until no node names it, where all nodes may be away at once: `gpuplan retain --write` writes it
    down.
    """
    for gone in _gone_layouts(step):
        if (edited := _find_edited(gone.layout, step.after)) is not None and gone.nodes != ():
            is_same = is_divided_alike(gone.layout, edited)
            yield Finding(
                edited.at if edited.is_inline else name_of(edited.at),
                f"the entry of layout `{edited.name}` gets another name while {_users(gone.pools)} it"
                if is_same
                else f"layout `{edited.name}` is edited while {_users(gone.pools)} it",
                label=from_to(gone.layout.config_name, edited.config_name)
                if is_same
                else from_to(division(gone.layout), division(edited)),
                notes=(
                    labelled(MIG_CONFIG_LABEL, gone.layout.config_name, gone.nodes),
                    *dangling(step, MIG_CONFIG_LABEL, gone.layout.config_name),
                ),
                help=f"run `{RETAIN}` and commit what it writes" if is_same else by_edit(step, edited),
            )


@check("GPU701", "layout-removed-in-use", family=Family.STEP)
def layout_removed_in_use(step: Step) -> Iterator[Finding]:
    """A MIG layout leaves the policies in the same step as the nodes that are divided by it move to another one.

    ## Why
    The MIG manager's file and the labels of nodes are synced one after the other, and labels as late as somebody
    approves it. A node whose label names an entry that is gone fails as soon as its MIG manager restarts, and a change
    of the file is what restarts it. With `--nodes` the finding says which nodes name it, and where none does there is
    none.

    ## Instead
    Keep the old entry until no node names it: run `gpuplan retain --write`. Or leave the layout where it is, and remove
    it when `--nodes` shows that no node names it; a later commit alone is not late enough.
    """
    for gone in _gone_layouts(step):
        if _find_edited(gone.layout, step.after) is None and gone.nodes != ():
            yield Finding(
                sharing_of(gone.heir) if gone.heir is not None else name_of_cluster(step),
                f"the entry `{gone.layout.config_name}` vanishes while {_users(gone.pools)} it",
                label=f"was layout `{gone.layout.name}`",
                notes=(
                    labelled(MIG_CONFIG_LABEL, gone.layout.config_name, gone.nodes),
                    *dangling(step, MIG_CONFIG_LABEL, gone.layout.config_name),
                    earlier(gone.layout.at, f"layout `{gone.layout.name}`"),
                ),
                help=f"run `{RETAIN}` and commit what it writes; or keep the layout until `kubectl get nodes -l "
                f"{MIG_CONFIG_LABEL}={gone.layout.config_name}` lists no node",
            )


class _Gone(NamedTuple):
    """A layout whose entry is no more, the pools that use it, and one that has their nodes afterwards.

    ``nodes`` name the entry now; None where nobody knows.
    """

    layout: Layout
    pools: tuple[str, ...]
    heir: Pool | None
    nodes: tuple[str, ...] | None


def _gone_layouts(step: Step) -> Iterator[_Gone]:
    entries = mig_parted.configuration(step.after)["mig-configs"]
    found: dict[str, _Gone] = {}
    for part, heir in _heirs(step):
        if isinstance(part.sharing, Mig) and (name := part.sharing.layout.config_name) not in entries:
            known = found.get(name, _Gone(part.sharing.layout, (), heir, step.naming(MIG_CONFIG_LABEL, name)))
            found[name] = known._replace(pools=tuple(sorted({*known.pools, part.name})))
    yield from found.values()


def _heirs(step: Step) -> Iterator[tuple[Pool, Pool | None]]:
    """Each part of a pool that has nodes, and a pool that says afterwards what labels they have.

    None where nobody does and they keep those that they have. Where labels go with the pool, nothing is named any more.
    """
    for old, new in step.pools:
        if old is None:
            continue
        heirs: list[Pool | None] = [] if new is None else [new]
        leaving = (item.to for item in departures(step, old, new))
        heirs += (to for to in leaving if to is not None or _labels_stay(step.before))
        yield from ((part, heir) for part in old.parts if part.nodes.count for heir in heirs)


def _labels_stay(plan: Plan) -> bool:
    """Node objects that leave Git are not pruned, nor are labels on them."""
    return plan.cluster.spec.node_labels is NodeLabels.NODE


def _find_edited(layout: Layout, after: Plan) -> Layout | None:
    key = layout.name, layout.is_inline
    return next((item for item in after.mig_layouts if (item.name, item.is_inline) == key), None)


def _users(pools: Sequence[str]) -> str:
    return f"pool `{pools[0]}` uses" if len(pools) == 1 else f"pools {listing(pools)} use"


@check("GPU702", "plugin-config-removed-in-use", family=Family.STEP)
def plugin_config_removed_in_use(step: Step) -> Iterator[Finding]:
    """A configuration of the device plugin vanishes while nodes name it.

    ## Why
    The device plugin's configuration of a pool is a key of a ConfigMap, called as the pool. A pool that is renamed
    has another key, and its nodes name the old one until their label moves. What reads the configuration on a node
    stops at a key that is not there (`updateConfigName` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin): a node whose device plugin restarts before that hands out no GPUs, and from operator
    v26.3 on GPUs as if nothing shared or divided them (`Get` there). A change of the ConfigMap is what restarts it.
    With `--nodes` the finding says which nodes name the key, and where none does there is none.

    With `devicePluginConfig: fixed` each key ends in a hash of its content, and nothing restarts: nodes go on. But
    their device plugin reads a broken link, and ends when kubelet restarts. When their label changes at last, nothing
    can replace the link until the pod is deleted (`updateSymlink` there calls `os.Symlink` on an existing name).

    A retained key has one meaning as long as it exists. If a pool's sharing differs from the meaning of its name, its
    key ends in a hash. Without the document of that meaning, the name would be the pool's key again, with other
    content. This affects the pool's own nodes, and nodes whose label is several commits behind.

    A rollout that is taken back gives its key to no node, but nodes may still name it. The finding is a warning, and an
    error if `--nodes` shows such a node.

    ## Instead
    Keep the old key until no node names it: run `gpuplan retain --write`. The document of a pool's own name stays for
    as long as the pool does otherwise.
    """
    known = device_plugin.data(step.after)
    told: set[str] = set()
    # Labels of nodes may name a retained key for many commits.
    files = device_plugin.configurations(step.after)
    kept = ((retained.spec.key, retained) for retained in step.before.retained_plugin_configs)
    changed = {key: retained for key, retained in kept if files.get(key, retained.config) != retained.config}
    for part, heir in _heirs(step):
        key = part.labels[DEVICE_PLUGIN_CONFIG_LABEL]
        claims = Allocation.DRA in (part.spec.allocation, heir.spec.allocation if heir is not None else None)
        by = step.naming(DEVICE_PLUGIN_CONFIG_LABEL, key)
        is_gone = key not in known and part.keys.own not in changed and by != ()
        if is_gone and key not in told and not claims:
            told.add(key)
            yield Finding(
                name_of(heir.at) if heir is not None else name_of_cluster(step),
                f"the configuration `{key}` vanishes while nodes of pool `{part.name}` name it",
                label="their pool from now on" if heir is not None else "none of its pools has them",
                notes=(labelled(DEVICE_PLUGIN_CONFIG_LABEL, key, by), *dangling(step, DEVICE_PLUGIN_CONFIG_LABEL, key)),
                help=f"run `{RETAIN}` and commit what it writes",
            )
    whats = (item.what for item in step.before.retained)  # by GPU739
    told |= {what.spec.key for what in whats if isinstance(what, RetainedDevicePluginConfig)}
    yield from (found for key, found in _keys_of_none(step) if key not in {*known, *told})
    edited = {retained.spec.key: retained.at / "key" for retained in step.after.retained_plugin_configs}
    for key, retained in changed.items():
        pool = next((pool for pool in step.after.pools if pool.keys.own == key), None)
        yield Finding(
            edited.get(key) or (name_of_cluster(step) if pool is None else name_of(pool.at)),
            f"the configuration `{key}` becomes another one, and nodes may still name it",
            label="retained as it was until now",
            notes=(earlier(retained.at, "the document that retains it"),),
            help="write the document as it was" if key in edited else f"run `{RETAIN}` and commit what it writes",
        )


def _keys_of_none(step: Step) -> Iterator[tuple[str, Finding]]:
    """The keys of parts without nodes, such as a rollout's that was taken back: labels may not have moved yet."""
    for old, new in step.pools:
        for part in (part for part in old.parts if not part.nodes.count) if old is not None else ():
            key = part.labels[DEVICE_PLUGIN_CONFIG_LABEL]
            by = step.naming(DEVICE_PLUGIN_CONFIG_LABEL, key)
            if by != () and part.spec.allocation is not Allocation.DRA:
                yield (
                    key,
                    Finding(
                        name_of_cluster(step) if new is None else name_of(new.at),
                        f"the configuration `{key}` vanishes, and {who_names(by) if by else 'nodes may still name it'}",
                        label=f"no node of pool `{part.name}` has it by the policies",
                        help=f"run `{RETAIN}` and commit what it writes"
                        + ("" if by else "; or pass `--nodes FILE`, where no node names it any more"),
                        severity=None if by else Severity.WARNING,
                    ),
                )


# --- Labels ------------------------------------------------------------------------------------------------------

_DISSOLVED: Final = "the operator labels a node without it `all-disabled`, and the MIG manager dissolves its partitions"
_UNCONFIGURED: Final = "without it they hand out whole GPUs, beside pods that still share some"
"""Config-manager then takes an empty configuration (the operator sets `FALLBACK_STRATEGIES=empty`)."""
_BY_PATTERN: Final = "by what the patterns may match, and as many as policies count; `--nodes FILE` shows which"
_DRAINED: Final = "drain the nodes first, and say so: `# gpuplan: ignore[GPU704] REASON`"


@check("GPU704", "node-labels-vanish", family=Family.STEP)
def node_labels_vanish(step: Step) -> Iterator[Finding]:
    """Nodes lose the labels that say how their GPUs are shared.

    ## Why
    The GPU Operator gives every node that can be partitioned and has no label `nvidia.com/mig.config` the value
    `all-disabled`, and the MIG manager then dissolves the partitions: under pods that hold them it fails, and the node
    stays between both. Labels go when a pool is removed, when nodes leave it for none, and with whatever put them
    there: when others are to label the nodes, or when Node Feature Discovery is no longer installed along.

    Without a label nodes that share their GPUs hand out whole GPUs, beside pods that have a share. If you remove a
    pool, the GPU Operator's sync removes its device plugin's configuration. Nodes whose label names it hand out no GPUs
    until the label is removed, too; from operator v26.3 on they hand out whole GPUs at once. The finding is a warning
    if GPUs are whole, or if others label nodes without partitions.

    ## Instead
    Drain the nodes first; or leave the pool where it is. To move the nodes to another pool is a step with an order of
    its own where their GPUs are divided by MIG (GPU728). With `--nodes`, patterns are the nodes that they match: where
    each of these is in a pool afterwards there is no finding. Pods that are listed with `--pods` are looked up: where
    nothing runs on the nodes there is no finding.
    """
    for old, new in step.pools if not _labels_stay(step.before) else ():
        for leaving in departures(step, old, new) if old is not None else ():
            if old is not None and leaving.to is None and leaving.nodes.count:
                yield from _unlabelled(step, old, new, leaving)
    yield from _labelled_otherwise(step)


def _unlabelled(step: Step, old: Pool, new: Pool | None, leaving: Departure) -> Iterator[Finding]:
    there = pods_on(step, old, leaving.nodes)
    if there == 0:
        return
    is_partitioned = _is_partitioned(old)
    is_shared = any(part.shares is not None and part.nodes.count for part in old.parts)
    label = MIG_CONFIG_LABEL if is_partitioned else DEVICE_PLUGIN_CONFIG_LABEL
    otherwise = _UNCONFIGURED
    if is_plugin_config_gone(step, old):
        otherwise = f"the operator's sync takes their configuration away first: {without_file(step)}"
    yield Finding(
        name_of_cluster(step) if new is None else chosen_by(new).key,
        f"{verb(leaving.nodes, 'loses', 'lose')} the label `{label}`: pool `{old.name}` "
        + ("is removed" if new is None else "no longer has them"),
        label="no pool has them",
        notes=(
            _DISSOLVED if is_partitioned else otherwise,
            *([earlier(old.at, f"pool `{old.name}`")] if new is None else []),
            *([_BY_PATTERN] if new is not None and leaving.nodes.pattern is not None else []),
            *pods_note(there),
        ),
        help=_DRAINED,
        severity=None if is_partitioned or is_shared else Severity.WARNING,
    )


def _labelled_otherwise(step: Step) -> Iterator[Finding]:
    """Other hands for labels: what one puts there, it takes along before or after the other has come."""
    old, new = step.before.cluster, step.after.cluster
    pools = [pool for pool in step.before.pools if pool.nodes.count and pods_on(step, pool) != 0]
    is_partitioned = any(map(_is_partitioned, pools))
    if old.spec.node_labels is not new.spec.node_labels:
        at, help_ = new.at / "nodeLabels", _DRAINED
        message = f"nodes lose their labels with what puts them there: it was `{old.spec.node_labels}`"
        label = f"`{new.spec.node_labels}` from now on"
    else:
        at = new.gpu_operator.at / "nfd"
        help_ = "have another one there before, and say so: `# gpuplan: ignore[GPU704] REASON`"
        message = "nodes lose their labels with Node Feature Discovery, which is no longer installed"
        label = "installed until now"
    # If the operator moves, more than labels is removed.
    stays = old.gpu_operator.spec.install is new.gpu_operator.spec.install
    loses_nfd = stays and old.spec.node_labels is NodeLabels.NFD and writes_nfd(old) and not writes_nfd(new)
    if pools and (old.spec.node_labels is not new.spec.node_labels or loses_nfd):
        yield Finding(
            at,
            message,
            label=label,
            notes=(_DISSOLVED if is_partitioned else _UNCONFIGURED,),
            help=help_,
            severity=None if is_partitioned else Severity.WARNING,
        )


def _is_partitioned(pool: Pool) -> bool:
    return any(isinstance(part.sharing, Mig) and part.nodes.count for part in pool.parts)


# --- Who may be on them ------------------------------------------------------------------------------------------


@check("GPU710", "taint-evicts", Severity.WARNING, family=Family.STEP)
def taint_evicts(step: Step) -> Iterator[Finding]:
    """A pool gets a taint that evicts what runs on its nodes.

    ## Why
    `NoExecute` is not only about new pods: a pod that does not tolerate the taint is evicted as soon as the node has
    it, and no disruption budget holds it back. Tolerations that are written along with the taint are those of new pods.

    ## Instead
    Write `effect: NoSchedule`, and let what runs come to its end. Or drain the nodes first.
    """
    for old, new in step.kept_pools:
        there = pods_on(step, old) if old.nodes.count else 0
        known = set(map(taint_key, old.taints))
        for taint in new.taints:
            if there != 0 and taint.effect is Effect.NO_EXECUTE and taint_key(taint) not in known:
                yield Finding(
                    taint.place("effect"),
                    f"the taint `{taint.key}` evicts pods of pool `{new.name}` that do not tolerate it",
                    label="at once",
                    notes=pods_note(there),
                    help="write `effect: NoSchedule`, and let what runs come to its end",
                )


@check("GPU717", "allocation-switched-in-use", family=Family.STEP)
def allocation_switched_in_use(step: Step) -> Iterator[Finding]:
    """Devices of a pool are handed out in another way while pods hold some.

    ## Why
    The device plugin and the DRA driver each know what they have handed out themselves. Whichever comes takes every
    device for free, and gives those that pods of the other one hold to new pods as well.

    ## Instead
    Drain the nodes first, and say so in a comment. Pods that are listed with `--pods` are looked up: where nothing runs
    on the nodes there is no finding.
    """
    for old, new in step.kept_pools:
        is_switched = old.nodes.count and old.spec.allocation is not new.spec.allocation
        if is_switched and (there := pods_on(step, old)) != 0:
            yield Finding(
                new.at / "allocation",
                f"devices of pool `{new.name}` that pods hold are handed out a second time",
                label=f"it was `{old.spec.allocation}`",
                notes=pods_note(there),
                help="drain the nodes first, and say so: `# gpuplan: ignore[GPU717] REASON`",
            )
