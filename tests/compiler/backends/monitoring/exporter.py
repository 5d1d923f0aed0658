"""What the DCGM exporter shows of a node's GPUs, series by series, with its own mistakes.

A port of what `rules.yaml` cites of NVIDIA/dcgm-exporter 4.5.3-4.8.2 and NVIDIA/DCGM v4.5.2: which entities it watches,
how DCGM numbers instances, and under which number its own counters are stored and read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MAX_GPCS = 7
"""Instances are numbered `gpu * maxGpcs + n` (`DcgmCacheManager.cpp`), over all GPUs of a node."""

A100 = "NVIDIA A100-SXM4-80GB"


@dataclass(frozen=True)
class Pod:
    """A pod on a device; ``instance`` is the instance's index, or None for the GPU."""

    namespace: str
    name: str
    instance: int | None = None


@dataclass(frozen=True)
class Board:
    """A GPU: what DCGM reads of it, and the profiles of its instances."""

    instances: Sequence[str] = ()
    model: str = A100
    fields: Mapping[str, str] = field(default_factory=dict)
    xids: Sequence[tuple[int, int | None]] = ()
    reasons: int = 0
    health: Mapping[tuple[str, str], str] = field(default_factory=dict)
    pods: Sequence[Pod] = ()


_OF_GPU = {
    "DCGM_FI_DEV_SM_CLOCK": "1410x200",
    "DCGM_FI_DEV_GPU_TEMP": "60x200",
    "DCGM_FI_DEV_GPU_MAX_OP_TEMP": "85x200",
    "DCGM_FI_DEV_MEMORY_TEMP": "70x200",
    "DCGM_FI_DEV_MEM_MAX_OP_TEMP": "95x200",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "0x200",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "0x200",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "0x200",
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": "0x200",
}
"""Fields whose entity level is the GPU: instances have them too, with the same value."""

_OF_LINKS = {
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": "0x200",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": "0x200",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": "0x200",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": "0x200",
}
"""NVML has none where MIG is on; the exporter leaves out what is blank."""

_EVENTS = {3: "hw_slowdown", 5: "sw_thermal", 6: "hw_thermal", 7: "hw_power_brake", 2: "power_cap", 0: "gpu_idle"}


def exported(node: str, boards: Sequence[Board], *, every_pod: bool = False) -> dict[str, str]:
    """The series of a node; ``every_pod`` is `KUBERNETES_VIRTUAL_GPUS`."""
    found: dict[str, str] = {}
    for gpu, board in enumerate(boards):
        for labels, pods in _entities(node, gpu, board):
            shown = pods if every_pod else pods[-1:]
            for of_pod in [f',exported_namespace="{pod.namespace}",exported_pod="{pod.name}"' for pod in shown] or [""]:
                found |= {
                    f"{name}{{{labels}{more}{of_pod}}}": values for name, more, values in _read(gpu, board, labels)
                }
                found |= {f"{name}{{{labels}{more}{of_pod}}}": values for name, more, values in _counted(gpu, boards)}
        found |= _health(node, gpu, board)
    return found


def _entities(node: str, gpu: int, board: Board) -> Iterator[tuple[str, list[Pod]]]:
    """A GPU, or its instances instead (`monitorAllGPUInstances`)."""
    for index, profile in enumerate(board.instances):
        # NVML's number of an instance is not its index.
        instance = f',GPU_I_PROFILE="{profile}",GPU_I_ID="{index + 7}"'
        yield _labels(node, gpu, board) + instance, [pod for pod in board.pods if pod.instance == index]
    if not board.instances:
        yield _labels(node, gpu, board), list(board.pods)


def _labels(node: str, gpu: int, board: Board) -> str:
    return f'gpu="{gpu}",UUID="GPU-{node}-{gpu}",device="nvidia{gpu}",modelName="{board.model}",node="{node}"'


def _read(gpu: int, board: Board, labels: str) -> Iterator[tuple[str, str, str]]:
    """What is read by entity; the last Xid is the entity's own."""
    links = {} if board.instances else _OF_LINKS
    fields = {**_OF_GPU, **links, **board.fields, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": f"{board.reasons}x200"}
    yield from ((name, "", values) for name, values in fields.items() if values)
    yield "DCGM_FI_DEV_FB_USED", "", "100x200"
    instance = int(labels.partition('GPU_I_ID="')[2][:-1]) - 7 if board.instances else None
    for xid, of in board.xids[-1:]:
        if of == instance:
            yield "DCGM_FI_DEV_XID_ERRORS", f',err_code="{xid}"', f"_x30 {xid}x200"


def _counted(gpu: int, boards: Sequence[Board]) -> Iterator[tuple[str, str, str]]:
    """`DCGM_EXP_*`: stored under the entity's number, read under the GPU's (`getMetrics` in `expcollector.go`)."""
    xids: dict[int, list[int]] = {}
    events: dict[int, int] = {}
    for index, board in enumerate(boards):
        entities = [index * MAX_GPCS + n for n in range(len(board.instances))] or [index]
        for entity in entities:
            events[entity] = events.get(entity, 0) | board.reasons
        for xid, instance in board.xids:
            if not board.instances or instance is not None:
                xids.setdefault(entities[instance or 0], []).append(xid)
    yield from [("DCGM_EXP_XID_ERRORS_COUNT", f',xid="{xid}"', "_x30 1x200") for xid in xids.get(gpu, ())]
    if not xids.get(gpu):
        yield "DCGM_EXP_XID_ERRORS_COUNT", "", "0x200"
    for bit, event in _EVENTS.items():
        if events.get(gpu, 0) >> bit & 1:
            yield "DCGM_EXP_CLOCK_EVENTS_COUNT", f',clock_event="{event}"', "10x200"
    if not events.get(gpu):
        yield "DCGM_EXP_CLOCK_EVENTS_COUNT", "", "0x200"


def _health(node: str, gpu: int, board: Board) -> dict[str, str]:
    """Of GPUs, whether they have instances or not; what passes has the code `DCGM_FR_OK`."""
    watches = {(watch, "DCGM_FR_OK"): "0x200" for watch in ("ALL", "MEM", "NVLINK", "THERMAL")}
    told = {watch for watch, _ in board.health}
    found = {key: values for key, values in watches.items() if key[0] not in told} | dict(board.health)
    name = f"DCGM_EXP_GPU_HEALTH_STATUS{{{_labels(node, gpu, board)}"
    return {f'{name},health_watch="{key[0]}",health_error_code="{key[1]}"}}': values for key, values in found.items()}
