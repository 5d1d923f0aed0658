"""What `gpuplan pack` reads, and how much of it is planned for."""

from __future__ import annotations

import io
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.features.packing.commands import BASES, MARGIN, OBJECTIVES, PERCENTILE
from gpuplan.features.packing.sizing.answers import Objective
from gpuplan.features.packing.sizing.needs import MARGIN as DEFAULT_MARGIN, PERCENTILE as DEFAULT_PERCENTILE, Basis
from tests.cli.runs import run
from tests.plans import a_cluster
from tests.platforms import pool, tenant

DEMAND = """\
apiVersion: gpuplan.dev/v1
kind: Demand
metadata: {name: q3}
spec:
  needs:
    - {team: team, service: {requestsPerSecond: 10, throughput: tables/bert.csv}}
"""
POLICIES = pool("a", nodes='count: 2, gpusPerNode: 8, namePattern: "a-[0-9]+"') + tenant("team")
METRICS = "DCGM_FI_DEV_FB_USED,DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USE = f"timestamp,namespace,pod,UUID,modelName,{METRICS}\n" + "".join(
    f"{900 * at},team,chat-0,GPU-1,NVIDIA A100-SXM4-80GB,{used},0.05\n"
    for at, used in enumerate([3000, 3000, 3000, 19000])
)
SECRET = "token=hunter2\n"


def test_what_to_ask_prometheus_needs_no_platform(tmp_path: Path) -> None:
    result = run("pack", "--queries", cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "/api/v1/query_range" in result.out
    assert "DCGM_FI_DEV_FB_USED" in result.out


# --- What a demand names ---


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "policies").mkdir(parents=True)
    (root / "policies" / "all.yaml").write_text(POLICIES, encoding="utf-8")
    (root / "overlays" / "test").mkdir(parents=True)
    (root / "overlays" / "test" / "cluster.yaml").write_text(a_cluster("kind: kubernetes"), encoding="utf-8")
    (root / "q3.yaml").write_text(DEMAND, encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "bert.csv").write_text(SECRET, encoding="utf-8")
    return root


@pytest.mark.parametrize("is_folder", [True, False])
def test_no_link_is_followed_to_a_table_that_a_demand_names(root: Path, *, is_folder: bool) -> None:
    """Else a branch of a stranger shows what the runner of CI can read, such as its environment."""
    if is_folder:
        (root / "tables").symlink_to("../outside")
    else:
        (root / "tables").mkdir()
        (root / "tables" / "bert.csv").symlink_to("../../outside/bert.csv")
    done = run("pack", "q3.yaml", cwd=root)
    assert (done.code, "hunter2" in done.out + done.err) == (2, False)
    assert "`tables/bert.csv` is a link, and not followed" in done.err


def test_a_table_without_end_is_too_large(root: Path) -> None:
    (root / "tables").mkdir()
    with (root / "tables" / "bert.csv").open("wb") as stream:
        stream.truncate(2**40)
    done = run("pack", "q3.yaml", cwd=root)
    assert (done.code, "file is larger than 8 MiB" in done.err) == (1, True)


# --- How much is planned for ---


@pytest.mark.parametrize("said", ["-5%", "ten", "1001%", "30 %"])
def test_a_margin_is_a_part(root: Path, said: str) -> None:
    done = run("pack", f"--margin={said}", cwd=root)
    assert done.code == 2
    assert "use a part such as 30% or 0.3, at most 1000%." in done.err


@pytest.mark.parametrize("said", ["1", "10"])
def test_a_whole_number_is_no_margin(root: Path, said: str) -> None:
    done = run("pack", f"--margin={said}", cwd=root)
    assert done.code == 2
    assert f"{said} is ambiguous: type `{said}%` or `{said}00%`." in done.err


def test_who_types_the_option_that_is_gone_learns_what_to_type(root: Path) -> None:
    done = run("pack", "--tolerance", "30%", cwd=root)
    assert done.code == 2
    answer = "write `growth: 30%` or `burst` in a `Demand` document, or type `gpuplan pack --basis limit`"
    assert answer in " ".join(done.err.split())


def test_who_types_the_objective_that_is_gone_learns_what_to_type(root: Path) -> None:
    done = run("pack", "--objective", "accepted", cwd=root)
    words = " ".join(done.err.split())
    assert done.code == 2
    assert "`accepted` is gone; use `gpus`, `changes` or `price`." in words
    assert "write `growth: 30%`" in words


def test_how_much_of_measured_use_is_planned_for(root: Path) -> None:
    nodes = 'count: 1, gpusPerNode: 2, namePattern: "a-[0-9]+"'
    policies = pool("a", "mig: {instances: {1g.10gb: 3, 3g.40gb: 1}}", nodes=nodes) + tenant("team")
    (root / "policies" / "all.yaml").write_text(policies, encoding="utf-8")
    (root / "use.csv").write_text(USE, encoding="utf-8")
    asked: tuple[tuple[str, ...], ...] = ((), ("--percentile", "50"), ("--margin", "300%"))
    granted = [
        json.loads(run("pack", "use.csv", *said, "-o", "json", cwd=root).out)["answers"][0]["quotas"][0]["to"][0][
            "unit"
        ]
        for said in asked
    ]
    assert granted == ["3g.40gb", "1g.10gb", "7g.80gb"]


def test_a_percentile_is_at_most_a_hundred(root: Path) -> None:
    assert run("pack", "--percentile", "101", cwd=root).code == 2


# --- What the platform asks for ---


def test_help_knows_all_that_can_be_asked() -> None:
    assert set(OBJECTIVES) == set(Objective)
    assert set(BASES) == set(Basis)
    assert (PERCENTILE, Fraction(MARGIN.removesuffix("%")) / 100) == (DEFAULT_PERCENTILE, DEFAULT_MARGIN)


@pytest.mark.parametrize(("basis", "pods"), [("guaranteed", 7), ("limit", 9), ("workloads", 5)])
def test_what_of_the_platform_counts(root: Path, basis: str, pods: int) -> None:
    """The workloads of a team that has some, where guarantees may be cut; the other keeps what it is guaranteed."""
    work = """\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: chat}
spec:
  tenant: team
  pool: a
  image: registry.example.com/chat:1
  inference: {replicas: 2, port: 8080}
"""
    nodes = 'count: 2, gpusPerNode: 8, namePattern: "a-[0-9]+"'
    quotas = tenant("team", "pool: a, guaranteed: 4, limit: 6") + tenant("others", "pool: a, guaranteed: 3")
    (root / "policies" / "all.yaml").write_text(pool("a", nodes=nodes) + quotas + work, encoding="utf-8")
    done = run("pack", "--basis", basis, "--may-cut-guarantees", "-o", "json", cwd=root)
    body = json.loads(done.out)
    assert (body["demand"]["basis"], body["demand"]["pods"], body["valid"]) == (basis, pods, True)


# --- What takes a while ---


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("options", "is_told"), [((), True), (("--quiet",), False)])
def test_a_terminal_is_told_what_takes_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], *, is_told: bool
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    (root / "teams.csv").write_text("team,pods,memory\nteam,99,9Gi\n", encoding="utf-8")
    monkeypatch.chdir(root)
    main([*options, "pack", "teams.csv"], standalone_mode=False)
    lines = [line.split("\x1b[K")[-1] for line in screen.getvalue().split("\r")]
    assert ("looking for an answer: as asked ..." in lines) is is_told
    assert not any("..." in line for line in lines[-1:])
