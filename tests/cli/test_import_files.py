"""`gpuplan import` reads packed files, and names what of a folder it does not read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.runs import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "4"}},
    "status": {"allocatable": {"nvidia.com/gpu": "4"}, "nodeInfo": {"kubeletVersion": "v1.34.1"}},
}
LIST = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]}).encode()


@pytest.mark.parametrize("name", ["cluster.json.gz", "nodes.yaml.gz", "nodes.yml.gz"])
def test_a_packed_file_of_a_folder_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / name).write_bytes(gzip.compress(LIST))

    done = run("import", "dump", "-c", "lab", "--dry-run", cwd=tmp_path)

    assert done.code == 0
    assert "gpu: T4-16GB" in done.out
    assert f"From dump/{name}: Node `a`." in done.out


def test_a_packed_file_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "backup").write_bytes(gzip.compress(LIST))
    assert "gpu: T4-16GB" in run("import", "backup", "-c", "lab", "--dry-run", cwd=tmp_path).out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b" " * 2**26), "`a.json.gz` grows to more than"),
        (gzip.compress(LIST)[:-12], "`a.json.gz` cannot be unpacked"),
        (b"\x1f\x8b\x08damaged", "`a.json.gz` cannot be unpacked"),
    ],
    ids=["a bomb", "cut off", "damaged"],
)
def test_a_packed_file_that_is_no_list_is_trouble(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(content)

    done = run("import", "a.json.gz", "-c", "lab", cwd=tmp_path)

    assert done.code == 2
    assert message in done.err


def test_files_that_are_passed_over_are_named(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "nodes.json").write_bytes(LIST)
    (tmp_path / "dump" / "pods.txt").write_text("NAME  READY\n")
    (tmp_path / "dump" / ".hidden").write_text("")

    done = run("import", "dump", "-c", "lab", "--dry-run", "-o", "concise", cwd=tmp_path)

    assert done.code == 0
    assert "note[GPU818] `dump/pods.txt` of the folder: passed over" in done.out + done.err
    assert "hidden" not in done.out + done.err
