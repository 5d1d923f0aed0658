"""A commit may hold anything, since whoever pushes it makes it; to read it writes nothing and reads nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.platforms import TENANT, a_platform, write
from tests.cli.runs import Run, run
from tests.git import TreeEntry, a_commit, a_repository, a_tree, an_object, commit, entries_of, git

FILE, FOLDER, LINK, SUBMODULE = b"100644", b"40000", b"120000", b"160000"
COMMANDS = {
    "diff": ("diff", "main...evil"),
    "diff-against": ("diff", "--against", "evil"),
    "validate": ("validate", "--against", "evil", "--kustomize", "off"),
    "retain": ("retain", "--against", "evil"),
    "rollout": ("rollout", "research", "--to", "small", "--write"),
}
LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""


class Place(NamedTuple):
    """A platform that somebody works in, and beside it what a hostile commit could be after."""

    root: Path
    victim: Path
    temporary: Path

    def contents(self) -> Mapping[str, bytes]:
        """All that there is but Git's own: files with what they hold, links with where they lead."""
        paths = (
            Path(folder, name) for top in self for folder, *names in os.walk(top) for name in (*names[0], *names[1])
        )
        return {os.fspath(path): _content(path) for path in paths if not path.is_relative_to(self.root / ".git")}


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"-> " + os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A platform whose pool has listed its nodes, so that it can be rolled out; nothing is guaranteed."""
    root = a_platform(a_repository(tmp_path / "platform"))
    pool = (root / "policies/pool.yaml").read_text().replace('namePattern: "research-[0-9]+"', "names: [gpu-1, gpu-2]")
    write(root / "policies/pool.yaml", pool)
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/tenant.yaml", TENANT.replace("guaranteed: 16", "guaranteed: 0, limit: none"))
    write(tmp_path / "victim/profile.yaml", "original\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    commit(root)
    return Place(root, tmp_path / "victim", tmp_path / "temporary")


def read_hostile(place: Place, tree: str, command: str) -> Run:
    """Make the tree a commit, and run the command that reads it; all that is on the disk has to stay as it is."""
    evil = a_commit(place.root, tree, "evil", git(place.root, "rev-parse", "main"))
    if command == "rollout":  # it compares with the last commit
        git(place.root, "update-ref", "refs/heads/main", evil)
    before = place.contents()
    done = run(*COMMANDS[command], cwd=place.root)
    (place.root / "overlays/dev/rollout-research.yaml").unlink(missing_ok=True)
    assert place.contents() == before
    assert "bug in gpuplan" not in done.err
    return done


def with_policies(root: Path, *entries: TreeEntry) -> str:
    """The tree of the last commit, with more entries in its folder `policies/`."""
    policies = a_tree(root, [*entries_of(root, "main:policies"), *entries])
    kept = [entry for entry in entries_of(root, "main") if entry.name != b"policies"]
    return a_tree(root, [*kept, TreeEntry(FOLDER, b"policies", policies)])


# --- What no checkout could have ---------------------------------------------------------------------------------

Hostile = Callable[[Place], list[TreeEntry]]
"""What to add to `policies/`."""
POISON = b"apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: poison}\nspec: {value: 1}\n"


def a_file(place: Place, name: bytes, mode: bytes = FILE) -> TreeEntry:
    return TreeEntry(mode, name, an_object(place.root, "blob", POISON))


def a_folder(place: Place, name: bytes, *entries: TreeEntry, mode: bytes = FOLDER) -> TreeEntry:
    return TreeEntry(mode, name, a_tree(place.root, entries or [a_file(place, b"profile.yaml")]))


def a_link(place: Place, name: bytes, target: bytes) -> TreeEntry:
    return TreeEntry(LINK, name, an_object(place.root, "blob", target))


def profile(place: Place) -> bytes:
    return os.fsencode(place.victim / "profile.yaml")


NAME = "has an entry whose name no checkout could have: `policies/"
TWICE = "has two entries of one name: `policies/"
IMPOSSIBLE: Mapping[str, tuple[str, Hostile]] = {
    "absolute": (NAME, lambda place: [a_file(place, profile(place))]),
    "absolute-and-linked": (
        NAME,
        lambda place: [a_file(place, profile(place)[:-5]), a_link(place, b"zz", profile(place)[:-5])],
    ),
    "absolute-link": (NAME, lambda place: [a_link(place, profile(place)[:-5] + b"-link", b"/etc/passwd")]),
    "absolute-folder": (NAME, lambda place: [a_folder(place, os.fsencode(place.victim))]),
    "upwards": (NAME + "../../victim/profile.yaml`", lambda place: [a_file(place, b"../../victim/profile.yaml")]),
    "two-dots": (NAME + "..`", lambda place: [a_folder(place, b"..", a_folder(place, b".."))]),
    "one-dot": (NAME + ".`", lambda place: [a_folder(place, b".")]),
    "with-a-slash": (NAME + "sub/x.yaml`", lambda place: [a_file(place, b"sub/x.yaml")]),
    "git": (NAME + ".git`", lambda place: [a_folder(place, b".git", a_file(place, b"config"))]),
    "git-in-capitals": (NAME + ".GiT`", lambda place: [a_folder(place, b".GiT")]),
    "endless-name": (NAME + "xxxx", lambda place: [a_file(place, b"x" * 100_000)]),
    "steering-name": (NAME + "\\x1b[2J/\\n`", lambda place: [a_file(place, b"\x1b[2J/\n")]),
    "no-name": ("has an entry without a name: `policies`", lambda place: [a_file(place, b"")]),
    "two-files": (TWICE + "pool.yaml`", lambda place: [a_file(place, b"pool.yaml")]),
    "file-and-folder": (TWICE + "x`", lambda place: [a_file(place, b"x"), a_folder(place, b"x")]),
    "folder-and-link": (TWICE + "x`", lambda place: [a_folder(place, b"x"), a_link(place, b"x", profile(place))]),
    "unknown-mode": (
        "has an entry of mode 010644, which Git does not know: `policies/x.yaml`",
        lambda place: [a_file(place, b"x.yaml", b"010644")],
    ),
    "folder-for-a-file": (
        "has a tree where a blob belongs: `policies/x.yaml`",
        lambda place: [a_folder(place, b"x.yaml", mode=FILE)],
    ),
    "file-for-a-folder": (
        "has a blob where a tree belongs: `policies/x`",
        lambda place: [a_file(place, b"x", FOLDER)],
    ),
    "folder-for-a-link": (
        "has a tree where a blob belongs: `policies/x.yaml`",
        lambda place: [a_folder(place, b"x.yaml", mode=LINK)],
    ),
    "no-tree": (
        "has a folder that is no list of entries: `policies/x`",
        lambda place: [TreeEntry(FOLDER, b"x", an_object(place.root, "tree", b"100644 a"))],
    ),
    "nothing": (
        "git cannot read `policies/x.yaml`: its content is not in this clone",
        lambda place: [TreeEntry(FILE, b"x.yaml", "1" * 40)],
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_checkout_could_have_is_trouble_that_names_it(place: Place, name: str, command: str) -> None:
    message, hostile = IMPOSSIBLE[name]

    done = read_hostile(place, with_policies(place.root, *hostile(place)), command)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "git fsck" in done.err
