"""Bodies of a dump may have any shape: reading its pools never raises."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import yaml
from hypothesis import given, settings, strategies as st

from gpuplan.features.live import pools
from gpuplan.features.live.dump import read_dump
from tests.features.live.test_pools import A100, all_of, cluster_policy, config_map, mig_parted, node

ODD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**70, 1.5, float("inf"), "", "0", "x" * 300, "\0", "../../x", "all", "1g.10gb", "mixed"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, ["all"], [0, 0], {"1g.10gb": -1}),
)
LABELS: Final = {"nvidia.com/mig.config": "some", "nvidia.com/device-plugin.config": "any"}
SHARES: Final = [{"name": "nvidia.com/mig-1g.10gb", "replicas": 2}, {"name": "gpu", "replicas": 4}]
ENTRIES: Final = mig_parted(
    some=[
        {"devices": [0, 1], "mig-enabled": False},
        {"devices": [2, 3], "device-filter": ["0x20B210DE"], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
    ],
    balanced=all_of(p3g_40gb=1, p1g_10gb=2),
)
PLUGIN: Final = {"version": "v1", "flags": {"migStrategy": "mixed"}, "sharing": {"timeSlicing": {"resources": SHARES}}}
MPS: Final = {"version": "v1", "sharing": {"mps": {"resources": SHARES[1:]}}}
RULE: Final = {
    "name": "own",
    "labels": {"gpuplan.dev/pool": "own", **LABELS},
    "taints": [{"key": "a", "effect": "NoSchedule"}],
    "matchFeatures": [
        {"feature": "system.name", "matchExpressions": {"nodename": {"op": "InRegexp", "value": ["^(?:own-[0-9])$"]}}},
        {"feature": "pci.device", "matchExpressions": {"device": {"op": "In", "value": ["20b2"]}}},
    ],
}


def an_object(api: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


DUMP: Final = [
    node("a", count=4, labels=LABELS, published={"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "14"}),
    node("own-1", f"{A100}-MIG-1g.10gb", 28, labels={"gpuplan.dev/pool": "own"}),
    node("b", "NVIDIA-GeForce-RTX-3090", 2, labels={"nvidia.com/device-plugin.config": "mps"}),
    config_map("plugin", {"any": PLUGIN, "mps": MPS}),
    config_map("mig", {"config.yaml": ENTRIES}),
    cluster_policy(
        mig={"strategy": "mixed"}, migManager={"config": {"name": "mig"}}, devicePlugin={"config": {"default": "any"}}
    ),
    an_object("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "gpuplan-pool-own", rules=[RULE]),
    an_object(
        "kueue.x-k8s.io/v1beta2", "ResourceFlavor", "own", nodeLabels={"gpuplan.dev/pool": "own"}, topologyName="t"
    ),
    an_object("kueue.x-k8s.io/v1beta2", "Topology", "t", levels=[{"nodeLabel": "rack"}]),
    an_object("argoproj.io/v1alpha1", "Application", "x", source={"path": "out/x/partitions/own"}, sources=[{}]),
    {"nodeGroups": [{"pool": "table", "gpu": "A100-80GB", "nodes": 2, "labels": LABELS, "taints": RULE["taints"]}]},
    ENTRIES,
    PLUGIN,
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a value, as what holds it and where."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def changed(documents: list[Any], changes: list[tuple[int, Any]]) -> list[Any]:
    found = deepcopy(documents)
    for number, value in changes:
        every = list(places(found))
        holder, key = every[number % len(every)]
        holder[key] = deepcopy(value)
    return found


def with_texts(documents: list[Any], changes: list[tuple[int, Any]]) -> list[Any]:
    """The same for what is inside of ConfigMaps."""
    found = deepcopy(documents)
    for body in found:
        for key, text in body.get("data", {}).items():
            body["data"][key] = yaml.dump(changed([yaml.safe_load(text)], changes)[0], Dumper=yaml.CSafeDumper)
    return found


CHANGES = st.lists(st.tuples(st.integers(0, 5_000), st.sampled_from(ODD)), min_size=1, max_size=5)


@settings(max_examples=settings().max_examples // 4)
@given(CHANGES, CHANGES)
def test_reading_pools_never_raises(changes: list[tuple[int, Any]], inside: list[tuple[int, Any]]) -> None:
    bodies = changed(with_texts(DUMP, inside), changes)
    dump, _ = read_dump({"dump.yaml": yaml.dump_all(bodies, Dumper=yaml.CSafeDumper).encode()})

    found = pools.read(dump)

    assert all(item.finding.at.locate().file.path == "dump.yaml" for item in found.diagnostics)
