"""Random nodes, drawn by a seed: an import of them validates, and the first sync changes no shares without a word."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.features.live.importing import adopt
from tests.features.live.test_first_sync_of_nodes import file_of, shares_of

Body = dict[str, Any]
FILE: Final = "nvidia.com/device-plugin.config"
BOARDS: Final = (
    "NVIDIA-L4",
    "Tesla-T4",
    "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-RTX-A6000",
    "NVIDIA-Unheard-Of",
    "GRID-T4-8C",
    "NVIDIA-GB200",
)
GROUPS: Final = ("", "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool", "cloud.google.com/gke-nodepool")
ENTRIES: Final = ("all-disabled", "all-balanced", "all-1g.10gb", "acme", "all-enabled")
DIVIDED: Final = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb")


def a_file(rng: random.Random, key: str) -> Body:
    if key == "whole":
        return {"version": "v1"}
    names = rng.sample(DIVIDED, rng.randint(1, 2))
    parts = [{"name": name, "replicas": rng.choice((2, 4))} for name in names]
    kind = rng.choice(("timeSlicing", "timeSlicing", "timeSlicing", "mps"))
    return {"version": "v1", "sharing": {kind: {"renameByDefault": rng.random() < 0.3, "resources": parts}}}


def an_operator(rng: random.Random, keys: list[str]) -> Iterator[Body]:
    config = {"name": "files", "default": rng.choice(("", *keys))}
    spec: Body = {"devicePlugin": {"config": config}} if keys else {}
    if rng.random() < 0.8:
        spec["mig"] = {"strategy": rng.choice(("single", "mixed"))}
    metadata = {"name": "cluster-policy", "labels": {"helm.sh/chart": "gpu-operator-v25.10.1"}}
    yield {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": spec}
    data = {key: yaml.safe_dump(a_file(rng, key)) for key in keys}
    named = {"name": "files", "namespace": "gpu-operator"}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}


def a_node(rng: random.Random, name: str, group: str, keys: list[str]) -> Body:
    board, gpus = rng.choice(BOARDS), rng.choice((1, 4, 8))
    labels = {"nvidia.com/gpu.product": board, "nvidia.com/gpu.count": str(gpus)}
    facts = {"nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0"}
    labels |= facts if rng.random() < 0.7 else {}
    labels |= {group: rng.choice("ab")} if group else {}
    more = {
        "node.kubernetes.io/instance-type": rng.choice("xyz"),
        "karpenter.sh/capacity-type": "spot",
        "gpu-type": rng.choice(("small", "true")),
        "nvidia.com/dra-kubelet-plugin": "true",
        **({FILE: rng.choice(keys)} if keys else {}),
    }
    labels |= {key: value for key, value in more.items() if rng.random() < 0.3}
    published = {"nvidia.com/gpu": gpus}
    if "100" in board or "GB" in board:
        if rng.random() < 0.6:
            state = rng.choice(("success", "failed", "pending"))
            labels |= {"nvidia.com/mig.config": rng.choice(ENTRIES), "nvidia.com/mig.config.state": state}
        published = rng.choice((published, {}, {"nvidia.com/mig-1g.10gb": 4 * gpus}, {"nvidia.com/mig-3g.40gb": gpus}))
    room = {"cpu": "15890m", "memory": "64Gi"} if rng.random() < 0.5 else {}
    taint = {"key": rng.choice(("gpu", "nvidia.com/gpu")), "value": "true", "effect": "NoSchedule"}
    allocatable = {**{key: str(number) for key, number in published.items()}, **room}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": rng.choice(([], [taint]))},
        "status": {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": rng.choice(("v1.33.4", "v1.34.1"))}},
    }


def a_team(rng: random.Random, name: str) -> Iterator[Body]:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    hard = {"requests.nvidia.com/gpu": str(rng.randint(1, 9)), **rng.choice(({}, {"requests.cpu": "32"}))}
    metadata = {"name": "quota", "namespace": name}
    yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def a_dump(seed: int) -> list[Body]:
    rng = random.Random(seed)
    keys = rng.sample(["any", "one", "whole"], rng.randint(0, 3))
    group = rng.choice(GROUPS)
    return [
        *(an_operator(rng, keys) if keys or rng.random() < 0.5 else ()),
        *(a_node(rng, f"node-{number}", group, keys) for number in range(rng.randint(1, 5))),
        *(body for number in range(rng.randint(0, 2)) for body in a_team(rng, f"team-{number}")),
    ]


def config_of(bodies: Sequence[Mapping[str, Any]]) -> tuple[str, Mapping[str, str]] | None:
    """The default key and the files of the device plugin, if the operator is told of any."""
    policies = [body for body in bodies if body["kind"] == "ClusterPolicy"]
    told = policies[0]["spec"].get("devicePlugin", {}).get("config") if policies else None
    if told is None:
        return None
    maps = [body for body in bodies if body["kind"] == "ConfigMap" and body["metadata"]["name"] == told["name"]]
    return (told["default"], maps[0]["data"]) if maps else None


@pytest.mark.parametrize("seed", range(40))
def test_an_import_of_random_nodes_validates_and_keeps_their_shares(seed: int, tmp_path: Path) -> None:
    bodies = a_dump(seed)

    found = adopt({"dump.yaml": yaml.safe_dump_all(bodies).encode()}, tmp_path, "lab")

    assert [item.finding.message for item in found.report.diagnostics if item.is_error] == []
    [plan] = found.report.plans
    written = [item.body for _, item in artifacts(plan) if isinstance(item, Manifest)]
    old, new = config_of(bodies), config_of(written)
    is_told = any(item.code == "GPU809" for item in found.report.diagnostics)
    for node in (body for body in bodies if body["kind"] == "Node"):
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        pools = [
            pool
            for pool in plan.pools
            if name in pool.nodes.names or (pool.nodes.selector and pool.nodes.selector.items() <= labels.items())
        ]
        assert len(pools) <= 1
        if old is None or new is None or is_told:
            continue
        has = labels.get(FILE, "")
        gets = pools[0].labels[FILE] if pools else has
        resources = node["status"]["allocatable"]
        moments = [(has, old), (has, new), (gets, old), (gets, new)]
        shares = [shares_of(file_of(label, *state), resources) for label, state in moments]
        assert shares == [shares[0]] * len(shares)
