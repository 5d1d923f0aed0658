"""What recording rules make of series: the plan's numbers, and what is there."""

from __future__ import annotations

from pathlib import Path

from tests.compiler.backends.monitoring.watched import ALLOCATABLE, FRACTIONS, NODES, a_cluster, a_pod, assert_samples

THERE = NODES | ALLOCATABLE
LARGE = 'unit="3g.40gb",resource="nvidia_com_mig_3g_40gb"'
SMALL = 'unit="2g.20gb",resource="nvidia_com_mig_2g_20gb"'
SHARE = 'unit="shared",resource="nvidia_com_gpu_shared"'


def samples(metric: str, *labels_and_values: tuple[str, float]) -> dict[str, float]:
    return {f"{metric}{{{labels}}}": value for labels, value in labels_and_values}


def assert_recorded(
    folder: Path, series: dict[str, str], metric: str, *expected: tuple[str, float], text: str | None = None
) -> None:
    assert_samples(folder, text or a_cluster(), series, metric, samples(metric, *expected))


# --- The plan ----------------------------------------------------------------------------------------------------


def test_capacity_of_pools(tmp_path: Path) -> None:
    assert_recorded(
        tmp_path,
        {},
        "pool:gpuplan_planned_units:sum",
        (f'pool="mixed",{LARGE}', 2),
        (f'pool="mixed",{SMALL}', 4),
        (f'pool="large",{LARGE}', 2),
        (f'pool="shared",{SHARE}', 6),
    )


def test_nodes_of_pools(tmp_path: Path) -> None:
    expected = ('pool="mixed"', 2), ('pool="large"', 1), ('pool="shared"', 1)
    assert_recorded(tmp_path, {}, "pool:gpuplan_planned_nodes:sum", *expected)


def test_what_tenants_are_guaranteed(tmp_path: Path) -> None:
    expected = (f'tenant="search",pool="mixed",{LARGE}', 1), (f'tenant="search",pool="shared",{SHARE}', 3)
    assert_recorded(tmp_path, {}, "tenant:gpuplan_guaranteed_units:sum", *expected)


def test_no_limit_where_there_is_none(tmp_path: Path) -> None:
    expected = (f'tenant="search",pool="mixed",{LARGE}', 2)
    assert_recorded(tmp_path, {}, "tenant:gpuplan_limit_units:sum", expected)


def test_whose_a_namespace_is(tmp_path: Path) -> None:
    expected = ('namespace="search",tenant="search"', 1), ('namespace="search-dev",tenant="search"', 1)
    assert_recorded(tmp_path, {}, "namespace:gpuplan_tenant:info", *expected)


def test_fractions_are_counted_in_gpus(tmp_path: Path) -> None:
    whole = ('pool="whole",unit="gpu",resource="nvidia_com_gpu"', 4)
    expected = ('pool="fractions",unit="fraction",resource="nvidia_com_gpu"', 8)
    assert_recorded(tmp_path, {}, "pool:gpuplan_planned_units:sum", whole, expected, text=FRACTIONS)


def test_half_a_gpu_is_guaranteed(tmp_path: Path) -> None:
    whole = ('tenant="search",pool="whole",unit="gpu",resource="nvidia_com_gpu"', 2)
    expected = ('tenant="search",pool="fractions",unit="fraction",resource="nvidia_com_gpu"', 0.5)
    assert_recorded(tmp_path, {}, "tenant:gpuplan_guaranteed_units:sum", whole, expected, text=FRACTIONS)


# --- Units -------------------------------------------------------------------------------------------------------


def test_a_node_is_in_one_pool_whoever_says_so(tmp_path: Path) -> None:
    """kube-state-metrics has been restarted: for a while there are the series of both of its pods."""
    series = {
        'kube_node_labels{node="a",label_gpuplan_dev_pool="mixed",instance="10.0.0.1"}': "1x20",
        'kube_node_labels{node="a",label_gpuplan_dev_pool="mixed",instance="10.0.0.2"}': "1x20",
        'kube_node_labels{node="b"}': "1x20",
    }
    assert_recorded(tmp_path, series, "node:gpuplan_pool:info", ('node="a",pool="mixed"', 1))


def test_a_node_has_the_units_of_its_own_pool(tmp_path: Path) -> None:
    assert_recorded(
        tmp_path,
        NODES,
        "node:gpuplan_planned_units:sum",
        (f'node="mixed-1",pool="mixed",{LARGE}', 1),
        (f'node="mixed-1",pool="mixed",{SMALL}', 2),
        (f'node="mixed-2",pool="mixed",{LARGE}', 1),
        (f'node="mixed-2",pool="mixed",{SMALL}', 2),
        (f'node="large-1",pool="large",{LARGE}', 2),
        (f'node="shared-1",pool="shared",{SHARE}', 6),
    )


def test_pools_that_share_a_resource_are_counted_apart(tmp_path: Path) -> None:
    assert_recorded(
        tmp_path,
        THERE,
        "pool:gpuplan_allocatable_units:sum",
        (f'pool="mixed",{LARGE}', 2),
        (f'pool="mixed",{SMALL}', 4),
        (f'pool="large",{LARGE}', 2),
        (f'pool="shared",{SHARE}', 6),
    )


def test_a_request_counts_in_the_pool_of_its_node(tmp_path: Path) -> None:
    series = (
        THERE
        | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
        | a_pod("search-dev", "b", "large-1", "nvidia_com_mig_3g_40gb", 2)
        | a_pod("other", "c", "mixed-2", "nvidia_com_mig_3g_40gb", 1)
    )
    expected = (f'pool="mixed",{LARGE}', 2), (f'pool="large",{LARGE}', 2)
    assert_recorded(tmp_path, series, "pool:gpuplan_requested_units:sum", *expected)


def test_requests_of_a_tenant_are_those_of_its_namespaces(tmp_path: Path) -> None:
    series = (
        THERE
        | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
        | a_pod("search-dev", "b", "mixed-2", "nvidia_com_mig_3g_40gb", 1)
        | a_pod("other", "c", "large-1", "nvidia_com_mig_3g_40gb", 1)
    )
    expected = (f'tenant="search",pool="mixed",{LARGE}', 2)
    assert_recorded(tmp_path, series, "tenant:gpuplan_requested_units:sum", expected)


def test_a_pod_that_is_done_holds_nothing(tmp_path: Path) -> None:
    series = THERE | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1, "Succeeded")
    assert_recorded(tmp_path, series, "pool:gpuplan_requested_units:sum")


def test_what_is_free(tmp_path: Path) -> None:
    series = THERE | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
    assert_recorded(
        tmp_path,
        series,
        "pool:gpuplan_free_units:sum",
        (f'pool="mixed",{LARGE}', 1),
        (f'pool="mixed",{SMALL}', 4),
        (f'pool="large",{LARGE}', 2),
        (f'pool="shared",{SHARE}', 6),
    )


def test_what_is_waited_for(tmp_path: Path) -> None:
    series = (
        THERE
        | a_pod("search", "a", "mixed-1", "nvidia_com_mig_3g_40gb", 1)
        | a_pod("search", "b", "", "nvidia_com_mig_3g_40gb", 1, "Pending")
        | a_pod("other", "c", "", "nvidia_com_mig_3g_40gb", 2, "Pending")
    )
    assert_recorded(tmp_path, series, "resource:gpuplan_waiting_units:sum", ('resource="nvidia_com_mig_3g_40gb"', 3))


# --- Utilization -------------------------------------------------------------------------------------------------


def device(metric: str, labels: str, value: float) -> dict[str, str]:
    return {f"{metric}{{{labels}}}": f"{value}x20"}


ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def test_devices_of_one_profile_are_averaged(tmp_path: Path) -> None:
    series = (
        NODES
        | device(ENGINE, 'node="mixed-1",gpu="0",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"', 0.2)
        | device(ENGINE, 'node="mixed-2",gpu="0",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"', 0.6)
        | device(ENGINE, 'node="mixed-1",gpu="0",GPU_I_ID="3",GPU_I_PROFILE="2g.20gb"', 1)
        | device(ENGINE, 'node="large-1",gpu="0",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"', 0.5)
    )
    assert_recorded(
        tmp_path,
        series,
        "pool:gpuplan_engine_active:avg",
        ('pool="mixed",profile="3g.40gb"', 0.4),
        ('pool="mixed",profile="2g.20gb"', 1),
        ('pool="large",profile="3g.40gb"', 0.5),
    )


def test_a_shared_gpu_counts_once_for_all_of_its_pods(tmp_path: Path) -> None:
    pods = 'node="shared-1",gpu="0",exported_namespace="search",vgpu='
    series = (
        NODES
        | device(ENGINE, f'{pods}"0",exported_pod="a"', 0.8)
        | device(ENGINE, f'{pods}"1",exported_pod="b"', 0.8)
        | device(ENGINE, 'node="shared-1",gpu="1"', 0)
    )
    assert_recorded(tmp_path, series, "pool:gpuplan_engine_active:avg", ('pool="shared"', 0.4))


def test_the_memory_interface_of_a_pool(tmp_path: Path) -> None:
    series = NODES | device("DCGM_FI_PROF_DRAM_ACTIVE", 'node="shared-1",gpu="0"', 0.25)
    assert_recorded(tmp_path, series, "pool:gpuplan_dram_active:avg", ('pool="shared"', 0.25))


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    series = (
        NODES
        | device("DCGM_FI_DEV_FB_USED", 'node="shared-1",gpu="0"', 1024)
        | device("DCGM_FI_DEV_FB_USED", 'node="shared-1",gpu="1"', 1024)
    )
    assert_recorded(tmp_path, series, "pool:gpuplan_memory_used_bytes:sum", ('pool="shared"', 2 * 1024**3))


def test_a_tenant_is_told_by_the_namespace_of_its_pods(tmp_path: Path) -> None:
    """The label `namespace` is the exporter's own."""
    target = 'namespace="gpu-operator",node="mixed-1",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"'
    series = (
        NODES
        | device(ENGINE, f'{target},gpu="0",exported_namespace="search",exported_pod="a"', 0.5)
        | device(ENGINE, f'{target},gpu="1",exported_namespace="other",exported_pod="b"', 0.9)
    )
    expected = ('tenant="search",pool="mixed",profile="3g.40gb"', 0.5)
    assert_recorded(tmp_path, series, "tenant:gpuplan_engine_active:avg", expected)


def test_a_tenant_where_the_exporters_labels_win(tmp_path: Path) -> None:
    device_labels = 'node="mixed-1",gpu="0",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"'
    series = (
        NODES
        | device("DCGM_FI_DEV_FB_USED", f'{device_labels},namespace="search",pod="a"', 1)
        | device("DCGM_FI_DEV_FB_USED", 'node="mixed-2",gpu="0",namespace="gpu-operator",pod="exporter"', 7)
    )
    expected = ('tenant="search",pool="mixed",profile="3g.40gb"', 1024**2)
    text = a_cluster(monitoring="{honorLabels: true}")
    assert_recorded(tmp_path, series, "tenant:gpuplan_memory_used_bytes:sum", expected, text=text)


def test_pods_of_one_tenant_on_a_shared_gpu_use_what_they_use_together(tmp_path: Path) -> None:
    """The exporter shows each pod's own framebuffer beside the device's (`createPerProcessMetrics`)."""
    device = 'node="shared-1",gpu="0"'
    pods = {"web": 100, "api": 200}
    series = {f"DCGM_FI_DEV_FB_USED{{{device}}}": "5000x200"} | {
        f'DCGM_FI_DEV_FB_USED{{{device},exported_namespace="search",exported_pod="{pod}"}}': f"{used}x200"
        for pod, used in pods.items()
    }
    expected = 'tenant="search",pool="shared"', 300 * 1024 * 1024
    assert_recorded(tmp_path, THERE | series, "tenant:gpuplan_memory_used_bytes:sum", expected)


def test_a_gpu_that_a_tenant_shares_with_itself_and_others_counts_once_for_each(tmp_path: Path) -> None:
    """With KUBERNETES_VIRTUAL_GPUS there is a series for each pod on it, here of two namespaces of a tenant.

    Exporters before 4.8.2, and those without the pods' UIDs, show each pod the framebuffer of the device.
    """
    old = "v25.10.1"
    gpu = 'node="shared-1",gpu="0",exported_pod="{pod}",exported_namespace="{pod}"'
    series = NODES | {
        f'DCGM_FI_DEV_FB_USED{{{gpu.format(pod=pod)},vgpu="{number}"}}': "1024x20"
        for number, pod in enumerate(("search", "search-dev", "other"))
    }
    metric, expected = "tenant:gpuplan_memory_used_bytes:sum", ('tenant="search",pool="shared"', 1024**3)
    assert_recorded(tmp_path, series, metric, expected, text=a_cluster().replace("v26.7.0", old))
    honored = {name.replace("exported_", ""): values for name, values in series.items()}
    text = a_cluster(monitoring="{honorLabels: true}").replace("v26.7.0", old)
    assert_recorded(tmp_path, honored, metric, expected, text=text)
