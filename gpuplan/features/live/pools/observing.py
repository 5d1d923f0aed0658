"""Findings on the nodes of a dump: mixed pools, unknown models, and nodes that differ from their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.discovered import (
    GKE_BOARD_LABEL,
    GKE_SHARING_LABELS,
    GPU_RESOURCE,
    MIG_STATE_LABEL,
    bare_product,
)
from gpuplan.compiler.planning.plan import POOL_LABEL
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.divisions import published_by
from gpuplan.features.live.pools.grouping import Board, Group
from gpuplan.features.live.pools.nodes import Machine
from gpuplan.features.live.pools.sharing import Shared


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
