"""The page that says which of the GPU Operator's pods restart for which setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpuplan.compiler.catalog.operands import Restart, Where, operands, restart_source
from gpuplan.compiler.catalog.operators import Line, lines

_HEAD = """\
# What rolls

A change that looks small may restart pods on every node. This page says which DaemonSets of the GPU Operator restart
for which of its settings, and what becomes of your pods then. `gpuplan diff` says it of a change, behind `rolls`, and
in JSON as `daemonSets`. It is made of one table, `gpuplan/compiler/catalog/operator_data/operands.yaml`, which cites
the release, file and line of each row, and a test fails where a row is missing.

The operator renders each DaemonSet anew from the ClusterPolicy. What stands in the pod template restarts its pods, one
node after the other; what does not, such as `daemonsets.rollingUpdate`, restarts nothing. With
`daemonsets.updateStrategy: OnDelete` pods stay until somebody deletes them, or until it is taken back.

## What a restart does to other pods

"""

_FATES = {
    Restart.EVICTS: (
        "the node is cordoned, and pods that hold GPUs are evicted, then the driver restarts: `repartition`. With "
        "`driver.upgradePolicy.autoUpgrade: false` nothing happens until somebody deletes the driver's pods, "
        "or until it is `true` again, and the ClusterPolicy is not ready until then"
    ),
    Restart.ENDS: "every CUDA process ends on nodes that share GPUs by MPS: `repartition`",
    Restart.PAUSES: "what runs goes on, and new pods wait: `plugin-restart`",
    Restart.WATCHES: "nothing waits for it: `plugin-restart`",
}
_WHERE = {Where.ALL: "all with GPUs", Where.MIG: "whose GPUs can be divided", Where.MPS: "that share GPUs by MPS"}

_SURPRISES = """\
## What is easily missed

- **A taint with a key of its own** changes `daemonsets.tolerations`, which stands in every pod template, the driver's
  too. Before v26.7 the operator then evicts pods that hold GPUs, from all nodes, a few at a time. From v26.7 on it
  sees that what is installed stays the same, and restarts the driver in place on a cordoned node.
- **Any other release of the chart** does the same, whichever driver is named: the chart puts its version on all
  operands as the label `helm.sh/chart`, and the image of the driver's manager may be another one.
- **A change of any pool's sharing** gives the device plugin's ConfigMap another name, which three DaemonSets hold:
  the device plugin, GPU Feature Discovery and the MPS daemons. With `gpuOperator.devicePluginConfig: fixed` it keeps
  its name, and only nodes whose label moves are touched.
- **A setting of the device plugin** is not always one of MPS: its environment and arguments are the plugin's alone,
  its image and resources are also those of the MPS daemons.
- **A pod with GPUs that keeps files in an `emptyDir`, or that no controller made,** is not evicted for a driver, unless
  `driver.upgradePolicy.gpuPodDeletion` says `deleteEmptyDir` and `force`. Its node stays cordoned, with the label
  `nvidia.com/gpu-driver-upgrade-state=upgrade-failed`, and with `maxParallelUpgrades: 1` no other node follows. With
  `drain.enable` the node is drained instead.
- **The environment of the DCGM exporter** reaches it with v25.3.3 and v25.3.4 on OpenShift alone. Elsewhere
  `dcgmExporter.env` changes nothing, and [GPU880](../rules/GPU880.md) names the argument that says the same.
- **On OpenShift** GPU Feature Discovery takes its labels off a node as it ends and writes them again as it starts:
  pods that select nodes by them may wait for a moment.
- **From operator v26.3 on a device plugin that starts begins with an empty file**, and hands out whole GPUs as
  `nvidia.com/gpu` until config-manager has read the node's label, a second or more later (`Get` in
  `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin v0.20.0). Where pods ask for `nvidia.com/gpu` of shared or
  partitioned GPUs (`rename: false`, a MIG strategy `single`), one that comes in between may get a whole GPU beside
  others' shares ([GPU738](../rules/GPU738.md)).
- **A pool that names its own driver** has NVIDIADrivers bring the drivers of all nodes: [another DaemonSet for
  each](../how-to/run-two-drivers.md), which `rolls` names by its NVIDIADriver, as in `NVIDIADriver/gpuplan-volta`: the
  DaemonSet's own name ends in a hash. When the first pool begins, pods that hold GPUs are evicted on every node, a few
  at a time of each NVIDIADriver. With `driver.upgradePolicy.autoUpgrade: false` the old driver pods stay until somebody
  deletes them, and the new ones wait. Such a DaemonSet selects nodes by their pool's label, so that a node that
  changes its pool changes its driver pod.

"""


def operands_document() -> str:
    """The operands, what their restarts do, and which settings stand in whose pod template."""
    return "".join(_parts(lines()[-1]))


def _parts(newest: Line) -> Iterator[str]:
    yield f"{_HEAD}| restart | what becomes of pods | read in |\n|---|---|---|\n"
    for restart in reversed(Restart):
        yield f"| {restart} | {_FATES[restart]} | {restart_source(restart, newest.name)} |\n"
    yield f"\n{_SURPRISES}## Who runs where\n\n| DaemonSet | on nodes | its restart |\n|---|---|---|\n"
    for operand in operands(newest.name):
        yield f"| `{operand.daemon_set}` | {_WHERE[operand.where]} | {operand.restart} |\n"
    yield f"\n## Which settings restart whom, in {newest.name}\n\n| settings | DaemonSets |\n|---|---|\n"
    now, groups = _holders(newest), defaultdict[tuple[str, ...], list[str]](list)
    for key, sets in now.items():
        groups[sets].append(key)
    for sets, keys in groups.items():
        yield f"| {_listed(keys)} | {_listed(sets)} |\n"
    yield "\n## What older lines do otherwise\n\n| line | settings | DaemonSets |\n|---|---|---|\n"
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
