"""Checks on what guards the sync of a pool's nodes (GPU740-749)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.node_patterns import NodePattern, parse
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Plan, Pool
from gpuplan.planning.projects import seconds
from gpuplan.policy.models import Guard, NodeLabels


@check("GPU740", "guard-never-runs", Severity.WARNING)
def guard_never_runs(plan: Plan) -> Iterator[Finding]:
    """A pool has a guard where nothing would run it.

    ## Why
    The guard's Jobs are hooks: Argo CD runs them before and after it syncs the pool's folder. Flux has no hooks, and
    whoever applies folders by hand runs none. With `nodeLabels: external` the folder does not change nodes at all, for
    others do. The Jobs are not written then, and nothing keeps GPUs that pods hold from being repartitioned.

    ## Instead
    Remove the guard in this cluster's overlay with `disruption: {guard: null}`, and drain nodes before a change. Or
    have Argo CD sync the cluster, and write `nodeLabels: nfd` or `node`.
    """
    cluster = plan.cluster
    if cluster.spec.node_labels is NodeLabels.EXTERNAL:
        cause, related = "others label its nodes", [Label(cluster.at / "nodeLabels", "`external`")]
    elif cluster.argocd is None:
        cause = "only Argo CD runs Jobs before and after a sync"
        related = [Label(cluster.flux.at.key, "synced by Flux")] if cluster.flux else []
    else:
        return
    for pool, at, _ in _guards(plan):
        yield Finding(
            at.key,
            f"nothing runs the guard of pool `{pool.name}`: {cause}",
            label="never runs",
            related=tuple(related),
            help="write `guard: null` in the cluster's overlay, and drain nodes before their labels change",
        )


@check("GPU741", "guard-has-nothing-to-guard", Severity.WARNING)
def guard_has_nothing_to_guard(plan: Plan) -> Iterator[Finding]:
    """A pool has a guard, and no change of it repartitions GPUs.

    ## Why
    The guard reads the label `nvidia.com/mig.config`. Nodes whose GPU model has no MIG do not have it: a change of
    how they are shared restarts the device plugin, and pods that hold GPUs go on. Under MPS they do not, but the
    daemons restart with the GPU Operator's files, which a guard of the pool's nodes does not see.

    ## Instead
    Remove `disruption.guard`.
    """
    for pool, at, _ in _guards(plan):
        if not any(MIG_CONFIG_LABEL in part.labels for part in pool.parts):
            yield Finding(
                at.key,
                f"there is nothing to guard in pool `{pool.name}`: {pool.gpu.id} has no MIG",
                label="never repartitioned",
                related=(Label(pool.at / "gpu", "has no MIG"),),
                help="remove `guard`",
            )


_LEAST_SECONDS = 300


@check("GPU742", "guard-gives-up-early", Severity.WARNING)
def guard_gives_up_early(plan: Plan) -> Iterator[Finding]:
    """A guard waits less long for nodes than they may well need.

    ## Why
    Before mig-manager touches a GPU it waits until the operator's own pods have left the node, up to five minutes for
    each kind of them (`waitForPodsToBeDeleted` in `pkg/mig/reconfigure/reconfigure.go` of NVIDIA/mig-parted). Then
    it partitions one GPU after the other, and may have to reboot the node. A guard that gives up before that fails
    syncs that went well.

    ## Instead
    Write how long the slowest node may take, such as `timeout: 30m`; more where nodes reboot.
    """
    for pool, at, guard in _guards(plan):
        if seconds(guard.timeout) < _LEAST_SECONDS:
            yield Finding(
                at / "timeout",
                f"the guard of pool `{pool.name}` gives up after {seconds(guard.timeout)} seconds",
                label="too soon for a node to be partitioned",
                notes=("mig-manager waits up to 5 minutes for each kind of the operator's pods to leave a node",),
                help="write `timeout: 30m`",
            )


@check("GPU743", "guard-reads-pattern-otherwise")
def guard_reads_pattern_otherwise(plan: Plan) -> Iterator[Finding]:
    """A guard cannot read the pool's pattern as Node Feature Discovery does.

    ## Why
    Node Feature Discovery matches names with RE2, and the guard with Python. Almost all that gpuplan takes means the
    same to both. Named classes such as `[[:digit:]]` and groups such as `(?<name>...)` do not: the guard would look at
    other nodes than those that are about to change.

    ## Instead
    Write the characters of a named class, such as `[0-9]`, and `(?:...)` for a group.
    """
    for pool, at, _ in _guards(plan):
        pattern = pool.nodes.name_pattern
        if pattern is not None and isinstance(parse(pattern), NodePattern) and not _is_python(pattern):
            yield Finding(
                pool.nodes.at / "namePattern",
                f"the guard of pool `{pool.name}` cannot read `{pattern}` as Node Feature Discovery does",
                label="means something else to Python",
                related=(Label(at.key, "read by this guard"),),
                help="write `[0-9]` for a class such as `[[:digit:]]`, and `(?:...)` for a group with a name",
            )


def _is_python(pattern: str) -> bool:
    """Whether Python takes the pattern, and without a doubt: it warns of what looks like a class inside a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(pattern, re.ASCII)
        except (re.error, Warning):
            return False
    return True


def _guards(plan: Plan) -> Iterator[tuple[Pool, Origin, Guard]]:
    for pool in plan.pools:
        if pool.spec.disruption.guard is not None:
            yield pool, pool.at / "disruption" / "guard", pool.spec.disruption.guard
