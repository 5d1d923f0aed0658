"""What gpuplan writes for NVIDIA's programs is read by their own parsers, and comes to what the plan says.

And both ways: what our checks of hand-written files refuse, the parsers refuse, but for what happens later than in a
parser. They are those of mig-parted v0.13.1 and of the device plugin v0.19.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.base.diagnostics import Origin, SourceFile, WholeFile
from gpuplan.compiler.catalog import load
from gpuplan.compiler.checks.operator import suffix_profile_needs_newer_plugin
from gpuplan.compiler.checks.registry import Check
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.hand_files import HandFiles, read
from gpuplan.compiler.planning.plan import HandWritten, Plan, Pool
from gpuplan.compiler.policy.models import ClusterMigStrategy
from gpuplan.features.components.checks.choices import single_chosen_for_unequal_instances
from gpuplan.features.components.checks.configs import (
    device_plugin_config_ignored,
    device_plugin_config_refused,
    mig_config_refused,
)
from tests.cluster import nodes
from tests.cluster.example import REPOSITORY, show
from tests.cluster.parsers import (
    ConfigurationError,
    Node,
    Question,
    features,
    judge,
    published,
    read_operator,
    rule_labels,
    run_rules,
    start_plugin,
)
from tests.cluster.programs import need_go
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, device_plugin_texts, mig_parted_text
from tests.plans import a_plan

Record = Callable[[str, object, object], None]

CLUSTERS = ("dev", "openshift", "prod")
KNOWN = yaml.safe_load((REPOSITORY / "tests/compiler/catalog/known_good_layouts.yaml").read_text(encoding="utf-8"))
OLDER_RELEASE = "v26.3.0"
"""A release of the operator that brings the device plugin v0.19."""

each_cluster = pytest.mark.parametrize("cluster", CLUSTERS)


@pytest.fixture(autouse=True, scope="module")
def _programs() -> None:
    need_go()


# --- What is committed -------------------------------------------------------------------------------------------


@each_cluster
def test_every_configuration_is_read(cluster: str, record: Record) -> None:
    operator = read_operator(REPOSITORY / "out" / cluster)
    entries = yaml.safe_load(operator.mig_configs)["mig-configs"]
    questions = [
        *(Question(mig_file=operator.mig_configs, node=Node(entry, gpus=8)) for entry in entries),
        *(Question(plugin_file=text, mig_strategy=operator.mig_strategy) for text in operator.plugin_configs.values()),
    ]
    refused = [verdict.error for verdict in judge(questions) if verdict.error]
    record(f"{cluster}: of {len(questions)} configurations, those that NVIDIA's parsers refuse", [], refused)


@each_cluster
def test_nodes_publish_what_the_plan_says(cluster: str, record: Record) -> None:
    for pool in show(cluster)["pools"]:
        planned = {unit["resource"]: unit["per_node"] for unit in pool["units"]}
        observed = published(REPOSITORY / "out" / cluster, pool["labels"], pool["nodes"]["gpus_per_node"])
        record(f"{cluster}: a node of {pool['name']} publishes", planned, observed)


def test_a_node_without_labels_publishes_whole_gpus() -> None:
    assert published(REPOSITORY / "out" / "prod", {}, 8) == {"nvidia.com/gpu": 8}


def test_a_node_cannot_choose_what_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        published(REPOSITORY / "out" / "prod", {"nvidia.com/device-plugin.config": "a100-none"}, 8)
    with pytest.raises(ConfigurationError, match="selected mig-config not present: none"):
        published(REPOSITORY / "out" / "prod", {"nvidia.com/mig.config": "none"}, 8)


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_rules_label_the_nodes_of_their_pool_and_no_others(cluster: str, record: Record) -> None:
    rules = _rules(REPOSITORY / "out" / cluster)
    planned = {name: pool for pool in show(cluster)["pools"] for name in nodes.names(pool)}
    found = {name: rule_labels(rules, name) for name in planned}
    others = [name for name, pool in planned.items() if found[name] != (pool["labels"], pool["taints"])]
    record(f"{cluster}: of {len(planned)} nodes, those that NFD labels or taints otherwise", [], others)


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_rules_leave_other_nodes_alone(cluster: str) -> None:
    rules = _rules(REPOSITORY / "out" / cluster)
    pools = show(cluster)["pools"]
    others = [
        features("cpu-1"),
        *(features(name) for pool in pools for name in (f"x{nodes.names(pool)[0]}", f"{nodes.names(pool)[0]}-x")),
        *(features(nodes.names(pool)[0], vendor="8086") for pool in pools),
        *(features(nodes.names(pool)[0], device_class="0200") for pool in pools),
    ]
    assert [(dict(found.labels), found.taints) for found in run_rules(rules, others)] == [({}, ())] * len(others)


@pytest.mark.parametrize(
    ("nodes", "own", "others"),
    [
        ("names: [gpu.a, gpu-b]", ["gpu.a", "gpu-b"], ["gpu-a", "gpu.a.x", "xgpu-b"]),
        ("namePattern: 'a-[0-9]+|b'", ["a-1", "b"], ["a-1b", "xb", "a-", "bb"]),
        ("namePattern: '(?i)gpu-.*'", ["gpu-1", "GPU-1"], ["a-gpu-1"]),
    ],
)
def test_rules_match_whole_names(nodes: str, own: list[str], others: list[str]) -> None:
    pool = f"""
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: a}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8, {nodes}}}
  sharing: {{exclusive: {{}}}}
"""
    plan = a_plan(pool)
    rules = [dict(item.body) for item in partitions.render(plan) if isinstance(item, Manifest)]
    found = run_rules(rules, [features(name) for name in (*own, *others)])
    labels = dict(plan.pools[0].labels)
    assert [dict(item.labels) for item in found] == [labels] * len(own) + [{}] * len(others)


def _rules(out: Path) -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in out.glob("partitions/*/nodefeaturerule-*")]


# --- What could be written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sharing",
    [
        "{exclusive: {}}",
        "{timeSlicing: {replicas: 3}}",
        "{timeSlicing: {replicas: 3, rename: false}}",
        "{mps: {replicas: 4}}",
        "{mps: {replicas: 4, rename: false}}",
        "{mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}}",
        "{mig: {instances: {1g.10gb: 7}, strategy: single}}",
        "{mig: {instances: {2g.20gb: 3, 1g.10gb: 1}, timeSlicing: {replicas: 2}}}",
        "{mig: {instances: {2g.20gb: 3, 1g.10gb: 1}, timeSlicing: {replicas: 2, rename: false}}}",
        "{mig: {instances: {1g.10gb: 7}, strategy: single, timeSlicing: {replicas: 2}}}",
        "{mig: {instances: {2g.20gb: 2, 1g.10gb: 3}, timeSlicing: {replicas: {1g.10gb: 4, 2g.20gb: 2}}}}",
        "{mig: {instances: {2g.20gb: 2, 1g.10gb: 3}, timeSlicing: {replicas: {1g.10gb: 4}}}}",
        "{mig: {instances: {1g.10gb: 7}, strategy: single, timeSlicing: {replicas: {1g.10gb: 3}}}}",
    ],
)
def test_every_kind_of_sharing_is_published_as_planned(sharing: str) -> None:
    assert _differences(a_cluster(a_pool(sharing=sharing))) == []


@pytest.mark.parametrize(
    ("strategy", "sharing"),
    [
        ("none", "{timeSlicing: {replicas: 3}}"),
        ("single", "{mig: {instances: {1g.10gb: 7}, strategy: single}}"),
        ("mixed", "{mig: {instances: {3g.40gb: 2}}}"),
        ("mixed", "{exclusive: {}}"),
        ("single", "{exclusive: {}}"),
    ],
)
def test_the_strategy_of_a_cluster_overrides_that_of_files(strategy: str, sharing: str) -> None:
    assert _differences(a_cluster(a_pool(sharing=sharing), more=f"migStrategy: {strategy}")) == []


def test_a_layout_of_single_gpus_is_published_as_planned() -> None:
    layout = """
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: half}
spec:
  gpu: A100-80GB
  devices:
  - {gpus: [0, 1, 2], instances: {3g.40gb: 2}}
  - {gpus: [3], instances: {1g.10gb: 7}}
  - {gpus: [4, 5, 6, 7], enabled: false}
"""
    assert _differences(a_cluster(a_pool(sharing="{mig: {layout: half}}"), layout)) == []


@pytest.mark.parametrize("release", ["v26.7.0", OLDER_RELEASE])
def test_known_layouts_are_published_as_planned_or_reported(release: str) -> None:
    """The device plugin before v0.20 takes `1g.10gb+me` for `1g.10gb`: NVIDIA/k8s-device-plugin#1462 and #1807.

    So what differs here is what GPU612 reports for operators that bring such a plugin, and nothing else.
    """
    gpus = {gpu.id for gpu in load().all() if gpu.profiles}
    plans = [
        a_cluster(a_pool(gpu=gpu, sharing=f"{{mig: {{instances: {instances}}}}}"), version=release)
        for layout in KNOWN["published"]
        for gpu in layout.get("gpus", ())
        if gpu in gpus
        for instances in ["{" + ", ".join(f"{name}: {count}" for name, count in layout["instances"].items()) + "}"]
    ]
    assert len(plans) > 100
    assert {gpu for plan in plans for pool in plan.pools for gpu in [pool.gpu.id]} == gpus
    verdicts = judge(_question(plan, pool) for plan in plans for pool in plan.pools)
    assert [verdict.error for verdict in verdicts if verdict.error] == []
    for plan, verdict in zip(plans, verdicts, strict=True):
        [pool] = plan.pools
        has_suffix = any(not unit.name.endswith("gb") for unit in pool.units)
        assert (dict(verdict.resources) != _planned(pool)) == has_suffix, pool
        is_reported = bool(list(suffix_profile_needs_newer_plugin.find(plan)))
        assert is_reported == (has_suffix and release == OLDER_RELEASE), pool


def _differences(plan: Plan) -> list[tuple[str, object, object]]:
    """The pools whose nodes publish something else than the plan says."""
    verdicts = judge(_question(plan, pool) for pool in plan.pools)
    return [
        (pool.name, _planned(pool), verdict)
        for pool, verdict in zip(plan.pools, verdicts, strict=True)
        if verdict.error or dict(verdict.resources) != _planned(pool)
    ]


def _planned(pool: Pool) -> dict[str, int]:
    return {unit.resource: unit.per_node for unit in pool.units if unit.resource is not None}


def _question(plan: Plan, pool: Pool) -> Question:
    return Question(
        mig_parted_text(plan),
        device_plugin_texts(plan)[pool.labels["nvidia.com/device-plugin.config"]],
        _environment(plan.cluster.gpu_operator.spec.mig_strategy),
        node=Node(pool.labels["nvidia.com/mig.config"], pool.nodes.gpus_per_node),
    )


def _environment(strategy: ClusterMigStrategy) -> str:
    return "" if strategy is ClusterMigStrategy.PER_POOL else strategy.value


# --- What is written by hand -------------------------------------------------------------------------------------

NO_BUSINESS_OF_PARSERS = (
    # The entry's name is a node's label: the API server refuses that.
    "cannot be the value of a node label",
    # `WalkSelectedMigConfigForEachGPU` passes over such a filter, and a GPU without an item has no state to reach.
    "matches no GPU",
    # cmd/nvidia-mig-parted/assert wants every GPU of the node to match.
    "says nothing about GPU",
    # Modes are set item by item, and then compared item by item: cmd/nvidia-mig-parted/assert of mig-parted.
    "switches MIG on and off for the same GPU",
    # `MigConfig.Equals` of mig-parted, pkg/types/mig_config.go: what the GPU has never equals a file with zeros,
    "which never becomes true",
    # nor one with `7c.7g.80gb`.
    "never compares equal",
    # `assertAllMigDevicesAreValid` lets compute instances be, `AddDefaultResourcesToConfig` gives them no resource.
    "a compute instance",
    # The driver refuses it when the instances are made.
    "can have what entry",
    # cmd/mps-control-daemon/mps/device.go of the device plugin, when its daemon starts.
    "MPS divides a GPU among at most",
    # internal/plugin/mps.go of the device plugin, once there are such devices.
    "MPS does not share MIG devices",
)
"""Parts of findings on files that the parsers take, and which fail later or have no effect, with where that happens."""

EMPTY = a_plan("---\n")
EACH = "devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}"


def sliced(resource: str) -> str:
    return f"sharing: {{timeSlicing: {{resources: [{{{resource}}}]}}}}"


def shared(strategy: str, method: str = "mps") -> str:
    return f"flags: {{migStrategy: {strategy}}}\nsharing: {{{method}: {{resources: [{{name: gpu, replicas: 2}}]}}}}"


def both(replicas: int) -> str:
    return f"{sliced(f'name: gpu, replicas: {replicas}')[:-1]}, mps: {{resources: [{{name: gpu, replicas: 2}}]}}}}"


def entry(item: str) -> str:
    return f"{{version: v1, mig-configs: {{a: [{{{item}}}]}}}}"


def divided(instances: str) -> str:
    return entry(f"devices: all, mig-enabled: true, mig-devices: {{{instances}}}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("version: v1", None),
        ("flags: {migStrategy: mixed}", None),
        ("version: v2\nflags: {migStrategy: mixed}", "unknown version"),
        ("version: 1\nflags: {migStrategy: mixed}", "unknown version"),
        ("version:\nflags: {migStrategy: mixed}", None),
        ("flags: {migStrategy: some}", "unknown MIG strategy"),
        ("flags: {migStrategy: no}", "cannot unmarshal bool"),
        ("flags: {migStrategy: [mixed]}", "cannot unmarshal array"),
        (sliced("name: nvidia.com/gpu, replicas: 2"), None),
        (sliced("name: gpu, replicas: 2"), None),
        (sliced("name: nvidia.com/gpu, replicas: 1"), "must be >= 2"),
        (sliced("name: nvidia.com/gpu, replicas: 0"), "must be >= 2"),
        (sliced("name: nvidia.com/gpu, replicas: '2'"), "cannot unmarshal string"),
        (sliced("name: nvidia.com/gpu, replicas: true"), "cannot unmarshal bool"),
        (sliced("name: nvidia.com/gpu, replicas: 2.5"), "cannot unmarshal number"),
        (sliced("name: nvidia.com/gpu"), "no replicas specified"),
        (sliced("replicas: 2"), "no resource name specified"),
        (sliced("name: nvidia.com/GPU, replicas: 2"), "incorrect format"),
        (sliced("name: 'nvidia.com/mig-1g.10gb+me', replicas: 2"), "incorrect format"),
        (sliced("name: amd.com/gpu, replicas: 2"), "incorrect format"),
        (sliced(f"name: nvidia.com/{'g' * 53}, replicas: 2"), "63 characters"),
        (sliced(f"name: nvidia.com/{'g' * 52}, replicas: 2"), None),
        (sliced("name: gpu, replicas: 2, rename: shared"), None),
        (sliced("name: gpu, replicas: 2, rename: 'a shared one'"), "incorrect format"),
        (sliced("name: gpu, replicas: 2, devices: [0, '1', '0:1']"), None),
        (sliced("name: gpu, replicas: 2, devices: 4"), None),
        (sliced("name: gpu, replicas: 2, devices: 0"), "must be > 0"),
        (sliced("name: gpu, replicas: 2, devices: some"), "only valid string"),
        (sliced("name: gpu, replicas: 2, devices: [first]"), "unsupported type"),
        (sliced("name: gpu, replicas: 2, surplus: 1"), None),
        ("sharing: {timeSlicing: {resources: []}}", "no resources specified"),
        ("sharing: {timeSlicing: {resources: {name: gpu, replicas: 2}}}", "cannot unmarshal object"),
        ("sharing: {timeSlicing: {}}", "no resources specified"),
        ("sharing: {timeSlicing: null}", "no resources specified"),
        ("sharing: {mps: null}\nflags: {migStrategy: none}", None),
        ("sharing: {timeSlicing: {renameByDefault: 'yes', resources: [{name: gpu, replicas: 2}]}}", "cannot unmarshal"),
        ("sharing: {timeSlicing: {failRequestsGreaterThanOne: 1, resources: [{name: gpu, replicas: 2}]}}", "unmarshal"),
        (both(2), None),
        (both(1), ">= 2"),
        (shared("mixed"), "not supported with MPS"),
        (shared("single"), None),
        ("flags: {migStrategy: mixed}\nresources: {gpus: [{pattern: '*', name: gpu}]}", None),
        ("flags: {migStrategy: mixed}\nresources: {gpus: [{pattern: '*'}]}", "must have a 'name' field"),
        ("flags: {migStrategy: mixed, failOnInitError: 'no'}", "cannot unmarshal string"),
        ("flags: {migStrategy: mixed, mofedEnabled: 1}", "cannot unmarshal number"),
        ("flags: {migStrategy: mixed, mpsRoot: true}", "cannot unmarshal bool"),
        ("flags: {migStrategy: mixed}\nsurplus: 1", None),
        ("flags: {migStrategy: none, plugin: {passDeviceSpecs: 'yes'}}", "cannot unmarshal string"),
        ("flags: {migStrategy: none, plugin: {deviceListStrategy: {}}}", "invalid deviceListStrategy"),
        ("flags: {migStrategy: none, gfd: {oneshot: 'yes'}}", "cannot unmarshal string"),
        ("flags: {migStrategy: none, gfd: {sleepInterval: true}}", "invalid duration"),
        ("flags: {migStrategy: none}\nimex: {channelIDs: x}", "cannot unmarshal string"),
        ("version: v1\nsharing:\ntimeSlicing: {resources: [{name: gpu, replicas: 1}]}", None),
        ("version: v1\nmigStrategy: some", None),
        ("sharing:\n\ttimeSlicing:\n\t  resources: [{name: gpu, replicas: 2}]", "cannot start any token"),
        ("sharing:\n  timeSlicing:\n    resources:\n    - name: gpu\n       replicas: 2", "mapping values"),
    ],
)
def test_a_device_plugin_file_is_refused_here_and_there(text: str, error: str | None, tmp_path: Path) -> None:
    """There is what our program says that calls the plugin's parser, and the plugin itself when it starts."""
    question = Question(plugin_file=text)
    [verdict] = judge([question])
    assert bool(verdict.error) == bool(start_plugin(question, tmp_path))
    assert (error or "") in verdict.error
    assert bool(verdict.error) == (error is not None)
    assert _is_refused(device_plugin_config_refused, "any", text) == (error is not None)


@pytest.mark.parametrize(
    "text",
    [
        # Go's encoding/json takes the fields of structures in any case; we take them as they are documented.
        "flags: {migstrategy: 1}\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}",
        "flags: {migStrategy: none}\nsharing: {timeslicing: {resources: [{name: gpu, replicas: 1}]}}",
    ],
)
def test_what_our_check_of_device_plugin_files_does_not_look_at(text: str) -> None:
    [verdict] = judge([Question(plugin_file=text)])
    assert "cannot unmarshal" in verdict.error or "must be >= 2" in verdict.error
    assert not _is_refused(device_plugin_config_refused, "any", text)


@pytest.mark.parametrize("strategy", ["none", "single", "mixed"])
@pytest.mark.parametrize("own", ["none", "single", "mixed", "some"])
@pytest.mark.parametrize("method", ["timeSlicing", "mps"])
def test_the_strategy_of_the_cluster_decides_on_mps(strategy: str, own: str, method: str, tmp_path: Path) -> None:
    text = shared(own, method)
    question = Question(plugin_file=text, mig_strategy=strategy)
    [verdict] = judge([question])
    assert bool(verdict.error) == bool(start_plugin(question, tmp_path))
    assert bool(verdict.error) == (strategy == "mixed" and method == "mps")
    plan = a_cluster(more=f"migStrategy: {strategy}")
    assert _is_refused(device_plugin_config_refused, "any", text, plan) == bool(verdict.error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (entry(EACH), None),
        (f"{{mig-configs: {{a: [{{{EACH}}}]}}}}", "missing 'version'"),
        (f"{{version: v2, mig-configs: {{a: [{{{EACH}}}]}}}}", "unknown version"),
        (f"{{version: v1, surplus: 1, mig-configs: {{a: [{{{EACH}}}]}}}}", "unexpected field: surplus"),
        (entry(f"{EACH}, surplus: 1"), "unexpected field: surplus"),
        ("{version: v1, mig-configs: {}}", "at least one entry"),
        ("{version: v1, mig-configs: null}", "at least one entry"),
        ("{version: v1, mig-configs: {a: []}}", "at least one entry"),
        ("{version: v1, mig-configs: {a: {devices: all, mig-enabled: false}}}", "cannot unmarshal object"),
        (entry("mig-enabled: false"), "missing required field: devices"),
        (entry("devices: all"), "missing required field: mig-enabled"),
        (entry("devices: all, mig-enabled: 'false'"), "cannot unmarshal string"),
        (entry("devices: some, mig-enabled: false"), "invalid string input"),
        (entry("devices: [0, 1], mig-enabled: false"), None),
        (entry("devices: [], mig-enabled: false"), None),
        (entry("devices: ['0'], mig-enabled: false"), "cannot unmarshal"),
        (entry("devices: [true], mig-enabled: false"), "cannot unmarshal"),
        (entry("devices: 0, mig-enabled: false"), "cannot unmarshal"),
        (entry("devices: all, mig-enabled: true"), "missing required field 'mig-devices'"),
        (divided(""), None),
        (entry("devices: all, mig-enabled: false, mig-devices: {}"), None),
        (entry("devices: all, mig-enabled: false, mig-devices: {1g.10gb: 1}"), "is false"),
        (divided("1g.10gb: 0"), "all counts"),
        (divided("1g.10gb: -1"), "invalid count"),
        (divided("1g.10gb: '1'"), "unmarshal"),
        (divided("1g.10gb: true"), "unmarshal"),
        (divided("1g.10gb.me: 1"), "invalid"),
        (divided("1g10gb: 1"), "invalid"),
        (divided("all: 1"), "invalid"),
        (divided("1g.10gb+me: 1"), None),
        (entry(f"device-filter: '0x20B210DE', {EACH}"), None),
        (entry(f"device-filter: ['0x20B210DE'], {EACH}"), None),
        (entry(f"device-filter: '', {EACH}"), None),
        (entry(f"device-filter: null, {EACH}"), None),
        (entry(f"device-filter: [], {EACH}"), None),
        (entry(f"device-filter: 0x20B210DE, {EACH}"), "cannot unmarshal number"),
        (entry(f"device-filter: [0x20B210DE], {EACH}"), "cannot unmarshal number"),
        (f"version: v1\nmig-configs:\n  a:\n    - {{{EACH}}}\n    b:\n    - {{{EACH}}}", "expected '-' indicator"),
        (f"version: v1\nmig-configs:\n\ta: [{{{EACH}}}]", "cannot start any token"),
        (f"version: v1\nmig-configs:\n  a: [{{{EACH}}}", "did not find expected"),
    ],
)
def test_a_mig_manager_file_is_refused_here_and_there(text: str, error: str | None) -> None:
    [verdict] = judge([Question(mig_file=text)])
    assert (error or "") in verdict.error
    assert bool(verdict.error) == (error is not None)
    assert _is_refused(mig_config_refused, "config.yaml", text) == (error is not None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{{version: v1, mig-configs: {{'1g.10gb+me': [{{{EACH}}}]}}}}", "cannot be the value of a node label"),
        (entry(f"device-filter: A100, {EACH}"), "matches no GPU"),
        (divided("1g.10gb: 1, 2g.20gb: 0"), "which never becomes true"),
        (divided("7c.7g.80gb: 1"), "reported"),
        (entry("devices: [4], mig-enabled: false"), "says nothing about GPUs 0 to 3"),
        (divided("1c.7g.80gb: 1"), "compute"),
        (divided("4g.40gb: 2"), "no GPU can"),
        (
            entry(f"{EACH}}}, {{devices: [0], mig-enabled: false}}, {{devices: all, mig-enabled: false"),
            "switches MIG on and off",
        ),
    ],
)
def test_a_mig_manager_file_that_parsers_take_fails_later(text: str, part: str) -> None:
    assert [verdict.error for verdict in judge([Question(mig_file=text)])] == [""]
    assert any(part in message for message in _messages(mig_config_refused, "config.yaml", text, EMPTY))


@pytest.mark.parametrize("name", ["nvidia.com/mps", "nvidia.com/gpus", "gpu.shared", "nvidia.com/mig-1g.10gb"])
def test_a_resource_that_no_device_has_is_not_shared(name: str) -> None:
    """GPU631; the other resources are published as they are."""
    text = sliced(f"name: {name}, replicas: 4")
    [verdict] = judge([Question(entry("devices: all, mig-enabled: false"), text, node=Node("a", gpus=8))])
    assert (verdict.error, dict(verdict.resources)) == ("", {"nvidia.com/gpu": 8})
    assert _messages(device_plugin_config_ignored, "any", text, EMPTY)


@pytest.mark.parametrize(
    ("item", "is_equal"),
    [
        (EACH, True),
        ("devices: all, mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2}", False),
        ("devices: [0], mig-enabled: false}, {devices: [1], mig-enabled: true, mig-devices: {1g.10gb: 7}", False),
        ("devices: all, mig-enabled: false", True),
    ],
)
def test_single_wants_equal_instances(item: str, is_equal: bool) -> None:
    """GPU695; so does the device plugin."""
    plugin = "flags: {migStrategy: single}"
    [verdict] = judge([Question(entry(item), plugin, "single", node=Node("a", gpus=2))])
    assert (not verdict.error) == is_equal, verdict.error
    plan = a_cluster(more="migStrategy: single")
    assert (not _messages(single_chosen_for_unequal_instances, "config.yaml", entry(item), plan)) == is_equal


def _is_refused(check: Check[HandFiles], key: str, text: str, plan: Plan = EMPTY) -> bool:
    """Whether the check refuses it for something that is the parsers' business."""
    messages = _messages(check, key, text, plan)
    return any(not any(part in message for part in NO_BUSINESS_OF_PARSERS) for message in messages)


def _messages(check: Check[HandFiles], key: str, text: str, plan: Plan) -> list[str]:
    """What the check says of a hand-written ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-hand"}, "data": {key: text}}
    at = Origin(WholeFile(SourceFile("overlays/test/kustomize/gpu-operator/configmap.yaml", "")))
    written = (HandWritten("gpu-operator", at, body),)
    return [finding.message for finding in check.find(read(replace(plan, hand_written=written)))]


# --- Anything ----------------------------------------------------------------------------------------------------


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of these fields, whose names have `_` for `-`."""
    return st.fixed_dictionaries({}, optional={name.replace("_", "-"): field for name, field in fields.items()})


odd: st.SearchStrategy[Any] = st.sampled_from([None, "", True, 0, 2.5, [], {}, "x"])
resources = some(
    name=st.sampled_from(["nvidia.com/gpu", "gpu", "nvidia.com/mig-1g.10gb", "GPU", "a b", "a" * 60]) | odd,
    replicas=st.sampled_from([2, 3, 48, 1, 0, -1, "2"]) | odd,
    rename=st.sampled_from(["gpu.shared", "A"]) | odd,
    devices=st.sampled_from(["all", 1, -1, [0], ["0:1"], ["x"], ["GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"]]) | odd,
    surplus=odd,
)
methods = some(
    resources=st.lists(resources | odd, max_size=2) | odd,
    renameByDefault=st.booleans() | odd,
    failRequestsGreaterThanOne=st.booleans() | odd,
)
plugin_files = st.fixed_dictionaries(
    {"sharing": some(timeSlicing=methods | odd, mps=methods | odd).filter(bool)},
    optional={
        "version": st.sampled_from(["v1", "v2"]) | odd,
        "flags": some(
            migStrategy=st.sampled_from(["none", "single", "mixed", "perPool"]) | odd,
            failOnInitError=st.booleans() | odd,
            mpsRoot=odd,
            plugin=some(passDeviceSpecs=odd, deviceIDStrategy=odd, deviceListStrategy=odd | st.just(["envvar"])) | odd,
            gfd=some(oneshot=odd, outputFile=odd, sleepInterval=st.sampled_from(["60s", 1, True, [], {}])) | odd,
        )
        | odd,
        "imex": some(channelIDs=st.just([0]) | odd, required=odd) | odd,
        "resources": some(gpus=st.lists(some(pattern=st.just("*"), name=st.just("gpu") | odd), max_size=1) | odd) | odd,
    },
)
items = some(
    devices=st.sampled_from(["all", "some", [0], [0, 1], ["0"], [True]]) | odd,
    mig_enabled=st.booleans() | odd,
    mig_devices=st.dictionaries(
        st.sampled_from(["1g.10gb", "1g.10gb+me", "1g.10gb-me", "7c.7g.80gb", "1g.10gb.me", "1G.10GB", "x"]),
        st.sampled_from([1, 2, 7, 0, -1]) | odd,
        max_size=2,
    )
    | odd,
    device_filter=st.sampled_from(["0x20B210DE", ["0x20B210DE"], "A100", 548540638]) | odd,
    surplus=odd,
)
mig_files = st.fixed_dictionaries(
    {
        "mig-configs": st.dictionaries(st.sampled_from(["a", "b+c"]), st.lists(items, max_size=2) | odd, max_size=2)
        | odd
    },
    optional={"version": st.sampled_from(["v1", "v1", "v2"]) | odd, "surplus": odd},
)
many = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])


@many
@given(st.lists(plugin_files, min_size=1, max_size=20))
def test_device_plugin_files_of_any_shape_are_refused_here_and_there(files: list[dict[str, Any]]) -> None:
    _compare(device_plugin_config_refused, "any", files, lambda text: Question(plugin_file=text))


@many
@given(st.lists(mig_files, min_size=1, max_size=20))
def test_mig_manager_files_of_any_shape_are_refused_here_and_there(files: list[dict[str, Any]]) -> None:
    _compare(mig_config_refused, "config.yaml", files, lambda text: Question(mig_file=text))


def _compare(
    check: Check[HandFiles], key: str, files: Iterable[dict[str, Any]], question: Callable[[str], Question]
) -> None:
    texts = [yaml.safe_dump(file) for file in files]
    verdicts = judge(question(text) for text in texts)
    assert [
        (text, verdict.error)
        for text, verdict in zip(texts, verdicts, strict=True)
        if bool(verdict.error) != _is_refused(check, key, text)
    ] == []
