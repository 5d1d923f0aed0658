"""Each alert fires when it should, and not in the nearest case where it should not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.planning.alerts import AlertName
from tests.compiler.backends.monitoring.watched import (
    ALLOCATABLE,
    ARGOCD,
    KUEUE,
    NODES,
    a_cluster,
    a_pod,
    alerts,
    assert_fires,
    assert_silent,
)
from tests.plans import a_plan

HONORING = a_cluster(monitoring="{honorLabels: true}")


def test_every_alert_is_written_where_all_can_fire() -> None:
    assert set(alerts(a_plan(a_cluster(ARGOCD + KUEUE)))) == {name.value for name in AlertName}


def test_a_disabled_alert_is_left_out() -> None:
    plan = a_plan(a_cluster(monitoring="{disabledAlerts: [GpuXidError]}"))
    assert "GpuXidError" not in alerts(plan)
    assert "GpuClockThrottled" in alerts(plan)


def test_labels_of_the_policy_are_on_every_alert() -> None:
    plan = a_plan(a_cluster(monitoring="{alertLabels: {team: gpu}}"))
    assert {alert["labels"]["team"] for alert in alerts(plan).values()} == {"gpu"}
    assert alerts(plan)["GpuXidError"]["labels"] == {"severity": "critical", "team": "gpu"}


def test_what_cannot_be_without_argocd_is_left_out() -> None:
    assert "GpuPlanOutOfSync" not in alerts(a_plan(a_cluster()))


def test_what_cannot_be_without_mig_is_left_out() -> None:
    plan = a_plan(
        """\
        apiVersion: gpuplan.dev/v1
        kind: Cluster
        metadata: {name: prod}
        spec:
          kubernetes: "1.34"
          gpuOperator: {install: helm, version: v26.7.0}
          monitoring: {}
        ---
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {name: shared}
        spec:
          gpu: L4-24GB
          nodes: {count: 1, gpusPerNode: 2, namePattern: "shared-[0-9]+"}
          sharing: {timeSlicing: {replicas: 3}}
        """
    )
    assert [name for name in alerts(plan) if "Mig" in name or name in ("GpuFragmentation", "GpuQuotaSaturated")] == []


def test_every_alert_says_what_to_do_and_where_that_is_explained() -> None:
    page = Path("docs/how-to/monitor-pools.md").read_text(encoding="utf-8")
    for name, alert in alerts(a_plan(a_cluster(ARGOCD + KUEUE))).items():
        assert alert["for"]
        assert alert["labels"]["severity"] in ("info", "warning", "critical")
        assert alert["annotations"]["description"].endswith(f"See docs/how-to/monitor-pools.md#{name.lower()}.")
        assert f"### {name}\n" in page


def test_every_alert_has_the_address_of_its_heading_where_there_is_a_base() -> None:
    page = Path("docs/how-to/monitor-pools.md").read_text(encoding="utf-8")
    headings = {line.removeprefix("### ").lower() for line in page.splitlines() if line.startswith("### ")}
    found = alerts(a_plan(a_cluster(ARGOCD, monitoring='{runbookUrl: "https://docs.example.com/gpus/"}')))
    urls = {alert["annotations"]["runbook_url"] for alert in found.values()}
    assert urls == {f"https://docs.example.com/gpus/#{name.lower()}" for name in found}
    assert {url.partition("#")[2] for url in urls} <= headings


def test_without_a_base_no_alert_has_an_address() -> None:
    annotations = [alert["annotations"] for alert in alerts(a_plan(a_cluster(ARGOCD))).values()]
    assert [each for each in annotations if "runbook_url" in each] == []


# --- Hardware ----------------------------------------------------------------------------------------------------


def xid(code: int, values: str) -> dict[str, str]:
    return {f'DCGM_EXP_XID_ERRORS_COUNT{{node="mixed-1",gpu="0",xid="{code}"}}': values}


def test_an_xid_error_of_the_hardware(tmp_path: Path) -> None:
    assert_fires(tmp_path, "GpuXidError", xid(79, "1x10"), 'node="mixed-1",gpu="0",xid="79"', minutes=5)


def test_an_xid_error_of_a_program(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuXidError", xid(31, "1x10"), minutes=5)


def test_an_xid_error_that_has_passed(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuXidError", xid(79, "1x5 _x20"), minutes=15)


def clocks(reasons: int, values: str) -> dict[str, str]:
    return {'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{node="mixed-1",gpu="0"}': values.format(reasons)}


def test_a_gpu_that_gets_too_hot_every_few_minutes(tmp_path: Path) -> None:
    labels = 'node="mixed-1",gpu="0",clock_event="hw_thermal"'
    every_fourth = " ".join(["{0} 0x2"] * 30)
    assert_fires(tmp_path, "GpuClockThrottled", clocks(0x40, every_fourth), labels, minutes=60)


def test_a_gpu_that_was_too_hot_for_ten_minutes(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuClockThrottled", clocks(0x40, "{0}x10 0x50"), minutes=16)


def active(labels: str, values: str) -> dict[str, str]:
    return {f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}}": values}


IDLE_POD = 'node="mixed-1",gpu="0",exported_namespace="search",exported_pod="web"'


def test_a_pod_that_does_nothing_for_two_hours(tmp_path: Path) -> None:
    labels = 'exported_namespace="search",exported_pod="web",node="mixed-1"'
    assert_fires(tmp_path, "GpuAllocatedIdle", active(IDLE_POD, "0.01x200"), labels, minutes=125)


def test_a_pod_with_one_busy_device_of_two(tmp_path: Path) -> None:
    busy = active(IDLE_POD.replace('gpu="0"', 'gpu="1"'), "0.6x200")
    assert_silent(tmp_path, "GpuAllocatedIdle", active(IDLE_POD, "0.01x200") | busy, minutes=125)


def test_an_idle_device_that_nobody_has(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuAllocatedIdle", active('node="mixed-1",gpu="0"', "0x200"), minutes=125)


def test_a_pod_that_does_nothing_where_the_exporters_labels_win(tmp_path: Path) -> None:
    labels = 'namespace="search",pod="web",node="mixed-1"'
    assert_fires(tmp_path, "GpuAllocatedIdle", active(f'gpu="0",{labels}', "0.01x200"), labels, HONORING, 125)


def test_an_idle_device_that_nobody_has_where_the_exporters_labels_win(tmp_path: Path) -> None:
    """It has the labels of its target, the exporter."""
    labels = 'node="mixed-1",gpu="0",namespace="gpu-operator",pod="nvidia-dcgm-exporter-x"'
    assert_silent(tmp_path, "GpuAllocatedIdle", active(labels, "0x200"), HONORING, 125)


def test_a_node_without_devices(tmp_path: Path) -> None:
    """The status exporter is scraped twice where two ServiceMonitors are found."""
    devices = {
        'gpu_operator_node_device_plugin_devices_total{node="mixed-1",job="a"}': "0x200",
        'gpu_operator_node_device_plugin_devices_total{node="mixed-1",job="b"}': "0x200",
    }
    assert_fires(tmp_path, "GpuDevicePluginNoDevices", NODES | devices, 'node="mixed-1"')


@pytest.mark.parametrize("devices", [3, -1])
def test_a_node_with_devices_or_of_which_nothing_is_known(tmp_path: Path, devices: int) -> None:
    series = {'gpu_operator_node_device_plugin_devices_total{node="mixed-1"}': f"{devices}x200"}
    assert_silent(tmp_path, "GpuDevicePluginNoDevices", NODES | series)


# --- Nodes and units ---------------------------------------------------------------------------------------------


def test_no_node_has_the_label_of_a_pool(tmp_path: Path) -> None:
    series = {'kube_node_labels{node="mixed-1"}': "1x200"}
    assert_fires(tmp_path, "GpuPoolLabelsAbsent", series, "")


def test_a_node_has_the_label_of_a_pool(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuPoolLabelsAbsent", NODES)


def with_allocatable(node: str, resource: str, values: str) -> dict[str, str]:
    series = f'kube_node_status_allocatable{{node="{node}",resource="{resource}",unit="integer"}}'
    return NODES | ALLOCATABLE | {series: values}


def test_a_node_publishes_less_than_planned(tmp_path: Path) -> None:
    series = with_allocatable("mixed-1", "nvidia_com_mig_2g_20gb", "1x200")
    labels = 'node="mixed-1",pool="mixed",unit="2g.20gb",resource="nvidia_com_mig_2g_20gb"'
    assert_fires(tmp_path, "GpuUnitsDrift", series, labels)


def test_a_node_publishes_nothing_of_a_unit(tmp_path: Path) -> None:
    series = NODES | {name: values for name, values in ALLOCATABLE.items() if 'node="shared-1"' not in name}
    labels = 'node="shared-1",pool="shared",unit="shared",resource="nvidia_com_gpu_shared"'
    assert_fires(tmp_path, "GpuUnitsDrift", series, labels)


def test_a_node_publishes_what_another_pool_should(tmp_path: Path) -> None:
    """Resource names alone would not tell: `large` has no units of 2g.20gb, `mixed` has."""
    series = with_allocatable("large-1", "nvidia_com_mig_2g_20gb", "1x200")
    assert_fires(tmp_path, "GpuUnitsDrift", series, 'node="large-1",pool="large",resource="nvidia_com_mig_2g_20gb"')


def test_nodes_publish_what_is_planned_and_remember_what_was(tmp_path: Path) -> None:
    """The kubelet keeps a resource that no device plugin publishes any more, at zero."""
    assert_silent(tmp_path, "GpuUnitsDrift", with_allocatable("large-1", "nvidia_com_mig_2g_20gb", "0x200"))


def test_a_node_of_no_pool_publishes_what_it_likes(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuUnitsDrift", with_allocatable("other", "nvidia_com_gpu", "8x200"))


def test_a_pool_lacks_a_node(tmp_path: Path) -> None:
    """The other pool with the same resource has all of its own."""
    series = {name: values for name, values in (NODES | ALLOCATABLE).items() if 'node="large-1"' not in name}
    labels = 'pool="large",unit="3g.40gb",resource="nvidia_com_mig_3g_40gb"'
    assert_fires(tmp_path, "GpuPoolBelowPlan", series, labels)


def test_a_pool_has_all_of_its_nodes(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuPoolBelowPlan", NODES | ALLOCATABLE)


# --- MIG ---------------------------------------------------------------------------------------------------------


def mig_state(state: str, values: str = "1x200") -> dict[str, str]:
    labels = f'node="mixed-1",label_gpuplan_dev_pool="mixed",label_nvidia_com_mig_config_state="{state}"'
    return {f"kube_node_labels{{{labels}}}": values}


def test_mig_manager_failed(tmp_path: Path) -> None:
    assert_fires(tmp_path, "GpuMigConfigFailed", mig_state("failed"), 'node="mixed-1",pool="mixed"')


def test_mig_manager_succeeded(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuMigConfigFailed", mig_state("success"))


def test_mig_manager_has_not_run_at_all(tmp_path: Path) -> None:
    """The node has the label of a partitioned pool, and no state."""
    series = mig_config("mixed-1", "mixed", "some") | mig_config("shared-1", "shared", "")
    assert_fires(tmp_path, "GpuMigConfigStuck", series, 'node="mixed-1",pool="mixed"')


@pytest.mark.parametrize("state", ["pending", "rebooting"])
def test_mig_manager_does_not_come_to_an_end(tmp_path: Path, state: str) -> None:
    assert_fires(tmp_path, "GpuMigConfigStuck", mig_state(state), 'node="mixed-1",pool="mixed"')


def test_mig_manager_takes_twenty_minutes(tmp_path: Path) -> None:
    series = mig_state("pending", "1x20 _x200") | mig_state("success", "_x20 1x200")
    assert_silent(tmp_path, "GpuMigConfigStuck", series, minutes=40)


def mig_config(node: str, pool: str, config: str) -> dict[str, str]:
    label = f',label_nvidia_com_mig_config="{config}"' if config else ""
    return {f'kube_node_labels{{node="{node}",label_gpuplan_dev_pool="{pool}"{label}}}': "1x200"}


def planned_config(pool: str) -> str:
    found = a_plan(a_cluster()).find_pool(pool)
    assert found is not None
    return found.labels["nvidia.com/mig.config"]


def test_a_node_has_the_layout_of_another_pool(tmp_path: Path) -> None:
    config = planned_config("large")
    labels = f'node="mixed-1",pool="mixed",mig_config="{config}",label_nvidia_com_mig_config="{config}"'
    assert_fires(tmp_path, "GpuMigLayoutDrift", mig_config("mixed-1", "mixed", config), labels)


def test_a_node_has_no_layout_at_all(tmp_path: Path) -> None:
    series = mig_config("mixed-1", "mixed", "")
    assert_fires(tmp_path, "GpuMigLayoutDrift", series, 'node="mixed-1",pool="mixed"', lacks=("mig_config",))


def test_a_node_has_the_planned_layout(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuMigLayoutDrift", mig_config("mixed-1", "mixed", planned_config("mixed")))


def test_a_node_whose_gpus_know_no_mig_needs_no_layout(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuMigLayoutDrift", mig_config("shared-1", "shared", ""))


FULL = (
    a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
    | a_pod("search", "b", "mixed-2", "nvidia_com_mig_3g_40gb", 1)
    | a_pod("search", "c", "large-1", "nvidia_com_mig_3g_40gb", 2)
)
WAITING = a_pod("search", "d", "", "nvidia_com_mig_3g_40gb", 1, "Pending")


def test_large_devices_are_wanted_and_only_small_ones_are_free(tmp_path: Path) -> None:
    labels = 'resource="nvidia_com_mig_3g_40gb"'
    assert_fires(tmp_path, "GpuFragmentation", NODES | ALLOCATABLE | FULL | WAITING, labels)


def test_large_devices_are_wanted_and_some_are_free(tmp_path: Path) -> None:
    """What the pod waits for is something else, such as a taint that it does not tolerate."""
    assert_silent(tmp_path, "GpuFragmentation", NODES | ALLOCATABLE | WAITING)


def test_large_devices_are_wanted_and_nothing_is_free(tmp_path: Path) -> None:
    small = a_pod("search", "e", "mixed-1", "nvidia_com_mig_2g_20gb", 2) | a_pod(
        "search", "f", "mixed-2", "nvidia_com_mig_2g_20gb", 2
    )
    assert_silent(tmp_path, "GpuFragmentation", NODES | ALLOCATABLE | FULL | WAITING | small)


# --- Tenants and delivery ----------------------------------------------------------------------------------------


def quota(used: int, hard: int, resource: str = "requests.nvidia.com/mig-3g.40gb") -> dict[str, str]:
    labels = f'namespace="search",resourcequota="gpuplan",resource="{resource}"'
    return {
        f'kube_resourcequota{{{labels},type="used"}}': f"{used}x200",
        f'kube_resourcequota{{{labels},type="hard"}}': f"{hard}x200",
    }


def test_a_quota_is_used_up(tmp_path: Path) -> None:
    labels = 'namespace="search",resourcequota="gpuplan",resource="requests.nvidia.com/mig-3g.40gb"'
    assert_fires(tmp_path, "GpuQuotaSaturated", quota(used=10, hard=10), labels)


def test_a_quota_is_used_to_nine_tenths(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuQuotaSaturated", quota(used=9, hard=10))


def test_a_quota_of_nothing_is_not_used_up(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuQuotaSaturated", quota(used=0, hard=0))


def test_a_quota_on_memory_is_none_of_ours(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuQuotaSaturated", quota(used=10, hard=10, resource="requests.memory"))


def application(name: str, status: str, project: str = "gpuplan-prod") -> dict[str, str]:
    return {f'argocd_app_info{{name="{name}",project="{project}",sync_status="{status}"}}': "1x200"}


def test_an_application_is_out_of_sync(tmp_path: Path) -> None:
    series = application("gpu-partitions-prod-mixed", "OutOfSync")
    labels = 'name="gpu-partitions-prod-mixed",sync_status="OutOfSync"'
    assert_fires(tmp_path, "GpuPlanOutOfSync", series, labels, a_cluster(ARGOCD))


@pytest.mark.parametrize(
    ("name", "status", "project"),
    [
        ("gpu-partitions-prod-mixed", "Synced", "gpuplan-prod"),
        ("gpu-partitions-prod-mixed", "OutOfSync", "another"),
        ("gpu-partitions-prod-eu-mixed", "OutOfSync", "gpuplan-prod"),
        ("gpu-namespace-prod-eu-search", "OutOfSync", "gpuplan-prod"),
    ],
)
def test_an_application_is_in_sync_or_not_of_this_cluster(tmp_path: Path, name: str, status: str, project: str) -> None:
    assert_silent(tmp_path, "GpuPlanOutOfSync", application(name, status, project), a_cluster(ARGOCD))
