"""`gpuplan pack` at the command line: above all with what is wrong, of which nothing may be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.features.packing import computing
from gpuplan.features.packing.computing import pack
from tests.cli.runs import run

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec: {kubernetes: "1.34", gpuOperator: {install: helm, version: v26.7.0}}
"""
POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: halves}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 1, names: [gpu-1, gpu-2]}
  sharing: {mig: {instances: {3g.40gb: 2}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: turns}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 1, namePattern: "gpu-turns-[0-9]+"}
  sharing: {timeSlicing: {replicas: 3}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: team}
spec:
  namespaces: [team]
  quotas:
    - {pool: halves, guaranteed: 3}
    - {pool: turns, guaranteed: 6}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    overlay = tmp_path / "overlays" / "test"
    overlay.mkdir(parents=True)
    (overlay / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (overlay / "own.yaml").write_text(POLICIES, encoding="utf-8")
    return tmp_path


def policies(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*.yaml")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-c", "tset"), "did you mean `test`?"),
        (("--keep", "halvs"), "did you mean `halves`?"),
        (("--alternative", "99"), "there is no alternative 99"),
        (("--nodes-at-most", "H100-80G=3"), "did you mean `H100-80GB`?"),
        (("--nodes-at-most", "A100-80GB=1", "--keep", "halves"), "`--nodes-at-most A100-80GB=2`"),
        (("--objective", "price"), "no `Prices` document says what nodes cost"),
    ],
)
def test_a_wish_that_cannot_be_is_trouble(root: Path, arguments: tuple[str, ...], words: str) -> None:
    before = policies(root)
    done = run("pack", *arguments, "--write", cwd=root)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert policies(root) == before


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 1, "`teams.csv` is empty"),
        ("team,pods,memory\n", 1, "table of demand has no rows"),
        ("team,pods,memory\nteam,x,9Gi\n", 1, "`pods` should be a whole number"),
        ("a,b\n1,2\n", 1, "`teams.csv` says no demand"),
    ],
)
def test_a_table_that_asks_for_nothing_is_told(root: Path, text: str, code: int, words: str) -> None:
    (root / "teams.csv").write_text(text, encoding="utf-8")
    done = run("pack", "teams.csv", "--write", cwd=root)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_a_demand_too_large_says_how_many_nodes_would_do(root: Path) -> None:
    (root / "teams.csv").write_text("team,pods,memory\nnew,20,70Gi\n", encoding="utf-8")
    before = policies(root)
    done = run("pack", "teams.csv", "--write", cwd=root)
    assert done.code == 1
    assert done.out.startswith("Cluster test: 20 pods find no room\n")
    assert "allow as many nodes as all of it takes: `--nodes-at-most A100-80GB=24`" in done.err
    assert policies(root) == before
    assert run("pack", "teams.csv", "-o", "diff", cwd=root).out == ""
    assert run("pack", "teams.csv", "--nodes-at-most", "A100-80GB=24", cwd=root).code == 0


def test_policies_with_errors_are_told_and_not_packed(root: Path) -> None:
    own = root / "overlays/test/own.yaml"
    own.write_text(POLICIES.replace("3g.40gb: 2", "3g.40gb: 5"), encoding="utf-8")
    done = run("pack", "--write", cwd=root)
    assert (done.code, done.out) == (1, "")
    assert "GPU208" in done.err
    assert done.err.endswith("nothing was written\n")


def test_a_team_that_no_tenant_is_becomes_one_by_a_name_that_it_may_have(root: Path) -> None:
    (root / "teams.csv").write_text("team,pods,memory\nML Team,1,9Gi\n", encoding="utf-8")
    done = run("pack", "teams.csv", cwd=root)
    assert done.code == 0
    assert "  ml-team  new" in done.out


def test_the_same_command_twice_succeeds_and_finds_nothing_to_do(root: Path) -> None:
    (root / "teams.csv").write_text("team,pods,memory\nnew,2,9Gi\n", encoding="utf-8")
    command = ("pack", "teams.csv", "--nodes-at-most", "A100-80GB=9", "--nodes-at-most", "L40S-48GB=100", "--write")
    first, again = run(*command, cwd=root), run(*command, cwd=root)
    assert (first.code, again.code) == (0, 0)
    assert "no pool in question has nodes of `L40S-48GB`, so `--nodes-at-most` limits nothing there" in first.out
    assert "wrote " in first.err
    assert again.err.endswith("nothing to write: the policies say so already\n")


def test_the_answer_is_shown_before_there_are_alternatives(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    shown: list[list[str]] = []
    pack(root, begin=lambda variation: begun.append(variation.value), answered=lambda _: shown.append([*begun]))
    assert shown == [["asked"]]
    assert len(begun) > 1
    monkeypatch.setattr(computing, "ALTERNATIVES_S", 0)
    done = run("pack", cwd=root)
    assert done.code == 0
    assert done.out.endswith("\nthe search for alternatives has stopped after 10 seconds\n")
    assert "Alternatives\n" not in done.out


@pytest.mark.parametrize("more", [("--pool", "halves"), ("--basis", "limit")])
def test_the_same_command_twice_succeeds_for_some_pools_and_for_limits(root: Path, more: tuple[str, ...]) -> None:
    """Units outside of the pools in question count, and a limit does not rise with a guarantee that reaches it."""
    own = root / "overlays/test/own.yaml"
    own.write_text(POLICIES.replace("guaranteed: 3}", "guaranteed: 1, limit: 3}"), encoding="utf-8")
    (root / "demand.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: d}\nspec:\n  needs:\n"
        "    - {team: new, pods: 2, memory: 9Gi}\n    - {team: more, pods: 1, gpus: 1}\n"
        "    - team: answers\n      service: {requestsPerSecond: 20, "
        "throughput: [{size: 1, requestsPerSecond: 10, latency: 1ms}]}\n",
        encoding="utf-8",
    )
    command = ("pack", "demand.yaml", *more, "--nodes-at-most", "A100-80GB=9", "--write")
    runs = [run(*command, cwd=root) for _ in range(2)]
    assert [done.code for done in runs] == [0, 0]
    assert "wrote " in runs[0].err
    assert runs[1].err.endswith("nothing to write: the policies say so already\n")


@pytest.mark.parametrize("number", ["nan", "0", "101"])
def test_a_percentile_is_a_number(root: Path, number: str) -> None:
    assert run("pack", "--percentile", number, cwd=root).code == 2


def test_guarantees_stay_unless_they_may_be_cut(root: Path) -> None:
    (root / "teams.csv").write_text("team,pods,memory\nteam,1,9Gi\n", encoding="utf-8")
    kept, cut = (run("pack", "teams.csv", *more, cwd=root) for more in ((), ("--may-cut-guarantees",)))
    assert "`team` asks for less than its guarantees, which stay; `--may-cut-guarantees` lets them go down" in kept.out
    assert "Guarantees\n" not in kept.out
    assert "3 halves 3g.40gb, 6 turns shared" in cut.out.partition("Guarantees\n")[2]
    assert "which stay" not in cut.out


def test_what_to_ask_prometheus_needs_no_platform(tmp_path: Path) -> None:
    result = run("pack", "--queries", cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "/api/v1/query_range" in result.out
    assert "DCGM_FI_DEV_FB_USED" in result.out
