"""What the DCGM exporter is told where the cluster is watched."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.planning.plan import Plan
from tests.backends import crds
from tests.backends.gpu_operator.rendered import a_cluster, a_pool, cluster_policy, config_map, helm_values, objects
from tests.backends.gpu_operator.test_cluster_policy import CLUSTER_POLICIES

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
