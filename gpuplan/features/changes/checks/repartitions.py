"""Checks on nodes that are set up again, and on what is there meanwhile (GPU708-709, 728-729, 736, 738, 750-751)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.diagnostics import Family, Finding, Label, Severity
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import total_text
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.layouts import is_divided_alike
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Mps, Pool, Total
from gpuplan.features.changes.checks.nodes import chosen_by, labelled, name_of_cluster, pods_note, pods_on, sharing_of
from gpuplan.features.changes.model import amount, division, from_to, verb, who_names
from gpuplan.features.changes.nodes import Transition, departures, moves, transitions
from gpuplan.features.changes.orders import FILES, Files, Hazard, bad_orders, syncers_of, without_labels
from gpuplan.features.changes.pools import is_partitioned_anew
from gpuplan.features.changes.step import Step
from gpuplan.features.changes.ways import RETAIN, by_edit, by_rollout


@check("GPU708", "too-many-nodes-at-once", family=Family.STEP)
def too_many_nodes_at_once(step: Step) -> Iterator[Finding]:
    """More nodes of a pool are repartitioned at once than it may do without.

    ## Why
    The label of all these nodes changes in one sync, and the MIG manager of each starts at once: nothing counts nodes
    there, and `disruption.maxUnavailable` is a promise that only small steps keep. It is 1 unless the pool says
    otherwise; an approval and windows say when a sync begins, not how many nodes it takes. The MIG manager neither
    cordons nor drains, and a node on which a pod holds a GPU fails and stays so until its label changes again
    (`pkg/mig/reconfigure` of NVIDIA/mig-parted).

    ## Instead
    Take the change back, and let `gpuplan rollout POOL --to LAYOUT` make steps of it. Where the pool can do without all
    of these nodes at once, raise `disruption.maxUnavailable`; where they are drained already, say so in a comment. Pods
    that are listed with `--pods` are looked up: where nothing runs on the nodes there is no finding.
    """
    for away in _away(step):
        allowed = away.after.spec.disruption.max_unavailable
        if away.nodes <= allowed:
            continue
        short = [
            f"{amount(left)} of {amount(total.guaranteed)} `{total.unit.name}`" for total, left in _short(step, away)
        ]
        yield Finding(
            sharing_of(away.moves[0].after),
            f"{away.nodes} nodes of pool `{away.after.name}` are repartitioned at once, and {allowed} may be away",
            label="all in one sync",
            related=(Label(away.after.at / "disruption" / "maxUnavailable", f"`maxUnavailable` is {allowed}"),),
            notes=(
                *([f"meanwhile there are {joined(short)} that are guaranteed"] if short else []),
                *pods_note(away.pods),
            ),
            help=f"{by_rollout(step, (away.after,))}; or drain the nodes, and say so: "
            "`# gpuplan: ignore[GPU708] REASON`",
        )


@check("GPU709", "guarantees-uncovered-meanwhile", Severity.WARNING, family=Family.STEP)
def guarantees_uncovered_meanwhile(step: Step) -> Iterator[Finding]:
    """While nodes are repartitioned, the others have less than what is guaranteed before and afterwards.

    ## Why
    A node that is repartitioned hands out nothing for minutes, or as long as it takes to drain it. What tenants are
    guaranteed both before and after the step should be there in between: else their pods wait, though both plans are
    right.

    ## Instead
    Change fewer nodes at once. Where even one is too many, add a node first, or lower a guarantee for as long as it
    takes.
    """
    for away in _away(step):
        if away.nodes > away.after.spec.disruption.max_unavailable:
            continue
        for total, left in _short(step, away):
            holders = [(tenant.name, quota.guaranteed) for tenant, quota in total.quotas if quota.guaranteed]
            yield Finding(
                sharing_of(away.moves[0].after),
                f"while {count(away.nodes, 'node')} of pool `{away.after.name}` "
                f"{'is' if away.nodes == 1 else 'are'} away, {amount(left)} `{total.unit.name}` are left of "
                f"{amount(total.guaranteed)} guaranteed",
                label="repartitioned",
                notes=(f"guaranteed are {total_text(holders)}", *pods_note(away.pods)),
                help="change fewer nodes at once, add a node first, or lower a guarantee meanwhile",
            )


# --- Nodes that are away -----------------------------------------------------------------------------------------


class _Away(NamedTuple):
    """Nodes of one pool that are repartitioned; ``pods`` is how many are there, None where nobody knows."""

    before: Pool
    after: Pool
    moves: tuple[Transition, ...]
    stays: tuple[Transition, ...]
    pods: int | None

    @property
    def nodes(self) -> int:
        return sum(moved.nodes.count for moved in self.moves)


def _away(step: Step) -> Iterator[_Away]:
    for old, new in step.kept_pools:
        found = [*transitions(old, new)]
        moves = tuple(moved for moved in found if is_partitioned_anew(moved))
        known = [pods_on(step, old, moved.nodes) for moved in moves]
        pods = None if None in known else sum(filter(None, known))
        if moves and pods != 0:
            yield _Away(old, new, moves, tuple(moved for moved in found if moved not in moves), pods)


def _short(step: Step, away: _Away) -> Iterator[tuple[Total, int]]:
    """The guarantees that the nodes that stay do not cover, the smaller of before and after, and what is left."""
    promised, totals = (
        {total.unit.name: total for total in plan.totals if total.pool.name == pool.name}
        for plan, pool in ((step.before, away.before), (step.after, away.after))
    )
    for name, total in totals.items():
        left = 0
        for moved in away.stays:  # a node may hand out what it did before, or what it will
            units = [pool.find_unit(name) for pool in (moved.before, moved.after)]
            left += min(unit.per_node if unit is not None else 0 for unit in units) * moved.nodes.count
        least = min(total, promised.get(name, total), key=lambda level: level.guaranteed)
        if name in promised and left < least.guaranteed:
            yield least, left


# --- From one pool to another ------------------------------------------------------------------------------------


@check("GPU728", "partitions-hang-on-order", family=Family.STEP)
def partitions_hang_on_order(step: Step) -> Iterator[Finding]:
    """Nodes go to another pool in one step, and one order of syncs leaves them without labels.

    ## Why
    The rule that labels a pool's nodes is a folder of its own, synced by itself, and nothing orders two folders, with
    Argo CD or with Flux: each applies both as it sees them. Where the pool that lets the nodes go comes first, Node
    Feature Discovery takes its labels away. Where the GPU Operator then looks at a node that can be partitioned, it
    writes `all-disabled` (`controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator), and the MIG manager
    dissolves the partitions; where pods hold some, it fails halfway. A node that shares its GPUs publishes them whole
    without its label, beside pods that have a share.

    Other nodes do without: where GPUs are whole before or afterwards, and where `nodeLabels` is not `nfd` and no label
    is taken away.

    ## Instead
    Move them in two commits. `gpuplan retain --write` writes a document `Retained`, by which they keep the labels of
    the pool that they leave, as long as no other pool's rule labels them; commit it with the change. When each node has
    the label `gpuplan.dev/pool` of its new pool, delete the document: `gpuplan retain --prune`. Pods that are listed
    with `--pods` are looked up: where nothing runs on the nodes there is no finding.
    """
    told: set[tuple[str, str]] = set()
    for bad in without_labels(step):
        there = pods_on(step, bad.was, bad.nodes) if bad.was is not None else None
        if there == 0 or bad.pools in told:
            continue
        told.add(bad.pools)
        was, to = bad.pools
        cluster = step.after.cluster
        syncers = "Applications" if cluster.argocd else "Kustomizations" if cluster.flux else "folders"
        is_partitioned = bad.hazard is Hazard.UNLABELLED
        yield Finding(
            chosen_by(bad.to).key if bad.to is not None else name_of_cluster(step),
            f"{'partitions are lost' if is_partitioned else 'labels are gone for a while'} where "
            f"{verb(bad.nodes, 'goes', 'go')} from pool `{was}` to `{to}` in the wrong order",
            label=f"two {syncers} label them in turn",
            notes=(bad.text, _UNPARTITIONED if is_partitioned else _UNCONFIGURED, *pods_note(there)),
            help=f"run `{RETAIN}` and commit what it writes: they keep the labels of `{was}` until those of "
            f"`{to}` are there",
        )


_UNPARTITIONED: Final = f"where there is no `{MIG_CONFIG_LABEL}`, the operator may write `all-disabled`"
_UNCONFIGURED: Final = f"where there is no `{DEVICE_PLUGIN_CONFIG_LABEL}`, GPUs are published whole"


# --- Files and labels --------------------------------------------------------------------------------------------


@check("GPU729", "units-of-neither-state", family=Family.STEP)
def units_of_neither_state(step: Step) -> Iterator[Finding]:
    """During the change, nodes offer resources that belong to neither the old nor the new state.

    ## Why
    A node's labels name entries in files of the GPU Operator, and these files are synced separately. The device
    plugin's file of a pool has the pool's name. If its content changes, nodes find the new content by their existing
    label as soon as the change is merged. The partitions follow with another label, which may wait for a person's
    approval. In between, a new file applies to old partitions. From time-slicing to MIG, whole GPUs are handed out
    beside pods that share them; from MIG to anything else, GPUs in MIG mode are handed out as if they were whole
    (`buildGPUDeviceMap` in `internal/rm/device_map.go` of NVIDIA/k8s-device-plugin). Quotas let pods in for either.

    The label comes first if a person syncs in that order, or if Argo CD syncs the pool by itself
    (`approval: automatic`) without a root. Argo CD applies a rule in seconds, and a new file in minutes. Flux waits for
    the operator's files.

    A new key that is not there yet is reported by GPU738: from operator v26.3 on nodes hand out GPUs without sharing or
    dividing them until the key comes.

    ## Instead
    Run `gpuplan retain --write`: it writes down what the pool's name means, and the pool gets a key of another name,
    `POOL.HASH`. Then file and partitions switch with the node's labels, in one sync and in any order. Or take the
    change back, and let `gpuplan rollout POOL --to SHARING` make steps of it, which do the same node by node. Nodes
    that are drained and stay cordoned until both are synced let nobody in: say so in a comment.
    """
    told: set[tuple[int, bool]] = set()
    for bad in bad_orders(step):
        pool, is_late = bad.to, FILES in bad.waiting
        if bad.hazard is not Hazard.NEITHER or pool is None or (id(pool), is_late) in told:
            continue
        told.add((id(pool), is_late))
        each = f"each node of pool `{pool.name}` {bad.what}"
        yield Finding(
            sharing_of(pool),
            f"where labels come before the operator's files, {each}"
            if is_late
            else f"until labels follow the operator's files, {each}",
            label="neither before the change nor after it",
            notes=(bad.text, _LABELS_FIRST[bad.is_unasked] if is_late else _FILES_FIRST),
            help=f"run `{RETAIN}` and commit what it writes: then file and partitions switch with one label; or "
            f"{by_rollout(step, (pool,))}",
        )


_FILES_FIRST: Final = "files are synced by themselves, labels as late as somebody approves it"
_LABELS_FIRST: Final = {
    True: "with `approval: automatic` Argo CD syncs both at once, and nothing orders them",
    False: "nothing but the order that a person keeps has the files come first",
}


# --- Names that stay ---------------------------------------------------------------------------------------------


@check("GPU750", "entry-changes-under-its-name", family=Family.STEP)
def entry_changes_under_its_name(step: Step) -> Iterator[Finding]:
    """An entry of the MIG manager's file says something else under the name that nodes have.

    ## Why
    The names that gpuplan gives to entries change with what they say, so that a node is divided again when its label
    moves, pool by pool and as somebody approves it. A name that the policy keeps (`configName`), or that is retained,
    does not. As soon as the GPU Operator's files are synced, the MIG manager of each node starts again, compares the
    GPUs with the entry that the label names, and divides them again (`pkg/mig/reconfigure` of NVIDIA/mig-parted): on
    all nodes of all pools with this label, without a drain, and without the approval and windows of any pool. With
    `--nodes` there is no finding where no node names the entry.

    ## Instead
    Leave `configName` out of the layout that has changed: its entry gets a name of its own, and `gpuplan retain
    --write` keeps the old one under its name until no node has it. Or write another layout, and move the pool to it
    with `gpuplan rollout POOL --to LAYOUT`. Where all of the nodes are drained already, say so in a comment.
    """
    files = Files.of(step.before), Files.of(step.after)
    for (name, gpu), layout in files[1].layouts.items():
        was = files[0].division(name, gpu)
        by = step.naming(MIG_CONFIG_LABEL, name)
        if layout is not None and was is not None and not is_divided_alike(was, layout) and by != ():
            yield Finding(
                layout.at / "configName",
                f"the entry `{name}` keeps its name and divides GPUs otherwise",
                label=f"all nodes with this label are divided {from_to(division(was), division(layout))}",
                notes=(labelled(MIG_CONFIG_LABEL, name, by), _NO_APPROVAL),
                help=by_edit(step, layout) if layout.keeps_name else "write the layout as it was",
            )


_NO_APPROVAL: Final = "it is so with the sync of the GPU Operator, whatever approval and windows the pools have"


@check("GPU751", "plugin-config-changes-unread", Severity.WARNING, family=Family.STEP)
def plugin_config_changes_unread(step: Step) -> Iterator[Finding]:
    """The file of a key that nodes keep becomes another one, and the device plugin does not read it again.

    ## Why
    With `devicePluginConfig: fixed` the ConfigMap keeps its name, so that no pod restarts for what is in it; each key
    says what is in its file, and nodes follow it with their labels. A key that the policy keeps
    (`names.devicePluginConfig`) does not. Its file changes in place, and each node goes on with the old one until its
    device plugin restarts, one today and one in a month: the device plugin reads its file when it starts, and
    config-manager looks at a node's label alone (`cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin).

    ## Instead
    Run `gpuplan retain --write`: it writes down what the key means, and the pool gets a key of another name,
    `POOL.HASH`, which its nodes follow at once.
    """
    if not step.keeps_plugin_file:
        return
    before, after = (device_plugin.configurations(plan) for plan in (step.before, step.after))
    for pool in step.after.pools:
        key, kept = pool.parts[0].labels[DEVICE_PLUGIN_CONFIG_LABEL], pool.spec.names.device_plugin_config
        by = step.naming(DEVICE_PLUGIN_CONFIG_LABEL, key)
        if key == kept and before.get(key, after[key]) != after[key] and by != ():
            yield Finding(
                pool.at / "names" / "devicePluginConfig",
                f"the configuration `{key}` becomes another one, and nodes with this label go on with the old one",
                label="the key stays, and nothing restarts",
                notes=(labelled(DEVICE_PLUGIN_CONFIG_LABEL, key, by),),
                help=f"run `{RETAIN}` and commit what it writes",
            )


# --- Entries that nodes may still name ---------------------------------------------------------------------------


@check("GPU736", "entry-removed-unseen", Severity.WARNING, family=Family.STEP)
def entry_removed_unseen(step: Step) -> Iterator[Finding]:
    """An entry of the MIG manager's file goes that no pool uses, and nodes may still name it.

    ## Why
    That no pool uses a layout says nothing of nodes: they name the entry that they had until their label moves, which
    is as late as somebody approves it. A node that names an entry that is gone fails as soon as its MIG manager
    restarts, as it does with each change of its file, and comes back from a reboot without partitions.

    ## Instead
    Keep the entry until no node names it: `gpuplan retain --write` writes it down, and until when. With `--nodes` there
    is no finding where no node names it, and an error that says which do. Where `kubectl get nodes -l
    nvidia.com/mig.config=ENTRY` lists none, you can also say so in a comment.
    """
    known = mig_parted.configuration(step.after)["mig-configs"]
    used = {part.labels.get(MIG_CONFIG_LABEL) for part in step.before.parts}
    for layout in step.before.layouts:
        name = layout.config_name
        by = step.naming(MIG_CONFIG_LABEL, name)
        if name not in known and name not in used and by != () and step.before.may_be_divided_by(layout):
            yield Finding(
                name_of_cluster(step),
                f"the entry `{name}` vanishes, and " + ("nodes may still name it" if by is None else who_names(by)),
                label="no pool uses it, but nodes follow later",
                help=f"run `{RETAIN}` and commit what it writes"
                + (
                    f"; or pass `--nodes FILE`, or, where `kubectl get nodes -l {MIG_CONFIG_LABEL}={name}` lists no "
                    "node, say so: `# gpuplan: ignore[GPU736] REASON`"
                    if by is None
                    else ""
                ),
                severity=Severity.ERROR if by else None,
            )


@check("GPU756", "mps-daemon-not-told", Severity.WARNING, family=Family.STEP)
def mps_daemon_not_told(step: Step) -> Iterator[Finding]:
    """Nodes that share GPUs by MPS get another configuration, of which their MPS daemons are not told.

    ## Why
    A sidecar of the MPS control daemon, config-manager, follows the node's label and is to signal the daemon. It looks
    for a process whose command is `/usr/bin/mps-control-daemon`, and the operator starts that as `mps-control-daemon`
    (`PROCESS_TO_SIGNAL` and `command` in `assets/state-mps-control-daemon/0400_daemonset.yaml` of NVIDIA/gpu-operator,
    in all releases from v24.6.2 to v26.7.0; `findPidToSignal` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin, which also panics before v0.20.0 where it sees a process without a command line). It has
    replaced the file by then, and never signals. Up to the operator v25.10 it finds nothing left to do when it starts
    again; from v26.3 on it takes the file away and puts it back by turns, and fails each time. The device plugin's
    own config-manager works, so that the node hands out as many shares as it should, with the memory and thread limits
    of as many as there were before.

    ## Instead
    When the label of the drained nodes has moved, delete the daemons' pods there: up to the operator v25.10 new ones
    read the new file. From v26.3 on these most often start without any (GPU757).
    """
    if uses_claims(step.before) or uses_claims(step.after):
        return
    stay = (transitions(old, new) for old, new in step.kept_pools)
    go = (moves(old, leaving) for old, new in step.pools if old is not None for leaving in departures(step, old, new))
    for moved in chain.from_iterable(chain(stay, go)):
        shares = [part.sharing for part in (moved.before, moved.after) if isinstance(part.sharing, Mps)]
        keys = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in (moved.before, moved.after)}
        if len(shares) > 1 and len(keys) > 1:
            operator = step.after.cluster.gpu_operator
            where = listing(moved.nodes.names) if moved.nodes.names else f"nodes of pool `{moved.after.name}`"
            yield Finding(
                sharing_of(moved.after),
                f"the MPS daemons of {where} are not told of their new configuration",
                label="limits stay those of the old one",
                related=(Label(operator.at / "version", "its config-manager finds no such process"),),
                help="drain the nodes, and when their label has moved run "
                f"`kubectl delete pod -n {operator.namespace} -l app=nvidia-device-plugin-mps-control-daemon "
                "--field-selector spec.nodeName=NODE` for each",
            )


@check("GPU738", "unsafe-in-some-order", Severity.WARNING, family=Family.STEP)
def unsafe_in_some_order(step: Step) -> Iterator[Finding]:
    """In some order of syncs nodes name a missing entry, get a taint twice, or are too few for the guarantees.

    ## Why
    Labels of nodes and the files that they name are synced by themselves. With Argo CD and `approval: automatic` both
    start at once: a rule needs seconds, a new file minutes, since a chart, a ClusterPolicy and DaemonSets follow one
    another. Sync waves order the objects of one Application, not two of them. Until the file comes the MIG manager
    calls a node `failed` whose label names an entry that it does not know, and the device plugin's config-manager ends
    with an error (`updateConfigName` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin): what is handed out
    stays as it was, or is nothing where the plugin restarts. From operator v26.3 on config-manager begins with an empty
    configuration when it starts again (`Get` there), and the node hands out GPUs as if nothing shared or divided them:
    `gpuplan diff -o json` calls that `early-unshared`.

    If nodes move to a pool whose taint has the same key and effect, Node Feature Discovery must not see both rules
    match. It writes the taints into an annotation that it then cannot read, and changes no taint of the node any more
    (`setTaints` in `pkg/nfd-master/nfd-master.go` of kubernetes-sigs/node-feature-discovery). Sync the folder of the
    old pool first.

    Where two pools swap nodes, one of them may have lost its own before it has the other's: quotas admit pods that find
    no place.

    `gpuplan validate --against` judges every order: the operator's files as one, each pool's labels as one, each of
    them synced or not. The rule about a fault reports it (GPU700, GPU701, GPU702, GPU728, GPU729). This rule reports
    faults without a rule of their own. Flux waits for the operator, and where a person approves a pool's labels, the
    order is that person's: `gpuplan diff` says which one is safe.

    ## Instead
    Write the layout, or what gives nodes another key, in a commit before the one that moves nodes to it. Or have
    `approval: manual` on the pool, and sync the GPU Operator first. Or let a root of Argo CD do that (`argocd.root`).
    Where both pools have one taint, sync the pool first that lets the nodes go. A node at which Node Feature Discovery
    fails is mended with `kubectl annotate node NODE nfd.node.kubernetes.io/taints-`.
    """
    for bad in bad_orders(step):
        if bad.hazard is Hazard.UNCOVERED and bad.to is not None:
            yield Finding(
                chosen_by(bad.to).key,
                f"in some order of syncs pool `{bad.to.name}` {bad.what}",
                label="nodes come and go in one step",
                notes=(bad.text, bad.advice),
                help="let nodes come in one commit, and others go in the next",
            )
    yield from _stuck_taints(step)
    told_of: set[tuple[str, tuple[str, str] | None]] = set()
    for bad in bad_orders(step):
        pool = bad.to
        if bad.hazard not in _AHEAD or not bad.is_unasked or pool is None or bad.named is None:
            continue
        if (pool.name, bad.named) in told_of or (bad.was is not None and pods_on(step, bad.was, bad.nodes) == 0):
            continue
        told_of.add((pool.name, bad.named))
        label, value = bad.named
        is_mig = label == MIG_CONFIG_LABEL
        yield Finding(
            chosen_by(pool).key if bad.was is None or bad.was.name != pool.name else sharing_of(pool),
            f"nodes of pool `{pool.name}` may name the {'entry' if is_mig else 'configuration'} `{value}` before "
            "it is there",
            label="labels and files are synced by themselves, in any order",
            notes=(bad.text, bad.advice),
            help=f"have `approval: manual` on the pool and sync {joined(syncers_of(step.after, (FILES,)))} first; or "
            "make what they name known in a commit before",
        )


_AHEAD: Final = (Hazard.BARE, Hazard.EARLY)


def _stuck_taints(step: Step) -> Iterator[Finding]:
    for bad in bad_orders(step):
        if bad.hazard is Hazard.STUCK and bad.to is not None:
            yield Finding(
                chosen_by(bad.to).key,
                f"{listing(bad.nodes.names) or 'nodes'} may get one taint from the pools `{bad.pools[0]}` and "
                f"`{bad.pools[1]}`, and NFD then fails at {'it' if bad.nodes.count == 1 else 'them'}",
                label="their rules are synced in any order",
                notes=(bad.text, bad.advice, _UNSTUCK),
                help=f"sync {joined(syncers_of(step.after, bad.waiting))} first; or give the pools "
                "taints of different keys in a commit before",
            )


_UNSTUCK: Final = "to mend a node: `kubectl annotate node NODE nfd.node.kubernetes.io/taints-`"
