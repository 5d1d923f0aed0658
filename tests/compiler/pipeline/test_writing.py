"""Documents are written into an overlay, and through no link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import writing

FILE = "overlays/dev/retained/a.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with an overlay, and beside it a folder that is no part of it."""
    (tmp_path / "repository/overlays/dev").mkdir(parents=True)
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/a.yaml").write_text("original")
    return tmp_path / "repository"


def victim(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root.parent / "victim").iterdir()}


def test_a_new_file_comes_with_its_folder(root: Path) -> None:
    writing.create(root, FILE, "é\n")

    assert (root / FILE).read_bytes() == "é\n".encode()
    assert (root / FILE).stat().st_mode & 0o111 == 0


@pytest.mark.parametrize("target", ["../../../../victim/a.yaml", "../../../../victim/b.yaml", "gone"])
def test_a_new_file_is_written_over_nothing(root: Path, target: str) -> None:
    (root / FILE).parent.mkdir()
    (root / FILE).symlink_to(target)

    with pytest.raises(GpuplanError, match="is there already"):
        writing.create(root, FILE, "x")

    assert victim(root) == {"a.yaml": "original"}
    assert (root / FILE).is_symlink()


@pytest.mark.parametrize("target", ["../../../victim", "../../../nowhere", "..", "."])
def test_no_link_is_followed_for_a_folder(root: Path, target: str) -> None:
    (root / "overlays/dev/retained").symlink_to(target)

    for write in (writing.create, writing.replace):
        with pytest.raises(GpuplanError, match="`overlays/dev/retained` is a link or a file, not a folder"):
            write(root, FILE, "x")
    with pytest.raises(GpuplanError, match="is a link or a file"):
        writing.remove(root, FILE)

    assert victim(root) == {"a.yaml": "original"}
    assert [path.name for path in (root / "overlays/dev").iterdir()] == ["retained"]


def test_an_overlay_out_of_the_repository_is_not_written_to(root: Path) -> None:
    (root / "overlays/prod").symlink_to("../../victim")

    with pytest.raises(GpuplanError, match="folder `overlays/prod` is a link out of the repository"):
        writing.replace(root, "overlays/prod/a.yaml", "x")

    assert victim(root) == {"a.yaml": "original"}


def test_an_overlay_elsewhere_in_the_repository_is(root: Path) -> None:
    (root / "clusters/prod").mkdir(parents=True)
    (root / "overlays/prod").symlink_to("../clusters/prod")

    writing.replace(root, "overlays/prod/a.yaml", "x")

    assert (root / "clusters/prod/a.yaml").read_text() == "x"


def test_what_is_replaced_may_be_a_link_that_nothing_is_written_through(root: Path) -> None:
    (root / "overlays/dev/a.yaml").symlink_to(root.parent / "victim/a.yaml")

    writing.replace(root, "overlays/dev/a.yaml", "x")

    assert victim(root) == {"a.yaml": "original"}
    assert not (root / "overlays/dev/a.yaml").is_symlink()
    assert os.listdir(root / "overlays/dev") == ["a.yaml"]


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(root: Path) -> None:
    (root / "overlays/dev/a.yaml").mkdir()

    with pytest.raises(GpuplanError, match=r"cannot write `overlays/dev/a.yaml`: is a directory"):
        writing.replace(root, "overlays/dev/a.yaml", "x")

    assert os.listdir(root / "overlays/dev") == ["a.yaml"]


def test_a_link_is_removed_and_not_what_it_leads_to(root: Path) -> None:
    (root / "overlays/dev/a.yaml").symlink_to(root.parent / "victim/a.yaml")

    writing.remove(root, "overlays/dev/a.yaml")
    writing.remove(root, "overlays/dev/a.yaml")

    assert victim(root) == {"a.yaml": "original"}
    assert os.listdir(root / "overlays/dev") == []


def test_several_files_come_with_the_folders_of_bases_and_overlays(root: Path) -> None:
    writing.create_all(root, {"policies/layouts/a.yaml": "a", "overlays/prod/pools/b.yaml": "b"})

    assert (root / "policies/layouts/a.yaml").read_text() == "a"
    assert (root / "overlays/prod/pools/b.yaml").read_text() == "b"


def test_of_several_files_all_are_written_or_none(root: Path) -> None:
    (root / "policies").mkdir()
    (root / "policies/b.yaml").write_text("mine")

    with pytest.raises(GpuplanError, match="is there already"):
        writing.create_all(root, {"policies/a.yaml": "a", "policies/b.yaml": "b", "policies/c.yaml": "c"})

    assert {path.name: path.read_text() for path in (root / "policies").iterdir()} == {"b.yaml": "mine"}


def test_bases_that_are_a_link_out_of_the_repository_are_not_written_to(root: Path) -> None:
    (root / "policies").symlink_to("../victim")

    with pytest.raises(GpuplanError, match="is a link out of the repository"):
        writing.create_all(root, {"policies/c.yaml": "c"})

    assert victim(root) == {"a.yaml": "original"}


@pytest.mark.parametrize("target", [".git/hooks", ".git/hooks/post-checkout"])
def test_nothing_is_written_among_gits_own_files(root: Path, target: str) -> None:
    (root / ".git/hooks").mkdir(parents=True)
    (root / "overlays/dev").rmdir()
    (root / "overlays/dev").symlink_to(f"../{target}")

    with pytest.raises(GpuplanError, match="is a link out of the repository"):
        writing.create_all(root, {"overlays/dev/cluster.yaml": "x"})

    assert [*(root / ".git/hooks").iterdir()] == []
