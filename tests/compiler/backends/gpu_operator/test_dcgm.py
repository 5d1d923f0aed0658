"""What the DCGM exporter is told where the cluster is watched."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends import crds
from tests.compiler.backends.gpu_operator.rendered import (
    a_cluster,
    a_pool,
    cluster_policy,
    config_map,
    helm_values,
    objects,
)
from tests.compiler.backends.gpu_operator.test_cluster_policy import CLUSTER_POLICIES

NODE = {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}


def metrics_name(plan: Plan) -> str:
    return str(config_map(plan, "gpuplan-dcgm-metrics-")["metadata"]["name"])


def collected(plan: Plan) -> list[list[str]]:
    text = config_map(plan, "gpuplan-dcgm-metrics-")["data"]["dcgm-metrics.csv"]
    return [line.split(", ") for line in text.splitlines() if line and not line.startswith("#")]


def test_nothing_is_said_where_nobody_watches() -> None:
    plan = a_cluster(a_pool())
    assert {"dcgmExporter", "nodeStatusExporter"} & helm_values(plan).keys() == set()
    assert [body["metadata"]["name"][:12] for body in objects(plan, "ConfigMap")] == ["gpuplan-mig-", "gpuplan-devi"]


def test_every_line_is_a_field_a_type_and_help() -> None:
    lines = collected(a_cluster(monitoring="{}"))
    assert {len(line) for line in lines} == {3}
    assert {line[1] for line in lines} == {"counter", "gauge", "label"}
    assert len({line[0] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    "field",
    [
        "DCGM_EXP_CLOCK_EVENTS_COUNT",
        "DCGM_EXP_XID_ERRORS_COUNT",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    ],
)
def test_what_rules_read_is_collected(field: str) -> None:
    assert field in {line[0] for line in collected(a_cluster(monitoring="{}"))}


def test_the_chart_mounts_the_fields_and_labels_what_it_is_scraped_by() -> None:
    plan = a_cluster(a_pool(), monitoring="{labels: {release: kps}, honorLabels: true}")
    values = helm_values(plan)
    assert values["dcgmExporter"] == {
        "config": {"create": False, "name": metrics_name(plan)},
        "enabled": True,
        "serviceMonitor": {
            "additionalLabels": {"release": "kps"},
            "enabled": True,
            "honorLabels": True,
            "relabelings": [NODE],
        },
    }
    assert values["nodeStatusExporter"] == {"enabled": True}


def test_a_chart_that_makes_no_metrics_is_told_of_none_to_make() -> None:
    """It hands on all that is there to the ClusterPolicy, which has the name alone."""
    plan = a_cluster(a_pool(), version="v24.6.2", monitoring="{}")
    assert helm_values(plan)["dcgmExporter"]["config"] == {"name": metrics_name(plan)}


def service_monitor(values: str) -> dict[str, Any]:
    more = f"values: {{dcgmExporter: {{serviceMonitor: {values}}}}}"
    found: dict[str, Any] = helm_values(a_cluster(more=more, monitoring="{}"))["dcgmExporter"]["serviceMonitor"]
    return found


def test_the_policys_own_values_are_kept() -> None:
    found = service_monitor("{interval: 30s, additionalLabels: {team: gpu}}")
    assert (found["interval"], found["additionalLabels"]) == ("30s", {"team": "gpu"})


def test_the_policys_own_relabelings_come_first() -> None:
    zone = {"action": "labeldrop", "regex": "endpoint"}
    assert service_monitor("{relabelings: [{action: labeldrop, regex: endpoint}]}")["relabelings"] == [zone, NODE]


def test_a_whole_cluster_policy_mounts_the_fields() -> None:
    plan = a_cluster(a_pool(), install="olm", platform="openshift", monitoring="{}")
    assert cluster_policy(plan)["spec"]["dcgmExporter"] == {
        "enabled": True,
        "config": {"name": metrics_name(plan)},
        "serviceMonitor": {"enabled": True, "honorLabels": False, "relabelings": [NODE]},
    }


def test_a_patch_owns_what_the_rules_need() -> None:
    plan = a_cluster(a_pool(), install="external", monitoring="{labels: {release: kps}}")
    spec = cluster_policy(plan)["spec"]
    assert spec["dcgmExporter"] == {
        "config": {"name": metrics_name(plan)},
        "serviceMonitor": {
            "enabled": True,
            "honorLabels": False,
            "additionalLabels": {"release": "kps"},
            "relabelings": [NODE],
        },
    }
    assert spec["nodeStatusExporter"] == {"enabled": True}


def test_a_whole_cluster_policy_says_what_the_definition_would_fill_in() -> None:
    spec = cluster_policy(a_cluster(a_pool(), install="olm", monitoring="{labels: {release: kps}}"))["spec"]
    definition = crds.schema(CLUSTER_POLICIES)["properties"]["spec"]
    assert list(crds.drift(spec, definition)) == []


# --- What it collects, by release --------------------------------------------------------------------------------


def test_rates_of_pcie_are_gauges() -> None:
    types = {field: kind for field, kind, _ in collected(a_cluster(monitoring="{}"))}
    assert (types["DCGM_FI_PROF_PCIE_TX_BYTES"], types["DCGM_FI_PROF_PCIE_RX_BYTES"]) == ("gauge", "gauge")


def test_as_before_there_was_a_choice() -> None:
    """The digest in the name is that of releases before: the exporter does not restart."""
    assert metrics_name(a_cluster(monitoring="{collect: basic}")) == "gpuplan-dcgm-metrics-1fa5f6be"


CLOCKS = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}
NEWER = {"DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_EXP_GPU_HEALTH_STATUS"}


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("v24.9.2", {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}),
        ("v25.3.0", {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}),
        ("v25.10.1", {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}),
        ("v26.3.0", {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"}),
        ("v26.3.2", {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", *NEWER}),
        ("v26.7.0", {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", *NEWER}),
    ],
)
def test_an_exporter_is_told_of_no_field_that_it_does_not_know(version: str, fields: set[str]) -> None:
    """It would end with an error, and the node would have no metrics at all."""
    found = {line[0] for line in collected(a_cluster(version=version, monitoring="{}"))}
    assert found & (CLOCKS | NEWER) == fields


def test_the_exporter_that_the_policys_values_name_counts() -> None:
    more = "values: {dcgmExporter: {version: 4.4.2-4.7.0-distroless}}"
    found = {line[0] for line in collected(a_cluster(more=more, monitoring="{}"))}
    assert found & (CLOCKS | NEWER) == {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}


# --- Pods on shared GPUs -----------------------------------------------------------------------------------------

RESOURCE = {"name": "NVIDIA_RESOURCE_NAMES", "value": "nvidia.com/gpu.shared"}
EVERY_POD = {"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}
SHARED, MPS = "{timeSlicing: {replicas: 4}}", "{mps: {replicas: 4}}"


def exporter(sharing: str, version: str = "v26.3.1", env: str = "[]", more: str = "", monitoring: str = "{}") -> Any:
    values = f"values: {{dcgmExporter: {{env: {env}{more}}}}}" if env != "[]" or more else ""
    plan = a_cluster(a_pool(sharing=sharing), version=version, more=values, monitoring=monitoring)
    return helm_values(plan)["dcgmExporter"]


@pytest.mark.parametrize("sharing", [SHARED, MPS])
@pytest.mark.parametrize("version", ["v24.6.0", "v25.3.4", "v26.3.1"])
def test_pods_on_shared_gpus_are_looked_at(sharing: str, version: str) -> None:
    """The exporter passes over resources that it is not told of; NVIDIA/dcgm-exporter#151."""
    found = exporter(sharing, version)
    assert (found["env"], "hostPID" in found) == ([RESOURCE], False)


@pytest.mark.parametrize(
    "sharing",
    [
        "{exclusive: {}}",
        "{mig: {instances: {1g.10gb: 7}}}",
        "{mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}}",
    ],
)
def test_whole_gpus_and_mig_devices_are_known_to_the_exporter(sharing: str) -> None:
    assert "env" not in exporter(sharing, "v26.7.0")


@pytest.mark.parametrize("version", ["v26.3.2", "v26.7.0"])
def test_all_pods_on_a_shared_gpu_are_named_with_what_their_memory_needs(version: str) -> None:
    found = exporter(SHARED, version)
    assert found["env"] == [RESOURCE, EVERY_POD]
    assert (found["hostPID"], found["enablePodUID"]) == (True, True)


def test_the_policys_own_variables_stay_and_its_resources_are_completed() -> None:
    own = "[{name: A, value: b}, {name: NVIDIA_RESOURCE_NAMES, value: example.com/gpu}]"
    completed = {"name": "NVIDIA_RESOURCE_NAMES", "value": "example.com/gpu,nvidia.com/gpu.shared"}
    assert exporter(SHARED, env=own)["env"] == [{"name": "A", "value": "b"}, completed]


@pytest.mark.parametrize(
    ("env", "more"),
    [
        ("[{name: KUBERNETES_VIRTUAL_GPUS, value: 'false'}]", ""),
        ("[]", ", hostPID: false"),
        ("[]", ", enablePodUID: false"),
    ],
)
def test_who_refuses_a_part_of_it_has_one_pod_named(env: str, more: str) -> None:
    """With the variable alone, framebuffer in use would be zero for every pod of the cluster."""
    found = exporter(SHARED, "v26.7.0", env, more)
    assert EVERY_POD not in found["env"]
    assert [found.get(key) for key in ("hostPID", "enablePodUID")].count(True) == 0


def test_nothing_is_said_of_pods_where_only_the_basic_is_collected() -> None:
    assert {"env", "hostPID"} & exporter(SHARED, "v26.7.0", monitoring="{collect: basic}").keys() == set()


def test_a_whole_policy_names_the_resources_and_openshift_lets_no_exporter_see_processes() -> None:
    plain = a_cluster(a_pool(sharing=SHARED), install="olm", monitoring="{}")
    openshift = a_cluster(a_pool(sharing=SHARED), install="olm", platform="openshift", monitoring="{}")
    assert cluster_policy(plain)["spec"]["dcgmExporter"]["env"] == [RESOURCE, EVERY_POD]
    found = cluster_policy(openshift)["spec"]["dcgmExporter"]
    assert (found["env"], "hostPID" in found) == ([RESOURCE], False)


def test_a_patch_leaves_the_owners_list_alone() -> None:
    plan = a_cluster(a_pool(sharing=SHARED), install="external", monitoring="{}")
    assert {"env", "hostPID", "enablePodUID"} & cluster_policy(plan)["spec"]["dcgmExporter"].keys() == set()
