"""What a build does to the output, and what it leaves alone."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.outtree.comparing import Action, FileChange, Reason, compare
from gpuplan.compiler.outtree.inventory import INVENTORY
from tests.compiler.outtree.building import build, folders, put, read_all

TREE = {"dev/kustomization.yaml": b"resources: []\n", "dev/gpu/config.yaml": b"a: 1\n", "prod/config.yaml": b"b: 2\n"}


def test_first_build_writes_every_file(tmp_path: Path) -> None:
    build(tmp_path / "out", TREE)
    assert read_all(tmp_path / "out") == TREE


@pytest.mark.parametrize(("umask", "file_mode", "folder_mode"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_files_and_folders_alike_follow_the_umask(tmp_path: Path, umask: int, file_mode: int, folder_mode: int) -> None:
    before = os.umask(umask)
    try:
        build(tmp_path / "out", TREE | {"dev/big": bytes(5000)})
        build(tmp_path / "out", TREE | {"dev/big": b"x" * 5000})
    finally:
        os.umask(before)
    out = (tmp_path / "out", *(tmp_path / "out").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in out if path.is_file()} == {file_mode}
    assert {path.stat().st_mode & 0o777 for path in out if path.is_dir()} == {folder_mode}


def test_inventory_holds_a_digest_for_every_file_and_nothing_that_differs_between_runs(tmp_path: Path) -> None:
    build(tmp_path / "a", {"dev/x.yaml": b"a: 1\n"})
    digest = sha256(b"a: 1\n").hexdigest()
    assert json.loads((tmp_path / "a" / INVENTORY).read_bytes()) == {
        "apiVersion": "gpuplan.dev/v1",
        "kind": "Inventory",
        "files": {"dev/x.yaml": f"sha256:{digest}"},
    }


def test_inventory_does_not_depend_on_the_way_that_led_to_it(tmp_path: Path) -> None:
    build(tmp_path / "a", TREE)
    build(tmp_path / "b", {"old/y.yaml": b"", "dev/gpu/config.yaml": b"older"})
    build(tmp_path / "b", dict(reversed(TREE.items())))
    assert (tmp_path / "a" / INVENTORY).read_bytes() == (tmp_path / "b" / INVENTORY).read_bytes()


def test_inventory_is_a_line_for_each_file_so_that_git_can_merge_it(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    lines = (tmp_path / INVENTORY).read_text().splitlines()
    assert [line.split('"')[1] for line in lines if "sha256" in line] == sorted(TREE)


def test_nothing_is_left_beside_the_files_and_the_inventory(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    assert sorted(os.listdir(tmp_path / ".gpuplan")) == [".gitignore", "inventory"]


class TestPolicies:
    """The inventory says what the files were made of."""

    def test_it_is_a_line_for_each_document(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1"}, policies={"dev/Tenant/b": "2", "dev/Pool/a": "1"})
        lines = (tmp_path / INVENTORY).read_text().splitlines()
        assert lines[-5:] == ['  "policies": {', '    "dev/Pool/a": "1",', '    "dev/Tenant/b": "2"', "  }", "}"]

    def test_what_changed_is_new_or_gone_is_told(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1"}, policies={"dev/Pool/a": "1", "dev/Pool/b": "1", "dev/Pool/c": "1"})
        now = {"dev/Pool/a": "1", "dev/Pool/b": "2", "dev/Pool/d": "1"}
        changes = compare(tmp_path, {"dev/x": b"1"}, policies=now)
        assert changes.changed_documents == ("dev/Pool/b", "dev/Pool/c", "dev/Pool/d")
        assert not changes.is_current
        assert not build(tmp_path, {"dev/x": b"1"}, policies=now).is_clean
        assert compare(tmp_path, {"dev/x": b"1"}, policies=now).is_clean

    def test_an_inventory_without_them_is_current_and_gets_them(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1"})
        changes = build(tmp_path, {"dev/x": b"1"}, policies={"dev/Pool/a": "1"})
        assert (changes.is_current, changes.is_clean) == (True, False)
        assert compare(tmp_path, {"dev/x": b"1"}, policies={"dev/Pool/a": "2"}).changed_documents == ("dev/Pool/a",)

    def test_a_build_of_one_cluster_leaves_those_of_the_others(self, tmp_path: Path) -> None:
        tree = {"dev/x": b"1", "prod/x": b"1"}
        build(tmp_path, tree, policies={"dev/Pool/a": "1", "prod/Pool/a": "1"})
        build(tmp_path, {"dev/x": b"1"}, scope=["dev"], policies={"dev/Pool/a": "2"})
        now = {"dev/Pool/a": "2", "prod/Pool/a": "2"}
        assert compare(tmp_path, tree, policies=now).changed_documents == ("prod/Pool/a",)

    def test_nothing_is_claimed_of_a_cluster_of_which_none_are_recorded(self, tmp_path: Path) -> None:
        tree = {"dev/x": b"1", "prod/x": b"1"}
        build(tmp_path, tree)
        build(tmp_path, {"dev/x": b"1"}, scope=["dev"], policies={"dev/Pool/a": "1"})
        now = {"dev/Pool/a": "1", "prod/Pool/a": "1", "new/Pool/a": "1", "new/Cluster/new": "1"}
        assert compare(tmp_path, tree, policies=now).changed_documents == ("new/Cluster/new",)


def test_unchanged_files_are_not_touched(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    before = {file: file.stat() for file in tmp_path.rglob("*") if file.is_file()}
    changes = build(tmp_path, TREE | {"dev/gpu/config.yaml": b"a: 2\n"})
    touched = {file for file, stat in before.items() if (stat.st_mtime_ns, stat.st_ino) != _identity(file)}
    assert touched == {tmp_path / "dev/gpu/config.yaml", tmp_path / INVENTORY}
    assert changes.changes == (FileChange("dev/gpu/config.yaml", Action.UPDATE, Reason.CHANGED),)


def _identity(file: Path) -> tuple[int, int]:
    return file.stat().st_mtime_ns, file.stat().st_ino


def test_nothing_at_all_is_written_when_nothing_changed(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    before = {file: _identity(file) for file in tmp_path.rglob("*") if file.is_file()}
    changes = build(tmp_path, TREE)
    assert changes.is_clean
    assert {file: _identity(file) for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_file_that_is_no_longer_part_goes_with_the_folders_that_it_leaves_empty(tmp_path: Path) -> None:
    build(tmp_path, {"dev/namespaces/a/x.yaml": b"1", "dev/y.yaml": b"2"})
    changes = build(tmp_path, {"dev/y.yaml": b"2"})
    assert changes.changes == (FileChange("dev/namespaces/a/x.yaml", Action.DELETE, Reason.UNWANTED),)
    assert read_all(tmp_path) == {"dev/y.yaml": b"2"}
    assert folders(tmp_path) == {"dev"}


def test_files_of_others_stay_and_so_do_their_folders(tmp_path: Path) -> None:
    build(tmp_path, {"dev/a/x.yaml": b"1"})
    put(tmp_path, "dev/a/notes.txt", "mine")
    put(tmp_path, "README.md", "mine")
    (tmp_path / "dev/empty").mkdir()
    build(tmp_path, {})
    assert read_all(tmp_path) == {"dev/a/notes.txt": b"mine", "README.md": b"mine"}
    assert folders(tmp_path) == {"dev", "dev/a", "dev/empty"}


def test_a_file_that_was_deleted_by_hand_comes_back(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    (tmp_path / "prod/config.yaml").unlink()
    changes = build(tmp_path, TREE)
    assert changes.changes == (FileChange("prod/config.yaml", Action.CREATE, Reason.MISSING),)
    assert read_all(tmp_path) == TREE


def test_an_equal_file_that_gpuplan_did_not_write_is_adopted(tmp_path: Path) -> None:
    put(tmp_path, "dev/x.yaml", b"a: 1\n")
    build(tmp_path, {"dev/x.yaml": b"a: 1\n"})
    build(tmp_path, {})
    assert read_all(tmp_path) == {}


def test_a_lost_inventory_is_written_anew_when_all_files_are_as_desired(tmp_path: Path) -> None:
    build(tmp_path, TREE)
    text = (tmp_path / INVENTORY).read_bytes()
    (tmp_path / INVENTORY).unlink()
    assert not compare(tmp_path, TREE).is_clean
    build(tmp_path, TREE)
    assert (tmp_path / INVENTORY).read_bytes() == text


def test_comparing_writes_nothing(tmp_path: Path) -> None:
    changes = compare(tmp_path / "out", TREE)
    assert [change.path for change in changes.changes] == sorted(TREE)
    assert not (tmp_path / "out").exists()


def test_a_file_of_ours_makes_room_for_a_folder_and_a_folder_for_a_file(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x": b"1", "dev/y/z": b"2"})
    build(tmp_path, {"dev/x/z": b"3", "dev/y": b"4"})
    assert read_all(tmp_path) == {"dev/x/z": b"3", "dev/y": b"4"}


def test_files_of_any_size_are_written_whole(tmp_path: Path) -> None:
    tree = {f"f{size}": b"x" * size for size in (0, 1, 4095, 4096, 4097, 3_000_000)}
    build(tmp_path, tree)
    assert read_all(tmp_path) == tree


@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "."])
def test_the_root_is_no_link_to_another_place(tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / target)

    with pytest.raises(GpuplanError):
        build(tmp_path / "out", TREE)

    assert read_all(tmp_path / "elsewhere") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "out"]


class TestScope:
    """A build of some clusters neither changes nor forgets the others."""

    def test_only_files_of_the_scope_are_pruned(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1", "dev/y": b"2", "prod/x": b"3"})
        build(tmp_path, {"dev/x": b"1"}, scope=["dev"])
        assert read_all(tmp_path) == {"dev/x": b"1", "prod/x": b"3"}

    def test_files_out_of_scope_are_still_ours_afterwards(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1", "prod/x": b"3"})
        build(tmp_path, {"dev/x": b"2"}, scope=["dev"])
        build(tmp_path, {"dev/x": b"2"})
        assert read_all(tmp_path) == {"dev/x": b"2"}

    def test_a_folder_with_the_scope_as_the_start_of_its_name_is_another_one(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1", "dev-2/x": b"2"})
        build(tmp_path, {}, scope=["dev"])
        assert read_all(tmp_path) == {"dev-2/x": b"2"}

    def test_hand_edits_out_of_scope_do_not_matter(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/x": b"1", "prod/x": b"3"})
        put(tmp_path, "prod/x", "edited")
        assert not build(tmp_path, {"dev/x": b"2"}, scope=["dev"]).conflicts
        assert compare(tmp_path, {"dev/x": b"2", "prod/x": b"3"}).conflicts == (
            FileChange("prod/x", Action.CONFLICT, Reason.EDITED),
        )

    def test_files_out_of_the_scope_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="prod/x is outside"):
            compare(tmp_path, {"prod/x": b"1"}, scope=["dev"])
