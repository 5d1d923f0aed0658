"""What is odd about the nodes of a dump: others in one pool, no model, or not what their labels ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin, Severity
from gpuplan.compiler.base.plain import inside
from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.discovered import (
    GKE_BOARD_LABEL,
    GKE_SHARING_LABELS,
    GPU_RESOURCE,
    MIG_STATE_LABEL,
    PRODUCT_LABEL,
    bare_product,
)
from gpuplan.compiler.planning.plan import POOL_LABEL
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.pools.divisions import published_by
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.machines import Machine
from gpuplan.features.live.pools.models import Board
from gpuplan.features.live.pools.sharing import Shared
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.rules import NODES_NOT_SAID, QUEUE_NOT_SAID


def tell_of_published(found: Group, board: Board, spec: Mapping[str, Any], shared: Shared, told: Told) -> None:
    """Nodes that publish something else than their label asks for, where that is known."""
    expected = _expected(found.claim.first.at, board, spec["nodes"]["gpusPerNode"], shared)
    if not expected or spec.get("rollout") or spec.get("allocation"):
        return
    wrong = [machine for machine in found.machines if machine.published and machine.published != expected]
    if not wrong:
        return
    first = wrong[0]
    state = first.labels.get(MIG_STATE_LABEL, "")
    told.say(
        NODES_NOT_SAID,
        first.at / "status",
        f"{count(len(wrong), 'node')} of pool `{found.pool}` {'publishes' if len(wrong) == 1 else 'publish'} "
        "something else than the pool hands out",
        label=f"`{first.name}` has {_spelt(first.published)}",
        notes=(
            f"as the nodes are labelled it is {_spelt(expected)}",
            *((f"`{MIG_STATE_LABEL}` is `{state}` there",) if state else ()),
        ),
        help="find out why before the first sync; the pool says what labels and files ask for",
        drafts=(f"Pool {found.pool}",),
    )


def _expected(at: Origin, board: Board, gpus: int, shared: Shared) -> dict[str, int]:
    match shared.spec:
        case {"exclusive": _}:
            return {GPU_RESOURCE: gpus}
        case {"timeSlicing": shares} | {"mps": shares}:
            name = GPU_RESOURCE if shares.get("rename") is False else f"{GPU_RESOURCE}.shared"
            return {name: gpus * shares["replicas"]}
        case {"mig": mig} if board.gpu is not None and "timeSlicing" not in mig:
            return published_by(at, board.gpu, shared.division, gpus, shared.strategy)
        case _:
            return {}


def tell_of_gke(found: Group, told: Told) -> bool:
    """Whether GKE's own device plugin shares the nodes' GPUs, as their node pool says: then no policy can."""
    first = next((machine for machine in found.machines if _gke_marks(machine)), None)
    if first is None or found.is_claimed:
        return False
    told.say(
        NODES_NOT_SAID,
        first.at / "metadata" / "labels",
        f"GKE's own device plugin shares the GPUs of node pool `{found.pool}`",
        label=", ".join(f"`{mark}: {first.labels[mark]}`" for mark in _gke_marks(first)),
        notes=("it reads these labels, and no file that gpuplan writes; they stay as long as the node pool",),
        help=f"make a node pool without them and with the label `{_WITHOUT_GKES_PLUGIN}=true`, and import its nodes",
    )
    return True


def _gke_marks(machine: Machine) -> list[str]:
    return [mark for mark in GKE_SHARING_LABELS if machine.labels.get(mark)]


_WITHOUT_GKES_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html"""


def tell_of_flavor(found: Group, flavor: Item, told: Told) -> None:
    """A flavor that cannot be the pool's."""
    told.say(
        QUEUE_NOT_SAID,
        flavor.at / "spec" / "topologyName",
        f"{flavor.title} can never have the labels of pool `{found.pool}`",
        label="fixes its labels, its tolerations and the topology",
        notes=(
            f"queues have a new flavor from the first sync on, `{found.pool}`, and leave this one",
            "what was admitted with it goes on, and no longer counts",
        ),
        help="let the work that was admitted with it end first, and delete it after the sync",
        drafts=(f"Pool {found.pool}",),
    )


def tell_of_unknown(found: Group, told: Told) -> None:
    first = found.claim.first
    place = found.machines[0].at / "metadata" / "labels" if found.machines else first.at
    is_gkes = bool(found.machines and found.machines[0].labels.get(GKE_BOARD_LABEL))
    told.say(
        NODES_NOT_SAID,
        place,
        f"nothing says which GPU model the nodes of pool `{found.pool}` have",
        label=f"no `{PRODUCT_LABEL}`" if found.machines else "none of its nodes is in the dump",
        notes=(
            "GPU Feature Discovery writes the label where the driver runs",
            *((f"GKE has a device plugin of its own; `{_WITHOUT_GKES_PLUGIN}=true` keeps it off nodes",) * is_gkes),
        ),
        help="import what `kubectl get nodes -o yaml` prints, too",
    )


def tell_of_drivers(dump: Dump, told: Told) -> None:
    """NVIDIADrivers that somebody else wrote for some nodes: they stay, and no pool says what they do."""
    for item in dump.of_kind("nvidia.com", "NVIDIADriver"):
        selector = inside(item.body, "spec", "nodeSelector")
        if selector and POOL_LABEL not in selector:
            told.say(
                NODES_NOT_SAID,
                item.at / "spec" / "nodeSelector",
                f"no pool says which driver {item.title} has nodes get",
                label="stays as it is",
                notes=("the GPU Operator wants no two NVIDIADrivers for one node",),
                help="to have gpuplan write it, give the pool a `driver`, and remove the object when its own is there",
                severity=Severity.NOTE,
            )


_UNSERVED: Final = {
    ("nvidia.com/gpu.deploy.operands", "false"): "the GPU Operator runs nothing there",
    ("nvidia.com/gpu.workload.config", "vm-passthrough"): "with `sandboxWorkloads` its GPUs are for virtual machines",
    ("nvidia.com/gpu.workload.config", "vm-vgpu"): "with `sandboxWorkloads` its GPUs are for virtual machines",
}
"""Labels by which the operator leaves a node without a device plugin (`controllers/state_manager.go` there)."""


def tell_of_unserved(groups: Iterable[Group], told: Told) -> None:
    """Nodes of pools that hand out nothing, since a label takes them from the GPU Operator."""
    for found in groups:
        for (key, value), why in _UNSERVED.items():
            unserved = [machine for machine in found.machines if machine.labels.get(key) == value]
            if unserved:
                told.say(
                    NODES_NOT_SAID,
                    unserved[0].at / "metadata" / "labels" / key,
                    f"{count(len(unserved), 'node')} of pool `{found.pool}` may hand out nothing",
                    label=f"`{unserved[0].name}`: {why}",
                    notes=("the pool counts its GPUs, and quotas are divided by what pools have",),
                    help="remove the node from the pool, or the label from the node",
                    drafts=(f"Pool {found.pool}",),
                )


def tell_of_mixtures(groups: Iterable[Group], told: Told) -> None:
    """Pools of which not all nodes are alike."""
    for found in groups:
        products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
        counts = Counter(machine.counted for machine in found.machines if machine.counted)
        for what, others in (("GPU model", products), ("number of GPUs", counts)):
            if len(others) > 1:
                [(most, _), *rest] = others.most_common()
                told.say(
                    NODES_NOT_SAID,
                    found.machines[0].at,
                    f"not all nodes of pool `{found.pool}` have the same {what}",
                    label=f"most have {most}, others {', '.join(str(value) for value, _ in rest)}",
                    notes=("a pool's nodes are alike; capacity is counted by what most of them have",),
                    help="make a pool of the others",
                    drafts=(f"Pool {found.pool}",),
                )


def _spelt(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{number}x `{name}`" for name, number in sorted(resources.items())) or "nothing"
