"""Node Feature Discovery's own rule engine labels nodes with boards of their pool's model, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from tests.cluster.parsers import features, run_rules
from tests.plans import CLUSTER, a_plan

POOL = "gpuplan.dev/pool"
A16 = """\
---
apiVersion: gpuplan.dev/v1
kind: Gpu
metadata: {name: a16}
spec:
  memoryMiB: 15356
  computeCapability: "8.6"
  products: [NVIDIA-A16]
  pci: ["10de:25b6/10de:14a9", "10de:25b6/1028:14a9"]
"""
SETTING = "  matchBoards: true\n"


def _pool(name: str, gpu: str, more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: {gpu}
  nodes: {{count: 2, gpusPerNode: 8, namePattern: "{name}-[0-9]+"}}
  sharing: {{exclusive: {{}}}}
{more}"""


POOLS = _pool("a100", "A100-80GB") + _pool("a16", "a16") + A16
ROLLOUT = "  rollout: {sharing: {timeSlicing: {replicas: 2}}, nodes: [a100-2]}\n"

A100_SXM = {"device": "20b2", "subsystem_vendor": "10de", "subsystem_device": "147f"}
A100_PCIE = {"device": "20b5", "subsystem_vendor": "10de", "subsystem_device": "1533"}
A100_40 = {"device": "20b0", "subsystem_vendor": "10de", "subsystem_device": "134f"}
T4 = {"device": "1eb8", "subsystem_vendor": "10de", "subsystem_device": "12a2"}
AN_A16 = {"device": "25b6", "subsystem_vendor": "10de", "subsystem_device": "14a9"}
AN_A2 = {"device": "25b6", "subsystem_vendor": "10de", "subsystem_device": "157e"}


def _pools_of(policies: str, nodes: list[dict[str, Any]], setting: str = SETTING) -> list[str | None]:
    """The pool that each node is labelled with."""
    plan = a_plan(CLUSTER + setting + policies)
    found = [artifact.body for _, artifact in artifacts(plan) if isinstance(artifact, Manifest)]
    rules = [body for body in found if body["kind"] == "NodeFeatureRule"]
    return [labelling.labels.get(POOL) for labelling in run_rules(rules, nodes)]


@pytest.mark.parametrize(
    ("name", "board", "pool"),
    [
        ("a100-1", A100_SXM, "a100"),
        ("a100-1", A100_PCIE, "a100"),
        ("a100-1", A100_40, None),
        ("a100-1", T4, None),
        ("other-1", A100_SXM, None),
        ("a16-1", AN_A16, "a16"),
        ("a16-1", {**AN_A16, "subsystem_vendor": "1028"}, "a16"),
        ("a16-1", AN_A2, None),
        ("a16-1", T4, None),
    ],
)
def test_a_node_is_labelled_by_its_name_and_its_board(name: str, board: dict[str, str], pool: str | None) -> None:
    assert _pools_of(POOLS, [features(name, **board)]) == [pool]


def test_without_the_setting_a_wrong_board_is_labelled() -> None:
    assert _pools_of(POOLS, [features("a100-1", **T4)], setting="") == ["a100"]


def test_nodes_that_a_rollout_moves_are_held_to_their_boards_too() -> None:
    pools = _pool("a100", "A100-80GB", ROLLOUT)
    nodes = [features(name, **board) for name in ("a100-1", "a100-2") for board in (A100_SXM, T4)]

    assert _pools_of(pools, nodes) == ["a100", None, "a100", None]


def test_a_board_beside_another_device_is_found() -> None:
    node = features("a100-1", **A100_SXM)
    node["instances"]["pci.device"]["elements"].insert(0, {"attributes": {"vendor": "8086", "class": "0200"}})

    assert _pools_of(POOLS, [node]) == ["a100"]


ANYWHERE = {
    "a100": _pool("a100", "A100-80GB", ROLLOUT).replace('namePattern: "a100-[0-9]+"', "matchBoards: true"),
    "a16": _pool("a16", "a16").replace('namePattern: "a16-[0-9]+"', "matchBoards: true") + A16,
    "t4": _pool("t4", "T4-16GB"),
}


@pytest.mark.parametrize(
    ("name", "board", "pool"),
    [
        ("anything", A100_SXM, "a100"),
        ("ip-10-0-0-7.ec2.internal", A100_PCIE, "a100"),
        ("anything", A100_40, None),
        ("anything", AN_A16, "a16"),
        ("anything", {**AN_A16, "subsystem_vendor": "1028"}, "a16"),
        ("anything", AN_A2, None),
        ("anything", T4, None),
        ("t4-1", T4, "t4"),
    ],
)
def test_a_pool_by_board_alone_has_the_nodes_with_its_boards(
    name: str, board: dict[str, str], pool: str | None
) -> None:
    assert _pools_of("".join(ANYWHERE.values()), [features(name, **board)], setting="") == [pool]


def test_a_name_of_a_pool_that_takes_any_board_is_no_reason_against_a_pool_by_board() -> None:
    """Rules of pools by name ask for boards, too, where the cluster says so: else a node is in both."""
    assert _pools_of("".join(ANYWHERE.values()), [features("t4-1", **A100_PCIE)]) == ["a100"]


def test_of_nodes_by_board_a_rollout_moves_those_that_it_names() -> None:
    plan = a_plan(CLUSTER + ANYWHERE["a100"])
    rules = [found.body for _, found in artifacts(plan) if isinstance(found, Manifest)]
    nodes = [features(name, **A100_SXM) for name in ("a100-1", "a100-2")] + [features("a100-2", **T4)]
    found = run_rules([body for body in rules if body["kind"] == "NodeFeatureRule"], nodes)

    assert [each.labels.get("nvidia.com/device-plugin.config") for each in found] == ["a100", "a100.rollout", None]
