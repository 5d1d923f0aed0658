"""Findings about nodes and their pools: what nodes publish, and who shares or labels them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.partitions import is_kept
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, sequence
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.discovered import (
    GKE_BOARD_LABEL,
    GKE_SHARING_LABELS,
    GPU_RESOURCE,
    MIG_STATE_LABEL,
    bare_product,
)
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, POOL_LABEL
from gpuplan.features.live.dump import Dump, Item, texts_of
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.grouping import Board, Group
from gpuplan.features.live.pools.layouts import published_by
from gpuplan.features.live.pools.nodes import Machine
from gpuplan.features.live.pools.sharing import Shared

# --- Resources -----------------------------------------------------------------------------------------------------


def tell_of_published(group: Group, board: Board, spec: Mapping[str, Any], shared: Shared, reports: Reports) -> None:
    """Nodes that publish something else than their label asks for, where that is known."""
    gpus, expected = spec["nodes"]["gpusPerNode"], dict[str, int]()
    match shared.spec:
        case {"exclusive": _}:
            expected = {GPU_RESOURCE: gpus}
        case {"timeSlicing": shares} | {"mps": shares}:
            name = GPU_RESOURCE if shares.get("rename") is False else f"{GPU_RESOURCE}.shared"
            expected = {name: gpus * shares["replicas"]}
        case {"mig": mig} if board.gpu is not None and "timeSlicing" not in mig:
            expected = published_by(group.claim.first.at, board.gpu, shared.division, gpus, shared.strategy)
        case _:
            pass
    if not expected or spec.get("rollout") or spec.get("allocation"):
        return
    wrong = [machine for machine in group.machines if machine.published and machine.published != expected]
    if not wrong:
        return
    first = wrong[0]
    state = first.labels.get(MIG_STATE_LABEL, "")
    reports.say(
        "publishes-otherwise",
        first.at / "status",
        f"Pool {group.pool}",
        notes=(
            f"as the nodes are labelled it is {_spelt(expected)}",
            *((f"`{MIG_STATE_LABEL}` is `{state}` there",) if state else ()),
        ),
        first=first,
        found=group,
        nodes=count(len(wrong), "node"),
        publish="publishes" if len(wrong) == 1 else "publish",
        published=_spelt(first.published),
    )


def tell_of_gke(group: Group, reports: Reports) -> bool:
    """Whether GKE's own device plugin shares the nodes' GPUs, as their node pool says: then no policy can."""
    first = next((machine for machine in group.machines if _gke_marks(machine)), None)
    if first is None or group.is_claimed:
        return False
    label = ", ".join(f"`{mark}: {first.labels[mark]}`" for mark in _gke_marks(first))
    reports.say("shared-by-gke", first.at / "metadata" / "labels", found=group, label=label)
    return True


def _gke_marks(machine: Machine) -> list[str]:
    return [mark for mark in GKE_SHARING_LABELS if machine.labels.get(mark)]


_WITHOUT_GKES_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html"""


def tell_of_flavor(group: Group, flavor: Item, reports: Reports) -> None:
    """A flavor that cannot be the pool's."""
    reports.say("fixed-flavor", flavor.at / "spec" / "topologyName", f"Pool {group.pool}", flavor=flavor, found=group)


def tell_of_unknown(group: Group, reports: Reports) -> None:
    labels = group.machines[0].labels if group.machines else {}
    place = group.machines[0].at / "metadata" / "labels" if group.machines else group.claim.first.at
    notes = ["GPU Feature Discovery writes the label where the driver runs"]
    if labels.get(GKE_BOARD_LABEL):
        notes.append(f"GKE has a device plugin of its own; `{_WITHOUT_GKES_PLUGIN}=true` keeps it off nodes")
    label = "no `nvidia.com/gpu.product`" if group.machines else "none of its nodes is in the dump"
    reports.say("unknown-model", place, notes=notes, found=group, label=label)


def tell_of_drivers(dump: Dump, reports: Reports) -> None:
    """NVIDIADrivers that somebody else wrote for some nodes: they stay, and no pool says what they do."""
    for item in dump.of_kind("nvidia.com", "NVIDIADriver"):
        selector = inside(item.body, "spec", "nodeSelector")
        if selector and POOL_LABEL not in selector:
            reports.say("driver-of-others", item.at / "spec" / "nodeSelector", item=item)


_UNSERVED: Final = {
    ("nvidia.com/gpu.deploy.operands", "false"): "the GPU Operator runs nothing there",
    ("nvidia.com/gpu.workload.config", "vm-passthrough"): "with `sandboxWorkloads` its GPUs are for virtual machines",
    ("nvidia.com/gpu.workload.config", "vm-vgpu"): "with `sandboxWorkloads` its GPUs are for virtual machines",
}
"""Labels by which the operator leaves a node without a device plugin (`controllers/state_manager.go` there)."""


def tell_of_unserved(groups: Iterable[Group], reports: Reports) -> None:
    """Nodes of pools that hand out nothing, since a label takes them from the GPU Operator."""
    for found in groups:
        for (key, value), why in _UNSERVED.items():
            unserved = [machine for machine in found.machines if machine.labels.get(key) == value]
            if unserved:
                reports.say(
                    "unserved-nodes",
                    unserved[0].at / "metadata" / "labels" / key,
                    f"Pool {found.pool}",
                    first=unserved[0].name,
                    found=found,
                    nodes=count(len(unserved), "node"),
                    why=why,
                )


def tell_of_mixtures(groups: Iterable[Group], reports: Reports) -> None:
    """Pools of which not all nodes are alike."""
    for found in groups:
        products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
        counts = Counter(machine.counted for machine in found.machines if machine.counted)
        for what, others in (("GPU model", products), ("number of GPUs", counts)):
            if len(others) > 1:
                [(most, _), *rest] = others.most_common()
                reports.say(
                    "mixed-nodes",
                    found.machines[0].at,
                    f"Pool {found.pool}",
                    found=found,
                    most=most,
                    others=", ".join(str(value) for value, _ in rest),
                    what=what,
                )


def _spelt(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{number}x `{name}`" for name, number in sorted(resources.items())) or "nothing"


# --- Nodes that are not as usual ---------------------------------------------------------------------------------


def tell_of_stuck(group: Group, reports: Reports) -> None:
    """Nodes on which nothing can run, or whose partitions are not made."""
    stuck = [(machine, why) for machine in group.machines if (why := _hindrance(machine))]
    if stuck:
        first, why = stuck[0]
        nodes = count(len(stuck), "node")
        reports.say("stuck-nodes", first.at, f"Pool {group.pool}", found=group, first=first, nodes=nodes, why=why)


def _hindrance(machine: Machine) -> str:
    state = machine.labels.get(MIG_STATE_LABEL, "")
    if state not in ("", "success") and not machine.published:
        return f"`{MIG_STATE_LABEL}` is `{state}`, and it publishes no GPUs"
    return "" if machine.is_ready else "the kubelet does not say `Ready`"


_GUEST: Final = regex(r"(?:GRID|NVIDIA)-.*-\d+[ABCQ]")
"""The names of vGPU types: https://docs.nvidia.com/vgpu/latest/grid-vgpu-user-guide/index.html"""
_GUEST_LABEL: Final = "nvidia.com/vgpu.present"
_MODE_LABEL: Final = "nvidia.com/gpu.mode"
"""Labels of GPU Feature Discovery (`internal/lm/vgpu.go` and `nvml.go` of NVIDIA/k8s-device-plugin at 1b826acc6)."""


def tell_of_boards(group: Group, reports: Reports) -> None:
    """Boards that are parts of another machine's, and boards that drive displays."""
    labels = group.machines[0].labels if group.machines else {}
    product = group.machines[0].product if group.machines else ""
    if labels.get(_GUEST_LABEL) == "true" or _GUEST.fullmatch(bare_product(product)):
        reports.say("vgpu-guests", group.machines[0].at, f"Pool {group.pool}", found=group, product=product)
    elif labels.get(_MODE_LABEL) == "graphics" and "GeForce" in product:
        reports.say("display-boards", group.machines[0].at, f"Pool {group.pool}", found=group, product=product)


def tell_of_spot(group: Group, reports: Reports) -> None:
    """Nodes that whoever makes them may take away: how many there are is true of the moment."""
    spot = [machine for machine in group.machines if machine.is_spot]
    if spot:
        are, all_ = "is" if len(spot) == 1 else "are", count(len(group.machines), "node")
        whose = f"Pool {group.pool}"
        reports.say("spot-nodes", spot[0].at, whose, found=group, nodes=len(spot), all=all_, are=are)


# --- Others ----------------------------------------------------------------------------------------------------------

_RULE_GROUPS: Final = ("nfd.k8s-sigs.io", "nfd.openshift.io")
_OF_POOLS: Final = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)


def tell_of_rules(dump: Dump, reports: Reports) -> None:
    """Rules of others that give nodes the labels of pools."""
    for item in (found for group in _RULE_GROUPS for found in dump.of_kind(group, "NodeFeatureRule")):
        for index, rule in enumerate(map(mapping, sequence(inside(item.body, "spec").get("rules")))):
            labels = texts_of(rule.get("labels"))
            for key in _OF_POOLS if POOL_LABEL not in labels and not is_kept(item.name) else ():
                if value := labels.get(key):
                    at = item.at / "spec" / "rules" / index / "labels" / key
                    reports.say("labelled-by-rule", at, item=item, key=key, value=value)


_DRA_SINCE: Final = (1, 34)


def tell_of_two_drivers(
    groups: Iterable[Group], served: Iterable[str], kubernetes: str, reports: Reports
) -> tuple[Group, ...]:
    """Return the groups less those that NVIDIA's driver for DRA serves, if others have the device plugin.

    Without `resource.k8s.io/v1` none of them is a pool.
    """
    groups, claimed = tuple(groups), frozenset(served)
    is_old = tuple(map(int, kubernetes.split("."))) < _DRA_SINCE if kubernetes else False
    if not claimed or (len(claimed) == len(groups) and not is_old):
        return groups
    why = "one pool with `allocation: dra` switches the device plugin off for the whole cluster"
    if is_old:
        why = f"`allocation: dra` needs Kubernetes 1.34, and {kubernetes} runs"
    for found in groups:
        if found.pool in claimed:
            reports.say("served-by-dra", found.claim.first.at, found=found, why=why)
    return tuple(found for found in groups if found.pool not in claimed)
