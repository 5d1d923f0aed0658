from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.catalog.operators import Keys, chart_keys, decided_values
from gpuplan.compiler.manifests import File
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, config_map, helm_values, objects
from tests.plans import a_plan

GPU_TAINT = "[{key: nvidia.com/gpu, value: a, effect: NoSchedule}]"
TEAM_TAINTS = "[{key: example.com/team, value: a, effect: NoExecute}, {key: nvidia.com/gpu, effect: NoSchedule}]"
TOLERATES_GPUS = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TOLERATES_TEAM = {"key": "example.com/team", "operator": "Exists", "effect": "NoExecute"}


def config_map_name(plan: Plan, prefix: str) -> str:
    return str(config_map(plan, prefix)["metadata"]["name"])


def test_values_of_a_plain_cluster() -> None:
    plan = a_cluster(a_pool(sharing="{mig: {instances: {1g.10gb: 7}}}"))
    assert helm_values(plan) == {
        "devicePlugin": {
            "config": {"create": False, "default": "", "name": config_map_name(plan, "gpuplan-device-plugin-")}
        },
        "driver": {"enabled": True},
        "mig": {"strategy": ""},
        "migManager": {
            "config": {
                "create": False,
                "default": "all-disabled",
                "name": config_map_name(plan, "gpuplan-mig-parted-"),
            },
            "env": [{"name": "WITH_REBOOT", "value": "false"}],
        },
        "node-feature-discovery": {
            "master": {"config": {"extraLabelNs": ["gpuplan.dev", "nvidia.com"]}},
            "postDeleteCleanup": False,
        },
        "operator": {"cleanupCRD": False, "upgradeCRD": False},
    }


def test_the_file_says_for_which_chart_it_is() -> None:
    (file,) = [artifact for artifact in gpu_operator.render(a_plan("")) if isinstance(artifact, File)]
    assert file.path == "gpu-operator/values.yaml"
    assert b"# Values for the chart gpu-operator, v26.7.0.\n" in file.data


def test_without_pools_no_config_map_is_named() -> None:
    assert helm_values(a_plan(""))["devicePlugin"]["config"]["name"] == ""


def test_where_devices_are_claimed_nothing_else_hands_them_out() -> None:
    pool = a_pool(sharing="{mig: {instances: {1g.10gb: 7}}}") + "  allocation: dra\n"
    assert helm_values(a_cluster(pool))["devicePlugin"]["enabled"] is False


@pytest.mark.parametrize(
    ("strategy", "written"), [("perPool", ""), ("none", "none"), ("single", "single"), ("mixed", "mixed")]
)
def test_an_empty_strategy_replaces_the_charts_single(strategy: str, written: str) -> None:
    assert helm_values(a_cluster(more=f"migStrategy: {strategy}"))["mig"] == {"strategy": written}


def test_the_driver() -> None:
    plan = a_cluster(more="driver: {enabled: false, version: 580.95.05}")
    assert helm_values(plan)["driver"] == {"enabled": False, "version": "580.95.05"}


def test_openshift_without_olm() -> None:
    assert helm_values(a_cluster(platform="openshift"))["platform"] == {"openshift": True}


# --- The user's values -------------------------------------------------------------------------------------------


def test_the_users_values_lie_under_ours_and_over_defaults() -> None:
    more = (
        "values: {operator: {upgradeCRD: true}, mig: {strategy: mixed}, driver: {rdma: {enabled: true}},"
        " toolkit: {env: [{name: A, value: b}]}, gds: null}"
    )
    values = helm_values(a_cluster(more=more))
    assert values["operator"] == {"cleanupCRD": False, "upgradeCRD": True}
    assert values["mig"] == {"strategy": ""}
    assert values["driver"] == {"enabled": True, "rdma": {"enabled": True}}
    assert values["toolkit"] == {"env": [{"name": "A", "value": "b"}]}
    assert values["gds"] is None


def test_values_do_not_depend_on_the_order_that_they_are_written_in() -> None:
    one = a_cluster(more="values: {gds: {enabled: true, image: x}, cdi: {enabled: true}}")
    other = a_cluster(more="values: {cdi: {enabled: true}, gds: {image: x, enabled: true}}")
    assert list(gpu_operator.render(one))[-1] == list(gpu_operator.render(other))[-1]


def test_the_users_environment_is_kept_beside_ours() -> None:
    more = "rebootOnMigChange: true, values: {migManager: {env: [{name: WITH_REBOOT, value: x}, {name: A, value: b}]}}"
    assert helm_values(a_cluster(more=more))["migManager"]["env"] == [
        {"name": "A", "value": "b"},
        {"name": "WITH_REBOOT", "value": "true"},
    ]


@pytest.mark.parametrize("values", ["{driver: 5}", "{migManager: {env: none}}", "{node-feature-discovery: []}"])
def test_values_of_the_wrong_shape_are_replaced(values: str) -> None:
    assert helm_values(a_cluster(more=f"values: {values}"))["driver"] == {"enabled": True}


# --- Taints ------------------------------------------------------------------------------------------------------


def test_the_usual_taint_needs_no_toleration() -> None:
    values = helm_values(a_cluster(a_pool(taints=GPU_TAINT)))
    assert "daemonsets" not in values
    assert "worker" not in values["node-feature-discovery"]


def test_other_taints_are_tolerated_by_operands_and_by_nfds_worker() -> None:
    values = helm_values(a_cluster(a_pool("a", taints=TEAM_TAINTS), a_pool("b", taints=TEAM_TAINTS)))
    assert values["daemonsets"]["tolerations"] == [TOLERATES_GPUS, TOLERATES_TEAM]
    assert values["node-feature-discovery"]["worker"]["tolerations"][1:] == [TOLERATES_GPUS, TOLERATES_TEAM]


def test_the_users_tolerations_are_completed() -> None:
    more = "values: {daemonsets: {tolerations: [{key: example.com/team, value: a, effect: NoExecute}]}}"
    values = helm_values(a_cluster(a_pool(taints=TEAM_TAINTS), more=more))
    assert values["daemonsets"]["tolerations"] == [
        {"key": "example.com/team", "value": "a", "effect": "NoExecute"},
        TOLERATES_GPUS,
    ]


def test_a_toleration_of_everything_is_enough() -> None:
    more = "values: {daemonsets: {tolerations: [{operator: Exists}]}}"
    values = helm_values(a_cluster(a_pool(taints=TEAM_TAINTS), more=more))
    assert values["daemonsets"]["tolerations"] == [{"operator": "Exists"}]


def test_nfd_sets_taints_only_where_it_has_any_to_set() -> None:
    def master(**cluster: str) -> Any:
        return helm_values(a_cluster(a_pool(taints=GPU_TAINT), **cluster)).get("node-feature-discovery", {})

    assert master(node_labels="nfd")["master"]["config"]["enableTaints"] is True
    assert master(node_labels="external") == {"postDeleteCleanup": False}
    assert "enableTaints" not in helm_values(a_cluster(a_pool()))["node-feature-discovery"]["master"]["config"]


def test_nfd_may_write_every_label_of_the_pools() -> None:
    pool = a_pool() + "  nodeLabels: {example.com/rack: r1, example.com/row: r2}\n"
    more = "values: {node-feature-discovery: {master: {config: {extraLabelNs: [vendor.example]}}}}"
    config = helm_values(a_cluster(pool, more=more))["node-feature-discovery"]["master"]["config"]
    assert config["extraLabelNs"] == ["example.com", "gpuplan.dev", "nvidia.com", "vendor.example"]


# --- What checks know about these values -------------------------------------------------------------------------


def routes(values: dict[str, Any], route: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from routes(value, (*route, key))
        else:
            yield (*route, key)


COMPLETED = {
    ("dcgmExporter", "serviceMonitor", "additionalLabels", "release"),
    ("dcgmExporter", "serviceMonitor", "relabelings"),
    ("daemonsets", "tolerations"),
    ("migManager", "env"),
    ("node-feature-discovery", "master", "config", "extraLabelNs"),
    ("node-feature-discovery", "worker", "tolerations"),
}
DEFAULTS = {("node-feature-discovery", "postDeleteCleanup"), ("operator", "cleanupCRD"), ("operator", "upgradeCRD")}


def a_full_cluster(version: str = "v26.7.0") -> Plan:
    return a_cluster(
        a_pool(taints=TEAM_TAINTS),
        version=version,
        platform="openshift",
        more="driver: {version: 580.95.05}, rebootOnMigChange: true",
        monitoring="{labels: {release: kps}}",
    )


FULL = a_full_cluster()


def test_every_value_is_one_that_checks_guard_or_that_users_may_add_to() -> None:
    written = set(routes(helm_values(FULL)))
    config_maps = {(operand, "config", "data") for operand in ("dcgmExporter", "devicePlugin", "migManager")}
    unused = {*config_maps, ("nfd", "enabled"), ("devicePlugin", "enabled")}
    assert written == (decided_values().keys() - unused) | COMPLETED | DEFAULTS


def test_a_cluster_that_has_nfd_already_gets_none_of_the_chart() -> None:
    values = helm_values(a_cluster(a_pool(taints=TEAM_TAINTS), more="nfd: false"))
    assert values["nfd"] == {"enabled": False}
    assert "node-feature-discovery" not in values
    assert values["daemonsets"]["tolerations"] == [TOLERATES_GPUS, TOLERATES_TEAM]


@pytest.mark.parametrize("version", ["v24.6.0", "v24.9.2", "v25.3.1", "v25.10.1", "v26.3.1", "v26.7.0"])
def test_every_chart_knows_every_value(version: str) -> None:
    def known(keys: Keys, route: tuple[str, ...]) -> bool:
        below = keys[route[0]]
        return below is None or not route[1:] or known(below, route[1:])

    values = helm_values(a_full_cluster(version))
    assert all(known(chart_keys(version).keys, route) for route in routes(values))


@pytest.mark.parametrize(("version", "is_written"), [("v25.3.4", False), ("v25.10.0", True), ("v26.7.0", True)])
def test_nfds_hook_is_switched_off_where_the_chart_has_a_switch(version: str, *, is_written: bool) -> None:
    """`templates/post-delete-job.yaml` of the chart inside begins with a condition from v25.10 on, NFD v0.18."""
    nfd = helm_values(a_full_cluster(version))["node-feature-discovery"]
    assert ("postDeleteCleanup" in nfd) is is_written


def test_the_operators_namespace_takes_privileged_pods() -> None:
    (namespace,) = objects(a_plan(""), "Namespace")
    assert namespace["metadata"]["name"] == "gpu-operator"
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
