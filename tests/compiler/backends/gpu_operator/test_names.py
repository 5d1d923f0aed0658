"""Names of ConfigMaps change with their content, and only then."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from gpuplan.compiler.manifests.bodies import digest
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, config_map

data = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)


def names(*pools: str) -> tuple[str, str]:
    plan = a_cluster(*pools)
    return (
        config_map(plan, "gpuplan-mig-parted-")["metadata"]["name"],
        config_map(plan, "gpuplan-device-plugin-")["metadata"]["name"],
    )


def test_other_replicas_change_the_device_plugins_name_alone() -> None:
    one, other = names(a_pool(sharing="{mps: {replicas: 2}}")), names(a_pool(sharing="{mps: {replicas: 3}}"))
    assert one[0] == other[0]
    assert one[1] != other[1]


def test_another_layout_changes_the_mig_managers_name_alone() -> None:
    one = names(a_pool(sharing="{mig: {instances: {1g.10gb: 7}}}"))
    other = names(a_pool(sharing="{mig: {instances: {1g.10gb: 6}}}"))
    assert one[0] != other[0]
    assert one[1] == other[1]


def test_taints_and_the_order_of_documents_change_none() -> None:
    taints = "[{key: nvidia.com/gpu, effect: NoSchedule}]"
    assert names(a_pool("a"), a_pool("b")) == names(a_pool("b", taints=taints), a_pool("a"))


def test_the_name_can_be_that_of_a_volume() -> None:
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names(a_pool()))


# --- A ConfigMap that keeps its name -----------------------------------------------------------------------------

FIXED = "devicePluginConfig: fixed"


def test_a_fixed_name_stays_and_the_key_changes_with_what_it_says() -> None:
    one, other = (
        a_cluster(a_pool(sharing=f"{{mps: {{replicas: {replicas}}}}}"), a_pool("b"), more=FIXED) for replicas in (2, 3)
    )
    before, after = (config_map(plan, "gpuplan-device-plugin") for plan in (one, other))
    assert before["metadata"]["name"] == after["metadata"]["name"] == "gpuplan-device-plugin"
    assert len(before["data"].keys() & after["data"].keys()) == 1  # that of `b`
    assert {key.partition(".")[0] for key in before["data"]} == {"a", "b"}


def test_nodes_name_the_key_and_no_key_is_a_pools_own_name() -> None:
    plan = a_cluster(a_pool("b"), a_pool("a", "{timeSlicing: {replicas: 2}}"), more=FIXED)
    keys = config_map(plan, "gpuplan-device-plugin")["data"].keys()
    assert {pool.labels[DEVICE_PLUGIN_CONFIG_LABEL] for pool in plan.pools} == keys
    assert all(re.fullmatch(r"[ab]\.[0-9a-f]{7}", key) for key in keys)


def test_kubelets_bring_a_fixed_config_map_anew() -> None:
    assert "immutable" not in config_map(a_cluster(a_pool(), more=FIXED), "gpuplan-device-plugin")


def test_what_a_key_holds_is_the_same_under_either_name() -> None:
    plans = (a_cluster(a_pool(sharing="{mps: {replicas: 2}}"), more=more) for more in ("", FIXED))
    per_content, fixed = ([*config_map(plan, "gpuplan-device-plugin")["data"].values()] for plan in plans)
    assert per_content == fixed


@given(data, data)
def test_the_digest_tells_contents_apart(one: dict[str, str], other: dict[str, str]) -> None:
    assert (digest(one) == digest(other)) == (one == other)


@given(data)
def test_the_digest_does_not_depend_on_the_order_of_keys(found: dict[str, str]) -> None:
    assert digest(dict(reversed(found.items()))) == digest(found)
