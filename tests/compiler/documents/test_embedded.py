"""Folders that git takes for repositories are found, and nothing that people have on purpose is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuplan.compiler.documents import DiskTree, find_embedded
from gpuplan.compiler.pipeline import build, validate
from tests.cli.platforms import a_platform, write
from tests.git import a_repository, commit, git

WHOLE = ("HEAD", "objects/x", "refs/x")


def put(root: Path, *paths: str) -> None:
    for path in paths:
        write(root / path, "ref: refs/heads/main\n")


def found(root: Path, *folders: str) -> Sequence[str]:
    return [
        item.finding.at.locate().file.path for item in find_embedded(DiskTree(root), folders or ("policies", "out"))
    ]


@pytest.mark.parametrize("folder", ["policies", "policies/a/b", "policies/.hidden/c", "out", "out/dev"])
@pytest.mark.parametrize(
    "names",
    [WHOLE, ("head", "Objects/x", "REFS/x"), ("HEAD", "commondir"), (*WHOLE, "config", "index", "hooks/x", "info/x")],
    ids=["whole", "other-case", "common", "with-more"],
)
def test_a_folder_with_what_git_looks_for_is_found(tmp_path: Path, folder: str, names: Sequence[str]) -> None:
    (tmp_path / "out").mkdir()
    put(tmp_path, *(f"{folder}/{name}" for name in names))

    assert found(tmp_path) == [folder]


@pytest.mark.parametrize(
    "names",
    [
        ("HEAD", "objects/x"),
        ("objects/x", "refs/x"),
        ("HEAD", "refs/x"),
        ("HEADS", "objects/x", "refs/x"),
        ("commondir",),
    ],
)
def test_a_folder_that_lacks_some_of_it_is_a_folder(tmp_path: Path, names: Sequence[str]) -> None:
    put(tmp_path, *(f"policies/a/{name}" for name in names))

    assert found(tmp_path) == []


def test_the_root_is_looked_at_and_what_is_beside_the_folders_is_not(tmp_path: Path) -> None:
    put(tmp_path, *WHOLE, *(f"docs/{name}" for name in WHOLE))
    write(tmp_path / "policies/x", "")

    assert found(tmp_path) == ["."]


def test_git_takes_each_of_them_for_a_repository(tmp_path: Path) -> None:
    """What is found is what git itself says: it takes some, and none that is passed over."""
    top = a_repository(tmp_path / "top")
    for place, names in {"a": WHOLE, "b": ("HEAD", "objects/x"), "c": ("objects/x", "refs/x")}.items():
        put(top, *(f"policies/{place}/{name}" for name in names))

    taken = [
        place
        for place in "abc"
        if git(top / "policies" / place, "rev-parse", "--absolute-git-dir") != os.fspath(top / ".git")
    ]

    assert [f"policies/{place}" for place in taken] == found(top, "policies") == ["policies/a"]


def test_clones_submodules_and_work_trees_are_the_users_own(tmp_path: Path) -> None:
    other = a_repository(tmp_path / "other")
    write(other / "x.txt", "")
    commit(other)
    root = a_platform(a_repository(tmp_path / "platform"))
    commit(root)
    git(root, "worktree", "add", "--quiet", "--detach", "out")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.as_uri(), "policies/shared")
    git(root, "-c", "protocol.file.allow=always", "clone", "--quiet", other.as_uri(), "overlays/cloned")

    assert found(root, "policies", "overlays", "out") == []


def test_it_keeps_a_build_from_being_made(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    assert build(root).tree
    put(root, *(f"out/{name}" for name in WHOLE))

    assert [item.code for item in validate(root).diagnostics if item.is_error] == ["GPU023"]
    assert not build(root).tree


def test_another_output_is_looked_at_too(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    put(root, *(f"rendered/{name}" for name in WHOLE))

    assert build(root).tree
    assert not build(root, out="rendered").tree
