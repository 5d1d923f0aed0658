"""Checks on the two halves of a step, files and labels, that are synced one after the other (GPU728-729, 736)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.gpu_operator import mig_parted
from gpuplan.changes.checks.nodes import RETAIN
from gpuplan.changes.checks.places import name_of_cluster, pods_note, pods_on, sharing_of
from gpuplan.changes.checks.repartitions import by_rollout
from gpuplan.changes.meanwhile import halves, is_label_gone_between, may_labels_come_first
from gpuplan.changes.nodes import Transition, departures, moves, transitions
from gpuplan.changes.step import Step
from gpuplan.changes.wording import verb
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Family, Finding, Origin, Severity
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Plan, Pool

# --- From one pool to another ------------------------------------------------------------------------------------


@check("GPU728", "partitions-hang-on-order", family=Family.STEP)
def partitions_hang_on_order(step: Step) -> Iterator[Finding]:
    """Nodes that are divided by MIG go to another pool, and keep their partitions in one order of syncs only.

    ## Why
    The rule that labels a pool's nodes is a folder of its own, synced by itself. First the pool that takes the nodes,
    then the one that lets them go: both rules say the same `nvidia.com/mig.config`, and nothing happens to GPUs. In
    between a node has the taints of both pools, and where their labels differ, those of the pool whose name is last in
    the alphabet (`processNodeFeatureRule` in `pkg/nfd-master/nfd-master.go` of kubernetes-sigs/node-feature-discovery).

    The other way round Node Feature Discovery takes the label away. Where the GPU Operator looks at the node in that
    time, it writes `all-disabled` (`controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator), and the MIG
    manager dissolves the partitions; where pods hold some, it fails halfway. Nothing keeps the right order, with Argo
    CD or with Flux: each applies both as it sees them.

    Other nodes lose nothing: where GPUs are not divided, where `nodeLabels` is not `nfd` and no label is taken away,
    and where the layouts differ, so that nodes are drained in any case.

    ## Instead
    Leave the nodes where they are. Or have `approval: manual` on both pools before the change, so that the order is
    yours, and say so in a comment. Or drain the nodes first. Pods that are listed with `--pods` are looked up: where
    nothing runs on the nodes there is no finding.
    """
    for old, moved in _moved(step):
        is_lost = is_label_gone_between(step, moved.before, moved.after)
        if old.name != moved.after.name and is_lost and (there := pods_on(step, old, moved.nodes)) != 0:
            was, to = old.name, moved.after.name
            yield Finding(
                _nodes_of(moved.after),
                f"partitions are lost where {verb(moved.nodes, 'goes', 'go')} from pool `{was}` to `{to}` in "
                "the wrong order",
                label=f"two {_syncers(step.after)} label them in turn",
                notes=(
                    f"`{was}` first: no `{MIG_CONFIG_LABEL}` for a while, and the operator may write `all-disabled`",
                    *pods_note(there),
                ),
                help=f"have `approval: manual` on both pools first, sync `{to}` and then `{was}`, and say so: "
                "`# gpuplan: ignore[GPU728] REASON`; or drain the nodes first",
            )


def _moved(step: Step) -> Iterator[tuple[Pool, Transition]]:
    """All nodes that have a pool before and after, with the one before."""
    for old, new in step.pools:
        if old is None:
            continue
        yield from ((old, moved) for moved in (transitions(old, new) if new is not None else ()))
        for leaving in departures(step, old, new):
            yield from ((old, moved) for moved in moves(old, leaving))


def _nodes_of(pool: Pool) -> Origin:
    return (pool.nodes.at / ("names" if pool.nodes.names else "namePattern")).key


def _syncers(plan: Plan) -> str:
    if plan.cluster.argocd is not None:
        return "Applications"
    return "Kustomizations" if plan.cluster.flux is not None else "folders"


# --- Files and labels --------------------------------------------------------------------------------------------


@check("GPU729", "units-of-neither-state", family=Family.STEP)
def units_of_neither_state(step: Step) -> Iterator[Finding]:
    """On the way nodes hand out what they neither did before nor will afterwards.

    ## Why
    What a node's labels name is in files of the GPU Operator, and these are synced by themselves. The device plugin's
    file of a pool is called as the pool, so it gets another content under the label that nodes have already, as soon as
    the change is merged; the partitions follow with the label, as late as somebody approves it. In between a new file
    holds for old partitions. From time-slicing to MIG, whole GPUs are handed out beside pods that share them; from MIG
    to anything else, GPUs in MIG mode are handed out as if they were whole (`buildGPUDeviceMap` in
    `internal/rm/device_map.go` of NVIDIA/k8s-device-plugin). Quotas let pods in for either.

    The other half comes first where Argo CD syncs the pool by itself (`approval: automatic`): a rule is applied in
    seconds, a new file in minutes. So it is at the end of a rollout, whose configuration becomes the pool's own.

    ## Instead
    Take the change back, and let `gpuplan rollout POOL --to SHARING` make steps of it: nodes that have moved use a
    file of another name. Where labels may come first, write `approval: manual` in a commit before, and sync the GPU
    Operator first. Nodes that are drained and stay cordoned until both are synced let nobody in: say so in a comment.
    """
    for _, moved in _moved(step):
        files_first, labels_first = halves(step, moved)
        pool = moved.after
        if files_first is not None:
            yield Finding(
                sharing_of(pool),
                f"until labels follow the operator's files, each node of pool `{pool.name}` publishes {files_first}",
                label="what it neither did nor will",
                notes=("files are synced by themselves, labels as late as somebody approves it",),
                help=f"take it back, {by_rollout(step, pool)}; or drain the nodes, uncordon them when both are synced, "
                "and say so: `# gpuplan: ignore[GPU729] REASON`",
            )
        elif labels_first is not None and may_labels_come_first(step, pool.name):
            yield Finding(
                sharing_of(pool),
                f"where labels come before the operator's files, each node of pool `{pool.name}` publishes "
                f"{labels_first}",
                label="what it neither did nor will",
                notes=("with `approval: automatic` Argo CD syncs both at once, and nothing orders them",),
                help="have `approval: manual` on the pool in a commit before, then sync the GPU Operator first; or "
                "drain the nodes, uncordon them when both are synced, and say so: `# gpuplan: ignore[GPU729] REASON`",
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
    Keep the entry until no node names it: `gpuplan retain --write` writes it down, and until when. Where `kubectl get
    nodes -l nvidia.com/mig.config=ENTRY` lists no node, say so in a comment.
    """
    known = mig_parted.configuration(step.after)["mig-configs"]
    used = {part.labels.get(MIG_CONFIG_LABEL) for part in step.before.parts}
    for layout in step.before.layouts:
        name = layout.config_name
        if name not in known and name not in used and step.before.may_be_divided_by(layout):
            yield Finding(
                name_of_cluster(step),
                f"the entry `{name}` vanishes, and nodes may still name it",
                label="no pool uses it, but nodes follow later",
                help=f"run `{RETAIN}` and commit what it writes; or, where `kubectl get nodes -l "
                f"{MIG_CONFIG_LABEL}={name}` lists no node, say so: `# gpuplan: ignore[GPU736] REASON`",
            )
