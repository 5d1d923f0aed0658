"""Where the GPU Operator's ConfigMaps and settings come from."""

from __future__ import annotations

from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool
from tests.compiler.backends.gpu_operator.traces import links, own, traced, words
from tests.platforms import document

PARTED, PLUGIN = "ConfigMap gpuplan-mig-parted-", "ConfigMap gpuplan-device-plugin"
HELM, POLICY = "gpu-operator/values.yaml", "ClusterPolicy "
SPEC = "Cluster test spec"
OPERATOR = f"{SPEC}.gpuOperator"


def layout(fields: str) -> str:
    return document("MigLayout", "l", "gpu: A100-80GB", fields).removeprefix("---")


def parted(plan: Plan, *route: str | int) -> list[str]:
    (config,) = [item.config_name for item in plan.mig_layouts]
    found = own(plan, PARTED, "data", "config.yaml", "mig-configs", config, *route)
    return [item for item in found if not item.startswith("hash of")]


# --- mig-parted --------------------------------------------------------------------------------------------------


def test_a_count_of_instances_is_copied_from_its_layout() -> None:
    plan = a_cluster(layout("instances: {1g.10gb: 7}"))
    assert parted(plan, 0, "mig-devices", "1g.10gb") == [
        "copied MigLayout l spec.instances.1g.10gb",
        "chosen by MigLayout l metadata.name",
    ]


def test_the_order_of_instances_is_a_fact_of_the_catalog() -> None:
    plan = a_cluster(layout("instances: {3g.40gb: 1, 1g.10gb: 4}"))
    assert "fact catalog mig.profiles[4]" in parted(plan, 0, "mig-devices", "3g.40gb")


def test_two_spellings_of_a_profile_are_added_up() -> None:
    plan = a_cluster(layout("instances: {7g.80gb: 1, 7c.7g.80gb: 1}"))
    assert parted(plan, 0, "mig-devices", "7g.80gb")[:2] == [
        "sum of MigLayout l spec.instances.7g.80gb",
        "sum of MigLayout l spec.instances.7c.7g.80gb",
    ]


def test_each_gpu_is_copied_and_those_that_are_left_follow_from_the_nodes() -> None:
    devices = "devices: [{gpus: [2, 0], instances: {1g.10gb: 7}}]"
    plan = a_cluster(layout(devices), a_pool(sharing="{mig: {layout: l}}", gpus=4))
    assert "copied MigLayout l spec.devices[0].gpus[1]" in parted(plan, 0, "devices", 1)
    assert "chosen by Pool a spec.nodes.gpusPerNode" in parted(plan, 1, "devices", 0)


def test_gpus_of_a_node_matter_to_no_layout_that_is_for_all_of_them() -> None:
    plan = a_cluster(layout("instances: {1g.10gb: 7}"), a_pool(sharing="{mig: {layout: l}}"))
    assert not [link for link in words(traced(plan, PARTED).whole) if "gpusPerNode" in link]


def test_a_digest_is_of_all_that_is_in_the_content() -> None:
    plan = a_cluster(layout("devices: [{gpus: [0], instances: {1g.10gb: 7}}]"), a_pool(sharing="{mig: {layout: l}}"))
    artifact = traced(plan, PARTED)
    name = links(artifact, ("metadata", "name"))
    assert {link.how for link in name} == {How.HASH}
    inside = {link.at for leaf in artifact.leaves if leaf.path[0] == "data" for link in leaf.own}
    assert inside == {link.at for link in name}
    assert links(traced(plan, HELM), ("migManager", "config", "name")) == name


# --- Device plugin -----------------------------------------------------------------------------------------------


def test_a_pools_own_strategy_is_copied_where_no_other_holds() -> None:
    mig = "{mig: {instances: {1g.10gb: 7}, strategy: single}}"
    assert "copied Pool a spec.sharing.mig.strategy" in own(
        a_cluster(a_pool(sharing=mig)), PLUGIN, "data", "a", "flags", "migStrategy"
    )
    plan = a_cluster(a_pool(sharing=mig), more="migStrategy: single, devicePluginConfig: perContent")
    assert words(links(traced(plan, PLUGIN), ("metadata", "name"))) == [
        "hash of Pool a metadata.name",
        "hash of Cluster test spec.gpuOperator.migStrategy",
        "hash of Cluster test spec.gpuOperator.devicePluginConfig",
    ]


def test_a_name_that_stays_is_chosen_and_keys_are_hashes() -> None:
    plan = a_cluster(a_pool(sharing="{mps: {replicas: 4}}"), more="devicePluginConfig: fixed")
    chosen = "chosen by Cluster test spec.gpuOperator.devicePluginConfig"
    artifact = traced(plan, PLUGIN)
    assert words(links(artifact, ("metadata", "name"))) == [chosen]
    key = plan.pools[0].labels["nvidia.com/device-plugin.config"]
    found = words(links(artifact, ("data", key, "version")))
    assert chosen in found
    assert "hash of Pool a spec.sharing.mps.replicas" in found


def test_shares_are_copied_and_what_nobody_writes_has_no_place() -> None:
    plan = a_cluster(a_pool(sharing="{mps: {replicas: 4}}"), more="devicePluginConfig: perContent")
    mps = ("data", "a", "sharing", "mps")
    named = ["chosen by Pool a metadata.name", "chosen by Cluster test spec.gpuOperator.devicePluginConfig"]
    assert own(plan, PLUGIN, *mps, "resources", 0, "replicas") == ["copied Pool a spec.sharing.mps.replicas", *named]
    assert own(plan, PLUGIN, *mps, "renameByDefault") == named


def test_what_is_retained_is_copied_by_its_route() -> None:
    shares = "sharing: {mps: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
    kept = document(
        "Retained", "r", f"devicePluginConfig: {{key: x, config: {{version: v1, {shares}}}}}", "until: gone"
    )
    plan = a_cluster(kept.removeprefix("---"))
    at = "Retained r spec.devicePluginConfig"
    assert own(plan, PLUGIN, "data", "x", "sharing", "mps", "resources", 0, "replicas") == [
        f"copied {at}.config.sharing.mps.resources[0].replicas",
        f"chosen by {at}.key",
    ]


# --- Helm --------------------------------------------------------------------------------------------------------


def test_a_value_of_the_policy_is_copied_from_its_route() -> None:
    plan = a_cluster(more="values: {toolkit: {env: [{name: A, value: b}]}}")
    assert own(plan, HELM, "toolkit", "env", 0, "value") == [f"copied {OPERATOR}.values.toolkit.env[0].value"]


def test_a_value_that_the_plan_decides_does_not_come_from_the_policys_own() -> None:
    plan = a_cluster(more="values: {driver: {enabled: true}}, driver: {enabled: true}")
    assert own(plan, HELM, "driver", "enabled") == [f"copied {OPERATOR}.driver.enabled"]


def test_items_of_a_list_keep_their_places_when_gpuplans_own_is_taken_out() -> None:
    env = "[{name: WITH_REBOOT, value: 'true'}, {name: A, value: b}]"
    plan = a_cluster(more=f"rebootOnMigChange: true, values: {{migManager: {{env: {env}}}}}")
    assert own(plan, HELM, "migManager", "env", 0, "value") == [f"copied {OPERATOR}.values.migManager.env[1].value"]
    assert own(plan, HELM, "migManager", "env", 1, "value") == [f"copied {OPERATOR}.rebootOnMigChange"]


def test_a_toleration_is_for_the_taint_that_nothing_tolerates() -> None:
    plan = a_cluster(
        a_pool("a", taints="[{key: x.io/a, effect: NoSchedule}]"),
        a_pool("b", taints="[{key: nvidia.com/gpu, effect: NoSchedule}]"),
    )
    assert own(plan, HELM, "daemonsets", "tolerations", 1, "key")[0] == "copied Pool a spec.taints[0].key"


def test_a_toleration_for_two_pools_is_copied_from_neither() -> None:
    taints = "[{key: x.io/a, effect: NoSchedule}]"
    plan = a_cluster(a_pool("a", taints=taints), a_pool("b", taints=taints))
    assert own(plan, HELM, "daemonsets", "tolerations", 1, "key") == [
        "chosen by Pool a spec.taints[0].key",
        "chosen by Pool a spec.taints[0].effect",
        "chosen by Pool b spec.taints[0].key",
        "chosen by Pool b spec.taints[0].effect",
    ]


# --- ClusterPolicy and OLM ---------------------------------------------------------------------------------------


def test_a_release_is_copied_and_chooses_its_line() -> None:
    plan = a_cluster(install="olm", platform="openshift")
    assert own(plan, "Subscription gpu-", "spec", "startingCSV") == [f"copied {OPERATOR}.version"]
    assert own(plan, "Subscription gpu-", "spec", "channel") == [f"chosen by {OPERATOR}.version"]


def test_a_default_of_a_release_is_a_fact_that_the_version_chooses() -> None:
    plan = a_cluster(install="olm", platform="openshift")
    assert own(plan, POLICY, "spec", "cdi", "enabled") == [
        "fact catalog lines[5].cdi.enabled",
        f"chosen by {OPERATOR}.version",
    ]


def test_a_name_is_the_policys_or_follows_from_the_platform() -> None:
    named = a_cluster(install="external", more="clusterPolicy: mine")
    assert own(named, POLICY, "metadata", "name") == [f"copied {OPERATOR}.clusterPolicy"]
    usual = a_cluster(install="external", platform="openshift")
    assert own(usual, POLICY, "metadata", "name") == [f"chosen by {SPEC}.platform"]


def test_who_installs_the_operator_decides_which_objects_there_are() -> None:
    plan = a_cluster(install="olm", platform="openshift", more="nfd: true")
    whole = words(traced(plan, "NodeFeatureDiscovery ").whole)
    assert {f"chosen by {OPERATOR}.install", f"chosen by {OPERATOR}.nfd"} <= set(whole)
