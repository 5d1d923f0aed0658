"""Alerts on hardware, on each kind of pool, by series as the DCGM exporter shapes them.

For each alert: what makes it fire, and the nearest that does not. Where one cannot see something, that is stated too,
with the alert that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.monitoring.exporter import A100, Board, Pod, exported
from tests.compiler.backends.monitoring.watched import Firing, alerts, assert_firing, assert_silent
from tests.plans import a_plan

KINDS = {
    "whole": ("sharing: {exclusive: {}}", "nvidia_com_gpu", 2),
    "mig": ("sharing: {mig: {instances: {1g.10gb: 7}}}", "nvidia_com_mig_1g_10gb", 14),
    "time-sliced": ("sharing: {timeSlicing: {replicas: 4}}", "nvidia_com_gpu_shared", 8),
    "mps": ("sharing: {mps: {replicas: 4}}", "nvidia_com_gpu_shared", 8),
    "claimed": ("sharing: {exclusive: {}}\n  allocation: dra", "", 0),
    "claimed-mig": ("sharing: {mig: {instances: {3g.40gb: 2}}}\n  allocation: dra", "", 0),
}
"""What a pool says, and what its one node with two GPUs publishes."""

every_kind = pytest.mark.parametrize("kind", KINDS)


def a_cluster(kind: str, version: str = "v26.7.0", monitoring: str = "{}") -> str:
    return (
        "apiVersion: gpuplan.dev/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n"
        f'  kubernetes: "1.34"\n  gpuOperator: {{install: helm, version: {version}}}\n  monitoring: {monitoring}\n'
        "---\napiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: p}\nspec:\n"
        '  gpu: A100-80GB\n  nodes: {count: 1, gpusPerNode: 2, namePattern: "n-[0-9]+"}\n'
        f"  {KINDS[kind][0]}\n"
    )


@cache
def a_plan_of(kind: str) -> Plan:
    return a_plan(a_cluster(kind))


NODE = {'kube_node_labels{node="n-1",label_gpuplan_dev_pool="p"}': "1x200"}


def a_board(kind: str) -> Board:
    """A healthy GPU with pods on it; the exporter knows none of those that have claims."""
    pods = [Pod("search", "a", 0), Pod("search", "b", 1)]
    match kind:
        case "mig":
            return Board(["1g.10gb"] * 7, pods=pods)
        case "claimed-mig":
            return Board(["3g.40gb"] * 2)
        case "claimed":
            return Board()
        case _:
            return Board(pods=[replace(pod, instance=None) for pod in pods[: 1 if kind == "whole" else 2]])


def shown(kind: str, *boards: Board) -> dict[str, str]:
    return NODE | exported("n-1", boards, every_pod=True)


# --- What the board says -----------------------------------------------------------------------------------------


def a_fault(kind: str, reasons: int, health: Mapping[tuple[str, str], str], **fields: str) -> Board:
    said = {f"DCGM_FI_DEV_{name}": values for name, values in fields.items()}
    return replace(a_board(kind), reasons=reasons, fields=said, health=health)


def failing(watch: str, code: str, values: str) -> dict[tuple[str, str], str]:
    return {(watch, f"DCGM_FR_{code}"): values}


def on(gpu: int, *more: str) -> list[str]:
    """The labels of alerts on a GPU of the node."""
    return [f'node="n-1",gpu="{gpu}"{each}' for each in more or ("",)]


@every_kind
def test_one_of_two_boards_has_every_fault_and_the_other_nearly(tmp_path: Path, kind: str) -> None:
    """The faulty one is named by its own number, once, whatever it is divided into and whoever is on it."""
    near = a_fault(
        kind,
        0x1 | 0x2 | 0x4 | 0x10 | 0x100,  # idle, clocks as set, at the power cap, in step with others, display
        failing("MEM", "XID_ERROR", "10x200"),
        GPU_TEMP="85x200",
        MEMORY_TEMP="95x200",
        RETIRED_PENDING="0x200",
    )
    faulty = a_fault(
        kind,
        0x8 | 0x20 | 0x40 | 0x80,
        failing("ALL", "FALLEN_OFF_BUS", "20x200"),
        GPU_TEMP="86x200",
        MEMORY_TEMP="96x200",
        ECC_DBE_VOL_TOTAL="1x200",
        ROW_REMAP_PENDING="1x200",
        ROW_REMAP_FAILURE="1x200",
        GET_GPU_RECOVERY_ACTION="2x200",
    )
    events = [f',clock_event="{event}"' for event in ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")]
    failed = ',health_watch="ALL",health_error_code="DCGM_FR_FALLEN_OFF_BUS"'
    expected = [
        Firing("GpuClockThrottled", on(1, *events)),
        Firing("GpuTooHot", on(1, ',sensor="GPU"', ',sensor="memory"')),
        Firing("GpuEccError", on(1)),
        Firing("GpuMemoryRepairPending", on(1)),
        Firing("GpuRowRemapFailure", on(1)),
        Firing("GpuRecoveryNeeded", on(1)),
        Firing("GpuHealthFailed", on(1, failed)),
        Firing("GpuNvlinkDown", []),
    ]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, near, faulty), expected, minutes=25)


@every_kind
def test_boards_that_do_not_say_have_no_limit_and_bridges_that_were_never_there_are_not_missed(
    tmp_path: Path, kind: str
) -> None:
    bare = a_fault(kind, 0, failing("NVLINK", "NVLINK_DOWN", "20x200"), GPU_TEMP="120x200", GPU_MAX_OP_TEMP="")
    down = {**failing("NVLINK", "OK", "0x15"), **failing("NVLINK", "NVLINK_DOWN", "_x15 20x200")}
    lost = a_fault(kind, 0x40, down, RETIRED_PENDING="2x200", ROW_REMAP_PENDING="")
    expected = [
        Firing("GpuClockThrottled", on(1, ',clock_event="hw_thermal"')),
        Firing("GpuTooHot", []),
        Firing("GpuNvlinkDown", on(1)),
        Firing("GpuHealthFailed", []),
        Firing("GpuMemoryRepairPending", on(1)),
    ]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, bare, lost), expected, minutes=25)


WITHOUT_INSTANCES = ["whole", "time-sliced", "mps", "claimed"]


@pytest.mark.parametrize("kind", WITHOUT_INSTANCES)
def test_nvlink_has_errors_and_has_had_errors_or_few(tmp_path: Path, kind: str) -> None:
    """GPUs with MIG on have no NVLink, and no counters of it."""
    had = a_fault(
        kind,
        0,
        {},
        NVLINK_RECOVERY_ERROR_COUNT_TOTAL="7x200",
        NVLINK_REPLAY_ERROR_COUNT_TOTAL="7x200",
        NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL="0+5900x200",
        NVLINK_CRC_DATA_ERROR_COUNT_TOTAL="0+5900x200",
    )
    has = a_fault(
        kind,
        0,
        {},
        NVLINK_RECOVERY_ERROR_COUNT_TOTAL="0+1x200",
        NVLINK_REPLAY_ERROR_COUNT_TOTAL="0+1x200",
        NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL="0+6100x200",
        NVLINK_CRC_DATA_ERROR_COUNT_TOTAL="0+6100x200",
    )
    errors = [f',error="{error}"' for error in ("recoveries", "retries", "flow control", "data")]
    expected = [Firing("GpuNvlinkErrors", on(1, *errors))]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, had, has), expected, minutes=25)


# --- Xid ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WITHOUT_INSTANCES)
def test_an_xid_of_a_gpu_without_instances(tmp_path: Path, kind: str) -> None:
    """The last of several errors is a program's, the one before is not."""
    program, dead = (replace(a_board(kind), xids=xids) for xids in ([(31, None)], [(79, None), (45, None)]))
    expected = [Firing("GpuXidError", on(1, ',xid="79"'))]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, program, dead), expected, minutes=35)


@pytest.mark.parametrize("kind", ["mig", "claimed-mig"])
@pytest.mark.parametrize("gpu", [0, 1])
def test_an_xid_of_an_instance_names_its_own_gpu(tmp_path: Path, kind: str, gpu: int) -> None:
    """The exporter's own count names the GPU whose number the instance's happens to be."""
    boards = [replace(a_board(kind), xids=[(94 if index == gpu else 43, 1)]) for index in (0, 1)]
    expected = [Firing("GpuXidError", on(gpu, ',xid="94"'))]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, *boards), expected, minutes=35)


def test_the_last_xid_of_an_instance_is_forgotten(tmp_path: Path) -> None:
    """`DCGM_FI_DEV_XID_ERRORS` keeps it for good; the pod that had the instance goes, and is not a new error."""
    good = a_board("mig")
    series = shown("mig", good, replace(good, xids=[(94, 1)]))
    last = {name: values for name, values in series.items() if name.startswith("DCGM_FI_DEV_XID_ERRORS")}
    ended = {name: values.replace("94x200", "94x14") for name, values in last.items()}
    later = {name.replace('"b"', '"c"'): values.replace("_x30", "_x45") for name, values in last.items()}
    assert_firing(tmp_path, a_cluster("mig"), series | ended | later, [Firing("GpuXidError", [])], minutes=50)


@pytest.mark.parametrize("kind", ["mig", "claimed-mig"])
def test_an_xid_of_a_whole_gpu_with_instances_is_seen_by_health_alone(tmp_path: Path, kind: str) -> None:
    dead = replace(a_board(kind), xids=[(79, None)], health=failing("ALL", "FALLEN_OFF_BUS", "_x30 20x200"))
    failed = ',health_watch="ALL",health_error_code="DCGM_FR_FALLEN_OFF_BUS"'
    expected = [Firing("GpuXidError", []), Firing("GpuHealthFailed", on(1, failed))]
    assert_firing(tmp_path, a_cluster(kind), shown(kind, a_board(kind), dead), expected, minutes=35)


def test_the_rule_states_what_it_does_not_see_where_there_are_instances() -> None:
    def text(kind: str) -> str:
        return str(alerts(a_plan_of(kind))["GpuXidError"]["annotations"]["description"])

    others = "GpuHealthFailed, GpuRecoveryNeeded, GpuMissing and GpuDeviceUnhealthy tell of the others"
    assert others in text("mig")
    assert "MIG" not in text("whole")


# --- What is not there -------------------------------------------------------------------------------------------


@every_kind
def test_a_node_shows_nothing_and_one_too_little_and_one_another_board(tmp_path: Path, kind: str) -> None:
    """Seven instances of one GPU are one GPU; the PCIe board is of the same model in the catalog."""
    good = a_board(kind)
    other = replace(good, model="NVIDIA A100-SXM4-40GB")
    same = [replace(good, model=model) for model in ("A100-SXM4-80GB", "NVIDIA A100 80GB PCIe")]
    nodes = {f'kube_node_labels{{node="n-{n}",label_gpuplan_dev_pool="p"}}': "1x200" for n in (1, 2, 3, 4)}
    series = nodes | exported("n-2", [good]) | exported("n-3", [good, other]) | exported("n-4", same)
    expected = [
        Firing("GpuMetricsAbsent", ['node="n-1",pool="p"']),
        Firing("GpuMissing", ['node="n-2",pool="p"']),
        Firing("GpuBoardDiffers", ['node="n-3",pool="p",modelName="NVIDIA A100-SXM4-40GB"']),
    ]
    assert good.model == A100
    assert_firing(tmp_path, a_cluster(kind), series, expected, minutes=35)


def test_a_node_that_is_not_labelled_for_its_board_is_told_by_its_name(tmp_path: Path) -> None:
    """With `matchBoards` nodes with another board have no label of the pool, and nodes of no pool are nobody's."""
    matching = a_cluster("whole").replace("  monitoring: {}\n", "  monitoring: {}\n  matchBoards: true\n")
    good, other = a_board("whole"), replace(a_board("whole"), model="Tesla T4")
    series = {**NODE, **exported("n-1", [good, good]), **exported("n-2", [other]), **exported("lab-1", [other])}
    expected = [Firing("GpuBoardDiffers", ['node="n-2",pool="p",modelName="Tesla T4"'])]

    assert_firing(tmp_path, matching, series, expected, minutes=35)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][1]])
def test_the_device_plugin_withdraws_a_device(tmp_path: Path, kind: str) -> None:
    """After an Xid; a device with a pod on it counts as healthy or not like any other."""
    _, resource, count = KINDS[kind]
    nodes = {f'kube_node_labels{{node="n-{n}",label_gpuplan_dev_pool="p"}}': "1x200" for n in (1, 2)}
    offers = {"n-1": count - 1, "n-2": count}
    series = {
        f'kube_node_status_{what}{{node="{node}",resource="{resource}",unit="integer"}}': f"{number}x200"
        for node, healthy in offers.items()
        for what, number in (("capacity", count), ("allocatable", healthy))
    }
    expected = [Firing("GpuDeviceUnhealthy", [f'node="n-1",resource="{resource}",pool="p"'])]
    assert_firing(tmp_path, a_cluster(kind), nodes | series, expected, minutes=15)


def test_what_a_node_publishes_no_more_is_not_unhealthy(tmp_path: Path) -> None:
    """The kubelet offers none of it at once, and keeps its capacity for five minutes."""
    kind = "mig"
    _, resource, count = KINDS[kind]
    of = f'node="n-1",resource="{resource}",unit="integer"'
    series = {
        'kube_node_labels{node="n-1",label_gpuplan_dev_pool="p"}': "1x200",
        f"kube_node_status_capacity{{{of}}}": f"{count}x6 0x200",
        f"kube_node_status_allocatable{{{of}}}": "0x200",
    }
    for minute in (5, 6, 7):
        assert_silent(tmp_path, "GpuDeviceUnhealthy", series, a_cluster(kind), minutes=minute)


@pytest.mark.parametrize("kind", ["claimed", "claimed-mig"])
def test_of_claimed_devices_no_node_says_what_it_offers_and_no_pod_is_known(kind: str) -> None:
    assert {"GpuDeviceUnhealthy", "GpuAllocatedIdle"} & alerts(a_plan_of(kind)).keys() == set()


# --- By the exporter's release -----------------------------------------------------------------------------------

NEWER = {"GpuHealthFailed", "GpuNvlinkDown", "GpuRecoveryNeeded"}


@pytest.mark.parametrize(
    ("version", "found"),
    [("v25.10.1", set()), ("v26.3.1", {"GpuRecoveryNeeded"}), ("v26.3.2", NEWER), ("v26.7.0", NEWER)],
)
def test_alerts_on_what_an_exporter_does_not_collect_are_left_out(version: str, found: set[str]) -> None:
    assert alerts(a_plan(a_cluster("mig", version))).keys() & NEWER == found


def test_clocks_are_read_by_the_name_that_the_exporter_knows() -> None:
    old, new = (alerts(a_plan(a_cluster("mig", version)))["GpuClockThrottled"] for version in ("v24.9.2", "v25.3.0"))
    assert "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" in old["expr"]
    assert "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" in new["expr"]


BASIC = "{collect: basic}"


def test_basic_fields_leave_out_alerts_that_read_more() -> None:
    more = alerts(a_plan_of("mig")).keys() - alerts(a_plan(a_cluster("mig", monitoring=BASIC))).keys()
    assert more == {*NEWER, "GpuTooHot", "GpuEccError", "GpuMemoryRepairPending", "GpuNvlinkErrors"}


@pytest.mark.parametrize(("kind", "labels"), [("whole", on(1, ',clock_event="hw_thermal"')), ("mig", [])])
def test_basic_fields_name_a_hot_gpu_but_none_where_there_are_instances(
    tmp_path: Path, kind: str, labels: list[str]
) -> None:
    text, hot = a_cluster(kind, monitoring=BASIC), replace(a_board(kind), reasons=0x40)
    boards = [a_board(kind), hot] if kind == "whole" else [hot, a_board(kind)]
    assert_firing(tmp_path, text, shown(kind, *boards), [Firing("GpuClockThrottled", labels)], minutes=25)


# --- The exporter's own mistakes ---------------------------------------------------------------------------------


def counted(series: Mapping[str, str]) -> set[str]:
    """The GPUs that the exporter's own count of clock events names."""
    found = (name for name in series if name.startswith("DCGM_EXP_CLOCK_EVENTS_COUNT") and "clock_event" in name)
    return {name.partition('gpu="')[2].partition('"')[0] for name in found}


def test_the_exporters_own_counts_name_other_gpus() -> None:
    """What the alerts do without: eight GPUs of seven instances, of which one is too hot."""
    good = Board(["1g.10gb"] * 7)
    hot = replace(good, reasons=0x40)
    assert counted(exported("n-1", [hot, *[good] * 7])) == {str(gpu) for gpu in range(7)}
    assert counted(exported("n-1", [good, hot, *[good] * 6])) == {"7"}
    assert counted(exported("n-1", [good, good, *[hot] * 6])) == set()
