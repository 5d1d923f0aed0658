"""Mistakes in a repository, such as renamed folders and edits of out/: each answer is to be followed to the letter."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.platforms import a_platform
from tests.cli.runs import run
from tests.git import a_repository, commit, git


def help_of(*words: str, cwd: Path) -> str:
    """Return the help of what a command reports, on one line."""
    done = run(*words, cwd=cwd)
    text = " ".join((done.out + done.err).split())
    assert "help: " in text
    return text.partition("help: ")[2]


def edit(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


# --- A cluster's folder and its name -----------------------------------------------------------------------------


@pytest.fixture(name="built")
def _built(tmp_path: Path) -> Path:
    run("build", cwd=a_platform(tmp_path, "dev", "prod"))
    return tmp_path


def test_a_renamed_folder_renames_the_cluster_or_is_renamed_back(built: Path) -> None:
    (built / "overlays/dev").rename(built / "overlays/development")

    assert help_of("build", cwd=built).startswith(
        "to rename cluster `dev` to `development`, write `name: development`, then `gpuplan build --prune-clusters`;"
        " to keep `dev`, `git mv overlays/development overlays/dev`"
    )
    edit(built / "overlays/development/cluster.yaml", "{name: dev}", "{name: development}")
    assert run("build", "--prune-clusters", cwd=built).code == 0


def test_a_renamed_document_renames_the_folder_or_is_renamed_back(built: Path) -> None:
    edit(built / "overlays/dev/cluster.yaml", "{name: dev}", "{name: development}")

    assert help_of("build", cwd=built).startswith(
        "to rename cluster `dev` to `development`, `git mv overlays/dev overlays/development`,"
        " then `gpuplan build --prune-clusters`; to keep `dev`, write `name: dev`"
    )


def test_before_a_build_there_is_nothing_to_prune(tmp_path: Path) -> None:
    (a_platform(tmp_path, "dev", "prod") / "overlays/dev").rename(tmp_path / "overlays/development")

    assert "--prune-clusters" not in help_of("build", cwd=tmp_path)


# --- Edits of out/ -----------------------------------------------------------------------------------------------


def _a_class(root: Path) -> Path:
    return next(root.glob("out/dev/**/priorityclass-*.yaml"))


def test_an_edited_line_is_shown_with_what_traces_it(built: Path) -> None:
    file = _a_class(built)
    lines = file.read_text().splitlines()
    at = next(at for at, line in enumerate(lines, 1) if line.startswith("value: "))
    edit(file, f"{lines[at - 1]}\n", "value: 7\n")
    path = file.relative_to(built)

    answer = run("build", cwd=built).out
    assert f"line {at} is `value: 7`, where gpuplan writes `{lines[at - 1]}`\n" in answer
    [place] = re.findall(r"to keep the edit, change `(\S+)`, where the policy says it; then run", answer)
    assert place in run("trace", f"{path}:{at}", cwd=built).out
    said, _, number = place.partition(":")
    policy = built / said
    assert lines[at - 1].split()[1] in policy.read_text().splitlines()[int(number) - 1]


def test_a_line_that_no_policy_says_is_traced(built: Path) -> None:
    file = _a_class(built)
    edit(file, "apiVersion: scheduling.k8s.io/v1\n", "apiVersion: scheduling.k8s.io/v2\n")

    answer = run("build", cwd=built).out
    assert (
        f"change the policy that `gpuplan trace {file.relative_to(built)}:2` names, or write a kustomize Component"
        in answer
    )
    assert "then run `gpuplan build --force`, which alone drops the edit\n" in answer


def test_an_output_elsewhere_is_not_traced(built: Path) -> None:
    run("build", "--out", "made", cwd=built)
    edit(next(built.glob("made/dev/**/priorityclass-*.yaml")), "\nvalue: ", "\nvalue: 1")

    assert "gpuplan trace" not in run("build", "--out", "made", cwd=built).out


def test_an_added_line_may_be_of_no_policy(built: Path) -> None:
    file = _a_class(built)
    edit(file, "metadata:\n", "metadata:\n  labels: {team: ml}\n")

    answer = run("build", cwd=built).out
    assert "is `labels: {team: ml}`, where gpuplan writes no such line\n" in answer
    assert f"`gpuplan trace {file.relative_to(built)}` names, or write a kustomize Component" in answer


def test_of_more_edits_the_first_is_told(built: Path) -> None:
    file = _a_class(built)
    edit(file, "kind: PriorityClass\n", "")
    edit(file, "metadata:\n", "metadata:\n  labels: {team: ml}\n")

    answer = run("build", cwd=built).out
    assert "line 3 is `metadata:`, where gpuplan writes `kind: PriorityClass`; `gpuplan build --diff` shows" in answer


def test_a_lost_line_is_told(built: Path) -> None:
    edit(_a_class(built), "kind: PriorityClass\n", "")

    answer = run("build", cwd=built).out
    assert "a line before line 3 is gone, where gpuplan writes `kind: PriorityClass`\n" in answer


# --- Revisions that a clone does not have ------------------------------------------------------------------------


def _a_clone(tmp_path: Path, *options: str) -> Path:
    """Return a clone of a repository whose branch `next` was not cloned."""
    root = a_platform(a_repository(tmp_path / "root"))
    commit(root)
    git(root, "branch", "next")
    git(tmp_path, "clone", "--quiet", "--single-branch", "--branch=main", *options, root.as_uri(), "clone")
    return tmp_path / "clone"


@pytest.mark.parametrize("options", [(), ("--depth=1",)])
def test_a_branch_without_its_remote_is_fetched_too(tmp_path: Path, options: tuple[str, ...]) -> None:
    clone = _a_clone(tmp_path, *options)

    answer = help_of("validate", "--against", "next", cwd=clone)
    [command] = re.findall("type `git (fetch [^`]+)`, then `gpuplan validate --against next`", answer)
    git(clone, *shlex.split(command))
    assert run("validate", "--against", "next", cwd=clone).code == 0


def test_a_branch_that_only_the_remote_has_here_is_named_with_it(tmp_path: Path) -> None:
    clone = _a_clone(tmp_path, "--no-single-branch")

    assert "Type `gpuplan validate --against origin/next`" in help_of("validate", "--against", "next", cwd=clone)
    assert "fetch" not in help_of("validate", "--against", "nowhere", cwd=clone)


@pytest.mark.parametrize("options", [(), ("--depth=1",)])
def test_a_branch_of_the_remote_is_fetched_by_what_is_said(options: tuple[str, ...], tmp_path: Path) -> None:
    clone = _a_clone(tmp_path, *options)

    answer = help_of("validate", "--against", "origin/next", cwd=clone)
    then = "then `gpuplan validate --against origin/next`; or type `gpuplan validate --against origin/main`"
    [command] = re.findall(rf"type `git ([^`]+)`, {then}", answer)
    git(clone, *shlex.split(command))
    assert run("validate", "--against", "origin/next", cwd=clone).code == 0


def test_a_range_is_answered_alike(tmp_path: Path) -> None:
    clone = _a_clone(tmp_path)

    assert help_of("diff", "origin/next..HEAD", cwd=clone) == (
        "type `git fetch origin +refs/heads/next:refs/remotes/origin/next`, then `gpuplan diff origin/next..HEAD`;"
        " or type `gpuplan diff origin/main..HEAD`"
    )
    assert "`git fetch origin +refs/heads/next:refs/remotes/origin/next`" in help_of("diff", "origin/next", cwd=clone)


def test_without_the_remote_the_local_branch_is_meant(tmp_path: Path) -> None:
    commit(a_platform(a_repository(tmp_path)))

    assert help_of("validate", "--against", "origin/main", cwd=tmp_path).startswith(
        "did you mean `main`? Type `gpuplan validate --against main`"
    )


# --- Names of fields ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ("pool.sharing", "Pool.spec.sharing"),
        ("tenant.quota.guaranteed", "Tenant.spec.quotas.guaranteed"),
        ("tenants.members", "Tenant.spec.members"),
        ("quotas.limit", "Tenant.spec.quotas.limit"),
        ("pool/sharing", "Pool.spec.sharing"),
    ],
)
def test_a_field_without_its_middle_is_found(typed: str, field: str, tmp_path: Path) -> None:
    assert help_of("explain", typed, cwd=tmp_path) == f"did you mean `{field}`? Type `gpuplan explain {field}`"


def test_a_line_behind_the_last_is_answered_with_the_file(tmp_path: Path) -> None:
    answer = help_of("trace", "policies/pool.yaml:999", cwd=a_platform(tmp_path))

    assert answer.endswith("type `gpuplan trace policies/pool.yaml` for all lines")


# --- Links -------------------------------------------------------------------------------------------------------


def test_a_link_to_nothing_is_replaced_by_the_file_of_the_last_commit(tmp_path: Path) -> None:
    pool = a_platform(a_repository(tmp_path)) / "policies/pool.yaml"
    commit(tmp_path)
    pool.unlink()
    pool.symlink_to("nowhere.yaml")

    answer = help_of("validate", cwd=tmp_path)
    assert answer.startswith("bring the file back: `git checkout HEAD -- policies/pool.yaml`, or remove the link: `rm")
    git(tmp_path, "checkout", "HEAD", "--", "policies/pool.yaml")
    assert run("validate", cwd=tmp_path).code == 0
