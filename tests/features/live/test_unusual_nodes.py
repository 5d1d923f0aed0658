"""Nodes that are not as usual become pools that validate, or are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.dump import read_dump
from gpuplan.features.live.importing import Import, adopt
from gpuplan.features.live.pools.nodes import read_machines
from tests.plans import a_plan

Body = dict[str, Any]
NODEPOOL = "karpenter.sh/nodepool"
TYPE = "node.kubernetes.io/instance-type"
EKS = "eks.amazonaws.com/nodegroup"
FILE = "nvidia.com/device-plugin.config"


def a_node(name: str, product: str = "NVIDIA-L4", gpus: int = 1, /, **fields: Any) -> Body:
    """A node; ``labels``, ``status`` and ``taints`` are more of it."""
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus), **fields.get("labels", {})}
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "nodeInfo": {"kubeletVersion": "v1.34.1"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": fields.get("taints", [])},
        "status": {**status, **fields.get("status", {})},
    }


def imported(root: Path, *bodies: Body) -> Import:
    return adopt({"dump.yaml": yaml.safe_dump_all(bodies).encode()}, root, "lab")


def plan_of(found: Import) -> Plan:
    assert found.report.is_valid, [item.finding.message for item in found.report.diagnostics if item.is_error]
    [plan] = found.report.plans
    return plan


def told(found: Import, code: str = "GPU810") -> list[str]:
    return [item.finding.message for item in found.report.diagnostics if item.code == code]


def chosen_by(plan: Plan, node: Body) -> list[str]:
    """The pools that have a node: by its name, or by all labels of their selector."""
    labels = node["metadata"]["labels"].items()
    return [
        pool.name
        for pool in plan.pools
        if node["metadata"]["name"] in pool.nodes.names
        or (pool.nodes.selector and pool.nodes.selector.items() <= labels)
    ]


# --- Nodes of one node pool --------------------------------------------------------------------------------------

SHARED = "Tesla-T4-SHARED"


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        pytest.param(
            [
                a_node("a", "NVIDIA-L4", 1, labels={NODEPOOL: "gpu", TYPE: "g6.xlarge"}),
                a_node("b", "NVIDIA-A10G", 4, labels={NODEPOOL: "gpu", TYPE: "g5.12xlarge"}),
            ],
            ["gpu-l4", "gpu-a10g"],
            id="two types of one Karpenter pool",
        ),
        pytest.param(
            [
                a_node("a", "NVIDIA-L4", 1, labels={NODEPOOL: "gpu", TYPE: "g6.xlarge"}),
                a_node("b", "NVIDIA-L4", 1, labels={NODEPOOL: "gpu", TYPE: "g6.2xlarge"}),
                a_node("c", "NVIDIA-L4", 4, labels={NODEPOOL: "gpu", TYPE: "g6.12xlarge"}),
            ],
            ["gpu", "gpu-2"],
            id="types with as many GPUs are one pool",
        ),
        pytest.param(
            [
                a_node("a", SHARED, 1, labels={EKS: "t4", TYPE: "g4dn.xlarge", FILE: "four"}),
                a_node("b", SHARED, 1, labels={EKS: "t4", TYPE: "g4dn.xlarge", FILE: "eight"}),
            ],
            ["t4-four", "t4-eight"],
            id="one label tells them apart",
        ),
        pytest.param(
            [
                a_node("a", "Tesla-T4", 1, labels={EKS: "t4", TYPE: "g4dn.xlarge"}),
                a_node("b", "Tesla-T4", 1, labels={EKS: "t4", TYPE: "g4dn.xlarge", FILE: "eight"}),
            ],
            ["t4", "t4-eight"],
            id="no value tells them apart",
        ),
    ],
)
def test_each_node_of_one_node_pool_is_in_one_pool(nodes: list[Body], names: list[str], tmp_path: Path) -> None:
    plan = plan_of(imported(tmp_path, *nodes))

    assert [pool.name for pool in plan.pools] == sorted(names)
    assert [len(chosen_by(plan, node)) for node in nodes] == [1] * len(nodes)


def test_a_new_node_of_a_node_pool_is_in_its_pool(tmp_path: Path) -> None:
    labels = {NODEPOOL: "gpu", TYPE: "g6.xlarge"}
    plan = plan_of(imported(tmp_path, a_node("a", labels=labels)))

    assert plan.pools[0].nodes.names == ()
    assert chosen_by(plan, a_node("b", labels=labels)) == ["gpu"]


# --- Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"gpu-type": "a100-small"}, "a100-small"),
        ({"example.com/node-pool": "Vision"}, "vision"),
        ({"gpu_model": "h100"}, "h100"),
        ({"gpu-type": "true"}, "l4"),
        ({"gpu": "true", "workload-type": "training"}, "l4"),
    ],
)
def test_a_pool_is_called_as_people_call_its_nodes(labels: dict[str, str], name: str, tmp_path: Path) -> None:
    assert [pool.name for pool in plan_of(imported(tmp_path, a_node("a", labels=labels))).pools] == [name]


def test_taints_of_people_stay_without_a_finding(tmp_path: Path) -> None:
    taints = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]

    found = imported(tmp_path, a_node("a", labels={"workload-type": "training"}, taints=taints))

    [pool] = plan_of(found).pools
    assert [(taint.key, taint.value, taint.effect.value) for taint in pool.taints] == [("gpu", "true", "NoSchedule")]
    assert told(found) == []


# --- Nodes that are told -----------------------------------------------------------------------------------------

SPOT = {"karpenter.sh/capacity-type": "spot", NODEPOOL: "gpu"}
DOWN = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
UP = {"conditions": [{"type": "Ready", "status": "True"}]}
FAILED = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "failed"}
H100 = "NVIDIA-H100-80GB-HBM3"
VGPU = {"nvidia.com/gpu.memory": "16384", "nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "5"}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (a_node("a", labels=SPOT), "1 of 1 node in pool `gpu` is for spot prices"),
        (a_node("a", labels={"cloud.google.com/gke-spot": "true"}), "1 of 1 node in pool `l4` is for spot prices"),
        (a_node("a", status=DOWN), "1 node of pool `l4` can run nothing now"),
        (
            a_node("a", H100, 8, labels=FAILED, status={"allocatable": {}}),
            "1 node of pool `h100-80gb-hbm3-all-1g-10gb` can run nothing now",
        ),
        (
            a_node("a", "GRID-T4-16Q", labels=VGPU),
            "GPUs of pool `grid-t4-16q` are vGPUs, parts of boards of another machine",
        ),
        (
            a_node("a", "NVIDIA-GeForce-RTX-4090", labels={"nvidia.com/gpu.mode": "graphics"}),
            "boards of pool `geforce-rtx-4090` can drive displays",
        ),
    ],
)
def test_what_is_not_as_usual_is_told(node: Body, message: str, tmp_path: Path) -> None:
    found = imported(tmp_path, node)

    assert plan_of(found).pools
    assert message in told(found)


@pytest.mark.parametrize(
    "node",
    [
        a_node("a", status=UP),
        a_node("a", labels={"karpenter.sh/capacity-type": "on-demand", NODEPOOL: "gpu"}),
        a_node("a", labels={"nvidia.com/gpu.mode": "compute", "nvidia.com/vgpu.present": "false"}),
        a_node(
            "a",
            H100,
            8,
            labels={**FAILED, "nvidia.com/mig.config.state": "success"},
            status={"allocatable": {"nvidia.com/mig-1g.10gb": "56"}},
        ),
    ],
)
def test_what_is_as_usual_is_not(node: Body, tmp_path: Path) -> None:
    assert told(imported(tmp_path, node)) == []


def test_spot_nodes_are_paid_as_such(tmp_path: Path) -> None:
    [pool] = plan_of(imported(tmp_path, a_node("a", labels=SPOT))).pools
    assert pool.spec.billing is not None
    assert pool.spec.billing.term.value == "spot"


def test_a_dump_without_gpus_is_told(tmp_path: Path) -> None:
    cpu = {"allocatable": {"cpu": "8"}, "nodeInfo": {"kubeletVersion": "v1.34.1"}}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"}, "status": cpu}

    assert told(imported(tmp_path, body)) == ["no node of the dump has NVIDIA GPUs"]
    assert told(imported(tmp_path, body, a_node("gpu"))) == []


# --- CPU and memory ----------------------------------------------------------------------------------------------


def with_room(name: str, cpu: str, memory: str) -> Body:
    return a_node(name, status={"allocatable": {"nvidia.com/gpu": "1", "cpu": cpu, "memory": memory}})


def test_the_least_that_a_node_has_is_read(tmp_path: Path) -> None:
    [pool] = plan_of(imported(tmp_path, with_room("a", "7910m", "30Gi"), with_room("b", "8", "31Gi"))).pools
    assert (pool.spec.nodes.cpu, pool.spec.nodes.memory) == ("7910m", "30Gi")


def test_nothing_is_read_that_quotas_of_today_would_exceed(tmp_path: Path) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    hard = {"requests.nvidia.com/gpu": "1", "requests.cpu": "64", "requests.memory": "16Gi"}
    metadata = {"name": "q", "namespace": "team"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}

    [pool] = plan_of(imported(tmp_path, with_room("a", "8", "30Gi"), space, quota)).pools

    assert (pool.spec.nodes.cpu, pool.spec.nodes.memory) == (None, "30Gi")


# --- Others --------------------------------------------------------------------------------------------------------


def test_nodes_of_a_driver_for_dra_are_no_pool_beside_those_of_the_device_plugin(tmp_path: Path) -> None:
    claimed = a_node("b", "NVIDIA-GB200", 4, labels={"nvidia.com/dra-kubelet-plugin": "true"})

    beside = imported(tmp_path, a_node("a"), claimed)
    alone = imported(tmp_path, claimed)

    assert [pool.name for pool in plan_of(beside).pools] == ["l4"]
    assert "driver for DRA hands out the GPUs of node group `gb200`" in told(beside)[0]
    assert [pool.spec.allocation.value for pool in plan_of(alone).pools] == ["dra"]


@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_a_cluster_is_not_called_as_a_folder_of_the_output(name: str, tmp_path: Path) -> None:
    dump = yaml.safe_dump(a_node("a")).encode()
    with pytest.raises(GpuplanError, match=f"`out/{name}/` has the objects of "):
        adopt({"dump.yaml": dump}, tmp_path, name)
    assert adopt({"dump.yaml": dump}, tmp_path, f"{name}-host").report.is_valid


@pytest.mark.parametrize("key", ["nvidia.com/mig.config", FILE])
def test_a_rule_of_others_that_labels_nodes_as_pools_do_is_told(key: str, tmp_path: Path) -> None:
    def rule(label: str) -> Body:
        spec = {"rules": [{"name": "r", "labels": {label: "all-disabled"}}]}
        version = "nfd.k8s-sigs.io/v1alpha1"
        return {"apiVersion": version, "kind": "NodeFeatureRule", "metadata": {"name": "gpu-pools"}, "spec": spec}

    [message] = told(imported(tmp_path, a_node("a"), rule(key)))

    assert message == f"NodeFeatureRule `gpu-pools` gives nodes the label `{key}`, which pools give them"
    assert told(imported(tmp_path, a_node("a"), rule("example.com/rack"))) == []


# --- The device plugin by its own chart --------------------------------------------------------------------------


def a_daemon_set(**fields: Any) -> Body:
    """The chart's DaemonSet; ``env``, ``args`` and ``owners`` are more of it."""
    container = {
        "name": "nvidia-device-plugin-ctr",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1",
        "env": [{"name": key, "value": value} for key, value in fields.get("env", {}).items()],
        "args": fields.get("args", []),
    }
    pod = {"containers": [container], "volumes": [{"name": "available-configs", "configMap": {"name": "files"}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvdp", "namespace": "nvidia-device-plugin", "ownerReferences": fields.get("owners", [])},
        "spec": {"template": {"spec": pod}},
    }


def files(*keys: str) -> Body:
    sliced = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
    metadata = {"name": "files", "namespace": "nvidia-device-plugin"}
    data = {key: yaml.safe_dump(sliced) for key in keys}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    ("daemon_set", "keys"),
    [
        pytest.param(a_daemon_set(env={"DEFAULT_CONFIG": "two"}), ("one", "two"), id="a default"),
        pytest.param(a_daemon_set(env={"FALLBACK_STRATEGIES": "named,single"}), ("only",), id="the only one"),
        pytest.param(a_daemon_set(env={"FALLBACK_STRATEGIES": "named,single"}), ("default", "b"), id="the named one"),
        pytest.param(a_daemon_set(env={"CONFIG_FILE": "/config/config.yaml"}), ("config.yaml",), id="a file"),
        pytest.param(a_daemon_set(args=["--config-file=/config/config.yaml"]), ("config.yaml",), id="a flag"),
    ],
)
def test_shares_of_a_device_plugin_of_its_own_stay(daemon_set: Body, keys: tuple[str, ...], tmp_path: Path) -> None:
    node = a_node("a", "Tesla-T4", 1, status={"allocatable": {"nvidia.com/gpu": "4"}})

    found = imported(tmp_path, node, daemon_set, files(*keys))

    [pool] = found.report.plans[0].pools
    assert [unit.per_node for unit in pool.units] == [4]
    [error] = [item for item in found.report.diagnostics if item.is_error]
    assert error.finding.message == (
        "DaemonSet `nvdp` in namespace `nvidia-device-plugin` hands out GPUs, and no GPU Operator runs"
    )


def test_the_device_plugin_of_the_operator_is_none_of_its_own(tmp_path: Path) -> None:
    owners = [{"kind": "ClusterPolicy", "name": "cluster-policy"}]
    assert imported(tmp_path, a_node("a"), a_daemon_set(owners=owners), files("any")).report.is_valid


# --- Files of the device plugin ----------------------------------------------------------------------------------


def test_a_file_that_says_nothing_is_known_by_its_neighbour(tmp_path: Path) -> None:
    maps = files("shared")
    maps["data"]["whole"] = "version: v1\n"

    found = imported(tmp_path, a_node("a", labels={FILE: "whole"}), maps)

    assert told(found, "GPU809") == ["no node names 1 file of the device plugin"]
    assert plan_of(found).pools[0].labels[FILE] == "whole"


def test_a_config_map_that_is_missing_is_asked_for_where_it_is(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy"},
        "spec": {"devicePlugin": {"config": {"name": "cfg", "default": "any"}}},
        "status": {"namespace": "gpus", "state": "ready"},
    }
    shared = {"nvidia.com/gpu.replicas": "6"}
    node = a_node("a", "Tesla-T4-SHARED", 1, labels=shared, status={"allocatable": {"nvidia.com/gpu": "6"}})

    found = imported(tmp_path, node, policy)

    missing = [item.finding for item in found.report.diagnostics if "is not in the dump" in item.finding.message]
    assert missing[0].message == "the ConfigMap `cfg`, which the device plugin reads, is not in the dump"
    assert missing[0].help == "add it: `kubectl get configmap cfg -n gpus -o yaml > cfg.yaml`"
    assert [unit.per_node for unit in plan_of(found).pools[0].units] == [6]


# --- What does not run today -------------------------------------------------------------------------------------


def a_policy(strategy: str, default: str = "any") -> Body:
    config = {"name": "files", "default": default}
    spec = {"mig": {"strategy": strategy}, "devicePlugin": {"config": config}}
    metadata = {"name": "cluster-policy", "labels": {"helm.sh/chart": "gpu-operator-v25.3.0"}}
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


def test_nodes_that_are_divided_unequally_under_single_are_no_pool(tmp_path: Path) -> None:
    labels = {"nvidia.com/mig.config": "all-balanced"}
    node = a_node("a", H100, 8, labels=labels, status={"allocatable": {}})

    found = imported(tmp_path, node, a_policy("single"))

    assert plan_of(found).pools == ()
    assert "nodes of `h100-80gb-hbm3-all-balanced` are divided unequally" in told(found, "GPU808")[0]
    assert len(plan_of(imported(tmp_path, node, a_policy("mixed"))).pools) == 1


@pytest.mark.parametrize("nodes", [[a_node("a")], [a_node("a", labels={FILE: "other"})]])
def test_a_file_that_the_device_plugin_refuses_shares_nothing(nodes: list[Body], tmp_path: Path) -> None:
    maps = files("any", "other")
    maps["data"]["any"] = yaml.safe_dump(
        {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/mig-1g.10gb", "replicas": 4}]}}}
    )

    plan = plan_of(imported(tmp_path, *nodes, maps, a_policy("mixed")))

    assert len(plan.pools) == 1


def test_nodes_of_a_driver_for_dra_need_a_release_that_has_claims(tmp_path: Path) -> None:
    labels = {"nvidia.com/dra-kubelet-plugin": "true"}
    old = {"nodeInfo": {"kubeletVersion": "v1.33.4"}}

    found = imported(tmp_path, a_node("a", labels=labels, status=old))

    assert plan_of(found).pools == ()
    assert "driver for DRA" in told(found)[0]


# --- What pods can have ------------------------------------------------------------------------------------------


def test_a_resource_that_pods_cannot_have_is_not_published() -> None:
    """The kubelet goes on to name in `capacity` what no plugin hands out any more."""
    status = {
        "allocatable": {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"},
        "capacity": {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "7"},
    }
    dump, _ = read_dump({"dump.yaml": yaml.safe_dump(a_node("a", status=status)).encode()})

    assert read_machines(dump).live["a"].published == {"nvidia.com/mig-1g.10gb": 7}


@pytest.mark.parametrize(("replicas", "shared"), [("1", {}), ("2", {"timeSlicing": {"replicas": 2, "rename": False}})])
def test_one_replica_is_no_sharing(replicas: str, shared: Body) -> None:
    """GPU Feature Discovery writes `1` where nothing is shared."""
    labels = {"nvidia.com/gpu.replicas": replicas, "nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}
    dump, _ = read_dump({"dump.yaml": yaml.safe_dump(a_node("a", labels=labels)).encode()})

    assert read_machines(dump).live["a"].shared == shared


# --- The default key of the device plugin's file -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "keys", "default"),
    [("", ["any"], "any"), ("own", ["any", "own"], "any"), ("", ["own"], None), ("any", ["any"], "any")],
    ids=["read-by-a-pool", "kept-for-others", "of-no-file", "named-and-default"],
)
def test_the_default_key_stays_where_a_file_has_it(
    label: str, keys: list[str], default: str | None, tmp_path: Path
) -> None:
    labels = {"nvidia.com/gpu.replicas": "4"} | ({FILE: label} if label else {})
    node = a_node("a", "NVIDIA-L4-SHARED", 1, labels=labels)
    found = imported(tmp_path, node, a_policy("none"), files(*keys))

    [cluster] = [draft.spec for draft in found.drafts if draft.kind == "Cluster"]
    assert cluster["gpuOperator"].get("defaultDevicePluginConfig") == default


# --- Nodes that a rollout has moved ------------------------------------------------------------------------------

MOVED = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mixed}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [a, b]}
  sharing: {mig: {instances: {1g.10gb: 7}}}
  rollout: {sharing: {mig: {instances: {3g.40gb: 2}}}, nodes: [b]}
"""


def test_an_entry_that_no_file_has_is_what_its_own_nodes_publish(tmp_path: Path) -> None:
    plan = a_plan(MOVED)
    rules = [dict(item.body) for item in partitions.render(plan) if isinstance(item, Manifest)]
    nodes = [
        a_node(
            part.nodes.names[0],
            "NVIDIA-A100-SXM4-80GB",
            8,
            labels=dict(part.labels),
            status={"allocatable": {unit.resource: str(unit.per_node) for unit in part.units}},
        )
        for part in plan.parts
    ]

    found = imported(tmp_path, *rules, *nodes)

    layouts = [draft.spec["instances"] for draft in found.drafts if draft.kind == "MigLayout"]
    assert sorted(map(str, layouts)) == ["{'1g.10gb': 7}", "{'3g.40gb': 2}"]


# --- What somebody else's operator is told -----------------------------------------------------------------------

DRIVER = "nvidia.com/cuda.driver-version.full"
WORKLOAD = "nvidia.com/gpu.workload.config"


def an_operator(release: str = "v26.7.0", **spec: Any) -> Body:
    labels = {"helm.sh/chart": f"gpu-operator-{release}"}
    metadata = {"name": "cluster-policy", "labels": labels}
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("release", "product", "driver", "board"),
    [
        ("v24.9.2", "NVIDIA-B200", "550.144.03", "B200-180GB"),
        ("v25.3.0", "NVIDIA-B200", "570.124.06", "B200-180GB"),
        ("v25.3.2", "NVIDIA-B300-SXM6-AC", "570.148.08", "B300-269GB"),
        ("v24.9.2", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "550.144.03", "RTX-PRO-6000-96GB"),
    ],
)
def test_a_default_driver_that_is_too_old_for_boards_is_told(
    release: str, product: str, driver: str, board: str, tmp_path: Path
) -> None:
    node = a_node("a", product, 8)
    message = f"GPU Operator {release} installs driver {driver}, which is too old for {board}"

    for stated in ({}, {"version": driver}):
        assert told(imported(tmp_path, node, an_operator(release, driver=stated))) == [message]
    assert told(imported(tmp_path, node, an_operator("v26.7.0", driver={}))) == []
    assert told(imported(tmp_path, node, an_operator(release, driver={"version": "580.95.05"}))) == []
    newer = a_node("a", product, 8, labels={DRIVER: "580.95.05"})
    for said in ({"enabled": False}, {"useNvidiaDriverCRD": True}, {}):
        assert told(imported(tmp_path, newer, an_operator(release, driver=said))) == []


def test_a_driver_of_the_host_is_told_only_if_it_does_not_know_the_boards(tmp_path: Path) -> None:
    for stated, codes in (("570.124.06", set()), ("550.144.03", {"GPU222"})):
        node = a_node("a", "NVIDIA-B200", 8, labels={DRIVER: stated})
        found = imported(tmp_path, node, an_operator("v25.3.0", driver={"enabled": False}))

        assert {item.code for item in found.report.diagnostics if item.is_error} == codes


@pytest.mark.parametrize("labels", [{}, {WORKLOAD: "containers"}, {WORKLOAD: ""}], ids=["none", "unknown", "empty"])
@pytest.mark.parametrize("workload", ["vm-passthrough", "vm-vgpu"])
def test_nodes_that_go_to_virtual_machines_by_default_are_told(workload: str, labels: Body, tmp_path: Path) -> None:
    sandboxes = {"enabled": True, "defaultWorkload": workload}
    node, policy = a_node("a", labels=labels), an_operator(sandboxWorkloads=sandboxes)

    found = imported(tmp_path, node, policy)

    message = f"1 node of pools may hand out nothing: `sandboxWorkloads.defaultWorkload` is `{workload}`"
    assert told(found) == [message]
    assert told(imported(tmp_path, a_node("a", labels={WORKLOAD: "container"}), policy)) == []
    for other in ({**sandboxes, "enabled": False}, {"enabled": True, "defaultWorkload": "container"}):
        assert told(imported(tmp_path, node, an_operator(sandboxWorkloads=other))) == []


@pytest.mark.parametrize(
    "node",
    [a_node("a"), a_node("a", "NVIDIA-A100-SXM4-80GB", 8), a_node("a", "Tesla-T4-SHARED", 1)],
    ids=["L4", "A100", "shared"],
)
def test_a_feature_discovery_that_is_off_is_told(node: Body, tmp_path: Path) -> None:
    off = an_operator(gfd={"enabled": False})
    by_itself = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "gpu-feature-discovery"}}
    message = "GPU Feature Discovery is off, and no node gets labels of its boards"

    assert message in told(imported(tmp_path, node, off))
    assert message not in told(imported(tmp_path, node, an_operator(gfd={"enabled": True})))
    assert message not in told(imported(tmp_path, node, off, by_itself))
