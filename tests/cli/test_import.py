"""`gpuplan import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.platforms import a_platform
from tests.cli.runs import run

PLANTED = "hunter2-planted"
NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: worker-7
  labels:
    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB
    nvidia.com/gpu.count: "8"
    nvidia.com/mig.config: all-1g.10gb
status:
  allocatable: {nvidia.com/mig-1g.10gb: "56"}
  nodeInfo: {kubeletVersion: v1.33.4}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a dump and nothing else."""
    (tmp_path / "dump.yaml").write_text(NODE)
    return tmp_path


def texts(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_the_commands_need_no_dump_and_write_nothing(tmp_path: Path) -> None:
    done = run("import", "--commands", cwd=tmp_path)

    assert done.code == 0
    assert "\nkubectl get nodes," in done.out
    assert texts(tmp_path) == {}


def test_without_a_dump_the_commands_are_named(tmp_path: Path) -> None:
    done = run("import", cwd=tmp_path)

    assert done.code == 2
    assert "`gpuplan import --commands` says how to make one" in done.err


def test_a_trial_prints_what_would_be_written_and_writes_nothing(root: Path) -> None:
    trial = run("import", "dump.yaml", "-c", "lab", "--dry-run", cwd=root)
    assert (trial.code, texts(root)) == (0, {"dump.yaml": NODE})

    assert run("import", "dump.yaml", "-c", "lab", cwd=root).code == 0
    written = {path: text for path, text in texts(root).items() if path.startswith(("policies/", "overlays/"))}
    assert len(written) == 3
    assert all(f"# {path}\n{text}" in trial.out for path, text in written.items())


def test_what_was_imported_is_right_and_twice_changes_nothing(root: Path) -> None:
    assert run("import", "dump.yaml", "-c", "lab", cwd=root).code == 0
    assert run("validate", "-c", "lab", "--quiet", cwd=root).code == 0
    before = texts(root)

    again = run("import", "dump.yaml", "-c", "lab", cwd=root)

    assert (again.code, texts(root)) == (0, before)
    assert "; nothing to write\n" in again.err


def test_stdin_is_a_dump(tmp_path: Path) -> None:
    done = run("import", "-", "-c", "lab", cwd=tmp_path, stdin=NODE)

    assert done.code == 0
    assert "# From stdin: Node `worker-7`." in next((tmp_path / "overlays/lab/pools").iterdir()).read_text()


def test_policies_that_are_there_stay_and_a_merge_adds_to_them(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    (root / "dump.yaml").write_text(NODE)
    before = texts(root)

    refused = run("import", "dump.yaml", "-c", "dev", cwd=root)
    assert (refused.code, texts(root)) == (2, before)
    assert "say `--merge` to add what is missing" in refused.err

    merged = run("import", "dump.yaml", "-c", "dev", "--merge", cwd=root)
    after = texts(root)
    assert merged.code == 0
    assert before.items() <= after.items()
    assert [path for path in after.keys() - before.keys() if path.startswith("overlays/dev/pools/")]


def test_another_cluster_beside_those_that_are_there_changes_none_of_them(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    (root / "dump.yaml").write_text(NODE)
    before = texts(root)

    assert run("import", "dump.yaml", "-c", "lab", cwd=root).code == 0

    assert before.items() <= texts(root).items()
    assert run("validate", "--quiet", cwd=root).code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is nothing in the dump"),
        ("No resources found in default namespace.\n", "there is nothing in the dump"),
        ("error: You must be logged in to the server (Unauthorized)\n", "`live.yaml` holds no object"),
        ("apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: a}\nspec: {}\n", "it has 1 Pool"),
    ],
)
def test_what_is_no_dump_makes_no_cluster(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "live.yaml").write_text(text)

    done = run("import", "live.yaml", "-c", "lab", cwd=tmp_path)

    assert done.code == 2
    assert said in done.err
    assert texts(tmp_path) == {"live.yaml": text}


@pytest.mark.parametrize(
    "text",
    ["apiVersion: v1\nitems:\n- kind: Node\n", '{"kind": "List", "items": [{"kind": "No', "a: &a [*a, *a]\n--- *b\n"],
)
def test_a_dump_that_is_cut_off_makes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "live.yaml").write_text(text)

    done = run("import", "live.yaml", "-c", "lab", cwd=tmp_path)

    assert done.code == 1
    assert "nothing was made: a part of the dump cannot be read\n" in done.err
    assert texts(tmp_path) == {"live.yaml": text}


def test_nothing_of_a_secret_is_printed_or_written(root: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"b": PLANTED}}}
    secret |= {"stringData": {"password": PLANTED}}
    items = {"apiVersion": "v1", "kind": "SecretList", "items": [secret]}
    (root / "secret.json").write_text(json.dumps(secret, indent=2))
    (root / "secrets.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret, items]}))

    dumps = ("dump.yaml", "secret.json", "secrets.json")
    done = [run("import", *dumps, "-c", "lab", *more, cwd=root) for more in (("--dry-run",), ("-o", "json"), ())]

    assert {item.code for item in done} == {0}
    assert PLANTED not in "".join(item.out + item.err for item in done)
    assert [path for path, text in texts(root).items() if PLANTED in text] == ["secret.json", "secrets.json"]


SECRET = json.dumps(
    {"stringData": {"password": PLANTED}, "metadata": {"name": "a"}, "kind": "Secret", "apiVersion": "v1"}
)
WRONG = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "theirs", "namespace": "research"},
        "spec": {"hard": {"nvidia.com/gpu": "3", "requests.nvidia.com/gpu.shared": "1"}},
    }
)
BESIDE = {
    "in one line of JSON": f'{{"apiVersion": "v1", "kind": "List", "items": [{SECRET}, {WRONG}]}}',
    "in one line of YAML": f"apiVersion: v1\nkind: List\nitems: [{SECRET}, {WRONG}]\n",
    "in a list without a kind": f"- {SECRET}\n- {WRONG}\n",
    "in a document of its own": f"{SECRET}\n---\n{WRONG}\n",
    "in a List of Secrets": json.dumps(
        {"items": [{"stringData": {"a": PLANTED}}], "kind": "SecretList", "apiVersion": "v1"}
    ),
    "in a List that is cut off": f"apiVersion: v1\nitems: [{SECRET}, {WRONG}",
    "without a version": f"{WRONG}\n---\nkind: Secret\nstringData: {{a: {PLANTED}}}\n",
}
COMMANDS = (
    ("import", "dump.yaml", "-c", "lab", "--dry-run"),
    ("drift", "dump.yaml"),
    ("drift", "dump.yaml", "-o", "json"),
    ("check", "dump.yaml"),
    ("check", "dump.yaml", "-o", "json"),
)


@pytest.mark.parametrize("text", BESIDE.values(), ids=BESIDE)
def test_a_secret_is_not_shown_with_what_stands_beside_it(text: str, tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    (root / "dump.yaml").write_text(text)

    done = [run(*command, cwd=root) for command in COMMANDS]

    assert PLANTED not in "".join(item.out + item.err for item in done)
    assert {item.code for item in done} <= {0, 1, 2}
    assert "Traceback" not in "".join(item.err for item in done)


CLASS = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 500
"""


@pytest.mark.parametrize(("value", "code"), [("500", 0), ("600", 1)])
def test_a_field_that_cannot_be_changed_ends_with_1_and_is_in_json_as_data(value: str, code: int, root: Path) -> None:
    (root / "dump.yaml").write_text(NODE + CLASS)
    assert run("import", "dump.yaml", "-c", "lab", cwd=root).code == 0
    policy = root / "overlays/lab/priority-classes/urgent.yaml"
    policy.write_text(policy.read_text().replace("500", value))

    done = run("import", "dump.yaml", "-c", "lab", "--merge", "-o", "json", cwd=root)

    worst, *_ = json.loads(done.out)["first_sync"]["effects"]
    assert done.code == code
    assert worst["effect"] == "stops work"
    assert [(item["object"], item["path"], item["next_sync"]) for item in worst["changes"]] == [
        ("PriorityClass urgent", "value", "fails")
    ] * code
