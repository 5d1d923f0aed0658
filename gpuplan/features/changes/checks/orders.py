"""Checks on the orders in which the folders of a step are synced (GPU738)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Family, Finding, Severity
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL
from gpuplan.features.changes.checks.places import chosen_by, pods_on, sharing_of
from gpuplan.features.changes.orders import FILES, Hazard, bad_orders, syncers_of
from gpuplan.features.changes.step import Step


@check("GPU738", "unsafe-in-some-order", Severity.WARNING, family=Family.STEP)
def unsafe_in_some_order(step: Step) -> Iterator[Finding]:
    """In some order of syncs nodes name what is not there, get a taint twice, or are too few for what is guaranteed.

    ## Why
    Labels of nodes and the files that they name are synced by themselves. With Argo CD and `approval: automatic` both
    start at once: a rule needs seconds, a new file minutes, since a chart, a ClusterPolicy and DaemonSets follow one
    another. Sync waves order the objects of one Application, not two of them. Until the file comes the MIG manager
    calls a node `failed` whose label names an entry that it does not know, and the device plugin's config-manager ends
    with an error (`updateConfigName` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin): what is handed out
    stays as it was, or is nothing where the plugin restarts. From operator v26.3 on config-manager begins with an empty
    configuration when it starts again (`Get` there), and the node hands out GPUs as if nothing shared or divided them:
    `gpuplan diff -o json` calls that `early-unshared`.

    Where nodes go to another pool and both have a taint of one key and effect, Node Feature Discovery must not see both
    rules match: it notes the taints in an annotation that it then cannot read (`setTaints` in
    `pkg/nfd-master/nfd-master.go` of kubernetes-sigs/node-feature-discovery), and changes no taint of the node any
    more. The folder that lets the nodes go comes first.

    Where two pools swap nodes, one of them may have lost its own before it has the other's: quotas admit pods that find
    no place.

    `gpuplan validate --against` judges every order: the operator's files as one, each pool's labels as one, each of
    them synced or not. What is wrong in some order is said by the rule that is about it (GPU700, GPU701, GPU702,
    GPU728, GPU729), and by this one where there is none. Flux waits for the operator, and where a person approves a
    pool's labels, the order is that person's: `gpuplan diff` says which one is safe.

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
