"""Pools of a dump: which nodes make one, what they are divided into, and what no policy can say."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.features.live import pools
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import read_dump

A100 = "NVIDIA-A100-SXM4-80GB"


def node(name: str, product: str = A100, count: int = 8, **fields: Any) -> dict[str, Any]:
    """A node as `kubectl get nodes` prints it; ``labels``, ``taints`` and ``published`` are more of it."""
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count), **fields.get("labels", {})}
    published = fields.get("published", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}},
        "spec": {"taints": fields.get("taints", [])},
        "status": {"allocatable": published},
    }


def config_map(name: str, data: dict[str, Any]) -> dict[str, Any]:
    texts = {key: yaml.safe_dump(value, sort_keys=False) for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "gpu"}, "data": texts}


def cluster_policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": spec,
    }


def mig_parted(**entries: Any) -> dict[str, Any]:
    configs = {name.replace("__", "-").replace("_", "."): entry for name, entry in entries.items()}
    return {"version": "v1", "mig-configs": configs}


def all_of(**instances: int) -> list[dict[str, Any]]:
    return [{"devices": "all", "mig-enabled": True, "mig-devices": _profiles(instances)}]


def _profiles(instances: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix("p").replace("_", "."): count for name, count in instances.items()}


def read(*bodies: dict[str, Any]) -> Found:
    text = yaml.safe_dump_all(bodies, sort_keys=False)
    dump, unread = read_dump({"dump.yaml": text.encode()})
    assert unread == ()
    return pools.read(dump)


def draft(found: Found, kind: str, name: str = "") -> Draft:
    drafts = [item for item in found.drafts if item.kind == kind and name in ("", item.name)]
    assert len(drafts) == 1, [item.title for item in found.drafts]
    return drafts[0]


def told(found: Found) -> list[tuple[str, str, str]]:
    return [(item.code, str(item.severity), item.finding.message) for item in found.diagnostics]


# --- Nodes -------------------------------------------------------------------------------------------------------


def test_nodes_that_are_alike_are_a_pool() -> None:
    found = read(node("b"), node("a"), node("c", "Tesla-T4", 4))

    a100, t4 = (item for item in found.drafts if item.kind == "Pool")
    assert a100.spec == {
        "gpu": "A100-80GB",
        "nodes": {"count": 2, "gpusPerNode": 8, "names": ["a", "b"]},
        "sharing": {"exclusive": {}},
    }
    assert (t4.name, t4.spec["gpu"], t4.spec["nodes"]["gpusPerNode"]) == ("tesla-t4", "T4-16GB", 4)
    assert told(found) == []


def test_a_node_without_gpus_is_passed_over() -> None:
    assert read(node("a", "", 0)).drafts == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [("nvidia.com/gpu.deploy.operands", "false"), ("nvidia.com/gpu.workload.config", "vm-passthrough")],
)
def test_nodes_that_the_operator_leaves_alone_are_told(key: str, value: str) -> None:
    found = read(node("a"), node("b", labels={key: value}))
    assert told(found) == [("GPU810", "warning", "1 node of pool `a100-sxm4-80gb` may hand out nothing")]
    assert told(read(node("a"), node("b", labels={key: "true"}))) == []


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cilium.io/agent-not-ready",
        "karpenter.sh/disrupted",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "cloud.google.com/gke-quick-remove",
        "cloud.google.com/impending-node-termination",
    ],
)
def test_nodes_with_other_taints_are_another_pool_unless_they_pass(key: str) -> None:
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    passing = {"key": key, "effect": "NoSchedule"}

    found = read(node("a", taints=[taint, passing]), node("b", taints=[passing]))

    assert [item.spec.get("taints") for item in found.drafts] == [[taint], None]


@pytest.mark.parametrize(
    "label", ["cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool"]
)
def test_nodes_of_a_managed_service_are_chosen_by_the_label_of_their_node_pool(label: str) -> None:
    found = read(node("a", labels={label: "gpu-large"}), node("b", labels={label: "gpu-large"}))

    pool = draft(found, "Pool", "gpu-large")
    assert pool.spec["nodes"] == {"count": 2, "gpusPerNode": 8, "selector": {label: "gpu-large"}}


@pytest.mark.parametrize("product", [f"{A100}-SHARED", f"{A100}-MIG-1g.10gb", f"{A100}-MIG-1g.10gb-SHARED"])
def test_what_sharing_adds_to_a_product_is_not_its_model(product: str) -> None:
    labels = {"nvidia.com/mig.config": "all-1g.10gb"} if "MIG" in product else {}
    assert draft(read(node("a", product, labels=labels)), "Pool").spec["gpu"] == "A100-80GB"


def test_a_model_that_the_catalog_lacks_is_described_by_its_nodes() -> None:
    labels = {
        "nvidia.com/gpu.memory": "24576",
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "6",
        "feature.node.kubernetes.io/pci-0300_10de_2204.present": "true",
    }

    found = read(node("a", "NVIDIA-GeForce-RTX-3090", 4, labels=labels))

    assert draft(found, "Gpu").spec == {
        "memoryMiB": 24576,
        "computeCapability": "8.6",
        "products": ["NVIDIA-GeForce-RTX-3090"],
        "pci": ["10de:2204"],
    }
    assert draft(found, "Pool").spec["gpu"] == "geforce-rtx-3090"
    assert told(found) == []


def test_a_model_without_a_pci_id_says_what_to_add() -> None:
    labels = {"nvidia.com/gpu.memory": "24576"}
    labels |= {"nvidia.com/gpu.compute.major": "12", "nvidia.com/gpu.compute.minor": "1"}

    found = read(node("a", "NVIDIA-RTX-Unheard-Of", 4, labels=labels))

    [(code, severity, message)] = told(found)
    assert (code, severity) == ("GPU810", "note")
    assert message == "nothing says the PCI id of the board of node `a`, which the catalog lacks"
    assert 'add `pci: ["10de:2230"]` to the `spec`' in found.diagnostics[0].finding.help
    assert draft(found, "Gpu").remarks == (message,)
    assert draft(found, "Pool").spec["nodes"]["gpusPerNode"] == 4


def test_a_node_that_does_not_say_its_model_is_in_no_pool() -> None:
    found = read(node("a", "", 0, labels={"nvidia.com/gpu.present": "true"}))

    assert found.drafts == ()
    assert [code for code, _, _ in told(found)] == ["GPU810"]


# --- Partitions that nothing explains ----------------------------------------------------------------------------

H100 = "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    ("product", "labels", "published", "pools"),
    [
        pytest.param(H100, {"state": "success"}, {"mig-1g.10gb": 32, "mig-3g.40gb": 8}, 1, id="they publish them"),
        pytest.param(f"{H100}-MIG-1g.10gb", {"strategy": "single"}, {"gpu": 56}, 1, id="they publish them as GPUs"),
        pytest.param(H100, {"state": "failed"}, {"mig-1g.10gb": 56}, 1, id="failed, and still has the old ones"),
        pytest.param(H100, {"state": "pending"}, {}, 0, id="pending"),
        pytest.param(H100, {"state": "failed"}, {}, 0, id="failed"),
        pytest.param(H100, {"state": "failed"}, {"gpu": 8}, 0, id="whole for now"),
        pytest.param(H100, {"state": "success"}, {"mig-1g.10gb": 13}, 0, id="not alike on all GPUs"),
        pytest.param("NVIDIA-RTX-PRO-9000", {"state": "success"}, {"mig-1g.24gb": 8}, 0, id="a model of nobody"),
    ],
)
def test_nodes_with_an_entry_of_no_file_are_never_whole_gpus(
    product: str, labels: dict[str, str], published: dict[str, int], pools: int
) -> None:
    entry = {"nvidia.com/mig.config": "acme", "nvidia.com/gpu.memory": "98304", **_CAPABLE}
    entry |= {f"nvidia.com/mig.config.{key}" if key == "state" else f"nvidia.com/mig.{key}": value
              for key, value in labels.items()}  # fmt: skip
    resources = {f"nvidia.com/{name}": str(number) for name, number in published.items()}

    found = read(node("a", product, 56 if "MIG" in product else 8, labels=entry, published=resources))

    drafts = [item for item in found.drafts if item.kind == "Pool"]
    assert len(drafts) == pools
    assert all("mig" in item.spec["sharing"] for item in drafts)
    assert [item.spec["configName"] for item in found.drafts if item.kind == "MigLayout"] == ["acme"] * pools
    assert any("`acme`" in message for _, _, message in told(found))


_CAPABLE = {"nvidia.com/gpu.compute.major": "12", "nvidia.com/gpu.compute.minor": "0"}


def test_whole_gpus_with_an_entry_that_switches_partitions_off_are_a_pool() -> None:
    labels = {"nvidia.com/mig.config": "all-disabled"}

    found = read(node("a", H100, labels=labels, published={"nvidia.com/gpu": "8"}))

    assert draft(found, "Pool").spec["sharing"] == {"exclusive": {}}
    assert told(found) == []


# --- Schedulers --------------------------------------------------------------------------------------------------


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def holding(**resources: str) -> list[dict[str, Any]]:
    cells = [{"name": name, "nominalQuota": amount} for name, amount in resources.items()]
    covered = ["nvidia.com/gpu", *resources]
    return [{"coveredResources": covered, "flavors": [{"name": "a100", "resources": cells}]}]


def test_a_node_pool_of_kai_scheduler_keeps_its_name() -> None:
    label = "kai.scheduler/node-pool"

    found = read(node("a", labels={label: "gold"}), node("b", labels={label: "silver"}))

    assert [item.name for item in found.drafts] == ["gold", "silver"]


def test_a_driver_for_some_nodes_stays_as_it_is() -> None:
    spec = {"nodeSelector": {"zone": "left"}, "version": "570.195.03"}
    driver = {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "left"}, "spec": spec}

    found = read(node("a", labels={"zone": "left"}), driver)

    assert told(found) == [("GPU810", "note", "no pool says which driver NVIDIADriver `left` has nodes get")]


def test_a_flavor_keeps_its_name_and_parts_nodes() -> None:
    flavor = kueue("ResourceFlavor", "a100", nodeLabels={"zone": "left"})
    queue = kueue("ClusterQueue", "team", resourceGroups=holding())

    found = read(node("a", labels={"zone": "left"}), node("b", labels={"zone": "right"}), flavor, queue)

    left, right = found.drafts
    assert (left.name, right.name) == ("a100", "a100-sxm4-80gb")
    assert "names" not in {*left.spec, *right.spec}


def test_a_flavor_with_a_topology_cannot_be_changed_and_stays_beside() -> None:
    flavor = kueue("ResourceFlavor", "a100", nodeLabels={"zone": "left"}, topologyName="racks")
    racks = kueue("Topology", "racks", levels=[{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}])
    queue = kueue("ClusterQueue", "team", resourceGroups=holding())

    found = read(node("a", labels={"zone": "left"}), flavor, racks, queue)

    [left] = (item.spec for item in found.drafts)
    assert "names" not in left
    assert left["topology"] == ["rack", "kubernetes.io/hostname"]
    assert told(found) == [
        ("GPU813", "warning", "ResourceFlavor `a100` can never have the labels of pool `a100-sxm4-80gb`")
    ]


def test_gpuplans_own_flavor_with_a_topology_keeps_its_name() -> None:
    flavor = kueue("ResourceFlavor", "a100", nodeLabels={"gpuplan.dev/pool": "own"}, topologyName="own")
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    queue = kueue("ClusterQueue", "team", resourceGroups=holding())

    found = read(node("a", labels={"gpuplan.dev/pool": "own"}), flavor, kueue("Topology", "own", levels=levels), queue)

    [own] = (item.spec for item in found.drafts)
    assert own["names"] == {"resourceFlavor": "a100"}


def test_a_file_that_the_mig_manager_of_a_node_made_says_nothing_of_other_nodes() -> None:
    """Without a file of its own each node's MIG manager makes one of its boards, and shows it in a ConfigMap."""
    label = {"nvidia.com/mig.config": "all-1g.10gb"}
    small = node("b", "NVIDIA-A100-SXM4-40GB", labels=label, published={"nvidia.com/mig-1g.10gb": "32"})
    shown = config_map("a-mig-config", {"config.yaml": mig_parted(**{"all-1g.10gb": all_of(p1g_10gb=7)})})
    shown["metadata"]["labels"] = {"nvidia.com/node-name": "a"}

    found = read(small, shown)

    layout = next(item for item in found.drafts if item.kind == "MigLayout")
    assert layout.spec == {"gpu": "A100-40GB", "configName": "all-1g.10gb", "instances": {"1g.10gb": 4}}
    assert told(found) == []


def test_where_nodes_make_files_of_their_own_nobody_reads_that_of_the_operator() -> None:
    label = {"nvidia.com/mig.config": "all-balanced"}
    shown = config_map("a-mig-config", {"config.yaml": mig_parted()})
    shown["metadata"]["labels"] = {"nvidia.com/node-name": "a"}
    others = [{"device-filter": "0x20B010DE", "devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb": 7}}]
    brought = config_map("default-mig-parted-config", {"config.yaml": mig_parted(all__balanced=others)})

    found = read(node("a", labels=label), shown, brought, cluster_policy(migManager={"config": {"default": ""}}))

    layout = next(item for item in found.drafts if item.kind == "MigLayout")
    assert layout.spec["instances"] == {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    assert told(found) == []


def test_what_cohorts_and_queues_have_adds_up_to_the_nodes() -> None:
    flavor = kueue("ResourceFlavor", "a100", nodeLabels={"nvidia.com/gpu.product": A100})
    queue = kueue("ClusterQueue", "team", cohortName="all", resourceGroups=holding(cpu="100", memory="1Ti"))
    cohort = kueue("Cohort", "all", resourceGroups=holding(cpu="92"))

    found = read(node("a"), node("b"), flavor, queue, cohort)

    nodes = draft(found, "Pool").spec["nodes"]
    assert (nodes["cpu"], "memory" in nodes) == ("96", False)


# --- MIG ---------------------------------------------------------------------------------------------------------


def test_a_layout_keeps_the_name_that_nodes_know() -> None:
    label = {"nvidia.com/mig.config": "large.and.small"}
    entries = mig_parted(large_and_small=all_of(p3g_40gb=1, p1g_10gb=3))

    found = read(node("a", labels=label), config_map("mig-configs", {"config.yaml": entries}))

    layout = draft(found, "MigLayout")
    assert layout.spec == {
        "gpu": "A100-80GB",
        "configName": "large.and.small",
        "instances": {"3g.40gb": 1, "1g.10gb": 3},
    }
    assert draft(found, "Pool").spec["sharing"] == {"mig": {"layout": layout.name}}
    assert layout.sources == ("ConfigMap `mig-configs` in namespace `gpu` (dump.yaml)",)


@pytest.mark.parametrize(
    ("name", "instances"),
    [
        ("all-1g.10gb", {"1g.10gb": 7}),
        ("all-1g.10gb.me", {"1g.10gb+me": 1}),
        ("all-balanced", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
    ],
)
def test_entries_that_nvidia_brings_are_known_without_a_file(name: str, instances: dict[str, int]) -> None:
    found = read(node("a", labels={"nvidia.com/mig.config": name}))

    assert draft(found, "MigLayout").spec == {"gpu": "A100-80GB", "configName": name, "instances": instances}


def test_an_entry_that_cannot_be_placed_is_an_error_at_its_place() -> None:
    label = {"nvidia.com/mig.config": "too-much"}
    file = config_map("mig-configs", {"config.yaml": mig_parted(too__much=all_of(p1g_10gb=7))})

    found = read(node("a", "NVIDIA-A100-SXM4-40GB", labels=label), file)

    message = "entry `too-much` cannot be placed on A100-40GB: 7x `1g.10gb`"
    assert told(found) == [("GPU808", "error", message)]
    assert draft(found, "Pool").spec["sharing"] == {"exclusive": {}}
    assert draft(found, "Pool").remarks == (message,)


def test_names_of_an_early_driver_become_those_of_today() -> None:
    label = {"nvidia.com/mig.config": "whole"}
    file = config_map("mig-configs", {"config.yaml": mig_parted(whole=all_of(p7g_189gb=1))})

    found = read(node("a", "NVIDIA-GB200", 4, labels=label), file)

    assert draft(found, "MigLayout").spec["instances"] == {"7g.186gb": 1}
    assert told(found) == [("GPU808", "warning", "entry `whole` has names that only some drivers use: `7g.189gb`")]


def test_gpus_that_an_entry_leaves_out_stay_whole() -> None:
    label = {"nvidia.com/mig.config": "first"}
    item = {"devices": [0, 1], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}

    found = read(node("a", count=4, labels=label), config_map("mig", {"config.yaml": mig_parted(first=[item])}))

    assert draft(found, "MigLayout").spec["devices"] == [
        {"gpus": [0, 1], "instances": {"1g.10gb": 7}},
        {"gpus": [2, 3], "enabled": False},
    ]
    assert told(found) == [("GPU808", "warning", "entry `first` says nothing of GPUs 2 and 3")]


def test_an_entry_of_which_a_part_is_said_gets_another_name() -> None:
    label = {"nvidia.com/mig.config": "some"}
    items = [{"devices": [0], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}]
    items += [{"devices": [1], "mig-enabled": True, "mig-devices": {}}]

    found = read(node("a", count=2, labels=label), config_map("mig", {"config.yaml": mig_parted(some=items)}))

    assert draft(found, "MigLayout").spec == {
        "gpu": "A100-80GB",
        "devices": [{"gpus": [0], "instances": {"1g.10gb": 7}}, {"gpus": [1], "enabled": False}],
    }
    assert [code for code, _, _ in told(found)] == ["GPU808"]


def test_mig_without_instances_is_said_by_no_policy() -> None:
    found = read(node("a", labels={"nvidia.com/mig.config": "all-enabled"}))

    message = "entry `all-enabled` leaves GPUs with MIG on and without an instance, which run nothing"
    assert told(found) == [("GPU808", "warning", message)]


def test_what_nodes_publish_stands_for_an_entry_that_no_file_has() -> None:
    published = {"nvidia.com/mig-3g.40gb": "16"}

    found = read(node("a", labels={"nvidia.com/mig.config": "gone"}, published=published))

    assert draft(found, "MigLayout").spec["instances"] == {"3g.40gb": 2}
    assert [code for code, _, _ in told(found)] == ["GPU808"]


def test_one_name_for_two_models_stays() -> None:
    label = {"nvidia.com/mig.config": "all-1g.10gb"}

    found = read(node("a", labels=label), node("b", labels=label), node("c", "NVIDIA-A100-SXM4-40GB", labels=label))

    layouts = {item.spec["gpu"]: item.spec for item in found.drafts if item.kind == "MigLayout"}
    assert layouts["A100-80GB"]["configName"] == "all-1g.10gb"
    assert layouts["A100-40GB"]["configName"] == "all-1g.10gb"
    assert told(found) == []


def test_mig_devices_that_are_published_as_gpus_are_counted_back() -> None:
    labels = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.strategy": "single"}

    found = read(node("a", f"{A100}-MIG-1g.10gb", 56, labels=labels), cluster_policy(mig={"strategy": "single"}))

    pool = draft(found, "Pool")
    assert pool.spec["nodes"]["gpusPerNode"] == 8
    assert pool.spec["sharing"]["mig"]["strategy"] == "single"


UNLABELLED = "nodes of pool `a100-sxm4-80gb-mig` have MIG devices, and no label says of which entry"


def test_mig_devices_without_a_label_are_of_the_entry_that_makes_them() -> None:
    published = {"nvidia.com/mig-3g.40gb": "8", "nvidia.com/mig-2g.20gb": "16"}
    file = mig_parted(slices=all_of(p1g_10gb=7), halves=all_of(p3g_40gb=1, p2g_20gb=2))

    found = read(node("a", published=published), node("b", published={"nvidia.com/gpu": "8"}), file)

    assert draft(found, "MigLayout").spec["configName"] == "halves"
    shared = {item.name: item.spec["sharing"] for item in found.drafts if item.kind == "Pool"}
    assert shared == {"a100-sxm4-80gb-mig": {"mig": {"layout": "halves"}}, "a100-sxm4-80gb": {"exclusive": {}}}
    assert ("GPU808", "warning", UNLABELLED) in told(found)


def test_mig_devices_without_a_label_and_without_an_entry_are_what_each_gpu_has() -> None:
    found = read(node("a", published={"nvidia.com/mig-3g.40gb": "16"}))

    assert draft(found, "Pool").spec["sharing"] == {"mig": {"instances": {"3g.40gb": 2}}}
    assert told(found) == [("GPU808", "warning", UNLABELLED)]


def test_mig_devices_that_are_not_alike_on_all_gpus_are_told() -> None:
    found = read(node("a", published={"nvidia.com/mig-3g.40gb": "7"}))

    assert found.drafts == ()
    assert ("GPU808", "warning", UNLABELLED) in told(found)


@pytest.mark.parametrize("file", [mig_parted(), mig_parted(halves=all_of(p3g_40gb=1), slices=all_of(p1g_10gb=7))])
def test_mig_devices_that_are_published_as_gpus_need_no_label(file: dict[str, Any]) -> None:
    found = read(node("a", f"{A100}-MIG-1g.10gb", 56, published={"nvidia.com/gpu": "56"}), file)

    pool = draft(found, "Pool")
    has_entry = bool(file["mig-configs"])
    layout = {"layout": "slices"} if has_entry else {"instances": {"1g.10gb": 7}}
    assert pool.spec["sharing"] == {"mig": {**layout, "strategy": "single"}}
    assert pool.spec["nodes"]["gpusPerNode"] == 8
    assert ("GPU808", "warning", UNLABELLED) in told(found)


# --- The device plugin -------------------------------------------------------------------------------------------

SHARED = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}


def test_a_file_keeps_the_name_that_nodes_know() -> None:
    label = {"nvidia.com/device-plugin.config": "shared.t4"}

    found = read(node("a", "Tesla-T4", 1, labels=label), config_map("plugin", {"shared.t4": SHARED}))

    pool = draft(found, "Pool")
    assert pool.spec["sharing"] == {
        "timeSlicing": {"replicas": 4, "rename": False, "failRequestsGreaterThanOne": False}
    }
    assert pool.spec["names"] == {"devicePluginConfig": "shared.t4"}


def test_nodes_without_a_label_have_the_default_file() -> None:
    settings = cluster_policy(devicePlugin={"config": {"name": "plugin", "default": "any"}})

    pool = draft(read(node("a", "Tesla-T4", 1), config_map("plugin", {"any": SHARED}), settings), "Pool")

    assert pool.spec["sharing"]["timeSlicing"]["replicas"] == 4
    assert pool.spec["names"] == {"devicePluginConfig": "any"}


def test_what_the_device_plugin_ignores_is_told() -> None:
    label = {"nvidia.com/device-plugin.config": "odd"}
    odd = {"version": "v1", "flags": {"failOnInitError": False}, "sharing": {"timeSlicing": {"resources": [
        {"name": "nvidia.com/gpu", "replicas": 1}
    ]}}}  # fmt: skip

    found = read(node("a", "Tesla-T4", 1, labels=label), config_map("plugin", {"odd": odd}))

    assert draft(found, "Pool").spec["sharing"] == {"exclusive": {}}
    assert {code for code, _, _ in told(found)} == {"GPU809"}
    assert {message for _, _, message in told(found)} == {
        "`odd`: `nvidia.com/gpu` has `replicas: 1`",
        "`odd`: the flag `failOnInitError` of the device plugin is not said in a policy",
    }


FINE = {
    "version": "v1",
    "flags": {"migStrategy": "mixed"},
    "sharing": {
        "timeSlicing": {
            "resources": [
                {"name": "nvidia.com/gpu", "replicas": 8},
                {"name": "nvidia.com/mig-1g.10gb", "replicas": 2},
                {"name": "nvidia.com/mig-2g.20gb", "replicas": 2},
                {"name": "nvidia.com/mig-3g.40gb", "replicas": 3},
                {"name": "nvidia.com/mig-7g.80gb", "replicas": 7},
            ]
        }
    },
}
"""As NVIDIA's guide to time-slicing divides a board and its MIG devices in one file."""


def test_one_file_divides_whole_gpus_and_mig_devices() -> None:
    label = {"nvidia.com/device-plugin.config": "a100"}
    divided = {**label, "nvidia.com/mig.config": "all-balanced"}

    found = read(node("a", labels=divided), node("b", labels=label), config_map("plugin", {"a100": FINE}))

    mig, whole = (item for item in found.drafts if item.kind == "Pool")
    assert mig.spec["sharing"]["mig"]["timeSlicing"] == {
        "replicas": {"1g.10gb": 2, "2g.20gb": 2, "3g.40gb": 3},
        "rename": False,
        "failRequestsGreaterThanOne": False,
    }
    assert whole.spec["sharing"]["timeSlicing"]["replicas"] == 8
    assert [(code, severity) for code, severity, _ in told(found)] == [("GPU809", "note")]
    assert whole.spec["names"] == mig.spec["names"] == {"devicePluginConfig": "a100"}


@pytest.mark.parametrize("rename", [True, False])
def test_mps_is_read(rename: bool) -> None:
    label = {"nvidia.com/device-plugin.config": "mps"}
    file = {"version": "v1", "sharing": {"mps": {"renameByDefault": rename, "resources": [
        {"name": "nvidia.com/gpu", "replicas": 10}
    ]}}}  # fmt: skip

    found = read(node("a", labels=label), config_map("plugin", {"mps": file}))

    assert draft(found, "Pool").spec["sharing"] == {"mps": {"replicas": 10, **({} if rename else {"rename": False})}}
    assert told(found) == []


def test_a_resource_that_no_device_has_is_told() -> None:
    label = {"nvidia.com/device-plugin.config": "odd"}
    file = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpus", "replicas": 2}]}}}

    found = read(node("a", labels=label), config_map("plugin", {"odd": file}))

    assert draft(found, "Pool").spec["sharing"] == {"exclusive": {}}
    assert ("GPU809", "warning", "`odd`: `nvidia.com/gpus` is not shared: no device has this name") in told(found)


def test_values_of_the_chart_hold_files_too() -> None:
    """As `custom-mig-config` in NVIDIA's guide to the GPU Operator with MIG."""
    label = {"nvidia.com/mig.config": "five-and-one"}
    text = yaml.safe_dump(mig_parted(five__and__one=all_of(p1g_10gb=5, p2g_20gb=1)))
    config = {"name": "custom-mig-config", "create": True, "data": {"config.yaml": text}}

    found = read(node("a", labels=label), {"migManager": {"config": config}, "mig": {"strategy": "mixed"}})

    assert draft(found, "MigLayout").spec["instances"] == {"1g.10gb": 5, "2g.20gb": 1}
    assert draft(found, "MigLayout").sources == ("Helm values (dump.yaml)",)
    assert told(found) == []


def test_nodes_that_publish_something_else_are_told() -> None:
    label = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "failed"}

    found = read(node("a", labels=label, published={"nvidia.com/gpu": "8"}))

    [diagnostic] = found.diagnostics
    assert diagnostic.code == "GPU810"
    assert diagnostic.finding.notes == (
        "as the nodes are labelled it is 56x `nvidia.com/mig-1g.10gb`",
        "`nvidia.com/mig.config.state` is `failed` there",
    )


@pytest.mark.parametrize(
    "labels",
    [
        {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"},
        {"cloud.google.com/gke-gpu-sharing-strategy": "mps", "cloud.google.com/gke-max-shared-clients-per-gpu": "4"},
    ],
)
@pytest.mark.parametrize("product", [A100, f"{A100}-MIG-1g.10gb", "NVIDIA-Unheard-Of", ""])
def test_nodes_that_gke_shares_are_in_no_pool(labels: dict[str, str], product: str) -> None:
    pool = {"cloud.google.com/gke-nodepool": "slices", **labels}

    found = read(node("a", product, labels=pool, published={"nvidia.com/gpu": "7"}))

    assert found.drafts == ()
    assert told(found) == [("GPU810", "warning", "GKE's own device plugin shares the GPUs of node pool `slices`")]


def test_whole_gpus_of_gke_make_a_pool_where_their_model_is_known() -> None:
    labels = {"cloud.google.com/gke-nodepool": "whole", "cloud.google.com/gke-accelerator": "nvidia-l4"}
    gpus = {"nvidia.com/gpu": "1"}

    known = read(node("a", "NVIDIA-L4", 1, labels=labels, published=gpus))
    unknown = read(node("a", "", 1, labels=labels, published=gpus))

    assert draft(known, "Pool").spec["nodes"]["selector"] == {"cloud.google.com/gke-nodepool": "whole"}
    assert told(known) == []
    assert told(unknown) == [("GPU810", "warning", "nothing says which GPU model the nodes of pool `whole` have")]
