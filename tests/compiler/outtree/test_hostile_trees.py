"""Paths, links and inventories that would lead a build astray are trouble, and nothing is written through them."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.outtree.comparing import compare
from gpuplan.compiler.outtree.inventory import INVENTORY
from tests.compiler.outtree.building import build, put, read_all


def trouble(action: Callable[..., object], *arguments: Any, **options: Any) -> GpuplanError:
    with pytest.raises(GpuplanError) as caught:
        action(*arguments, **options)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "dev/../../x",
        "dev/./x",
        "dev//x",
        "dev/",
        "",
        ".",
        ".gpuplan/inventory",
        "dev/.hidden",
        "dev\\x",
        "C:x",
        "dev/x\n",
        "dev/\0",
        "dev/x.",
        "dev/größe",
    ],
)
def test_a_path_that_is_not_plainly_inside_is_refused(tmp_path: Path, path: str) -> None:
    error = trouble(build, tmp_path / "out", {path: b"1"})
    assert error.message == f"`{path}` is not a path that gpuplan writes"
    assert not (tmp_path / "out").exists() or read_all(tmp_path / "out") == {}


def test_a_path_of_more_folders_than_any_build_makes_is_refused(tmp_path: Path) -> None:
    error = trouble(build, tmp_path / "out", {"/".join("d" * 1_000): b"1"})
    assert error.message.startswith("`d/d/d/d/")
    assert error.message.endswith("...` (1,999 characters) is not a path that gpuplan writes")


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ("dev/x.yaml", "dev/X.yaml", ("dev/X.yaml", "dev/x.yaml")),
        ("dev/x.yaml", "Dev/y.yaml", ("Dev", "dev")),
        ("dev/a/b", "DEV/a", ("DEV", "dev")),
    ],
)
def test_paths_that_differ_by_case_alone_are_refused(tmp_path: Path, one: str, other: str, named: Any) -> None:
    error = trouble(compare, tmp_path, {one: b"1", other: b"2"})
    assert error.message == f"`{named[0]}` and `{named[1]}` are one file where case does not count"


def test_a_path_that_is_a_file_and_a_folder_is_refused(tmp_path: Path) -> None:
    assert (
        trouble(compare, tmp_path, {"dev": b"1", "dev/x": b"2"}).message == "`dev` would have to be a file and a folder"
    )


def test_case_counts_against_the_files_of_other_scopes_too(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x": b"1"})
    assert "`DEV` and `dev`" in trouble(compare, tmp_path, {"DEV/x": b"1"}, scope=["DEV"]).message


class TestLinks:
    def test_a_linked_folder_is_not_written_through(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").mkdir()
        (tmp_path / "out/dev").symlink_to(tmp_path / "elsewhere")
        error = trouble(build, tmp_path / "out", {"dev/x": b"1"})
        assert error.message.startswith(f"`{tmp_path}/out/dev` is a symbolic link")
        assert os.listdir(tmp_path / "elsewhere") == []

    def test_a_link_inside_of_the_output_is_not_followed_either(self, tmp_path: Path) -> None:
        build(tmp_path, {"prod/x": b"1"})
        (tmp_path / "dev").symlink_to("prod")
        assert "is a symbolic link" in trouble(build, tmp_path, {"prod/x": b"1", "dev/x": b"2"}).message
        assert (tmp_path / "prod/x").read_bytes() == b"1"

    def test_a_linked_file_is_neither_read_nor_replaced(self, tmp_path: Path) -> None:
        put(tmp_path, "secret", "s")
        build(tmp_path / "out", {"dev/y": b"1"})
        (tmp_path / "out/dev/x").symlink_to(tmp_path / "secret")
        assert "is a symbolic link" in trouble(build, tmp_path / "out", {"dev/x": b"2"}, force=True).message
        assert (tmp_path / "secret").read_text() == "s"

    def test_a_file_of_ours_that_became_a_link_is_not_deleted_through_it(self, tmp_path: Path) -> None:
        build(tmp_path / "out", {"dev/x": b"1"})
        (tmp_path / "out/dev").rename(tmp_path / "moved")
        (tmp_path / "out/dev").symlink_to(tmp_path / "moved")
        assert "is a symbolic link" in trouble(build, tmp_path / "out", {}, force=True).message
        assert (tmp_path / "moved/x").read_bytes() == b"1"

    def test_a_dangling_link_is_trouble(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/y": b"1"})
        (tmp_path / "dev/x").symlink_to("nowhere")
        assert "is a symbolic link" in trouble(build, tmp_path, {"dev/x": b"2"}).message

    @pytest.mark.parametrize("name", [".gpuplan", ".gpuplan/inventory", ".gpuplan/.gitignore"])
    def test_the_state_is_not_a_link(self, tmp_path: Path, name: str) -> None:
        put(tmp_path, "target", "t")
        link = tmp_path / "out" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(tmp_path if name == ".gpuplan" else tmp_path / "target")
        trouble(build, tmp_path / "out", {"dev/x": b"1"})
        assert read_all(tmp_path).keys() == {"target"} | ({f"out/{name}"} if name != ".gpuplan" else set())
        assert (tmp_path / "target").read_text() == "t"


class TestThingsInTheWay:
    def test_a_folder_where_a_file_belongs(self, tmp_path: Path) -> None:
        (tmp_path / "dev/x.yaml").mkdir(parents=True)
        assert "x.yaml` is not a regular file" in trouble(build, tmp_path, {"dev/x.yaml": b"1"}, force=True).message

    def test_a_file_where_a_folder_belongs(self, tmp_path: Path) -> None:
        put(tmp_path, "dev", "theirs")
        assert "dev` is not a folder" in trouble(build, tmp_path, {"dev/x.yaml": b"1"}, force=True).message
        assert read_all(tmp_path) == {"dev": b"theirs"}

    def test_a_file_of_others_in_a_folder_that_is_to_become_a_file(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/a/x": b"1"})
        put(tmp_path, "dev/a/theirs", "t")
        assert "dev/a`: file exists" in trouble(build, tmp_path, {"dev/a": b"2"}).message
        (tmp_path / "dev/a/theirs").unlink()
        build(tmp_path, {"dev/a": b"2"})
        assert read_all(tmp_path) == {"dev/a": b"2"}

    def test_a_pipe_does_not_make_us_wait(self, tmp_path: Path) -> None:
        build(tmp_path, {"dev/y": b"1"})
        os.mkfifo(tmp_path / "dev/x")
        assert "is not a regular file" in trouble(build, tmp_path, {"dev/x": b"1"}).message

    def test_the_root_is_a_file(self, tmp_path: Path) -> None:
        put(tmp_path, "out", "theirs")
        assert "out`: file exists" in trouble(build, tmp_path / "out", {"dev/x": b"1"}).message
        assert "out` is not a folder" in trouble(compare, tmp_path / "out", {"dev/x": b"1"}).message


class TestInventory:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"files": []}',
            '{"files": {"a": 1}}',
            '{"files": {"a": "\\ud800"}}',
            '{"files": {"a": "\\", \\"b\\": \\""}}',
            '{"files": {}, "replaced": 1}',
            '{"files": {}, "replaced": {"a": "b"}}',
            '<<<<<<< HEAD\n{"files": {}}',
            "[" * 100_000,
            "\xff",
        ],
    )
    def test_that_is_corrupt_is_trouble(self, tmp_path: Path, text: str) -> None:
        put(tmp_path, INVENTORY, text.encode("latin-1"))
        put(tmp_path, "dev/x", "theirs")
        assert INVENTORY in trouble(build, tmp_path, {"dev/x": b"1"}, force=True).message
        assert read_all(tmp_path) == {"dev/x": b"theirs"}

    @pytest.mark.parametrize(
        "path", ["../victim", "/etc/passwd", "dev/../../victim", ".gpuplan/inventory", ".git/config"]
    )
    @pytest.mark.parametrize("section", ["files", "replaced"])
    def test_with_a_path_that_gpuplan_never_writes_deletes_nothing(
        self, tmp_path: Path, path: str, section: str
    ) -> None:
        put(tmp_path, "victim", "v")
        files, replaced = ({path: "sha256:0"}, {}) if section == "files" else ({}, {path: list[str]()})
        sections = {"files": files, "replaced": replaced}
        put(tmp_path / "out", INVENTORY, json.dumps(sections))
        error = trouble(build, tmp_path / "out", {}, force=True)
        assert path in error.message
        assert (tmp_path / "victim").read_text() == "v"

    def test_with_digests_that_are_none_makes_files_look_edited(self, tmp_path: Path) -> None:
        put(tmp_path, INVENTORY, '{"files": {"dev/x": "nonsense"}}')
        put(tmp_path, "dev/x", "theirs")
        assert len(compare(tmp_path, {"dev/x": b"1"}).conflicts) == 1


def test_a_link_that_is_called_as_what_a_killed_build_leaves_is_removed_and_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "target", "t")
    for name in (".gpuplan/lock", ".gpuplan/new"):
        put(tmp_path / "out", name, "")
        (tmp_path / "out" / name).unlink()
        (tmp_path / "out" / name).symlink_to(tmp_path / "target")
    build(tmp_path / "out", {"dev/x": b"1"})
    assert (tmp_path / "target").read_text() == "t"
    assert read_all(tmp_path / "out") == {"dev/x": b"1"}


class TestMounts:
    """Files are renamed into their place, and no rename leads into another file system."""

    @pytest.fixture
    def mounted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        build(tmp_path, {"dev/x": b"1", "prod/x": b"1"})
        lstat = os.lstat

        def elsewhere(path: str) -> os.stat_result:
            found = lstat(path)
            if not path.endswith("/prod"):
                return found
            return os.stat_result((found.st_mode, found.st_ino, found.st_dev + 1, *found[3:]))

        monkeypatch.setattr("gpuplan.compiler.outtree.comparing.os.lstat", elsewhere)
        return tmp_path

    def test_one_inside_is_named_before_anything_is_written(self, mounted: Path) -> None:
        error = trouble(build, mounted, {"dev/x": b"2", "prod/x": b"2"})
        assert error.message == f"`{mounted}/prod` is mounted from elsewhere, and gpuplan cannot rename files into it"
        assert read_all(mounted) == {"dev/x": b"1", "prod/x": b"1"}

    def test_one_in_which_nothing_changes_does_not_matter(self, mounted: Path) -> None:
        build(mounted, {"dev/x": b"2", "prod/x": b"1"})
        assert read_all(mounted) == {"dev/x": b"2", "prod/x": b"1"}

    def test_one_of_the_same_file_system_is_named_when_it_is_met(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build(tmp_path, {"dev/x": b"1"})
        replace = os.replace

        def refuse(source: str, target: str) -> None:
            if target.endswith("/dev/x"):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, target)
            replace(source, target)

        monkeypatch.setattr("gpuplan.compiler.outtree.writing.os.replace", refuse)
        assert trouble(build, tmp_path, {"dev/x": b"2"}).message.startswith(f"`{tmp_path}/dev` is mounted from")
        assert not (tmp_path / ".gpuplan/new").exists()


class TestPermissions:
    """As an ordinary user, whom they stop."""

    @pytest.fixture
    def root(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            is_root = os.geteuid() == 0
            if is_root:
                os.chown(folder, 65534, -1)
                os.seteuid(65534)
            try:
                yield Path(folder)
            finally:
                if is_root:
                    os.seteuid(0)
                else:
                    (Path(folder) / "dev").chmod(0o755)

    def test_a_read_only_folder_is_named(self, root: Path) -> None:
        build(root, {"dev/x": b"1"})
        (root / "dev").chmod(0o555)
        error = trouble(build, root, {"dev/x": b"1", "dev/y": b"2"})
        assert error.message == f"cannot write `{root}/dev/y`: permission denied"
        assert error.hint == "give yourself write access, then run build again"

    def test_a_file_that_cannot_be_read_is_named(self, root: Path) -> None:
        build(root, {"dev/x": b"1"})
        (root / "dev/x").chmod(0)
        assert trouble(build, root, {"dev/x": b"2"}).message == f"cannot read `{root}/dev/x`: permission denied"

    def test_a_root_that_cannot_be_made_is_named(self, root: Path) -> None:
        (root / "dev").mkdir(mode=0o555)
        assert f"cannot write `{root}/dev/out`" in trouble(build, root / "dev/out", {"dev/x": b"1"}).message

    def test_a_build_with_nothing_to_do_needs_no_right_to_write(self, root: Path) -> None:
        build(root / "out", {"dev/x": b"1"})
        folders = (root, root / "out", root / "out/.gpuplan")
        for folder in folders:
            folder.chmod(0o555)
        changes = build(root / "out", {"dev/x": b"1"})
        assert changes.is_clean
        for folder in folders:
            folder.chmod(0o755)

    def test_comparing_needs_no_right_to_write(self, root: Path) -> None:
        build(root, {"dev/x": b"1"})
        (root / "dev").chmod(0o555)
        (root / ".gpuplan").chmod(0o555)
        assert compare(root, {"dev/x": b"1"}).is_clean
        (root / ".gpuplan").chmod(0o755)
