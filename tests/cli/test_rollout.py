"""`gpuplan rollout`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

import gpuplan
from gpuplan.cli.main import main
from gpuplan.terminal.schemas import schema
from tests.cli.platforms import CLUSTER, POOL, a_platform, write
from tests.cli.runs import run

LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""
TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec:
  quotas:
  - {pool: research, guaranteed: 0, limit: none}
"""
PLANNED = ("rollout", "research", "--to", "small", "--nodes", "nodes.txt")
STEP = "overlays/dev/rollout-research.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform with one pool of two nodes, of which nothing is guaranteed."""
    a_platform(tmp_path)
    write(tmp_path / "policies/layout.yaml", LAYOUT)
    write(tmp_path / "overlays/dev/tenant.yaml", TENANT)
    write(tmp_path / "nodes.txt", "research-1\nresearch-2\n")
    return tmp_path


def test_a_rollout_for_people(root: Path, snapshot: SnapshotAssertion) -> None:
    done = run(*PLANNED, cwd=root)
    assert (done.code, done.err) == (0, "")
    assert done.out == snapshot


def test_a_window_keeps_its_capital_letters_in_a_merge_request(root: Path) -> None:
    window = "schedule: '0 22 * * 0', duration: 4h, timeZone: Europe/Berlin"
    pool = f"kind: Pool\nmetadata: {{name: research}}\nspec:\n  disruption: {{windows: [{{{window}}}]}}\n"
    write(root / "overlays/dev/window.yaml", f"apiVersion: gpuplan.dev/v1\n{pool}")

    assert "Sundays 22:00-02:00 Europe/Berlin" in run(*PLANNED, "--output-format", "markdown", cwd=root).out


def test_a_rollout_for_a_merge_request(root: Path, snapshot: SnapshotAssertion) -> None:
    assert run(*PLANNED, "--output-format", "markdown", cwd=root).out == snapshot


def test_a_rollout_for_programs(root: Path) -> None:
    body = json.loads(run(*PLANNED, "--output-format", "json", cwd=root).out)
    jsonschema.validate(body, schema("rollout"))
    assert [(step["kind"], step["nodes"]) for step in body["steps"]] == [
        ("prepare", []),
        ("move", ["research-1"]),
        ("move", ["research-2"]),
        ("settle", []),
    ]
    assert body["steps"][1]["capacity"] == [
        {"unit": "shared", "before": 48, "during": 24, "after": 24, "guaranteed": 0},
        {"unit": "1g.10gb", "before": 0, "during": 0, "after": 56, "guaranteed": 0},
    ]
    assert next(yaml.safe_load_all(body["steps"][1]["edits"][0]["text"]))["spec"]["rollout"]["nodes"] == ["research-1"]


def test_where_there_is_no_safe_way_the_reason_is_said(root: Path) -> None:
    (root / "overlays/dev/tenant.yaml").unlink()
    done = run(*PLANNED, cwd=root, env={"COLUMNS": "200"})
    assert done.code == 1
    assert done.out == (
        "Pool research of cluster dev: from time-slicing, 3 shares to MIG small (mixed)\n"
        "no safe way: with one node away, 1 moved, pool `research` has 0 `shared`, and 16 are guaranteed\n"
        "  `research` 16\n"
        "instead: lower these guarantees by 16 first, or move them to another pool: in the end the pool has no "
        "`shared`, but `1g.10gb`\n"
        "or all nodes at once, in a window that the teams agree to: write the new `sharing` into the pool, run "
        "`gpuplan retain --write`, and drain the nodes before the sync\n"
    )
    body = json.loads(run(*PLANNED, "--output-format", "json", cwd=root).out)
    jsonschema.validate(body, schema("rollout"))
    assert (body["safe"], body["steps"]) == (False, [])


def test_units_of_one_name_are_refused_by_their_sizes(root: Path) -> None:
    done = run(
        "rollout", "research", "--to", "time-slicing=4", "--nodes", "nodes.txt", cwd=root, env={"COLUMNS": "200"}
    )
    assert done.code == 1
    assert "two things while nodes move, `shared` of 27306 MiB and `shared` of 20480 MiB" in done.out
    body = json.loads(
        run(
            *("rollout", "research", "--to", "time-slicing=4", "--nodes", "nodes.txt", "--output-format", "json"),
            cwd=root,
        ).out
    )
    jsonschema.validate(body, schema("rollout"))


def test_a_step_is_written_and_the_next_one_follows(root: Path) -> None:
    done = run(*PLANNED, "--write", cwd=root)
    assert (done.code, done.err) == (0, f"wrote {STEP}: step 1 of 4\n")
    assert next(yaml.safe_load_all((root / STEP).read_text(encoding="utf-8")))["spec"]["rollout"]["nodes"] == []

    assert run("rollout", "research", "--nodes", "nodes.txt", "--write", cwd=root).code == 0
    assert next(yaml.safe_load_all((root / STEP).read_text(encoding="utf-8")))["spec"]["rollout"]["nodes"] == [
        "research-1"
    ]

    assert run("rollout", "research", "--nodes", "nodes.txt", "--back", "--write", cwd=root).code == 0
    done = run("rollout", "research", "--nodes", "nodes.txt", "--back", "--write", cwd=root)
    assert done.err == f"removed {STEP}: step 4 of 4\n"
    assert not (root / STEP).exists()


def test_a_step_that_is_not_written_is_a_failure_to_scripts(root: Path) -> None:
    for arguments in (["init", "-q"], ["add", "."], [*_WHO, "commit", "-qm", "platform"]):
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)
    assert run(*PLANNED, "--write", cwd=root).code == 0
    text = (root / STEP).read_text(encoding="utf-8")

    again = run("rollout", "research", "--nodes", "nodes.txt", "--write", cwd=root)

    assert again.code == 1
    assert again.err == f"nothing was written: the step before is not committed yet ({STEP})\n"
    assert (root / STEP).read_text(encoding="utf-8") == text


_WHO = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def test_nodes_may_come_from_standard_input(root: Path) -> None:
    arguments = ("-C", str(root), "rollout", "research", "--to", "small", "--nodes", "-")
    assert CliRunner().invoke(main, arguments, input="research-1\nresearch-2\n").exit_code == 0


THEIRS = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: research}
spec:
  disruption:  # we ask first
    approval: manual  # until autumn
"""


def test_a_file_of_the_users_own_is_changed_where_it_says_the_pool(root: Path) -> None:
    place = root / "overlays/dev/tenant.yaml"
    write(place, TENANT + THEIRS)
    rollout = "  rollout:\n    sharing:\n      mig:\n        layout: small\n    nodes: {}\n"

    done = run(*PLANNED, "--write", cwd=root)
    assert (done.code, done.err) == (0, f"changed overlays/dev/tenant.yaml and wrote {STEP}: step 1 of 4\n")
    assert place.read_text(encoding="utf-8") == TENANT + THEIRS + rollout.format("[]")
    assert "kind: Pool" not in (root / STEP).read_text(encoding="utf-8")

    assert run("rollout", "research", "--nodes", "nodes.txt", "--write", cwd=root).code == 0
    assert place.read_text(encoding="utf-8") == TENANT + THEIRS + rollout.format("\n    - research-1").replace(
        "nodes: \n", "nodes:\n"
    )

    for _ in range(2):
        assert run("rollout", "research", "--nodes", "nodes.txt", "--back", "--write", cwd=root).code == 0
    assert place.read_text(encoding="utf-8") == TENANT + THEIRS
    assert not (root / STEP).exists()


def test_what_gpuplan_cannot_change_is_left_to_a_person(root: Path) -> None:
    """The file of the steps says more than they do, so it is nobody's to replace."""
    write(root / STEP, THEIRS)
    done = run(*PLANNED, "--write", cwd=root)
    assert done.code == 2
    assert f"gpuplan cannot change `{STEP}`, in which a person wrote the pool" in done.err
    assert f"change in {STEP}" in run(*PLANNED, cwd=root).out
    assert (root / STEP).read_text(encoding="utf-8") == THEIRS


def test_at_the_target_nothing_is_left_to_do(root: Path) -> None:
    done = run("rollout", "research", "--to", "time-slicing=3", "--nodes", "nodes.txt", "--write", cwd=root)
    assert (done.code, done.out.splitlines()[-1]) == (0, "nothing is left to do")
    assert not (root / STEP).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "small", "--back"), "--to and --back lead to different ends"),
        (("--batch", "2", "--max-unavailable", "2"), "--batch and --max-unavailable both say"),
        (("--max-unavailable", "0"), "use a number of nodes, or a part of them such as 25%"),
        (("--max-unavailable", "101%"), "use a number of nodes, or a part of them such as 25%"),
    ],
)
def test_bad_usage(root: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run("rollout", "research", *arguments, cwd=root)
    assert (done.code, message in done.err) == (2, True)


def test_a_list_that_is_no_text_is_refused(root: Path) -> None:
    (root / "nodes.txt").write_bytes(b"\xff\xfe")
    done = run(*PLANNED, cwd=root)
    assert (done.code, "and 0 are listed" in done.err) == (2, True)


@pytest.mark.parametrize(
    "name", ["research-2   Ready", "Research-2", "research-2/", "research-" + "2" * 5000, "a\ufffdb"]
)
def test_what_is_no_node_is_refused(root: Path, name: str) -> None:
    write(root / "policies/pool.yaml", POOL.replace(', namePattern: "research-[0-9]+"', ""))
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev") + "  nodeLabels: external\n")
    write(root / "nodes.txt", f"research-1\n{name}\n")

    done = run(*PLANNED, "--write", cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "is no name of a node\n  = help: pass what `kubectl get nodes -o json` prints\n" in done.err
    assert len(done.err) < 300


def test_errors_in_the_policies_come_first(root: Path) -> None:
    write(root / "overlays/dev/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))
    done = run(*PLANNED, cwd=root)
    assert (done.code, done.out) == (1, "")
    assert "reserch" in done.err


# --- When nothing is written -------------------------------------------------------------------------------------


def listed(root: Path, key: str) -> str:
    """A file with both nodes as kubectl lists them; the first one names this key of the device plugin."""
    keys = {"research-1": key, "research-2": "research"}
    items = [
        {"kind": "Node", "metadata": {"name": name, "labels": {"nvidia.com/device-plugin.config": value}}}
        for name, value in keys.items()
    ]
    write(root / "nodes.json", json.dumps({"kind": "List", "items": items}))
    return "nodes.json"


def on_the_way_back(root: Path) -> str:
    """All nodes are back, and the key that moved ones named is still there."""
    for arguments in (PLANNED, ("rollout", "research", "--nodes", "nodes.txt")):
        assert run(*arguments, "--write", cwd=root).code == 0
    assert run("rollout", "research", "--nodes", "nodes.txt", "--back", "--write", cwd=root).code == 0
    (pool,) = gpuplan.validate(root).plans[0].pools
    return pool.parts[-1].labels["nvidia.com/device-plugin.config"]


def test_what_nodes_still_name_is_not_dropped(root: Path) -> None:
    key = on_the_way_back(root)
    text = (root / STEP).read_text(encoding="utf-8")
    done = run("rollout", "research", "--nodes", listed(root, key), "--back", "--write", cwd=root)

    assert done.code == 1
    assert done.err == (
        f"nothing was written: `research-1` still has the label `nvidia.com/device-plugin.config: {key}`, whose "
        "meaning would go\n"
    )
    assert (root / STEP).read_text(encoding="utf-8") == text


def test_what_no_node_names_is_dropped(root: Path) -> None:
    on_the_way_back(root)
    done = run("rollout", "research", "--nodes", listed(root, "research"), "--back", "--write", cwd=root)

    assert (done.code, done.err) == (0, f"removed {STEP}: step 4 of 4\n")


def test_a_refusal_with_write_is_a_failure(root: Path) -> None:
    (root / "overlays/dev/tenant.yaml").unlink()
    done = run(*PLANNED, "--write", cwd=root)

    assert done.code == 1
    assert not (root / STEP).exists()


def test_errors_in_the_policies_with_write_are_a_failure(root: Path) -> None:
    write(root / "overlays/dev/tenant.yaml", TENANT.replace("pool: research", "pool: gone"))
    done = run(*PLANNED, "--write", cwd=root)

    assert done.code == 1
    assert not (root / STEP).exists()


def test_nodes_may_be_listed_as_yaml(root: Path) -> None:
    write(root / "nodes.yaml", yaml.safe_dump(json.loads((root / listed(root, "research")).read_text())))
    done = run("rollout", "research", "--to", "small", "--nodes", "nodes.yaml", cwd=root)

    assert done.code == 0
    assert "move research-2 to MIG small" in done.out


# --- The end -----------------------------------------------------------------------------------------------------


def to_its_end(root: Path) -> list[str]:
    """Write all steps as a script would; return what was said of each."""
    told = [run(*PLANNED, "--write", cwd=root).err]
    while (done := run(*NEXT, "--write", cwd=root)).err:
        assert done.code == 0
        told.append(done.err)
    assert (done.code, done.out.splitlines()[-1]) == (0, "nothing is left to do")
    return told


def test_a_rollout_ends_in_the_policy_that_people_read(root: Path) -> None:
    assert to_its_end(root)[-1] == f"changed policies/pool.yaml and removed {STEP}: step 4 of 4\n"
    sharing = "  sharing:\n    timeSlicing: {replicas: 3}\n"
    assert sharing in POOL
    after = (root / "policies/pool.yaml").read_text(encoding="utf-8")
    now = "  sharing:\n    mig:\n      layout: small\n"
    assert after == POOL.replace(sharing, now) + "  names:\n    devicePluginConfig: research.26e351e\n"
    assert not (root / STEP).exists()


def test_where_another_cluster_has_the_pool_it_ends_in_the_overlay(root: Path) -> None:
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("dev", "test"))
    global_options = ("-c", "dev")
    assert run(*PLANNED, *global_options, "--write", cwd=root).code == 0
    while (done := run(*NEXT, *global_options, "--write", cwd=root)).err:
        assert done.code == 0
    assert (root / "policies/pool.yaml").read_text(encoding="utf-8") == POOL
    (pool,) = yaml.safe_load_all((root / "overlays/dev/pools.yaml").read_text(encoding="utf-8"))
    names = {"devicePluginConfig": "research.26e351e"}
    assert pool["spec"] == {"sharing": {"timeSlicing": None, "mig": {"layout": "small"}}, "names": names}
    assert not (root / STEP).exists()

    assert run(*NEXT, "--to", "time-slicing=3", *global_options, "--write", cwd=root).code == 0
    while run(*NEXT, *global_options, "--write", cwd=root).err:
        pass
    assert not [path for path in (root / "overlays/dev").iterdir() if "rollout" in path.name]


def test_a_file_for_pools_gets_another_document(root: Path) -> None:
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("dev", "test"))
    other = "# ours\n" + LAYOUT.replace("small", "other")
    write(root / "overlays/dev/pools.yaml", other)
    for _ in range(4):
        run(*(PLANNED if not (root / STEP).exists() else NEXT), "-c", "dev", "--write", cwd=root)
    text = (root / "overlays/dev/pools.yaml").read_text(encoding="utf-8")
    assert text.startswith(other + "---\n")
    assert [body["kind"] for body in yaml.safe_load_all(text)] == ["MigLayout", "Pool"]


@pytest.mark.parametrize(
    ("key", "state", "code"), [("research", "success", 1), ("", "pending", 1), ("", "failed", 1), ("", "success", 0)]
)
def test_no_step_is_written_before_the_last_one_has_come_to_its_nodes(
    root: Path, key: str, state: str, code: int
) -> None:
    """`mig.config.state` is what mig-manager says of a node."""
    for arguments in (PLANNED, NEXT):
        assert run(*arguments, "--write", cwd=root).code == 0
    moved = gpuplan.validate(root).plans[0].pools[0].parts[-1].labels
    labels = (
        dict(moved) | {"nvidia.com/mig.config.state": state} | ({"nvidia.com/device-plugin.config": key} if key else {})
    )
    nodes = {"research-1": labels, "research-2": {"nvidia.com/device-plugin.config": "research"}}
    items = [{"kind": "Node", "metadata": {"name": name, "labels": of}} for name, of in nodes.items()]
    write(root / "nodes.json", json.dumps({"kind": "List", "items": items}))

    done = run("rollout", "research", "--nodes", "nodes.json", "--write", cwd=root)

    assert done.code == code
    assert ("nothing was written: the step before has not come to the nodes yet: research-1 has" in done.err) == bool(
        code
    )


# --- The number of a step ----------------------------------------------------------------------------------------

NEXT = ("rollout", "research", "--nodes", "nodes.txt")


def test_steps_are_counted_from_the_first_one(root: Path) -> None:
    assert run(*PLANNED, "--write", cwd=root).code == 0
    listed = run(*NEXT, cwd=root).out
    done = run(*NEXT, "--write", cwd=root)

    assert "\nStep 2 of 4: move research-1 to MIG small (mixed)\n" in listed
    assert "\n  shared   2         48" in listed
    assert done.err == f"wrote {STEP}: step 2 of 4\n"
    body = json.loads(run(*NEXT, "--output-format", "json", cwd=root).out)
    jsonschema.validate(body, schema("rollout"))
    assert (body["done"], [step["step"] for step in body["steps"]]) == (2, [1, 2])


def test_steps_of_a_file_without_a_number_are_those_that_are_left(root: Path) -> None:
    assert run(*PLANNED, "--write", cwd=root).code == 0
    numbered = (root / STEP).read_text(encoding="utf-8")
    write(root / STEP, numbered.replace("# Step 1 of 4 of", "# A step of"))

    listed = run(*NEXT, cwd=root).out

    assert "\nStep 1 of the 3 that are left: move research-1 to MIG small (mixed)\n" in listed
    assert json.loads(run(*NEXT, "--output-format", "json", cwd=root).out)["done"] is None


def test_another_rollout_begins_with_step_one(root: Path) -> None:
    (root / "overlays/dev/tenant.yaml").unlink()
    (root / "policies/tenant.yaml").unlink()
    for arguments in (PLANNED, NEXT, NEXT, NEXT):
        assert run(*arguments, "--write", cwd=root).code == 0

    done = run("rollout", "research", "--to", "time-slicing=3", "--nodes", "nodes.txt", "--write", cwd=root)

    assert done.err == f"wrote {STEP}: step 1 of 4\n"


def test_what_goes_with_a_step_is_its_first_instruction(root: Path) -> None:
    page = run(*PLANNED, cwd=root).out

    assert (
        "Step 4 of 4: MIG small (mixed) becomes the pool's own; no node is repartitioned\n"
        "  in the same commit, take out what names a unit that the pool no longer hands out\n"
        "    Tenant research: quota on shared\n"
        "  change in policies/pool.yaml\n"
    ) in page


def test_a_written_step_is_printed_alone_and_without_its_file(root: Path) -> None:
    page = run(*PLANNED, "--write", cwd=root).out

    assert page.startswith("Step 1 of 4: make MIG small (mixed) known; nothing changes on nodes\n  build, commit,")
    assert page.endswith(
        "\nStep 2 of 4: move research-1 to MIG small (mixed)\n\nStep 3 of 4: move research-2 to MIG small (mixed)\n"
        "\nStep 4 of 4: MIG small (mixed) becomes the pool's own; no node is repartitioned\n"
    )
    assert "kind: Pool" not in page


# --- Syncs that nobody starts ------------------------------------------------------------------------------------


def test_what_argo_cd_syncs_by_itself_is_not_synced_by_hand(root: Path) -> None:
    argocd = "  argocd: {repoURL: https://git.example.com/gpu.git, operatorApproval: automatic}\n"
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev") + argocd)

    page = run(*PLANNED, cwd=root).out

    assert "gpu-operator-dev: by itself" in page
    assert "argocd app sync gpu-operator-dev" not in page
    assert (
        "  wait for these syncs, in this order\n"
        "    argocd app get gpu-operator-dev --refresh\n"
        "    argocd app wait gpu-operator-dev --sync --health\n"
    ) in page
    assert "argocd app sync gpu-partitions-dev-research\n" in page
