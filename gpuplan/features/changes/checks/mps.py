"""Checks on what the MPS control daemon learns of a step (GPU756)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gpuplan.compiler.base.diagnostics import Family, Finding, Label, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.operators import nearest_line
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.dra import uses_claims
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, Mps
from gpuplan.features.changes.checks.places import sharing_of
from gpuplan.features.changes.nodes import Transition, departures, moves, transitions
from gpuplan.features.changes.step import Step


@check("GPU756", "mps-daemon-not-told", Severity.WARNING, family=Family.STEP)
def mps_daemon_not_told(step: Step) -> Iterator[Finding]:
    """Nodes that share GPUs by MPS get another configuration, of which their MPS daemons are not told.

    ## Why
    A sidecar of the MPS control daemon, config-manager, follows the node's label and signals the daemon. From v25.3 to
    v26.3 the operator lets these pods see all processes of the node (`hostPID` in
    `assets/state-mps-control-daemon/0400_daemonset.yaml`), and config-manager panics at the first one without a command
    line, such as any thread of the kernel (`findPidToSignal` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin, mended in v0.20.0). It has replaced the file by then, finds nothing left to do when it
    starts again, and never signals. The device plugin's own config-manager works, so that the node hands out as many
    shares as it should, with the memory and thread limits of as many as there were before.

    ## Instead
    When the label of the drained nodes has moved, delete the daemons' pods there: new ones read the new file. Or use
    the operator from v26.7 on.
    """
    line = nearest_line(step.after.cluster.gpu_operator.version)
    if line.signals_mps_daemon or uses_claims(step.before) or uses_claims(step.after):
        return
    for moved in _moved(step):
        shares = [part.sharing for part in (moved.before, moved.after) if isinstance(part.sharing, Mps)]
        keys = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in (moved.before, moved.after)}
        if len(shares) > 1 and len(keys) > 1:
            operator = step.after.cluster.gpu_operator
            where = listing(moved.nodes.names) if moved.nodes.names else f"nodes of pool `{moved.after.name}`"
            yield Finding(
                sharing_of(moved.after),
                f"the MPS daemons of {where} are not told of their new configuration",
                label="limits stay those of the old one",
                related=(Label(operator.at / "version", f"config-manager of {line.name} panics instead"),),
                help="drain the nodes, and when their label has moved run "
                f"`kubectl delete pod -n {operator.namespace} -l app=nvidia-device-plugin-mps-control-daemon "
                "--field-selector spec.nodeName=NODE` for each",
            )


def _moved(step: Step) -> Iterator[Transition]:
    """Nodes that stay in their pool, and those that go to another one."""
    stay = (transitions(old, new) for old, new in step.kept_pools)
    go = (moves(old, leaving) for old, new in step.pools if old is not None for leaving in departures(step, old, new))
    return chain.from_iterable(chain(stay, go))
