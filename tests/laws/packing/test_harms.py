"""Answers of `pack` that once did harm: one platform for each harm, and its nearest demand that never did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gpuplan.features.packing.computing import Packing, pack, write_packing
from gpuplan.features.packing.model import Numbers
from tests.laws.packing.oracle import Moves, guaranteed, moves, needs_of, read, unserved

H100S: Final = {
    "gpu": "H100-80GB",
    "nodes": {"count": 2, "gpusPerNode": 8, "namePattern": "h100-[0-9]+"},
    "sharing": {"exclusive": {}},
}
HALVES: Final = {
    "gpu": "A100-80GB",
    "nodes": {"count": 2, "gpusPerNode": 4, "namePattern": "half-[0-9]+"},
    "sharing": {"mig": {"instances": {"3g.40gb": 2}}},
}


def _platform(root: Path, pool: dict[str, Any], **tenants: tuple[str, int]) -> None:
    """Write a cluster with a pool, and tenants with the unit and the number of it that each is guaranteed."""
    spec = {
        "kubernetes": "1.34",
        "gpuOperator": {"install": "helm", "version": "v26.7.0"},
        "nodeLabels": "nfd",
        "scheduler": {"kind": "kueue"},
    }
    documents = [("Cluster", "lab", spec), ("Pool", "all", pool)]
    for tenant, (unit, number) in tenants.items():
        quota = {"pool": "all", "unit": unit, "guaranteed": number}
        documents.append(("Tenant", tenant, {"namespaces": [tenant], "quotas": [quota], "members": ["ada"]}))
    folder = root / "overlays" / "lab"
    folder.mkdir(parents=True)
    (folder / "all.yaml").write_text(yaml.safe_dump_all([_document(*each) for each in documents]), encoding="utf-8")


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _demand(*needs: dict[str, Any]) -> dict[str, bytes]:
    named = [{"name": f"w{number}", **need} for number, need in enumerate(needs)]
    return {"demand.yaml": yaml.safe_dump(_document("Demand", "next", {"needs": named})).encode()}


def _written(root: Path, demand: dict[str, bytes], **options: Any) -> Numbers:
    packing = pack(root, demand, alternatives=False, **options)
    write_packing(packing, root)
    assert packing.chosen is not None
    return packing.chosen.numbers


def _unmet(packing: Packing) -> dict[str, int]:
    assert packing.chosen is not None
    return {need.team: pods for need, pods in packing.chosen.answer.unmet}


# --- Pods with several GPUs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pods", "gpus"), [(8, 1), (2, 4), (1, 8)])
def test_gpus_of_one_pod_are_granted_on_one_node(pods: int, gpus: int, tmp_path: Path) -> None:
    """One GPU is another team's, and two are cut for small pods: they fit beside the large pods on one node alone."""
    _platform(tmp_path, H100S, editors=("gpu", 1))
    demand = _demand({"team": "trainers", "pods": pods, "gpus": gpus}, {"team": "checks", "pods": 8, "memory": "9Gi"})
    _written(tmp_path, demand, nodes_at_most={"H100-80GB": 12})
    needs = needs_of(yaml.safe_load(demand["demand.yaml"]))
    assert unserved(read(tmp_path, "lab"), needs) == 0


# --- Strategy `single` -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["mixed", "single"])
def test_a_second_run_finds_nothing_better(strategy: str, tmp_path: Path) -> None:
    """Fourteen halves and one whole GPU fit on one node, however nodes are cut today."""
    nodes = {"count": 2, "gpusPerNode": 8, "namePattern": "h200-[0-9]+"}
    sharing = {"mig": {"instances": {"1g.18gb": 7}, "strategy": strategy}}
    _platform(tmp_path, {"gpu": "H200-141GB", "nodes": nodes, "sharing": sharing})
    demand = _demand({"team": "models", "pods": 1, "memory": "100Gi"}, {"team": "models", "pods": 14, "memory": "60Gi"})
    assert _written(tmp_path, demand).gpus == 8
    again = pack(tmp_path, demand, alternatives=False)
    assert again.is_valid
    assert again.chosen is not None
    assert again.chosen.files == {}


# --- Nodes that are disturbed ------------------------------------------------------------------------------------


def _moves(numbers: Numbers) -> Moves:
    return Moves(numbers.recut_nodes, numbers.removed_nodes, numbers.new_nodes)


def test_a_node_that_is_yet_to_come_is_new_and_not_cut_again(tmp_path: Path) -> None:
    _platform(tmp_path, HALVES, search=("3g.40gb", 16))
    before = read(tmp_path, "lab")
    numbers = _written(
        tmp_path, _demand({"team": "speech", "pods": 4, "memory": "60Gi"}), nodes_at_most={"A100-80GB": 3}
    )
    assert _moves(numbers) == moves(before, read(tmp_path, "lab")) == Moves(recut=0, removed=0, new=1)


def test_a_node_that_is_not_needed_is_taken_away_and_not_cut_again(tmp_path: Path) -> None:
    _platform(tmp_path, HALVES, search=("3g.40gb", 4))
    before = read(tmp_path, "lab")
    numbers = _written(tmp_path, {})
    assert _moves(numbers) == moves(before, read(tmp_path, "lab")) == Moves(recut=0, removed=1, new=0)


def test_a_node_that_serves_others_is_cut_again(tmp_path: Path) -> None:
    _platform(tmp_path, HALVES, search=("3g.40gb", 8))
    before = read(tmp_path, "lab")
    numbers = _written(tmp_path, _demand({"team": "speech", "pods": 4, "memory": "60Gi"}))
    assert _moves(numbers) == moves(before, read(tmp_path, "lab")) == Moves(recut=1, removed=0, new=0)


# --- Guarantees --------------------------------------------------------------------------------------------------


def _measured(team: str, gpus: int) -> dict[str, bytes]:
    """Return an answer of Prometheus: so many pods, each with half the memory of a GPU of its own."""
    series = [
        {
            "metric": {
                "__name__": "DCGM_FI_DEV_FB_USED",
                "exported_namespace": team,
                "exported_pod": f"train-{number}",
                "UUID": f"GPU-{number}",
                "modelName": "NVIDIA H100 80GB HBM3",
            },
            "values": [[900 * at, "60000"] for at in range(4)],
        }
        for number in range(gpus)
    ]
    return {"use.json": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}).encode()}


def test_what_was_not_used_stays_guaranteed(tmp_path: Path) -> None:
    _platform(tmp_path, H100S, trainers=("gpu", 12))
    promised = guaranteed(read(tmp_path, "lab"))
    assert _written(tmp_path, _measured("trainers", 3)).gpus == 16
    assert unserved(read(tmp_path, "lab"), promised) == 0


def test_guarantees_are_cut_to_what_was_used_if_that_is_asked_for(tmp_path: Path) -> None:
    _platform(tmp_path, H100S, trainers=("gpu", 12))
    assert _written(tmp_path, _measured("trainers", 3), may_cut_guarantees=True).gpus == 8
    assert sum(read(tmp_path, "lab").guarantees.values()) == 3


@pytest.mark.parametrize(("pods", "unmet"), [(2, {}), (6, {"arrivals": 4})])
def test_who_comes_new_gets_what_others_are_not_guaranteed(pods: int, unmet: dict[str, int], tmp_path: Path) -> None:
    _platform(tmp_path, HALVES, search=("3g.40gb", 14))
    demand = _demand({"team": "arrivals", "pods": pods, "memory": "30Gi"})
    assert _unmet(pack(tmp_path, demand, alternatives=False)) == unmet


# --- The same command again --------------------------------------------------------------------------------------


def test_a_limit_for_a_model_that_no_answer_needed_is_no_trouble_later(tmp_path: Path) -> None:
    _platform(tmp_path, HALVES, search=("3g.40gb", 4))
    l40s = {
        "gpu": "L40S-48GB",
        "nodes": {"count": 1, "gpusPerNode": 4, "namePattern": "l40s-[0-9]+"},
        "sharing": {"exclusive": {}},
    }
    more = yaml.safe_dump(_document("Pool", "spare", l40s))
    (tmp_path / "overlays" / "lab" / "more.yaml").write_text(more, encoding="utf-8")
    limit = {"L40S-48GB": 1}
    assert _written(tmp_path, {}, nodes_at_most=limit).gpus == 4
    assert [*read(tmp_path, "lab").pools] == ["all"]
    assert pack(tmp_path, {}, nodes_at_most=limit, alternatives=False).is_valid
    assert pack(tmp_path, {}, nodes_at_most={}, alternatives=False).is_valid
