"""Drawn clusters are whole, of every kind, and the comparer finds whatever is planted in one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest

from tests.every import every
from tests.laws.adoption.clusters import MIGS, NAMESPACES, PLATFORMS, QUOTAS, SCHEDULERS, SHARINGS, Cluster, draw
from tests.laws.adoption.comparer import Kind, compare
from tests.laws.adoption.nodes import modelled, nodes_before
from tests.laws.adoption.state import State, objects_in, quantity, read
from tests.laws.adoption.work import fits, templates
from tests.laws.orders.publishing import GPU

SEEDS: Final = range(64)


def test_a_seed_draws_the_same_cluster_again() -> None:
    assert draw(7) == draw(7)
    assert draw(7).objects != draw(8).objects


AXES: Final = {
    "platform": PLATFORMS,
    "operator": ("helm", "olm", "chart"),
    "operator namespace": ("gpu-operator", "gpu-system", "nvidia-gpu-operator", "nvidia-device-plugin"),
    "kubernetes": tuple(f"1.{minor}" for minor in range(28, 36)),
    "sharing": SHARINGS,
    "mig": MIGS,
    "scheduler": SCHEDULERS,
    "quotas": QUOTAS,
    "namespaces": tuple(map(str, NAMESPACES)),
    "karpenter": ("True", "False"),
    "taints": ("none", "nvidia.com/gpu", "own"),
    "own labels": ("True", "False"),
    "delivery": ("none", "argocd", "flux"),
    "pod security": ("none", "baseline", "privileged", "mixed"),
    "limit ranges": ("none", "defaults", "max", "gpu"),
    "priority classes": ("True", "False"),
}


def test_each_kind_of_cluster_is_drawn() -> None:
    drawn = [draw(seed).traits for seed in SEEDS]
    assert {axis: {*values} - {traits[axis] for traits in drawn} for axis, values in AXES.items()} == {
        axis: set() for axis in AXES
    }
    assert {board for traits in drawn for board in traits["boards"].split()} == {
        *("a100-40", "a100-80", "h100", "l4", "l40s", "t4", "a10g", "a6000")
    }


@every(SEEDS)
def test_a_node_publishes_what_the_files_of_its_operator_say(seed: int) -> None:
    found = modelled(_state(draw(seed)))
    assert {name: said for name, said in found.items() if said[0] != said[1]} == {}


@every(SEEDS)
def test_each_workload_runs_on_some_node_and_within_its_quotas(seed: int) -> None:
    state = _state(draw(seed))
    asked: dict[tuple[str, str], int] = {}
    for template in templates(state):
        if template.kind != "DaemonSet" and template.uses_gpus:
            assert fits(template, nodes_before(state), state), template.title
            for key, count in template.asks.items():
                place = (template.namespace, f"requests.{key}")
                asked[place] = asked.get(place, 0) + count
    for namespace, _, body in state.of("ResourceQuota"):
        for key, value in body["spec"]["hard"].items():
            assert asked.get((namespace, key), 0) <= quantity(value), (namespace, key)


def test_a_dump_is_a_list_for_each_kind(tmp_path: Path) -> None:
    cluster = draw(4)
    files = read(cluster.write(tmp_path))
    assert {body["kind"] for documents in files.values() for body in documents} == {"List"}
    assert objects_in([body for documents in files.values() for body in documents]) == objects_in(cluster.objects)


@every(SEEDS)
def test_what_is_written_again_as_it_is_takes_nothing(seed: int) -> None:
    objects = draw(seed).objects
    assert compare(objects, [deepcopy(body) for body in objects if body["kind"] != "Node"]) == []


# --- Planted in drawn clusters -----------------------------------------------------------------------------------

Body = dict[str, Any]
Plant = Callable[[Body], Body | None]


def _quota(body: Body) -> Body | None:
    hard = body["spec"]["hard"]
    key = next((key for key, value in hard.items() if quantity(value) > 1), None)
    if body["kind"] != "ResourceQuota" or key is None:
        return None
    hard[key] = str(quantity(hard[key]) - 1).partition("/")[0]
    return body


def _local_queue(body: Body) -> Body:
    body["spec"]["clusterQueue"] = "another"
    return body


def _nominal(body: Body) -> Body:
    cells = body["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    cells[-1]["nominalQuota"] = int(cells[-1]["nominalQuota"]) - 1
    return body


def _flavor(body: Body) -> Body:
    body["spec"].setdefault("nodeLabels", {})["nobody"] = "has-this"
    return body


def _kai(body: Body) -> Body:
    body["spec"]["resources"]["gpu"]["quota"] -= 0.25
    return body


def _level(body: Body) -> Body | None:
    marks = body["metadata"].get("labels", {})
    key = "pod-security.kubernetes.io/enforce"
    if key not in marks:
        return None
    marks[key] = "privileged" if marks[key] != "privileged" else "restricted"
    return body


def _replicas(body: Body) -> Body | None:
    if body["metadata"]["name"] != "time-slicing-config":
        return None
    body["data"] = {key: re.sub(r"replicas: (\d+)", r"replicas: 1\1", text) for key, text in body["data"].items()}
    return body if any("replicas" in text for text in body["data"].values()) else None


def _shares(body: Body) -> bool:
    """Whether it is a node that publishes shares."""
    return int(body["metadata"].get("labels", {}).get("nvidia.com/gpu.replicas", 1)) > 1


def _class(body: Body) -> Body:
    body["value"] += 1
    return body


def _label(body: Body) -> Body | None:
    marks = body["metadata"]["labels"]
    if "nvidia.com/gpu.product" not in marks:
        return None
    marks["nvidia.com/gpu.product"] = "another"
    return body


PLANTS: Final[dict[str, tuple[str, Plant, frozenset[Kind]]]] = {
    "a lower quota": ("ResourceQuota", _quota, frozenset({Kind.QUOTA_LOWER})),
    "a LocalQueue to nowhere": ("LocalQueue", _local_queue, frozenset({Kind.LOCAL_QUEUE})),
    "a ClusterQueue with one unit less": ("ClusterQueue", _nominal, frozenset({Kind.NOMINAL})),
    "a flavor of no node": ("ResourceFlavor", _flavor, frozenset({Kind.FLAVOR_NODES})),
    "a Queue with a quarter less": ("Queue", _kai, frozenset({Kind.NOMINAL})),
    "another level": ("Namespace", _level, frozenset({Kind.POD_SECURITY})),
    "more shares": ("ConfigMap", _replicas, frozenset({Kind.PUBLISHES})),
    "a class with another value": ("PriorityClass", _class, frozenset({Kind.PRIORITY})),
    "a node with another product": ("Node", _label, frozenset({Kind.LABEL})),
}


def _planted(name: str, seeds: range) -> Iterator[tuple[int, set[Kind]]]:
    """A seed and what is found, of each cluster in which it can be planted."""
    kind, plant, _ = PLANTS[name]
    for seed in seeds:
        objects = draw(seed).objects
        if plant is _replicas and not any(_shares(body) for body in objects):
            continue
        chosen = [body for body in objects if body["kind"] == kind]
        random.Random(seed).shuffle(chosen)
        for body in chosen:
            if changed := plant(deepcopy(body)):
                yield seed, {loss.kind for loss in compare(objects, [changed])}
                break


@pytest.mark.parametrize("name", PLANTS)
def test_a_fault_in_one_object_is_found_in_every_cluster(name: str) -> None:
    found = dict(_planted(name, SEEDS))
    assert len(found) >= 5
    assert {seed: kinds for seed, kinds in found.items() if not kinds & PLANTS[name][2]} == {}


def _state(cluster: Cluster) -> State:
    return State(objects_in(cluster.objects))


def test_the_resource_of_whole_gpus_is_in_most_clusters() -> None:
    published = [node.published for seed in SEEDS for node in nodes_before(_state(draw(seed))).values()]
    assert sum(GPU in found for found in published) > len(published) / 4
