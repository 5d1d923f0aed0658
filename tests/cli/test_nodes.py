"""`--nodes`: every command reads alike what kubectl lists, as JSON, as YAML, from a file and from standard input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.platforms import a_platform, write
from tests.cli.runs import Run, run
from tests.git import a_repository, commit

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: spare}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "spare-[0-9]+"}
  sharing: {mig: {instances: {3g.40gb: 2}}}
"""
NODES = {
    "apiVersion": "v1",
    "items": [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"gpuplan.dev/pool": pool, "nvidia.com/device-plugin.config": pool}},
        }
        for name, pool in [
            *((f"spare-{number}", "spare") for number in (1, 2)),
            *((f"research-{number}", "research") for number in (1, 2)),
        ]
    ],
    "kind": "List",
}
COMMANDS = {"diff": ("diff",), "validate": ("validate", "--against", "HEAD")}
EACH = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform whose pool has had another pattern since it was committed, which matches the same nodes."""
    root = a_platform(a_repository(tmp_path))
    write(root / "policies/spare.yaml", POOL)
    commit(root)
    write(root / "policies/spare.yaml", POOL.replace("[0-9]+", "[1-9]"))
    write(root / "nodes.json", json.dumps(NODES))
    write(root / "nodes.yaml", yaml.safe_dump(NODES))
    return root


def asked(root: Path, command: str, *options: str, stdin: str | None = None) -> Run:
    return run(*COMMANDS[command], *options, cwd=root, stdin=stdin)


@EACH
def test_without_nodes_a_pattern_is_judged_by_what_it_may_match(root: Path, command: str) -> None:
    done = asked(root, command)

    assert "2 nodes lose the label `nvidia.com/mig.config`: pool `spare` no longer has them" in done.out
    assert done.code == 1


@EACH
@pytest.mark.parametrize("file", ["nodes.json", "nodes.yaml"])
def test_nodes_show_that_none_leaves(root: Path, command: str, file: str) -> None:
    done = asked(root, command, "--nodes", file)

    assert "GPU704" not in done.out
    assert "lose" not in done.out


@EACH
def test_nodes_may_come_by_standard_input(root: Path, command: str) -> None:
    done = asked(root, command, "--nodes", "-", stdin=(root / "nodes.yaml").read_text())

    assert "GPU704" not in done.out


@EACH
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NAME   STATUS\nspare-1   Ready\n", "a table or names alone show no labels"),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "it lists Pod, and no Node"),
        ("apiVersion: v1\nitems:\n- kind: Node\n  metadata: {name: 'spa", "is no YAML"),
        ("\udcff", "a table or names alone show no labels"),
    ],
)
def test_what_is_no_list_of_nodes_is_trouble(root: Path, command: str, text: str, message: str) -> None:
    (root / "wrong").write_bytes(text.encode(errors="surrogateescape"))
    done = asked(root, command, "--nodes", "wrong")

    assert done.code == 2
    assert "`wrong` is no list of nodes: " in done.err
    assert message in done.err
    assert "kubectl get nodes -o json" in done.err


@EACH
def test_nodes_are_of_one_cluster(root: Path, command: str) -> None:
    a_platform(root, "dev", "prod")
    commit(root)
    done = asked(root, command, "--nodes", "nodes.json")

    assert done.code == 2
    assert "nodes are those of one cluster, and 2 are compared" in done.err
    assert asked(root, command, "-c", "dev", "--nodes", "nodes.json").code == 0


def test_nodes_judge_a_step_and_nothing_else(root: Path) -> None:
    done = run("validate", "--nodes", "nodes.json", cwd=root)

    assert done.code == 2
    assert "--nodes is what a step is judged by: add --against." in done.err


def test_one_dump_by_standard_input_may_hold_pods_and_nodes(root: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "spare-1"}}
    dump = json.dumps({"kind": "List", "items": [pod, *NODES["items"]]})
    done = run("diff", "--nodes", "-", "--pods", "-", cwd=root, stdin=dump)

    assert done.err == ""
    assert "lose" not in done.out
    assert run("diff", "--nodes", "-", "--pods", "-", cwd=root, stdin=json.dumps(NODES)).code == 2


@EACH
def test_nodes_may_be_in_several_files_and_folders_beside_all_else(root: Path, command: str) -> None:
    pods = {"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Secret", "data": {"a": "c2VjcmV0"}}]}
    first, *others = NODES["items"]
    write(root / "dump/pods.json", json.dumps(pods))
    write(root / "dump/some.yaml", yaml.safe_dump_all([{"kind": "List", "items": others}, {"mig-configs": {}}]))
    write(root / "one.json", json.dumps(first))

    done = asked(root, command, "--nodes", "dump", "--nodes", "one.json", "--nodes", "nodes.yaml")

    assert "GPU704" not in done.out
    assert "lose" not in done.out
    assert done.code != 2


@EACH
def test_two_files_that_contradict_each_other_are_trouble(root: Path, command: str) -> None:
    write(root / "later.json", json.dumps(NODES).replace("spare", "spare-3", 2).replace("spare-3-1", "spare-1"))

    done = asked(root, command, "--nodes", "nodes.json", "--nodes", "later.json")

    assert (done.code, "`later.json` is no list of nodes: it lists node `spare-1` twice" in done.err) == (2, True)


@EACH
def test_files_without_a_node_are_trouble_by_the_first(root: Path, command: str) -> None:
    for name in "ab":
        write(root / f"{name}.json", '{"kind": "Pod"}')

    done = asked(root, command, "--nodes", "a.json", "--nodes", "b.json")

    assert done.code == 2
    assert "`a.json` is no list of nodes: it lists Pod, and no Node, and 1 other file has none" in done.err
