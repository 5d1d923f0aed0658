"""With `matchBoards`, a rule asks for the PCI ids of the pool's model as well as for names."""

from __future__ import annotations

from typing import Any

from tests.compiler.backends.partitions.rendered import objects
from tests.plans import CLUSTER, a_plan

CARD = """
---
apiVersion: gpuplan.dev/v1
kind: Gpu
metadata: {name: card}
spec: {memoryMiB: 15356, computeCapability: "8.6", products: [NVIDIA-A16], pci: [%s]}
"""
POOL = """
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec: {gpu: %s, nodes: {count: 1, gpusPerNode: 1, names: [gpu-1]}, sharing: {exclusive: {}}}
"""
VENDOR = {"op": "In", "value": ["10de"]}
CLASS = {"op": "In", "value": ["0300", "0302"]}
NAME = {"feature": "system.name", "matchExpressions": {"nodename": {"op": "In", "value": ["gpu-1"]}}}


def rule(policies: str, setting: str = "  matchBoards: true\n") -> dict[str, Any]:
    (body,) = objects(a_plan(CLUSTER + setting + policies))
    (found,) = body["spec"]["rules"]
    return {key: value for key, value in found.items() if key.startswith("match")}


def board(**more: str | list[str]) -> dict[str, Any]:
    asked = {key: {"op": "In", "value": [value] if isinstance(value, str) else value} for key, value in more.items()}
    return {"feature": "pci.device", "matchExpressions": {"vendor": VENDOR, "class": CLASS, **asked}}


def test_the_ids_of_the_catalog_are_asked_for_in_small_letters() -> None:
    assert rule(POOL % "A100-80GB") == {"matchFeatures": [NAME, board(device=["20b2", "20b5", "20f3", "20f5"])]}


def test_without_the_setting_any_board_will_do() -> None:
    assert rule(POOL % "A100-80GB", "") == {"matchFeatures": [NAME, board()]}


def test_an_id_of_several_boards_is_asked_for_with_its_subsystem() -> None:
    found = rule(POOL % "card" + CARD % '"10de:25b6/10de:14a9", "10de:2684"')

    assert found == {
        "matchFeatures": [NAME],
        "matchAny": [
            {"matchFeatures": [board(device="2684")]},
            {"matchFeatures": [board(device="25b6", subsystem_vendor="10de", subsystem_device="14a9")]},
        ],
    }


def test_one_id_with_a_subsystem_is_one_term() -> None:
    found = rule(POOL % "card" + CARD % '"10de:25b6/10de:14a9"')

    term = board(device="25b6", subsystem_vendor="10de", subsystem_device="14a9")
    assert found == {"matchFeatures": [NAME, term]}


def test_a_pool_by_board_alone_asks_for_no_name() -> None:
    pool = POOL.replace("names: [gpu-1]", "matchBoards: true") % "A100-80GB"

    assert rule(pool, "") == {"matchFeatures": [board(device=["20b2", "20b5", "20f3", "20f5"])]}


def test_boards_that_a_subsystem_tells_apart_are_terms_of_which_any_holds() -> None:
    found = rule(
        POOL.replace("names: [gpu-1]", "matchBoards: true") % "card" + CARD % '"10de:25b6/10de:14a9", "10de:2684"'
    )

    assert "matchFeatures" not in found
    assert [len(term["matchFeatures"]) for term in found["matchAny"]] == [1, 1]


def test_a_pool_asks_for_boards_beside_names_without_the_cluster_s_setting() -> None:
    pool = POOL.replace("names: [gpu-1]", "names: [gpu-1], matchBoards: true") % "T4-16GB"

    assert rule(pool, "") == {"matchFeatures": [NAME, board(device="1eb8")]}


def test_where_a_rollout_has_moved_all_that_is_named_no_rule_is_left_for_the_rest() -> None:
    pool = POOL.replace("names: [gpu-1]", "names: [gpu-1], matchBoards: true") % "T4-16GB"
    moved = "rollout: {sharing: {timeSlicing: {replicas: 2}}, nodes: [gpu-1]}, sharing"
    (body,) = objects(a_plan(CLUSTER + pool.replace("sharing", moved)))

    assert [found["matchFeatures"] for found in body["spec"]["rules"]] == [[NAME, board(device="1eb8")]]
