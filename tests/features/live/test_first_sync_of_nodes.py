"""The first sync changes the shares of no node, in whatever order the ClusterPolicy and the labels arrive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.loading import load_tree
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.importing import Import, adopt

Body = dict[str, Any]
Data = Mapping[str, str]


# --- Dumps -------------------------------------------------------------------------------------------------------


def a_node(name: str, product: str, gpus: int, published: Mapping[str, int], **labels: str) -> Body:
    """A node of EKS; labels are by the last part of their key."""
    told = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus)}
    told |= {_KEYS[key]: value for key, value in labels.items()}
    status = {"allocatable": {key: str(n) for key, n in published.items()}, "nodeInfo": {"kubeletVersion": "v1.33.4"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": told}, "status": status}


_KEYS = {
    "group": "eks.amazonaws.com/nodegroup",
    "file": "nvidia.com/device-plugin.config",
    "entry": "nvidia.com/mig.config",
}


def sharing(**replicas: int) -> Body:
    """A file of the device plugin; resources are by the last part of their name."""
    names = {name: f"nvidia.com/{name.replace('__', '-').replace('_', '.')}" for name in replicas}
    parts = [{"name": names[name], "replicas": number} for name, number in replicas.items()]
    return {"version": "v1", "sharing": {"timeSlicing": {"resources": parts}}}


def plugin(default: str | None, strategy: str = "mixed", **files: Body) -> list[Body]:
    config = {"name": "time-slicing", **({} if default is None else {"default": default})}
    spec = {"mig": {"strategy": strategy}, "devicePlugin": {"config": config}}
    texts = {key: yaml.safe_dump(file) for key, file in files.items()}
    return [
        {
            "apiVersion": "nvidia.com/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "cluster-policy", "labels": {"helm.sh/chart": "gpu-operator-v25.3.0"}},
            "spec": spec,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "time-slicing", "namespace": "gpu-operator"},
            "data": texts,
        },
    ]


def imported(root: Path, *bodies: Body) -> tuple[Import, Plan]:
    found = adopt({"dump.yaml": yaml.safe_dump_all(bodies).encode()}, root, "lab")
    tree = Written(None, {path: text.encode() for path, text in found.files.items()})
    [plan] = load_tree(tree, ("lab",), ("lab",)).plans
    return found, plan


# --- A model of config-manager -----------------------------------------------------------------------------------


def file_of(label: str, default: str, data: Data) -> str | None:
    """The text that the device plugin of a node reads, or None where it does not start.

    After `updateConfigName` in `cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin at 1b826acc6. The GPU Operator
    sets `FALLBACK_STRATEGIES=empty` (`controllers/object_controls.go` of NVIDIA/gpu-operator at a22dbf671):
    https://github.com/NVIDIA/gpu-operator/issues/1230
    """
    if label or default:
        return data.get(label or default)
    return "{}"


def shares_of(text: str | None, resources: Mapping[str, int]) -> object:
    """How a file shares what a node has; None where the device plugin does not start."""
    if text is None:
        return None
    slicing = yaml.safe_load(text).get("sharing", {}).get("timeSlicing", {})
    replicas = {part["name"]: part["replicas"] for part in slicing.get("resources", ())}
    here = {name: replicas[name] for name in resources if name in replicas}
    refuses = bool(slicing.get("failRequestsGreaterThanOne")) and bool(here)
    return {name: (number, slicing.get("renameByDefault", False), refuses) for name, number in here.items()}


def shares_in_each_order(plan: Plan, before: list[Body], node: Body, pool: str = "gpu") -> dict[str, object]:
    """How a node is shared before the first sync, between its two parts in both orders, and after them."""
    [policy, maps] = before
    config = policy["spec"]["devicePlugin"]["config"]
    old: tuple[str, Data] = config.get("default", ""), maps["data"]
    written = [item.body for _, item in artifacts(plan) if isinstance(item, Manifest)]
    [patch] = [body for body in written if body["kind"] == "ClusterPolicy"]
    told = patch["spec"]["devicePlugin"]["config"]
    [data] = [body["data"] for body in written if body["metadata"]["name"] == told["name"]]
    new: tuple[str, Data] = told["default"], data
    has = node["metadata"]["labels"].get("nvidia.com/device-plugin.config", "")
    gets = next(part for part in plan.pools if part.name == pool).labels["nvidia.com/device-plugin.config"]
    return {
        moment: shares_of(file_of(label, *state), node["status"]["allocatable"])
        for moment, label, state in (
            ("before", has, old),
            ("the ClusterPolicy first", has, new),
            ("the labels first", gets, old),
            ("after", gets, new),
        )
    }


# --- Nodes without a label ---------------------------------------------------------------------------------------

T4 = a_node("t4", "Tesla-T4-SHARED", 1, {"nvidia.com/gpu": 4}, group="gpu")
L4 = a_node("l4", "NVIDIA-L4-SHARED", 2, {"nvidia.com/gpu": 8}, group="l4")
SMALL = {"nvidia.com/mig-1g.5gb": 28}
A100 = a_node("a100", "NVIDIA-A100-SXM4-40GB", 2, SMALL, group="mig", entry="all-1g.5gb")
WHOLE = a_node("whole", "NVIDIA-A10G", 4, {"nvidia.com/gpu": 4}, group="whole")
LABELLED = a_node("labelled", "NVIDIA-L4-SHARED", 1, {"nvidia.com/gpu": 2}, group="two", file="two")


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        pytest.param(plugin("any", any=sharing(gpu=4)), {"gpu": T4}, id="one default file for all nodes"),
        pytest.param(plugin("any", any=sharing(gpu=4)), {"gpu": T4, "l4": L4}, id="two models read it"),
        pytest.param(plugin("any", any=sharing(gpu=4)), {"gpu": T4, "mig": A100}, id="partitions that it leaves whole"),
        pytest.param(
            plugin("any", any=sharing(gpu=4, mig__1g_5gb=2)), {"gpu": T4, "mig": A100}, id="it divides partitions, too"
        ),
        pytest.param(
            plugin("any", any=sharing(gpu=4), two=sharing(gpu=2)), {"gpu": T4, "two": LABELLED}, id="some have a label"
        ),
        pytest.param(plugin("any", any=sharing(gpu=4), two=sharing(gpu=2)), {"two": LABELLED}, id="all have a label"),
        pytest.param(plugin("whole", whole={"version": "v1"}), {"whole": WHOLE}, id="it shares nothing"),
        pytest.param(plugin("", none={"version": "v1"}, two=sharing(gpu=2)), {"whole": WHOLE}, id="no default"),
    ],
)
def test_a_node_is_shared_alike_in_each_order(settings: list[Body], nodes: Mapping[str, Body], tmp_path: Path) -> None:
    found, plan = imported(tmp_path, *settings, *nodes.values())

    assert found.report.is_valid
    for pool, node in nodes.items():
        shares = shares_in_each_order(plan, settings, node, pool)
        assert shares["before"] is not None
        assert dict.fromkeys(shares, shares["before"]) == shares


def test_the_default_file_stays_for_nodes_that_are_in_no_pool(tmp_path: Path) -> None:
    settings = plugin("any", any=sharing(gpu=4), two=sharing(gpu=2))

    _, plan = imported(tmp_path, *settings, LABELLED)

    new = {**LABELLED, "metadata": {"name": "new", "labels": {}}}
    shares = shares_in_each_order(plan, settings, new, "two")
    assert shares["the ClusterPolicy first"] == shares["before"] == {"nvidia.com/gpu": (4, False, False)}


def test_labels_that_must_wait_for_the_file_are_told(tmp_path: Path) -> None:
    settings = plugin(None, two=sharing(gpu=2))

    found, plan = imported(tmp_path, *settings, WHOLE)

    assert shares_in_each_order(plan, settings, WHOLE, "whole")["the labels first"] is None
    [told] = [item.finding for item in found.report.diagnostics if "labels of pools `whole`" in item.finding.message]
    assert "sync the folder `gpu-operator` first" in told.help


def test_labels_wait_for_nothing_without_a_file_of_the_device_plugin(tmp_path: Path) -> None:
    found, _ = imported(tmp_path, WHOLE)

    assert not [item for item in found.report.diagnostics if item.code == "GPU809"]


# --- One entry of the MIG manager for several models -------------------------------------------------------------

_BOARDS = {"A100-40": ("NVIDIA-A100-SXM4-40GB", "0x20B010DE"), "A100-80": ("NVIDIA-A100-SXM4-80GB", "0x20B210DE")}
_BOARDS |= {"H100": ("NVIDIA-H100-80GB-HBM3", "0x233010DE"), "A30": ("NVIDIA-A30", "0x20B710DE")}


def partitioned(board: str, entry: str, **instances: int) -> Body:
    """A node with two GPUs of a board that are divided alike; instances are those of one GPU."""
    per_node = {f"nvidia.com/mig-{name[1:].replace('_', '.')}": 2 * number for name, number in instances.items()}
    return a_node(f"n-{board.lower()}", _BOARDS[board][0], 2, per_node, group=board.lower(), entry=entry)


def resources_by(plan: Plan, entry: str, device: str) -> dict[str, int]:
    """What mig-parted makes of a node with two GPUs of one board: items for other boards are passed over.

    After `MatchesDeviceFilter` in `api/spec/v1/helpers.go` of NVIDIA/mig-parted: an item without a filter is for all.
    """
    [text] = [
        item.body["data"]["config.yaml"]
        for _, item in artifacts(plan)
        if isinstance(item, Manifest) and item.body["metadata"]["name"].startswith("gpuplan-mig-parted")
    ]
    found: dict[str, int] = {}
    for gpu in range(2):
        for item in yaml.safe_load(text)["mig-configs"][entry]:
            filters = item.get("device-filter", [device])
            if device in filters and (item["devices"] == "all" or gpu in item["devices"]):
                for name, number in item.get("mig-devices", {}).items():
                    found[f"nvidia.com/mig-{name}"] = found.get(f"nvidia.com/mig-{name}", 0) + number
    return found


def own_entry(*boards: str, **items: Body) -> Body:
    listed = [
        {"device-filter": [_BOARDS[board][1]], **item} for board, item in zip(boards, items.values(), strict=True)
    ]
    text = yaml.safe_dump({"version": "v1", "mig-configs": {"small": listed}})
    metadata = {"name": "default-mig-parted-config", "namespace": "gpu-operator"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}


@pytest.mark.parametrize(
    ("entry", "more", "nodes"),
    [
        pytest.param(
            "all-balanced",
            [],
            {
                "A100-40": partitioned("A100-40", "all-balanced", p1g_5gb=2, p2g_10gb=1, p3g_20gb=1),
                "H100": partitioned("H100", "all-balanced", p1g_10gb=2, p2g_20gb=1, p3g_40gb=1),
            },
            id="two models",
        ),
        pytest.param(
            "all-balanced",
            [],
            {
                "A100-80": partitioned("A100-80", "all-balanced", p1g_10gb=2, p2g_20gb=1, p3g_40gb=1),
                "H100": partitioned("H100", "all-balanced", p1g_10gb=2, p2g_20gb=1, p3g_40gb=1),
                "A30": partitioned("A30", "all-balanced", p1g_6gb=2, p2g_12gb=1),
            },
            id="three models, two of them alike",
        ),
        pytest.param(
            "all-1g.10gb",
            [],
            {
                "A100-40": partitioned("A100-40", "all-1g.10gb", p1g_10gb=4),
                "A100-80": partitioned("A100-80", "all-1g.10gb", p1g_10gb=7),
            },
            id="another number of one profile",
        ),
        pytest.param(
            "small",
            [
                own_entry(
                    "A100-40",
                    "H100",
                    a={"devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb": 7}},
                    b={"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
                )
            ],
            {"A100-40": partitioned("A100-40", "small", p1g_5gb=7), "H100": partitioned("H100", "small", p1g_10gb=7)},
            id="an entry of a file",
        ),
    ],
)
def test_one_entry_for_several_models_keeps_its_name(
    entry: str, more: list[Body], nodes: Mapping[str, Body], tmp_path: Path
) -> None:
    found, plan = imported(tmp_path, *plugin(None), *more, *nodes.values())

    assert found.report.is_valid
    assert {pool.labels["nvidia.com/mig.config"] for pool in plan.pools} == {entry}
    for board, node in nodes.items():
        assert resources_by(plan, entry, _BOARDS[board][1]) == {
            key: int(number) for key, number in node["status"]["allocatable"].items()
        }
