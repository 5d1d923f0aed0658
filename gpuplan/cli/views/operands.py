"""The page that says which of the GPU Operator's pods restart for which setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpuplan.compiler.catalog.operands import Restart, Where, operands, restart_source
from gpuplan.compiler.catalog.operators import Line, lines

_HEAD = """\
# What rolls

A small change may restart pods on every node. This page lists the settings of the GPU Operator, the DaemonSets that
each setting restarts, and the effect on your pods. `gpuplan diff` reports the same for a change, after `rolls`, and in
JSON as `daemonSets`. The source is a table, `gpuplan/compiler/catalog/operator_data/operands.yaml`. The table cites
the release, file and line of each row, and a test fails if a row is missing.

The operator renders each DaemonSet again from the ClusterPolicy. A change of the pod template restarts the DaemonSet's
pods, one node after the other. Other changes, such as `daemonsets.rollingUpdate`, restart nothing. With
`daemonsets.updateStrategy: OnDelete` pods stay until somebody deletes them, or until you change this setting back.

## What a restart does to other pods

"""

_FATES = {
    Restart.EVICTS: (
        "the node is cordoned, pods that hold GPUs are evicted, and the driver restarts: `repartition`. With "
        "`driver.upgradePolicy.autoUpgrade: false` nothing happens until somebody deletes the driver's pods, "
        "or until it is `true` again; until then the ClusterPolicy is not ready"
    ),
    Restart.ENDS: "every CUDA process ends on nodes that share GPUs by MPS: `repartition`",
    Restart.PAUSES: "running pods continue, and new pods wait: `plugin-restart`",
    Restart.WATCHES: "nothing waits for it: `plugin-restart`",
}
_WHERE = {Where.ALL: "all with GPUs", Where.MIG: "with GPUs that MIG can divide", Where.MPS: "with GPUs shared by MPS"}

_SURPRISES = """\
## What is easily missed

- **A taint with a key of its own** changes `daemonsets.tolerations`, which is in every pod template, including the
  driver's. Before v26.7 the operator then evicts pods that hold GPUs, from all nodes, a few at a time. From v26.7 on
  the operator notices that the installed driver is the same, and restarts the driver in place on a cordoned node.
- **Any other release of the chart** does the same, even with the same driver. The chart puts its version on all
  operands as the label `helm.sh/chart`, and may change the image of the driver's manager.
- **A change of any pool's sharing** changes the name of the device plugin's ConfigMap, which three DaemonSets have:
  the device plugin, GPU Feature Discovery and the MPS daemons. With `gpuOperator.devicePluginConfig: fixed` the
  ConfigMap keeps its name, and the change affects only nodes whose label changes.
- **A setting of the device plugin** may also be a setting of MPS. The MPS daemons have the plugin's image and
  resources, but not its environment and arguments.
- **A pod with GPUs that has files in an `emptyDir`, or that has no controller,** is not evicted for a driver, unless
  `driver.upgradePolicy.gpuPodDeletion` sets `deleteEmptyDir` and `force`. Its node stays cordoned, with the label
  `nvidia.com/gpu-driver-upgrade-state=upgrade-failed`, and with `maxParallelUpgrades: 1` no other node follows. With
  `drain.enable` the node is drained instead.
- **The environment of the DCGM exporter** takes effect only with v25.3.3 and v25.3.4 on OpenShift. In all other cases
  `dcgmExporter.env` changes nothing, and [GPU880](../rules/GPU880.md) names the argument to use instead.
- **On OpenShift** GPU Feature Discovery removes its labels from a node when it ends, and writes them again when it
  starts. Pods that select nodes by these labels may wait for a moment.
- **From operator v26.3 on a device plugin starts with an empty file.** It hands out whole GPUs as `nvidia.com/gpu`
  until config-manager has read the node's label, a second or more later (`Get` in `cmd/config-manager/main.go` of
  NVIDIA/k8s-device-plugin v0.20.0). Shared or partitioned GPUs may also be called `nvidia.com/gpu` (`rename: false`, a
  MIG strategy `single`). A pod that starts in between may then get a whole GPU beside others' shares
  ([GPU738](../rules/GPU738.md)).
- **If a pool names its own driver**, NVIDIADrivers install the drivers of all nodes, each with [a DaemonSet of its
  own](../how-to/run-two-drivers.md). `rolls` names such a DaemonSet by its NVIDIADriver, as in
  `NVIDIADriver/gpuplan-volta`, since the DaemonSet's own name ends in a hash. When the first pool begins, pods that
  hold GPUs are evicted on every node, a few at a time of each NVIDIADriver. With
  `driver.upgradePolicy.autoUpgrade: false` the old driver pods stay until somebody deletes them, and the new driver
  pods wait. Such a DaemonSet selects nodes by their pool's label: a node that changes its pool changes its driver pod.

"""


def operands_document() -> str:
    """The operands, what their restarts do, and which settings stand in whose pod template."""
    return "".join(_parts(lines()[-1]))


def _parts(newest: Line) -> Iterator[str]:
    yield f"{_HEAD}| restart | effect on pods | source |\n|---|---|---|\n"
    for restart in reversed(Restart):
        yield f"| {restart} | {_FATES[restart]} | {restart_source(restart, newest.name)} |\n"
    yield f"\n{_SURPRISES}## Nodes of each DaemonSet\n\n| DaemonSet | on nodes | its restart |\n|---|---|---|\n"
    for operand in operands(newest.name):
        yield f"| `{operand.daemon_set}` | {_WHERE[operand.where]} | {operand.restart} |\n"
    yield f"\n## Settings and DaemonSets, in {newest.name}\n\n| settings | DaemonSets |\n|---|---|\n"
    now, groups = _holders(newest), defaultdict[tuple[str, ...], list[str]](list)
    for key, sets in now.items():
        groups[sets].append(key)
    for sets, keys in groups.items():
        yield f"| {_listed(keys)} | {_listed(sets)} |\n"
    yield "\n## Differences of older lines\n\n| line | settings | DaemonSets |\n|---|---|---|\n"
    for line in reversed(lines()[:-1]):
        then = _holders(line)
        for key in dict.fromkeys((*now, *then)):
            if then.get(key) != now.get(key):
                yield f"| {line.name} | `{key}` | {_listed(then.get(key, ())) or 'none'} |\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _holders(line: Line) -> dict[str, tuple[str, ...]]:
    found = defaultdict[str, list[str]](list)
    for operand in operands(line.name):
        for key in dict.fromkeys((*filter(None, [operand.enabled]), *(read.key for read in operand.reads))):
            found[key].append(operand.daemon_set)
    return {key: tuple(names) for key, names in found.items()}
