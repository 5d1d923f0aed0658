"""`gpuplan diff`, in Git repositories as people have them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.features.changes.commands import CLASSES
from gpuplan.terminal.schemas import schema
from tests.cli.platforms import CLUSTER, POOL, PRIORITY, TENANT, a_platform, write
from tests.cli.runs import REPOSITORY, run, spawn
from tests.git import a_repository, commit, git
from tests.terminal.test_plan import strictly

MORE_SHARES = POOL.replace("replicas: 3", "replicas: 4")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform of one cluster, all committed."""
    root = a_platform(a_repository(tmp_path / "platform"))
    commit(root)
    return root


def first_line(text: str) -> str:
    return text.split("\n", 1)[0]


# --- What does not differ ----------------------------------------------------------------------------------------


def test_nothing_differs_from_the_last_commit(root: Path) -> None:
    done = run("diff", cwd=root)

    head = git(root, "rev-parse", "HEAD")[:12]
    assert (done.code, done.err) == (0, "")
    assert done.out == f"none: nothing that is applied differs\nfrom `HEAD` ({head}) to the working tree\n"


def test_a_renamed_file_changes_nothing(root: Path) -> None:
    git(root, "mv", "policies/pool.yaml", "policies/a-better-name.yaml")

    assert run("diff", cwd=root).code == 0
    commit(root)
    assert run("diff", "HEAD^..HEAD", cwd=root).code == 0


def test_documents_in_another_order_change_nothing(root: Path) -> None:
    for name in ("pool", "tenant", "priority"):
        (root / f"policies/{name}.yaml").unlink()
    write(root / "policies/all.yaml", "---\n".join((TENANT, PRIORITY, POOL)))
    commit(root)
    write(root / "policies/all.yaml", "---\n".join((POOL, PRIORITY, TENANT)))

    assert first_line(run("diff", cwd=root).out) == "none: nothing that is applied differs"
    assert run("diff", "HEAD^..HEAD", cwd=root).code == 0


def test_another_format_changes_nothing(root: Path) -> None:
    flow = '{kind: PriorityClass, metadata: {"name": research}, spec: {preempts: false, value: 100}'
    write(root / "policies/priority.yaml", f"# a remark\n\n{flow},\n apiVersion: gpuplan.dev/v1}}\n")

    assert run("diff", cwd=root).code == 0


# --- What differs ------------------------------------------------------------------------------------------------


def test_a_change_is_told_with_what_comes_of_it(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)

    done = run("diff", cwd=root, env={"COLUMNS": "200"})

    assert done.code == 1
    assert first_line(done.out) == "plugin-restart: 2 changes in 1 cluster, 2 nodes touched, none to drain"
    assert (
        "  plugin-restart  Pool `research`: GPUs are shared otherwise:"
        " from time-slicing with 3 shares to time-slicing with 4 shares  policies/pool.yaml:9\n" in done.out
    )
    assert "      nodes   2, matching `research-[0-9]+`\n      units   `shared` of `research`: 48 to 64\n" in done.out
    assert "      undo    reverting the commit undoes it\n" in done.out


def test_two_revisions_are_compared_without_the_files(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)
    commit(root)
    write(root / "policies/pool.yaml", "broken: [")

    done = run("diff", "HEAD^..HEAD", cwd=root)

    assert (done.code, done.err) == (1, "")
    assert "  HEAD:policies/pool.yaml:9\n" in done.out


@pytest.mark.parametrize("against", ["HEAD", "../old"])
def test_a_change_is_shown_in_the_layer_that_makes_it(root: Path, against: str) -> None:
    patch = POOL[: POOL.index("  gpu:")] + "  nodes: {count: 3}\n  nodeLabels: {rack: r1}\n"
    write(root / "overlays/dev/pool.yaml", patch)
    commit(root)
    shutil.copytree(root, root.parent / "old")
    write(root / "policies/pool.yaml", MORE_SHARES)

    base = json.loads(run("diff", "--against", against, "--output-format", "json", cwd=root).out)
    write(root / "policies/pool.yaml", POOL)
    write(root / "overlays/dev/pool.yaml", patch.replace("r1", "r2"))
    overlay = json.loads(run("diff", "--against", against, "--output-format", "json", cwd=root).out)

    assert _locations(base) == {("later", "policies/pool.yaml", 9, "spec.sharing.timeSlicing.replicas")}
    assert _locations(overlay) == {("later", "overlays/dev/pool.yaml", 7, "spec.nodeLabels.rack")}


def _locations(diff: Any) -> set[tuple[object, ...]]:
    return {tuple(change["location"].values()) for cluster in diff["clusters"] for change in cluster["changes"]}


def test_what_is_removed_is_shown_where_it_was(root: Path) -> None:
    (root / "policies/tenant.yaml").unlink()

    done = run("diff", cwd=root)

    assert first_line(done.out).startswith("destructive: ")
    assert "  destructive  Tenant `research`: " in done.out
    assert "  HEAD:policies/tenant.yaml:4\n" in done.out


def test_three_dots_leave_out_what_came_to_the_other_branch(root: Path) -> None:
    git(root, "checkout", "--quiet", "-b", "mine")
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))
    commit(root)
    git(root, "checkout", "--quiet", "main")
    write(root / "policies/pool.yaml", MORE_SHARES)
    commit(root)

    assert "Pool `research`" not in run("diff", "main...mine", cwd=root).out
    assert "Pool `research`" in run("diff", "main..mine", cwd=root).out


def test_the_platform_may_be_below_the_repository(tmp_path: Path) -> None:
    top = a_repository(tmp_path)
    a_platform(top / "infra/gpu")
    commit(top)
    (top / "infra/gpu/policies/tenant.yaml").unlink()

    done = run("-C", "infra/gpu", "diff", cwd=top)

    assert "  HEAD:infra/gpu/policies/tenant.yaml:4\n" in done.out


def test_a_cluster_that_comes_or_goes_can_be_chosen(root: Path) -> None:
    write(root / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))

    come = run("diff", "-c", "prod", cwd=root)
    commit(root)
    shutil.rmtree(root / "overlays/prod")
    gone = run("diff", "-c", "prod", cwd=root)

    assert (come.code, gone.code) == (1, 1)
    assert "Cluster prod\n" in come.out
    assert first_line(gone.out).startswith("destructive: 1 change in 1 cluster")


def test_it_is_a_process_that_leaves_the_repository_alone(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)
    index = (root / ".git/index").read_bytes()

    assert spawn("diff", cwd=root).code == 1

    assert (root / ".git/index").read_bytes() == index
    assert git(root, "status", "--porcelain") == "M policies/pool.yaml"
    assert sorted(path.name for path in root.iterdir()) == [".git", "overlays", "policies"]


# --- What it is compared with ------------------------------------------------------------------------------------


def test_the_files_can_be_compared_with_any_revision(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)
    commit(root)

    assert run("diff", cwd=root).code == 0
    assert run("diff", "--against", "HEAD^", cwd=root).code == 1


def test_or_with_a_platform_in_a_folder(root: Path, tmp_path: Path) -> None:
    a_platform(tmp_path / "old")
    (root / "policies/tenant.yaml").unlink()

    done = run("diff", "--against", "../old", cwd=root)

    assert "from `../old` to the working tree\n" in done.out
    assert "  ../old/policies/tenant.yaml:4\n" in done.out


def test_or_with_what_was_built(root: Path) -> None:
    run("build", "-q", cwd=root)
    assert run("diff", "--against", "./out", cwd=root).code == 0
    write(root / "policies/priority.yaml", PRIORITY.replace("100", "200"))

    done = run("diff", "--against", "out", cwd=root)

    assert done.code == 1
    assert "compared object by object" in done.out
    assert "  recreate  PriorityClass.scheduling.k8s.io research is changed in scheduling/\n" in done.out


def test_a_folder_needs_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    root = a_platform(tmp_path / "new")
    a_platform(tmp_path / "old")

    assert run("diff", "--against", "../old", cwd=root).code == 0
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert run("diff", "--against", "../old", cwd=root).code == 0


def test_what_is_both_a_folder_and_a_revision_has_to_be_said_clearly(root: Path) -> None:
    git(root, "branch", "old")
    a_platform(root / "old")

    done = run("diff", "--against", "old", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: `old` is both a revision and a folder\n"
        "  = help: write `./old` for the folder, `old^0` for the revision\n"
    )
    assert run("diff", "--against", "./old", cwd=root).code == 0
    assert run("diff", "--against", "old^0", cwd=root).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "./gone"), "folder `./gone` does not exist"),
        (("--against", "policies"), "folder `policies` is neither a platform nor what `gpuplan build` wrote"),
        (("--against", "mian"), "there is no revision `mian` here"),
        (("--against", "-h"), "there is no revision `-h` here"),
        (("main",), "`main` is no range of revisions"),
        (("origin/main",), "type `gpuplan diff --against main`, or `gpuplan diff main..HEAD`"),
        (("feature",), "there is no revision `feature` here"),
        (("mian..HEAD",), "there is no revision `mian` here"),
        (("-c", "prod"), "no cluster `prod`: neither side has overlays/prod/"),
        (("--against", "main", "main..HEAD"), "names both sides"),
        (("--fail-on", "none"), "is not one of"),
        (("--output-format", "svg"), "'svg' is not one of table, name, markdown, json, yaml."),
        (("--pods", "gone.json"), "`gone.json`: no such file or directory"),
    ],
)
def test_trouble_is_told(root: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run("diff", *arguments, cwd=root)

    assert (done.code, done.out) == (2, "")
    assert message in done.err


# --- A platform that comes or goes -------------------------------------------------------------------------------


def test_the_first_platform_is_all_new(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "platform")
    write(root / "README", "")
    commit(root)
    a_platform(root)
    commit(root)

    done = run("diff", "HEAD^1..HEAD", cwd=root)

    assert (done.code, done.err) == (1, "")
    assert "Cluster `dev`: cluster is added" in done.out
    assert done.out.splitlines()[2].endswith(" has none of these clusters below `overlays/`")
    assert run("validate", "--against", "HEAD^1", cwd=root).code == 0


def test_a_platform_that_goes_is_all_removed(root: Path) -> None:
    shutil.rmtree(root / "overlays")

    done = run("diff", cwd=root)

    assert (done.code, done.err) == (1, "")
    assert first_line(done.out).startswith("destructive: 1 change in 1 cluster")
    assert done.out.splitlines()[2] == "all of it goes: the working tree has none of these clusters below `overlays/`"


def test_no_platform_on_either_side_is_trouble(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "platform")
    write(root / "README", "")
    commit(root)

    done = run("diff", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: no cluster found: neither side has a folder below `overlays/`\n")


# --- Money -------------------------------------------------------------------------------------------------------

PRICES = """\
apiVersion: gpuplan.dev/v1
kind: Prices
metadata: {name: list}
spec: {currency: EUR, gpus: {A100-80GB: {perGpuHour: 2}}}
"""


def test_another_price_alone_disturbs_nothing_and_costs_more(root: Path) -> None:
    write(root / "policies/prices.yaml", PRICES)
    commit(root)
    write(root / "policies/prices.yaml", PRICES.replace("perGpuHour: 2", "perGpuHour: 2.25"))

    done = run("diff", cwd=root)

    assert done.code == 0
    assert first_line(done.out) == "none: nothing that is applied differs, +2,920.00 EUR a month"
    assert "  costs   +2,920.00, from 23,360.00 to 26,280.00 EUR a month\n" in done.out
    assert "          tenant `research`: +973.33, from 7,786.67 to 8,760.00\n" in done.out


def test_of_policies_with_errors_nobody_says_what_they_cost(root: Path) -> None:
    write(root / "policies/prices.yaml", PRICES)
    commit(root)
    write(root / "policies/prices.yaml", PRICES.replace("perGpuHour: 2", "perGpuHour: 2.25"))
    write(root / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))

    assert "EUR" not in run("diff", cwd=root).out


def test_prices_that_cannot_be_read_are_no_change(root: Path) -> None:
    write(root / "policies/prices.yaml", PRICES)
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev") + "  monitoring: {}\n")
    commit(root)
    write(root / "policies/prices.yaml", PRICES.replace("perGpuHour: 2", "perGpuHour: two"))

    done = run("diff", cwd=root)

    assert (done.code, first_line(done.out)) == (1, "none: nothing differs in what has no errors")


# --- Errors in the policies --------------------------------------------------------------------------------------


def test_errors_of_the_later_side_are_told_beside_what_can_be_compared(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)
    write(root / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))

    done = run("diff", cwd=root)

    assert done.code == 1
    assert "Pool `research`: GPUs are shared otherwise" in done.out
    assert "Tenant" not in done.out
    assert done.err.startswith("\nerrors in the working tree:\n\nerror[GPU101]: unknown Pool `reserch`\n")
    assert "--> policies/tenant.yaml:10:12\n" in done.err


def test_a_file_that_cannot_be_read_is_no_change(root: Path) -> None:
    write(root / "policies/pool.yaml", f"{POOL}\na: [\n")

    done = run("diff", cwd=root)

    assert done.code == 1
    assert first_line(done.out) == "none: nothing differs in what has no errors"
    assert done.out.endswith("\nparts with errors are not compared\n")
    assert "error[GPU0" in done.err


def test_a_pool_with_an_error_changes_nothing_of_the_operator(root: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES.replace("gpu: ", "gpu: no-such-"))

    done = run("diff", cwd=root)

    assert done.code == 1
    assert first_line(done.out) == "none: nothing differs in what has no errors"


def test_errors_of_the_earlier_side_are_shown_where_they_were(root: Path) -> None:
    write(root / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))
    commit(root)
    write(root / "policies/tenant.yaml", TENANT)

    done = run("diff", cwd=root)

    assert done.code == 0
    assert f"errors in `HEAD` ({git(root, 'rev-parse', 'HEAD')[:12]}):\n" in done.err
    assert "--> HEAD:policies/tenant.yaml:10:12\n" in done.err


def test_an_earlier_side_without_any_plan_is_trouble(root: Path) -> None:
    write(root / "overlays/dev/cluster.yaml", "kind: [\n")
    commit(root)
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev"))

    done = run("diff", cwd=root)

    assert done.code == 2
    assert "not compared, because of errors: cluster `dev`\n" in done.out
    assert "--> HEAD:overlays/dev/cluster.yaml:" in done.err


def test_a_cluster_that_cannot_be_planned_is_not_taken_for_a_removed_one(root: Path) -> None:
    write(root / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))
    commit(root)
    write(root / "overlays/prod/cluster.yaml", "kind: [\n")

    done = run("diff", cwd=root)

    assert done.code == 1
    assert first_line(done.out) == "none: nothing differs in what has no errors"
    assert "not compared, because of errors: cluster `prod`\n" in done.out


# --- For CI ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fail_on", "code"), [("metadata", 1), ("plugin-restart", 1), ("admission", 0), ("repartition", 0)]
)
def test_only_what_is_bad_enough_fails(root: Path, fail_on: str, code: int) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)

    assert run("diff", "--fail-on", fail_on, cwd=root).code == code


def test_the_classes_are_those_that_there_are() -> None:
    assert ("none", *CLASSES) == tuple(item.value for item in ChangeClass)


def test_every_format_can_go_to_a_file(root: Path, tmp_path: Path) -> None:
    write(root / "policies/pool.yaml", MORE_SHARES)
    report, page = tmp_path / "diff.json", tmp_path / "diff.md"

    done = run("diff", "--output-format", f"json={report}", "--output-format", f"markdown={page}", cwd=root)

    body = json.loads(report.read_text())
    jsonschema.validate(body, strictly(schema("diff")))
    assert body["class"] == "plugin-restart"
    told = "2 changes in 1 cluster, 2 nodes touched, none to drain"
    assert page.read_text().startswith(f"## gpuplan: plugin-restart\n\n{told}\n")
    assert first_line(done.out) == "plugin-restart: 2 changes in 1 cluster, 2 nodes touched, none to drain"


# --- Pods --------------------------------------------------------------------------------------------------------

MIG = POOL.replace("timeSlicing: {replicas: 3}", "mig: {layout: LAYOUT}")
LAYOUTS = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: large}
spec: {gpu: A100-80GB, instances: {3g.40gb: 2}}
"""


def a_pod(name: str, node: str, *, resource: str = "nvidia.com/mig-1g.10gb", phase: str = "Running") -> object:
    container = {"name": "main", "resources": {"limits": {resource: "2"}, "requests": {resource: "2"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


@pytest.fixture
def partitioned(root: Path) -> Path:
    """A platform whose GPUs are to be partitioned otherwise."""
    write(root / "policies/layouts.yaml", LAYOUTS)
    write(root / "policies/pool.yaml", MIG.replace("LAYOUT", "small"))
    write(
        root / "policies/tenant.yaml",
        TENANT.replace("  - {pool: research, guaranteed: 16}\n", "").replace("quotas:", "quotas: []"),
    )
    commit(root)
    write(root / "policies/pool.yaml", MIG.replace("LAYOUT", "large"))
    return root


def test_the_pods_that_hold_what_goes_are_named(partitioned: Path, tmp_path: Path) -> None:
    pods = [
        a_pod("notebook-0", "research-1"),
        a_pod("elsewhere", "storage-1"),
        a_pod("ended", "research-1", phase="Succeeded"),
        a_pod("no-gpu", "research-1", resource="cpu"),
    ]
    write(tmp_path / "pods.json", json.dumps({"kind": "List", "items": pods}))

    done = run("diff", "--pods", str(tmp_path / "pods.json"), cwd=partitioned)

    assert ", 2 nodes to drain, 1 pod disturbed\n" in done.out
    assert (
        "      pods    1\n"
        "              `research/notebook-0` of tenant `research` on `research-1` holds 2 `1g.10gb`\n" in done.out
    )


def test_pods_can_come_from_a_pipe(partitioned: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuplan.cli", "diff", "--pods", "-"],
        cwd=partitioned,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)},
        input=json.dumps({"items": [a_pod("notebook-0", "research-2")]}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "`research/notebook-0`" in done.stdout


def test_pods_are_of_one_cluster(root: Path, tmp_path: Path) -> None:
    write(root / "overlays/prod/cluster.yaml", CLUSTER.replace("NAME", "prod"))
    write(tmp_path / "pods.json", '{"items": []}')

    done = run("diff", "--pods", str(tmp_path / "pods.json"), cwd=root)

    assert done.code == 2
    assert (
        "pods are those of one cluster, and 2 are compared\n  = help: choose with `--cluster` among `dev` and `prod`"
        in done.err
    )
    assert run("diff", "-c", "dev", "--pods", str(tmp_path / "pods.json"), cwd=root).code == 0
