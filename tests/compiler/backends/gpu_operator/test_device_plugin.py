from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL
from tests.compiler.backends.gpu_operator import device_plugin
from tests.compiler.backends.gpu_operator.rendered import (
    a_cluster,
    a_pool,
    config_map,
    device_plugin_texts,
    helm_values,
    objects,
)
from tests.plans import a_plan, resolve_text


def the_file(sharing: str, more: str = "") -> str:
    return device_plugin_texts(a_cluster(a_pool(sharing=sharing), more=more))["a"]


def test_a_pool_without_sharing_has_a_file_without_sharing() -> None:
    assert the_file("{exclusive: {}}") == "version: v1\n"


def test_time_slicing() -> None:
    assert (
        the_file("{timeSlicing: {replicas: 3}}")
        == """\
version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 3
"""
    )


def test_mps() -> None:
    assert (
        the_file("{mps: {replicas: 4, rename: false}}")
        == """\
version: v1
sharing:
  mps:
    renameByDefault: false
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
    )


def test_mixed_slices_are_named_by_their_profile() -> None:
    assert (
        the_file("{mig: {instances: {1g.10gb+me: 1, 3g.40gb: 1}, timeSlicing: {replicas: 2, rename: false}}}")
        == """\
version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    renameByDefault: false
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/mig-1g.10gb.me
      replicas: 2
    - name: nvidia.com/mig-3g.40gb
      replicas: 2
"""
    )


def test_each_profile_has_its_own_number_of_shares() -> None:
    assert (
        the_file("{mig: {instances: {1g.10gb: 2, 3g.40gb: 1}, timeSlicing: {replicas: {3g.40gb: 3, 1g.10gb: 4}}}}")
        == """\
version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/mig-1g.10gb
      replicas: 4
    - name: nvidia.com/mig-3g.40gb
      replicas: 3
"""
    )


def test_single_slices_are_named_as_gpus() -> None:
    assert (
        the_file("{mig: {instances: {1g.10gb: 7}, strategy: single, timeSlicing: {replicas: 2}}}")
        == """\
version: v1
flags:
  migStrategy: single
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 2
"""
    )


def test_the_clusters_strategy_leaves_nothing_for_the_file_to_say() -> None:
    assert the_file("{mig: {instances: {1g.10gb: 7}}}", "migStrategy: mixed") == "version: v1\n"


def test_each_pool_has_its_file_under_its_name_and_nothing_else_does() -> None:
    plan = a_cluster(a_pool("b"), a_pool("a", "{timeSlicing: {replicas: 2}}"))
    assert sorted(device_plugin_texts(plan)) == ["a", "b"]
    assert [pool.labels[DEVICE_PLUGIN_CONFIG_LABEL] for pool in plan.pools] == ["a", "b"]


def test_the_config_map_lies_where_the_operator_looks() -> None:
    found = config_map(a_cluster(a_pool(), more="namespace: gpus"), "gpuplan-device-plugin-")
    assert found["metadata"]["namespace"] == "gpus"
    assert found["immutable"] is True


def test_without_pools_there_is_no_file_for_the_config_manager_to_miss() -> None:
    plan = a_plan("")
    assert [body["metadata"]["name"][:19] for body in objects(plan, "ConfigMap")] == ["gpuplan-mig-parted-"]


@pytest.mark.parametrize(
    "sharing",
    [
        "{timeSlicing: {replicas: 1}}",
        "{mps: {replicas: 0}}",
        "{mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: -1}}}",
        "{mig: {instances: {}, timeSlicing: {replicas: 2}}}",
    ],
)
def test_sharing_that_the_plugin_would_refuse_is_left_out(sharing: str) -> None:
    plan, _ = resolve_text(a_pool(sharing=sharing))
    assert plan is not None
    assert "sharing" not in device_plugin.parse(device_plugin_texts(plan)["a"])


# --- The rules themselves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "version: v2",
        "{version: v1, sharing: {timeSlicing: {}}}",
        "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}}",
        "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu}]}}}",
        "{version: v1, sharing: {mps: {resources: [{name: nvidia.com/GPU, replicas: 2}]}}}",
    ],
)
def test_the_plugin_refuses(text: str) -> None:
    with pytest.raises(device_plugin.RefusedError):
        device_plugin.parse(text)


# --- The default file, and a file of several pools ---------------------------------------------------------------

NAMED = "  names: {devicePluginConfig: any}\n"
DEFAULT = "defaultDevicePluginConfig: any"


@pytest.mark.parametrize("install", ["helm", "olm", "external"])
def test_the_default_file_is_told_to_the_operator(install: str) -> None:
    pool = a_pool(sharing="{timeSlicing: {replicas: 4}}") + NAMED
    plan = a_cluster(pool, install=install, more=DEFAULT)

    if install == "helm":
        told = helm_values(plan)["devicePlugin"]["config"]
    else:
        [policy] = objects(plan, "ClusterPolicy")
        told = policy["spec"]["devicePlugin"]["config"]
    assert told["default"] == "any"


def test_without_a_default_the_operator_is_told_none() -> None:
    assert helm_values(a_cluster(a_pool()))["devicePlugin"]["config"]["default"] == ""


def test_pools_with_one_key_have_one_file_that_divides_the_resources_of_each() -> None:
    plan = a_cluster(
        a_pool("whole", "{timeSlicing: {replicas: 4}}") + NAMED,
        a_pool("parts", "{mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}}") + NAMED,
        a_pool("undivided", "{mig: {instances: {3g.40gb: 2}}}") + NAMED,
    )
    assert (
        device_plugin_texts(plan)["any"]
        == """\
version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/mig-1g.10gb
      replicas: 2
    - name: nvidia.com/gpu
      replicas: 4
"""
    )
