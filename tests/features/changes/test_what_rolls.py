"""Which DaemonSets of the GPU Operator a change restarts, on which nodes, and what it says of pods."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.changes.model import Change, NodeImpact
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, between, original, state

DRIVER = "nvidia-driver-daemonset"
TOOLKIT = "nvidia-container-toolkit-daemonset"
PLUGIN = "nvidia-device-plugin-daemonset"
MPS = "nvidia-device-plugin-mps-control-daemon"
MIG = "nvidia-mig-manager"
GFD = "gpu-feature-discovery"
EXPORTER = "nvidia-dcgm-exporter"
STATUS = "nvidia-node-status-exporter"
VALIDATOR = "nvidia-operator-validator"
NFD = "gpu-operator-node-feature-discovery-worker"


def of_the_cluster(edit: Edit, before: Edit = original) -> list[Change]:
    found = between(state(before), state(before, edit)).changes
    return [change for change in found if (change.cluster, *change.subject) == ("prod", "Cluster", "prod")]


def rolled(found: list[Change]) -> dict[ChangeClass, set[str]]:
    """The DaemonSets by the class of the change that says so."""
    return {change.change_class: set(change.daemon_sets) for change in found}


def with_values(**values: Any) -> Edit:
    def edit(platform: Platform) -> None:
        platform.cluster("prod")["gpuOperator"]["values"] = values

    return edit


def on(release: str, also: Edit = original) -> Edit:
    def edit(platform: Platform) -> None:
        also(platform)
        platform.cluster("prod")["gpuOperator"]["version"] = release

    return edit


def taint_a_pool(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["taints"] = [{"key": "example.com/a", "effect": "NoSchedule"}]


def test_a_file_of_the_device_plugin_rolls_those_that_read_it() -> None:
    (found,) = of_the_cluster(edits.change_replicas_of_a_pool)
    assert rolled([found]) == {ChangeClass.PLUGIN_RESTART: {PLUGIN, GFD}}
    assert found.effect.endswith("pods that hold GPUs go on, new ones wait meanwhile")


def test_beside_mps_the_daemons_are_told_of_with_all_that_rolls_on_their_nodes() -> None:
    found = of_the_cluster(edits.change_replicas_of_a_pool, edits.time_slicing_to_mps)
    assert rolled(found) == {ChangeClass.REPARTITION: {MPS, PLUGIN, GFD}, ChangeClass.PLUGIN_RESTART: {PLUGIN, GFD}}
    assert [change.nodes for change in found] == [
        NodeImpact(2, (), "gpu-h100-training-[0-9]+"),
        NodeImpact(10, (), None),
    ]


def test_a_layout_rolls_mig_manager_and_keeps_nobody_waiting() -> None:
    (found,) = of_the_cluster(edits.add_an_unused_layout)
    assert rolled([found]) == {ChangeClass.PLUGIN_RESTART: {MIG}}
    assert found.effect == (
        "pods of the operator come, go or restart on 12 nodes; pods that hold GPUs go on, and none waits for them"
    )


def test_the_mig_strategy_rolls_what_hands_out_devices_and_the_validator() -> None:
    assert rolled(of_the_cluster(edits.change_the_mig_strategy)) == {
        ChangeClass.PLUGIN_RESTART: {PLUGIN, GFD, VALIDATOR}
    }


@pytest.mark.parametrize("release", ["v24.6.2", "v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3"])
def test_a_taint_evicts_all_pods_that_hold_gpus_before_v26_7(release: str) -> None:
    found = of_the_cluster(taint_a_pool, on(release))
    assert rolled(found)[ChangeClass.REPARTITION] == {DRIVER}
    drivers = found[0]
    assert drivers.what == "drivers restart: settings of `daemonsets` and `node-feature-discovery` change"
    assert drivers.effect == (
        "driver pods restart on all nodes, a few at a time, and pods that hold GPUs are evicted for it"
    )
    assert drivers.needs_drain
    assert (drivers.nodes, drivers.pods > 0) == (NodeImpact(12, (), None), True)


def test_a_taint_restarts_drivers_in_place_from_v26_7() -> None:
    (found,) = of_the_cluster(taint_a_pool)
    assert rolled([found]) == {
        ChangeClass.PLUGIN_RESTART: {DRIVER, TOOLKIT, PLUGIN, MIG, GFD, EXPORTER, STATUS, VALIDATOR, NFD}
    }


def test_a_release_of_the_operator_rolls_all_and_evicts() -> None:
    found = of_the_cluster(edits.upgrade_an_operator_beside_mps, edits.mps_with_a_pinned_driver)
    everything = {TOOLKIT, PLUGIN, GFD, EXPORTER, STATUS, VALIDATOR, MIG, NFD}
    classes = [(change.change_class, set(change.daemon_sets)) for change in found]
    assert (ChangeClass.REPARTITION, {DRIVER}) in classes
    assert (ChangeClass.REPARTITION, {MPS, *everything} - {MIG}) in classes
    assert (ChangeClass.PLUGIN_RESTART, everything) in classes


def test_an_operand_that_is_only_watched_by_keeps_nobody_waiting() -> None:
    (found,) = of_the_cluster(edits.change_helm_values)
    assert rolled([found]) == {ChangeClass.PLUGIN_RESTART: {GFD}}
    assert found.effect.endswith("and none waits for them")


def test_the_environment_of_the_device_plugin_is_not_that_of_mps() -> None:
    env = with_values(devicePlugin={"env": [{"name": "PASS_DEVICE_SPECS", "value": "true"}]})
    assert rolled(of_the_cluster(env, edits.time_slicing_to_mps)) == {ChangeClass.PLUGIN_RESTART: {PLUGIN}}


def test_mig_manager_alone_rolls_on_nodes_that_it_runs_on() -> None:
    def only_undivided(platform: Platform) -> None:
        for name in ("a100-agents", "a100-mixed", "a100-production", "a100-shared", "a100-small", "h100-training"):
            platform.spec("Pool", name)["gpu"] = "L40S-48GB"

    found = of_the_cluster(edits.stop_reboots, only_undivided)
    assert rolled(found) == {ChangeClass.METADATA: set()}
    assert found[0].effect == "no pod of the operator restarts; nothing that runs is disturbed"


def test_a_driver_that_is_not_upgraded_by_itself_disturbs_nobody() -> None:
    held = {"upgradePolicy": {"autoUpgrade": False}}

    def pin(platform: Platform) -> None:
        platform.cluster("prod")["gpuOperator"]["driver"] = {"version": "595.91.08"}

    (found,) = of_the_cluster(pin, with_values(driver=held))
    assert rolled([found]) == {ChangeClass.METADATA: {DRIVER}}
    assert found.effect == (
        "pods of `nvidia-driver-daemonset` stay as they are until somebody deletes them; nothing that runs is disturbed"
    )


def test_settings_of_the_driver_that_change_nothing_of_it_restart_it_in_place() -> None:
    (found,) = of_the_cluster(with_values(driver={"resources": {"limits": {"memory": "8Gi"}}}))
    assert (found.change_class, found.what) == (ChangeClass.PLUGIN_RESTART, "settings of the driver change")
    assert found.daemon_sets == (DRIVER,)


def test_what_stands_in_no_pod_template_restarts_nothing() -> None:
    (found,) = of_the_cluster(with_values(daemonsets={"rollingUpdate": {"maxUnavailable": "2"}}))
    assert (found.change_class, found.effect) == (ChangeClass.METADATA, "nothing restarts on nodes with GPUs")


def test_what_is_not_known_may_restart_anything() -> None:
    (found,) = of_the_cluster(with_values(gpuCluster={"enabled": True}))
    assert (found.change_class, found.daemon_sets) == (ChangeClass.PLUGIN_RESTART, ())


@pytest.mark.parametrize(("release", "effect"), [("v26.7.0", "are evicted"), ("v25.10.1", "the driver with them")])
def test_drivers_that_objects_of_their_own_describe_are_others(release: str, effect: str) -> None:
    def before(platform: Platform) -> None:
        platform.cluster("prod")["gpuOperator"]["version"] = release

    found = of_the_cluster(with_values(driver={"nvidiaDriverCRD": {"enabled": True}}), before)
    [change] = [change for change in found if DRIVER in change.daemon_sets]
    assert change.change_class is ChangeClass.REPARTITION
    assert effect in change.effect


BY_HAND = with_values(driver={"upgradePolicy": {"autoUpgrade": False}})


def both(first: Edit, second: Edit) -> Edit:
    def edit(platform: Platform) -> None:
        first(platform)
        second(platform)

    return edit


def test_the_first_driver_of_a_pool_waits_for_a_person_where_nothing_is_upgraded_by_itself() -> None:
    (found,) = of_the_cluster(edits.name_a_driver, BY_HAND)
    assert (found.change_class, found.needs_drain, found.pods) == (ChangeClass.METADATA, False, 0)
    assert found.what == "NVIDIADrivers take over drivers from the ClusterPolicy"
    assert found.effect == (
        "driver pods of the ClusterPolicy stay until somebody deletes them, since `autoUpgrade` is false: pods of "
        "NVIDIADrivers wait meanwhile, and none of these is ready; nothing that runs is disturbed"
    )


def test_the_first_driver_of_a_pool_evicts_where_upgrades_begin_with_it() -> None:
    found = of_the_cluster(both(with_values(), edits.name_a_driver), BY_HAND)
    assert (found[0].change_class, found[0].needs_drain) == (ChangeClass.REPARTITION, True)


def test_a_driver_that_goes_back_to_the_cluster_policy_waits_for_nobody() -> None:
    with_objects = with_values(driver={"upgradePolicy": {"autoUpgrade": False}, "nvidiaDriverCRD": {"enabled": True}})
    found = between(state(with_objects), state(BY_HAND)).changes
    [change] = [change for change in found if change.cluster == "prod" and DRIVER in change.daemon_sets]
    assert change.change_class is ChangeClass.REPARTITION


def test_driver_pods_of_nvidia_drivers_that_waited_are_evicted_for_once_they_need_not() -> None:
    found = between(state(BY_HAND, edits.name_a_driver), state(BY_HAND, edits.name_a_driver, with_values())).changes
    told = {change.subject.name: change for change in found if change.cluster == "prod"}
    assert {name: change.change_class for name, change in told.items()} == {
        "prod": ChangeClass.REPARTITION,
        "a100-mixed": ChangeClass.REPARTITION,
    }
    assert told["a100-mixed"].what == "pods that wait for a person to delete them wait no longer"


def test_a_second_driver_of_a_pool_ends_pods_whatever_is_upgraded_by_itself() -> None:
    before = both(BY_HAND, edits.name_a_driver)
    found = between(state(before), state(before, edits.name_a_second_driver)).changes
    [change] = [change for change in found if (change.cluster, change.subject.name) == ("prod", "a100-agents")]
    assert (change.change_class, change.needs_drain, change.pods > 0) == (ChangeClass.REPARTITION, True, True)
    assert change.daemon_sets == ("NVIDIADriver/gpuplan-a100-agents",)


def test_nodes_that_are_for_virtual_machines_lose_all_that_containers_need() -> None:
    workloads = {"enabled": True, "defaultWorkload": "vm-passthrough"}
    found = of_the_cluster(with_values(sandboxWorkloads=workloads))
    [change] = [change for change in found if change.change_class is ChangeClass.DESTRUCTIVE]
    assert {DRIVER, PLUGIN} <= set(change.daemon_sets)


def test_virtual_machines_on_nodes_that_ask_for_them_take_no_others() -> None:
    found = of_the_cluster(with_values(sandboxWorkloads={"enabled": True}))
    assert ChangeClass.DESTRUCTIVE not in rolled(found)


def test_what_waits_for_an_operand_that_goes_waits_on() -> None:
    [change] = [
        change for change in of_the_cluster(with_values(toolkit={"enabled": False})) if TOOLKIT in change.daemon_sets
    ]
    assert f"new ones wait until something else does what `{TOOLKIT}` did" in change.effect


def test_who_labels_nodes_no_more_is_missed_by_who_reads_the_labels() -> None:
    [change] = [change for change in of_the_cluster(with_values(gfd={"enabled": False})) if GFD in change.daemon_sets]
    assert change.effect.endswith("without `nvidia.com/mig.capable` on a node the MIG manager leaves it")
