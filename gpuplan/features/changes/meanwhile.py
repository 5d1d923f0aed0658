"""The units that nodes publish while half of a step is applied: the GPU Operator's files, or the nodes' labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.plain import mappings, section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog.operators import nearest_line
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, Layout, Mig, Plan, Pool
from gpuplan.compiler.policy.models import Allocation, Approval, ClusterMigStrategy, MigStrategy, NodeLabels
from gpuplan.features.changes.model import who_names
from gpuplan.features.changes.nodes import Transition
from gpuplan.features.changes.step import Step


class Published(NamedTuple):
    """The units that a node publishes: the number of each resource, by the device behind it."""

    units: Mapping[tuple[str, str], int]

    def __str__(self) -> str:
        """``8 `nvidia.com/gpu` (GPUs in MIG mode as if they were whole)``."""
        found = [
            f"{count} `{resource}`" + (f" ({_MIG_MODE})" if device == _MIG_MODE else "")
            for (resource, device), count in sorted(self.units.items())
        ]
        return joined(found) if found else "nothing"


class Halves(NamedTuple):
    """The units that nodes publish in between, or None if they are those of before or of afterwards.

    The one is with the new files and the old labels, the other the other way round.
    """

    files_first: Published | None
    labels_first: Published | None


def halves(step: Step, moved: Transition) -> Halves:
    """Both halves of a step for some nodes.

    What a label names is in the files of the GPU Operator, which are synced by themselves. Where a file keeps its name,
    so that nodes find another content under the label that they have, or where a label arrives before the file, the
    device plugin's configuration and the partitions are of two states.
    """
    if Allocation.DRA in (moved.before.spec.allocation, moved.after.spec.allocation):
        return Halves(None, None)
    before, after = step.before, step.after
    first, last = published(before, moved.before, moved.before), published(after, moved.after, moved.after)
    files, labels = published(after, moved.before, moved.before), published(before, moved.after, moved.after)
    return Halves(*(None if found in (first, last) else found for found in (files, labels)))


def lost_key(step: Step, was: Pool, to: Pool) -> str:
    """Return the effect, in words, if the device plugin's file loses a key that nodes name until their label moves.

    Empty where it does not, or a list shows that none names it. Where the ConfigMap keeps its name no pod restarts for
    it, and config-manager cannot replace a link to what is gone (`updateSymlink` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin). Elsewhere all pods do, and begin without the key.
    """
    key, known = was.labels[DEVICE_PLUGIN_CONFIG_LABEL], device_plugin.configurations(step.after)
    by = step.naming(DEVICE_PLUGIN_CONFIG_LABEL, key)
    if by == () or key in known or Allocation.DRA in (was.spec.allocation, to.spec.allocation):
        return ""
    units = "GPUs as if nothing shared or divided them" if _reads_late(step) else "no GPUs"
    effect = f"nodes {_SHARES_ON}" if step.keeps_plugin_file else f"until their label moves, nodes hand out {units}"
    return f"`{key}` vanishes while {who_names(by)}: {effect}"


def without_file(step: Step) -> str:
    """Return the effect, in words, on undivided nodes whose file goes before the label that names it."""
    if step.keeps_plugin_file:
        return f"they {_SHARES_ON}"
    until = "whole GPUs" if _reads_late(step) else "no GPUs until the label goes, and then whole ones"
    return f"they hand out {until}, beside pods that still share some"


_SHARES_ON: Final = (
    "share GPUs as they did until their device plugin restarts, and it does not follow the label until its pod is "
    "deleted"
)


def _reads_late(step: Step) -> bool:
    """Whether pods of the device plugin whose label names a key that is not there begin as if they had no label.

    (`Get` and `updateConfigName` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin.)
    """
    return nearest_line(step.after.cluster.gpu_operator.version).reads_label_late


def may_labels_come_first(step: Step, pool: str) -> bool:
    """Whether nothing orders the nodes' labels after the files: two Applications of Argo CD that sync by themselves.

    Sync waves order the objects of one Application; a root, if there is one on both sides, syncs one Application after
    the other. Flux waits (`dependsOn`), and a person reads in which order.
    """
    plans = step.before, step.after
    pools = [(plan, found) for plan in plans if (found := plan.find_pool(pool)) is not None]
    return (
        all(plan.cluster.argocd is not None for plan in plans)
        and step.after.cluster.spec.node_labels is not NodeLabels.EXTERNAL
        and any(found.spec.disruption.approval is Approval.AUTOMATIC for _, found in pools)
        and not all(plan.cluster.argocd and plan.cluster.argocd.orders(found) for plan, found in pools)
    )


# --- What is published -------------------------------------------------------------------------------------------

_MIG_MODE: Final = "GPUs in MIG mode as if they were whole"
_WHOLE: Final = "GPU"


def published(plan: Plan, named: Pool, divided: Pool) -> Published | None:
    """Return the units by the file that one part's label names, on GPUs divided as the other part's, or None.

    (`buildGPUDeviceMap` and `buildMigDeviceMap` in `internal/rm/device_map.go` of NVIDIA/k8s-device-plugin. Without a
    file config-manager stops, `updateConfigName` in `cmd/config-manager/main.go` there.)
    """
    config = device_plugin.configurations(plan).get(named.labels[DEVICE_PLUGIN_CONFIG_LABEL])
    if config is None:
        return None
    layout = divided.sharing.layout if isinstance(divided.sharing, Mig) else None
    return published_by(config, plan.cluster.gpu_operator.spec.mig_strategy, layout, divided.nodes.gpus_per_node)


def published_by(config: Mapping[str, Any], cluster: ClusterMigStrategy, layout: Layout | None, gpus: int) -> Published:
    """Return the units by a file, under a cluster's strategy, on so many GPUs, whole or divided by a layout."""
    own = str(section(config, "flags").get("migStrategy", ClusterMigStrategy.NONE))
    strategy = own if cluster is ClusterMigStrategy.PER_POOL else cluster.value
    found = list(_devices(layout, gpus, strategy))
    if strategy == MigStrategy.SINGLE and len({device for _, device in found}) > 1:
        return Published({})  # the plugin does not start
    methods = [section(config, "sharing", name) for name in ("timeSlicing", "mps")]
    shares = (item for method in methods for item in mappings(method.get("resources")))
    replicas = {str(item["name"]): item["replicas"] for item in shares if {"name", "replicas"} <= item.keys()}
    suffix = ".shared" if any(method.get("renameByDefault") for method in methods) else ""
    units: Counter[tuple[str, str]] = Counter()
    for resource, device in found:
        is_shared = resource in replicas
        units[resource + suffix * is_shared, device] += replicas.get(resource, 1)
    return Published(dict(units))


def _devices(layout: Layout | None, gpus: int, strategy: str) -> Iterator[tuple[str, str]]:
    """The resource of each device of a node, and what it is. A strategy of `none` takes GPUs in MIG mode for whole."""
    for index in range(gpus):
        entry = entry_of(layout, index) if layout is not None else None
        if entry is None or not entry.mig_enabled:
            yield GPU_RESOURCE, _WHOLE
        elif strategy == ClusterMigStrategy.NONE:
            yield GPU_RESOURCE, _MIG_MODE
        else:
            for name, count in entry.instances.items():
                is_single = strategy == MigStrategy.SINGLE
                resource = GPU_RESOURCE if is_single else mig_resource(name)
                yield from [(resource, name)] * max(count, 0)


# --- Labels that are gone for a moment ---------------------------------------------------------------------------


def is_label_gone_between(step: Step, was: Pool, to: Pool) -> bool:
    """Whether nodes that go from one pool to another are harmed where the one lets go before the other takes them.

    Each pool's rule is a folder of its own. Where the one that lets nodes go is synced first, Node Feature Discovery
    takes the labels from them. Without `nvidia.com/mig.config` the GPU Operator writes `all-disabled`, and the MIG
    manager dissolves the partitions. It does not look because that label went, but when a node comes or others of its
    labels change, when its ClusterPolicy does, and before 26.7 when any of its DaemonSets does
    (`controllers/nodelabeling_controller.go` there; before 26.7 `labelGPUNodes` in `controllers/state_manager.go`).
    Without `nvidia.com/device-plugin.config` GPUs are published whole, whatever shares them.
    Where labels are parts of Node objects, or somebody else's, none is taken away.
    """
    if not step.before.cluster.spec.node_labels is step.after.cluster.spec.node_labels is NodeLabels.NFD:
        return False
    if isinstance(was.sharing, Mig):
        return True
    if Allocation.DRA in (was.spec.allocation, to.spec.allocation):
        return False
    unlabelled = Published({(GPU_RESOURCE, _WHOLE): was.nodes.gpus_per_node})
    return unlabelled not in (published(step.before, was, was), published(step.after, to, to))
