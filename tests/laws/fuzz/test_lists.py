"""Whatever is passed for a list of pods or of nodes gives an answer or trouble, at once, and never a traceback."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.node_list import read_nodes
from gpuplan.features.changes.comparing import compare
from gpuplan.features.changes.pods import read_pods
from gpuplan.features.changes.retaining import retain
from gpuplan.features.changes.rollouts import Wish, propose
from gpuplan.features.changes.views.diff import shown_diff
from gpuplan.features.changes.views.rollout import shown_rollout
from gpuplan.terminal import lists
from gpuplan.terminal.text import Theme
from tests.cli.platforms import CLUSTER, POOL, TENANT, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run, scrub

TEXTS = int(os.environ.get("GPUPLAN_TEST_FUZZ", "12"))
"""How many texts to try for each seed; raise it to search longer."""
FORMATS = ("table", "markdown", "json")
LAYOUT = """\
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


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    scrub(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform whose pool does not say which nodes it has, and is partitioned otherwise than in `old`."""
    for root, layout in ((tmp_path / "old", "small"), (tmp_path, "large")):
        a_platform(root)
        pool = POOL.replace(', namePattern: "research-[0-9]+"', "")
        write(root / "policies/pool.yaml", pool.replace("timeSlicing: {replicas: 3}", f"mig: {{layout: {layout}}}"))
        write(root / "policies/tenant.yaml", TENANT[: TENANT.index("  quotas")] + "  quotas: []\n")
        write(root / "policies/layout.yaml", LAYOUT)
        write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev") + "  nodeLabels: external\n")
    return tmp_path


# --- Texts -------------------------------------------------------------------------------------------------------

POD = {
    "kind": "Pod",
    "metadata": {"name": "notebook-0", "namespace": "research", "labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {
        "nodeName": "research-1",
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "2"}, "requests": {}}}],
        "initContainers": [{"name": "init", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "1k"}}}],
        "resourceClaims": [{"name": "gpu"}],
    },
    "status": {"phase": "Running"},
}
NAMESPACE = {"kind": "Namespace", "metadata": {"name": "research", "labels": {"gpuplan.dev/tenant": "research"}}}
PODS = {"kind": "List", "items": [POD, NAMESPACE, {**POD, "metadata": {"name": "b", "namespace": "research"}}]}
NODES = {
    "kind": "List",
    "items": [
        {"kind": "Node", "metadata": {"name": f"research-{number}", "labels": {"gpuplan.dev/pool": "research"}}}
        for number in (1, 2)
    ],
}
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**300, 1.5, 1e308, float("inf"), float("nan"), "", "0", "-1", "9" * 5000, "9" * 4000 + "k"),
    *("\ud800", "a\x00b", "\x1b[2Jx", "\u202eabc", "research-" + "1" * 5000, "research-01", "x" * 100_000, "\u0661k"),
    *("yes", "~", "a: b", "- a", "{{ x }}", "`", "<img>", "../../x", "/x", "a/b", "a\nb", "0x10", "1e3"),
    *([], {}, [[]], [None], {"": None}, [["a", "b"]], [[1, 2, 3]], {"nvidia.com/mig-1g.10gb": {}}, "\ufeff"),
)


def texts(body: Any, chance: random.Random) -> Iterator[bytes]:
    """The list with one or two values that nobody expects, or with bytes of it changed."""
    while True:
        changed = copy.deepcopy(body)
        for _ in range(chance.randrange(1, 3)):
            put(changed, chance)
        raw = json.dumps(changed).encode()
        if chance.random() < 0.2:
            place = chance.randrange(len(raw))
            raw = (
                raw[:place] + bytes(chance.choices(b'{}[]",:0\\\xff\xc3 e-', k=3)) + raw[place + chance.randrange(4) :]
            )
        yield raw


def put(body: Any, chance: random.Random) -> None:
    """Put a value somewhere into it, deep or not."""
    while True:
        keys = list(body) if isinstance(body, dict) else range(len(body))
        key = chance.choice(list(keys))
        if not isinstance(body[key], dict | list) or not body[key] or chance.random() < 0.15:
            body[key] = chance.choice(VALUES)
            return
        if isinstance(body, dict) and chance.random() < 0.05:
            body[chance.choice([value for value in VALUES if isinstance(value, str)])] = body.pop(key)
            return
        body = body[key]


WHOLE = (
    *(b"", b"null", b"[]", b"{}", b"0", b'"x"', b"nonsense", b"{", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b"\x80"),
    *(b"[" * 100_000, b'{"items": ' * 50_000, b'{"items": ' + b"[" * 100_000, b"9" * 5000, b'{"items": 1e999}'),
    b'{"items": [' + b"9" * 5000 + b"]}",
    *(b"a" * 1_000_000, b"\n" * 100_000, b"research-1\nresearch-" + b"2" * 5000, b"research-1\nresearch-\xc2\xb2"),
)


# --- Pods --------------------------------------------------------------------------------------------------------


def diff_with(root: Path, raw: bytes) -> None:
    with suppress(GpuplanError):
        pods = read_pods(raw.decode("utf-8-sig", errors="replace"), "pods.json")
        diff = compare(root, against=str(root / "old"), pods=pods)
        for name in FORMATS:
            shown_diff(diff, name, Theme()).encode(errors="backslashreplace")


@pytest.mark.parametrize("seed", range(5))
def test_any_list_of_pods_is_answered(root: Path, seed: int) -> None:
    generated = texts(PODS, random.Random(seed))
    for _ in range(TEXTS):
        diff_with(root, next(generated))


@pytest.mark.parametrize("raw", WHOLE, ids=lambda raw: repr(raw[:20]))
def test_what_is_no_list_of_pods_is_trouble(raw: bytes) -> None:
    with pytest.raises(GpuplanError, match=r"`pods.json` is no list of pods: ") as trouble:
        read_pods(raw.decode("utf-8-sig", errors="replace"), "pods.json")

    assert len(trouble.value.message) < 300


# --- Nodes -------------------------------------------------------------------------------------------------------


def roll_out_with(root: Path, raw: bytes) -> None:
    with suppress(GpuplanError, UnicodeDecodeError):  # the latter is told before
        _, proposal = propose(root, (), Wish("research", "small", listed={"": raw.decode("utf-8-sig")}))
        assert proposal is not None
        for name in FORMATS:
            shown_rollout(proposal, name, Theme()).encode(errors="backslashreplace")
        for edit in chain(*proposal.edits):
            edit.text.encode()


def judge_with(root: Path, raw: bytes, before: str) -> None:
    """A step and what it retains, by a list of nodes that has this text before it."""
    with suppress(GpuplanError):
        nodes = read_nodes(before + raw.decode("utf-8-sig", errors="replace"), "nodes")
        diff = compare(root, against=str(root / "old"), nodes=nodes)
        for name in FORMATS:
            shown_diff(diff, name, Theme()).encode(errors="backslashreplace")
        retain(root, (), str(root / "old"), nodes)


@pytest.mark.parametrize("seed", range(5))
def test_any_list_of_nodes_is_answered(root: Path, seed: int) -> None:
    generated = texts(NODES, random.Random(seed))
    for _ in range(TEXTS):
        roll_out_with(root, raw := next(generated))
        judge_with(root, raw, "")
        judge_with(root, raw, "---\n")  # what is JSON is YAML, too


@pytest.mark.parametrize("raw", WHOLE, ids=lambda raw: repr(raw[:20]))
def test_whatever_is_no_list_of_nodes_is_answered(root: Path, raw: bytes) -> None:
    roll_out_with(root, raw)


# --- Where they come from ----------------------------------------------------------------------------------------


def passed(root: Path, command: str, file: str) -> Run:
    if command == "diff":
        return run("diff", "--against", "./old", "--pods", file, cwd=root)
    return run("rollout", "research", "--to", "small", "--nodes", file, cwd=root)


@pytest.mark.parametrize("command", ["diff", "rollout"])
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("/dev/zero", "`/dev/zero` holds a zero byte, so it is no UTF-8 text"),
        ("/dev/urandom", "`/dev/urandom` holds a zero byte, so it is no UTF-8 text"),
        ("/dev/null", ""),
        (".", "/cluster.yaml` is no list of "),
        ("gone", "`gone`: no such file or directory"),
    ],
)
def test_what_never_ends_is_not_read_to_its_end(root: Path, command: str, file: str, message: str) -> None:
    done = passed(root, command, file)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "bug in gpuplan" not in done.err


@pytest.mark.parametrize("command", ["diff", "rollout"])
def test_a_text_without_end_is_trouble(root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "LARGEST", 3 * 2**20)
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        done = passed(root, command, f"/dev/fd/{endless.stdout.fileno()}")
        endless.kill()

    assert done.code == 2
    assert "is larger than any list: more than 3,145,728 bytes" in done.err


@pytest.mark.parametrize("command", ["diff", "rollout"])
def test_a_pipe_of_the_shell_is_read(root: Path, command: str) -> None:
    write(root / "list.json", json.dumps(PODS if command == "diff" else NODES))
    arguments = {"diff": "diff --against ./old --pods", "rollout": "rollout research --to small --nodes"}[command]

    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m gpuplan.cli {arguments} <(sleep 0.1; cat list.json)"],
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == (1 if command == "diff" else 0), done.stderr
    assert ("notebook-0" if command == "diff" else "research-1") in done.stdout
