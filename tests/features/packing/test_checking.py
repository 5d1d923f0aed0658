"""Whether the policies of an answer hold every pod, judged from them alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gpuplan.compiler.pipeline import validate
from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.features.packing import granting
from gpuplan.features.packing.checking import not_held
from gpuplan.features.packing.computing import pack
from gpuplan.features.packing.sizing.choosing import program
from gpuplan.features.packing.sizing.needs import Need, Service, Throughput

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: train}
spec:
  gpu: H100-80GB
  nodes: {count: 2, gpusPerNode: 4, namePattern: "train-[0-9]+"}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: small}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 4, namePattern: "small-[0-9]+"}
  sharing: {mig: {instances: {3g.40gb: 1, 1g.10gb: 3}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: turns}
spec:
  gpu: L4-24GB
  nodes: {count: 1, gpusPerNode: 1, namePattern: "turns-[0-9]+"}
  sharing: {timeSlicing: {replicas: 2}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: team}
spec:
  namespaces: [team]
  quotas:
    - {pool: train, guaranteed: 6}
    - {pool: small, unit: 3g.40gb, guaranteed: 1}
    - {pool: small, unit: 1g.10gb, guaranteed: 2}
    - {pool: turns, guaranteed: 1}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: other}
spec: {namespaces: [other], quotas: [{pool: train, guaranteed: 2}]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "overlays/test").mkdir(parents=True)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/all.yaml").write_text(POLICIES, encoding="utf-8")
    (tmp_path / "overlays/test/cluster.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\nkind: Cluster\nmetadata: {name: test}\n"
        'spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.3.3}}\n',
        encoding="utf-8",
    )
    return tmp_path


@pytest.fixture
def plan(root: Path) -> Plan:
    (plan,) = validate(root).plans
    return plan


def gpus(pods: int, each: int, team: str = "team") -> Need:
    return Need(None, team, f"{pods}x{each}", pods, gpus=each, isolation=Isolation.WHOLE_GPU)


def memory(pods: int, gib: int, **more: object) -> Need:
    return Need(None, "team", f"{pods}x{gib}Gi", pods, memory_mib=gib * 1024, **more)  # type: ignore[arg-type]


def service(rate: float, **more: float) -> Need:
    measured = (Throughput(3, 1, 1, 40, 20), Throughput("1g.10gb", 1, 1, 10, 60), Throughput(1, 1, 4, 99, 60))
    return Need(None, "team", "service", 0, service=Service(rate, more.get("latency_ms"), measured))


HELD = (
    [gpus(1, 4), gpus(1, 2)],
    [gpus(6, 1)],
    [gpus(1, 4), gpus(1, 2), gpus(1, 2, "other")],
    [memory(1, 38)],
    [memory(3, 9)],
    [memory(4, 9, isolation=Isolation.NONE)],
    [memory(1, 9, engines={"dec": 2})],
    [memory(7, 9, compute=Fraction(3, 7))],
    [service(60)],
    [service(40, latency_ms=50)],
)
NOT_HELD = (
    ([gpus(2, 3), gpus(1, 2, "other")], 1),
    ([gpus(7, 1)], 1),
    ([gpus(1, 4), gpus(1, 2), gpus(1, 3, "other")], 1),
    ([memory(8, 38)], 1),
    ([memory(10, 9)], 1),
    ([memory(11, 9, isolation=Isolation.NONE)], 1),
    ([memory(1, 9, models=("L40S-48GB",))], 1),
    ([memory(8, 9, compute=Fraction(3, 7))], 1),
    ([service(61)], 1),
    ([service(1, latency_ms=10)], 1),
)


def test_pods_that_fit_are_held(plan: Plan) -> None:
    assert [needs for needs in HELD if [*not_held(plan, needs, {})]] == []


def test_pods_that_do_not_fit_are_named(plan: Plan) -> None:
    found = [(needs, sum(pods for _, pods in not_held(plan, needs, {}))) for needs, _ in NOT_HELD]
    assert found == list(NOT_HELD)


def test_a_team_is_known_by_the_name_of_its_tenant(plan: Plan) -> None:
    needs = [gpus(1, 1, "Our Team")]
    assert [*not_held(plan, needs, {"Our Team": "team"})] == []
    assert [*not_held(plan, needs, {})] == [(needs[0], 1)]


def test_gpu837_an_answer_that_hands_out_what_is_not_there_is_not_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand = {"teams.csv": b"team,pods,gpus\nmore,1,4\n"}
    assert pack(root, demand, nodes_at_most={"H100-80GB": 9}, alternatives=False).is_valid
    monkeypatch.setattr(granting, "_gangs_of", lambda *_: ())
    packing = pack(root, demand, nodes_at_most={"H100-80GB": 9}, alternatives=False)
    assert [item.code for item in packing.variants[0].findings] == ["GPU837"]
    assert not packing.is_valid


def test_gpu837_an_answer_that_takes_a_guarantee_away_is_not_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand = {"teams.csv": b"team,pods,memory\nteam,9,9Gi\nteam,1,79Gi\n"}
    assert pack(root, demand, nodes_at_most={"A100-80GB": 9}, alternatives=False).is_valid
    monkeypatch.setattr(program, "holds", lambda *_: True)
    packing = pack(root, demand, nodes_at_most={"A100-80GB": 9}, alternatives=False)
    assert {item.code for item in packing.variants[0].findings} == {"GPU837"}
