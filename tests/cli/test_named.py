"""Files that arguments name are written through no link of a repository, and read through none that leads out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.platforms import a_platform, write
from tests.cli.runs import run
from tests.git import a_repository, commit, git

NODES = "apiVersion: v1\nkind: NodeList\nitems: []\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform in a repository, with a file of somebody else's beside it."""
    write(tmp_path / "victim/file", "original\n")
    root = a_platform(a_repository(tmp_path / "repository"))
    write(root / "nodes.yaml", NODES)
    commit(root)
    return root


def victim(root: Path) -> str:
    return (root.parent / "victim/file").read_text()


WRITERS = {
    "findings": ("validate", "-o", "sarif=FILE"),
    "build": ("build", "-o", "markdown=FILE"),
    "difference": ("diff", "-o", "json=FILE"),
    "report": ("report", "--output", "FILE"),
}


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("target", ["../victim/file", "../victim/new", "policies/pool.yaml", ".git/config", "r"])
def test_no_report_is_written_through_a_link(root: Path, command: tuple[str, ...], target: str) -> None:
    (root / "r").symlink_to(target)
    before = (root / ".git/config").read_bytes(), (root / "policies/pool.yaml").read_bytes()

    done = run(*(word.replace("FILE", "r") for word in command), cwd=root)

    assert (done.code, done.err.splitlines()) == (
        2,
        ["error: `r` is a link, and nothing is written through it", "  = help: delete it, or name another file"],
    )
    assert victim(root) == "original\n"
    assert not (root.parent / "victim/new").exists()
    assert not (root / "out").exists()
    assert before == ((root / ".git/config").read_bytes(), (root / "policies/pool.yaml").read_bytes())


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_link_on_the_way_is_one_too(root: Path, command: tuple[str, ...]) -> None:
    (root / "reports").symlink_to("../victim")

    done = run(*(word.replace("FILE", "reports/file") for word in command), cwd=root)

    assert (done.code, victim(root)) == (2, "original\n")


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_what_was_a_file_and_links_of_the_users_are_written(root: Path, command: tuple[str, ...]) -> None:
    write(root / "r", "old")
    (root.parent / "mine").symlink_to("victim/file")

    for place in ("r", "../mine", os.fspath(root.parent / "mine")):
        assert run(*(word.replace("FILE", place) for word in command), cwd=root).code in (0, 1)

    assert (root / "r").read_text() != "old"
    assert victim(root) != "original\n"


def test_the_platform_may_be_elsewhere(root: Path, tmp_path: Path) -> None:
    (root / "r").symlink_to("../victim/file")
    (tmp_path / "here").mkdir()

    done = run("-C", "../repository", "validate", "-o", "sarif=../repository/r", cwd=tmp_path / "here")

    assert (done.code, victim(root)) == (2, "original\n")


@pytest.mark.parametrize(("target", "leads"), [("../victim", "../victim"), ("rendered", "rendered"), (".git", ".git")])
def test_the_output_is_no_link(root: Path, target: str, leads: str) -> None:
    (root / "rendered").mkdir()
    (root / "out").symlink_to(target)

    done = run("build", cwd=root)

    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "error: `out` is a link, and nothing is written through it",
            f"  = help: make it a folder, or name where it leads: `--out {leads}`",
        ],
    )
    assert sorted(os.listdir(root.parent / "victim")) == ["file"]
    assert sorted(os.listdir(root / "rendered")) == []


def test_where_a_link_led_can_be_named(root: Path) -> None:
    """What an output that is a link was good for, by one option: the same files at the same place."""
    (root / "out").symlink_to("../victim")

    assert run("build", "--out", "../victim", cwd=root).code == 0
    assert (root.parent / "victim/.gpuplan/inventory").is_file()


READERS = {
    "check": ("check", "FILE"),
    "nodes": ("retain", "--against", "HEAD", "--nodes", "FILE"),
    "import": ("import", "FILE", "-c", "new", "--dry-run"),
    "drift": ("drift", "FILE", "-c", "dev"),
    "pack": ("pack", "FILE", "-c", "dev"),
}


@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
@pytest.mark.parametrize("target", ["../victim/file", ".git/config"])
def test_nothing_is_read_through_a_link_out_of_the_repository(
    root: Path, command: tuple[str, ...], target: str
) -> None:
    (root / "list.yaml").symlink_to(target)

    done = run(*(word.replace("FILE", "list.yaml") for word in command), cwd=root)

    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "error: `list.yaml` is a link out of the repository, and not followed",
            "  = help: copy the file there, or name where the link leads",
        ],
    )


def test_links_within_the_repository_and_links_of_the_users_are_read(root: Path) -> None:
    (root / "list.yaml").symlink_to("nodes.yaml")
    write(root.parent / "mine.yaml", NODES)
    (root.parent / "link.yaml").symlink_to("mine.yaml")

    for place in ("list.yaml", "../link.yaml"):
        done = run("check", place, cwd=root)

        assert (done.code, "note[GPU801]" in done.out, "1 note in 1 file" in done.err) == (0, True, True), place


def test_definitions_are_not_read_through_links_out_of_their_folder(root: Path) -> None:
    (root / "crds").mkdir()
    (root / "crds/a.yaml").symlink_to("../../victim/file")

    done = run("validate", "--crds", "crds", "-o", "concise", cwd=root)

    assert "original" not in done.out + done.err


# --- Whose links they are ---------------------------------------------------------------------------------------------


def test_a_platform_in_no_repository_is_somebody_elses_too(tmp_path: Path) -> None:
    """As an archive that was unpacked."""
    root = a_platform(tmp_path / "unpacked")
    write(tmp_path / "victim/file", "original\n")
    (root / "r").symlink_to("../victim/file")
    (root / "out").symlink_to("../victim")

    assert run("validate", "-o", "sarif=r", cwd=root).code == 2
    assert run("build", cwd=root).code == 2
    assert (victim(root), os.listdir(tmp_path / "victim")) == ("original\n", ["file"])


def test_no_ceiling_makes_a_link_the_users(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "gpu").mkdir()
    (root / "gpu/r").symlink_to("../../victim/file")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", os.fspath(root))

    done = run("catalog", "A100-80GB", cwd=root / "gpu")
    refused = run("-C", "..", "validate", "-o", "sarif=r", cwd=root / "gpu")

    assert (done.code, refused.code, victim(root)) == (0, 2, "original\n")


def test_a_link_behind_a_link_of_the_users_is_found(root: Path) -> None:
    (root / "reports").symlink_to("../victim")
    (root.parent / "mine").symlink_to(root / "reports")

    assert run("validate", "-o", "sarif=../mine/file", cwd=root).code == 2
    assert victim(root) == "original\n"


def test_a_link_of_a_repository_around_this_one_is_found(root: Path) -> None:
    inner = a_platform(a_repository(root / "inner"))
    (root / "r").symlink_to("../victim/file")

    assert run("validate", "-o", "sarif=../r", cwd=inner).code == 2
    assert victim(root) == "original\n"


def test_links_without_end_are_no_way(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert run("catalog", "A100-80GB", "-o", "json", cwd=tmp_path).code == 0
    assert run("check", "a", cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    "arguments", [("validate", "--crds", "there"), ("diff", "--against", "./there"), ("-C", "there", "show")]
)
def test_no_folder_is_read_through_a_link_out_of_the_repository(root: Path, arguments: tuple[str, ...]) -> None:
    a_platform(root.parent / "victim")
    (root / "there").symlink_to("../victim")

    done = run(*arguments, cwd=root)

    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "error: `there` is a link out of the repository, and not followed",
    )


def test_no_platform_is_begun_through_a_link(root: Path) -> None:
    for target in ("../victim", "../nowhere"):
        (root / "new").unlink(missing_ok=True)
        (root / "new").symlink_to(target)

        assert run("init", "new", cwd=root).code == 2

    assert sorted(os.listdir(root.parent)) == ["repository", "victim"]
    assert os.listdir(root.parent / "victim") == ["file"]


def test_a_link_to_the_platform_within_its_repository_names_it(root: Path) -> None:
    a_platform(root / "deploy/gpu")
    (root / "gpu").symlink_to("deploy/gpu")

    assert run("-C", "gpu", "build", cwd=root).code == 0
    assert (root / "deploy/gpu/out/.gpuplan/inventory").is_file()


# --- Whose revisions they are -----------------------------------------------------------------------------------------


def test_a_link_in_the_platforms_place_has_no_revisions(root: Path) -> None:
    """It may have been the platform at the one, and lead to another folder at the other."""
    a_platform(root / "archive")
    (root / "platform").symlink_to("archive")
    commit(root)

    refused = run("-C", "platform", "diff", "HEAD~1..HEAD", "--fail-on", "metadata", cwd=root)

    assert (refused.code, refused.err.splitlines()) == (
        2,
        [
            "error: `platform` is a link, which may lead elsewhere at `HEAD~1`",
            "  = help: name where it leads: `-C archive`",
        ],
    )
    assert run("-C", "archive", "diff", "HEAD..HEAD", cwd=root).code == 0


def test_a_submodules_revisions_are_asked_for_in_it(root: Path, tmp_path: Path) -> None:
    outer = a_repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", root.as_uri(), "platform")
    commit(outer)

    refused = run("-C", "platform", "diff", "HEAD..HEAD", "--fail-on", "metadata", cwd=outer)

    assert (refused.code, refused.err.splitlines()) == (
        2,
        [
            "error: `platform` is in the submodule `platform`, and `HEAD` would be one of its own revisions",
            "  = help: run it there: `cd platform`",
        ],
    )
    assert run("diff", "HEAD..HEAD", cwd=outer / "platform").code == 0


def test_what_a_commit_applies_and_does_not_make_fails_a_gate(root: Path) -> None:
    """As where attributes of Git make other files of a commit than its policies are."""
    assert run("build", cwd=root).code == 0
    base = commit(root)
    written = next((root / "out").rglob("clusterpolicy*.yaml"), None) or next((root / "out/dev").rglob("*.yaml"))
    write(written, written.read_text() + "# by hand\n")
    commit(root)

    assert run("diff", f"{base}..HEAD", cwd=root).code == 0
    assert run("diff", f"{base}..HEAD", "--fail-on", "metadata", cwd=root).code == 1
    assert run("diff", f"{base}..{base}", "--fail-on", "metadata", cwd=root).code == 0
