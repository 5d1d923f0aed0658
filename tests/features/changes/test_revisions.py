"""Platforms are read as they were at a revision, and what stands in the way is said."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import find_repository
from gpuplan.compiler.pipeline.loading import Repository, load
from gpuplan.features.changes import git as running_git
from gpuplan.features.changes.revisions import Revision, get_merge_base, get_revision, is_in_git, read_revision
from tests.cli.platforms import POOL, TENANT, a_platform, write
from tests.git import TreeEntry, a_commit, a_repository, a_tree, an_object, commit, entries_of, git


def nodes(root: Path, revision: Revision) -> int:
    [plan] = read_revision(root, revision).plans
    return plan.pools[0].nodes.count


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform whose pool has 2 nodes in the first commit, 3 in the second and 4 in the working tree."""
    root = a_platform(a_repository(tmp_path / "platform"))
    commit(root)
    write(root / "policies/pool.yaml", POOL.replace("count: 2", "count: 3"))
    commit(root)
    write(root / "policies/pool.yaml", POOL.replace("count: 2", "count: 4"))
    return root


# --- What is read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("HEAD", 3), ("HEAD~1", 2), ("main", 3), ("main^", 2)])
def test_a_revision_is_read_as_it_was(root: Path, name: str, count: int) -> None:
    assert nodes(root, get_revision(root, name)) == count


def test_tags_and_commits_are_revisions(root: Path) -> None:
    git(root, "tag", "--annotate", "v1", "--message", "first", "HEAD~1")

    assert nodes(root, get_revision(root, "v1")) == 2
    assert nodes(root, get_revision(root, git(root, "rev-parse", "HEAD")[:8])) == 3


def test_neither_the_files_nor_the_index_change(root: Path) -> None:
    write(root / "policies/new.yaml", "kind: nothing\n")
    git(root, "add", "policies/new.yaml")
    before = (git(root, "status", "--porcelain"), (root / ".git/index").read_bytes())

    read_revision(root, get_revision(root, "HEAD~1"))

    assert (git(root, "status", "--porcelain"), (root / ".git/index").read_bytes()) == before


def test_objects_may_have_longer_names(tmp_path: Path) -> None:
    root = tmp_path / "platform"
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "platform")
    commit(a_platform(a_repository(root)))

    revision = get_revision(root, "HEAD")

    assert len(revision.commit) == 64
    assert nodes(root, revision) == 2


def test_the_platform_may_be_a_folder_of_the_repository(tmp_path: Path) -> None:
    top = a_repository(tmp_path / "everything")
    a_platform(top / "infra/gpu")
    write(top / "other/broken.yaml", "{")
    commit(top)
    write(top / "infra/gpu/policies/pool.yaml", "broken: [")

    revision = get_revision(top / "infra/gpu", "HEAD")

    assert revision.folder == "infra/gpu/"
    assert nodes(top / "infra/gpu", revision) == 2


def test_a_work_tree_and_a_submodule_have_revisions_of_their_own(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "--quiet", "--detach", "../beside", "HEAD~1")
    other = a_repository(tmp_path / "other")
    git(other, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", root.as_uri(), "platform")

    assert nodes(tmp_path / "beside", get_revision(tmp_path / "beside", "HEAD")) == 2
    assert nodes(other / "platform", get_revision(other / "platform", "HEAD")) == 3


def test_what_is_called_git_and_is_none_is_passed_over(root: Path) -> None:
    """As git passes it over: an empty folder, such as exports leave, and one that is half made."""
    (root / "policies/.git").mkdir()
    write(root / "overlays/.git/HEAD", "ref: refs/heads/main\n")
    write(root / "overlays/dev/.git/HEAD", "ref: refs/heads/main\n")
    (root / "overlays/dev/.git/refs").mkdir()

    for folder in ("policies", "overlays", "overlays/dev"):
        repository = find_repository(root / folder)
        assert repository is not None
        assert (repository.top, repository.prefix) == (root, f"{folder}/")
        assert git(root / folder, "rev-parse", "--show-prefix") == f"{folder}/"


def test_a_hook_may_ask_for_a_folder_of_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = a_repository(tmp_path)
    a_platform(top / "gpu")
    commit(top)
    monkeypatch.chdir(top)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")

    assert nodes(Path("gpu"), get_revision(Path("gpu"), "HEAD")) == 2


def test_what_git_archive_leaves_out_is_read(root: Path) -> None:
    write(root / ".gitattributes", "policies export-ignore\n* export-subst\n")
    commit(root)

    assert nodes(root, get_revision(root, "HEAD")) == 4


def test_links_are_followed_as_in_the_files(root: Path) -> None:
    (root / "policies/tenant.yaml").rename(root / "tenant.txt")
    (root / "policies/tenant.yaml").symlink_to("../tenant.txt")
    commit(root)

    repository = read_revision(root, get_revision(root, "HEAD"))

    assert repository.diagnostics == ()
    assert [tenant.name for tenant in repository.plans[0].tenants] == ["research"]


def test_a_link_out_of_the_repository_is_refused_there_too(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.yaml", "kind: Pool\n")
    (root / "policies/link.yaml").symlink_to(tmp_path / "secret.yaml")
    commit(root)

    [found] = read_revision(root, get_revision(root, "HEAD")).diagnostics

    assert found.finding.message == "link `policies/link.yaml` leaves the repository"


def test_names_need_not_be_plain(root: Path) -> None:
    write(
        root / "policies/ä b\tc.yaml",
        TENANT.replace("research\nspec", "other\nspec").replace("[research]\n", "[o]\n", 1),
    )
    commit(root)

    plans = read_revision(root, get_revision(root, "HEAD")).plans

    assert [tenant.name for tenant in plans[0].tenants] == ["other", "research"]


def test_of_the_clusters_named_only_those_are_read_that_there_were(root: Path) -> None:
    assert read_revision(root, get_revision(root, "HEAD"), ["dev", "prod"]).clusters == ("dev",)
    assert read_revision(root, get_revision(root, "HEAD"), ["prod"]).clusters == ()


def test_the_merge_base_is_where_two_branches_part(root: Path) -> None:
    git(root, "branch", "side")
    commit(root, "main goes on")
    git(root, "checkout", "--quiet", "side")
    commit(root, "so does side")

    base = get_merge_base(root, "main", "side")

    assert nodes(root, base) == 3
    assert base.commit.startswith(base.name)


def findings(repository: Repository) -> list[tuple[str, str, str]]:
    return [(item.code, item.finding.message, item.finding.at.locate().file.path) for item in repository.diagnostics]


def test_a_revision_is_read_as_its_checkout_is(tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path / "everything") / "gpu", "dev", "prod")
    priority = "apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: NAME}\nspec: {value: 1}\n"
    for index, path in enumerate(
        (
            *("B.yaml", "b.yaml", "b/z.YML", "b/c/d.yaml", "b.c.yaml", "a b.yaml", "caf\u00e9.yaml", "x\\y.yaml"),
            *(".hidden.yaml", ".git-like/x.yaml", ".gpuplan/inventory", "b/.gpuplan/inventory", "notes.txt"),
            *("folder.yaml/inner.yaml", "line\nend.yaml"),
        )
    ):
        write(root / "policies" / path, priority.replace("NAME", f"p{index}"))
    write(root / os.fsdecode(b"policies/caf\xe9.yaml"), "broken: [")
    write(root.parent / "shared/s.yaml", priority.replace("NAME", "shared"))
    write(root / "more/more.yaml", priority.replace("NAME", "more"))
    for name, target in {
        "policies/l1.yaml": "../more/more.yaml",
        "policies/l2.yaml": "../../shared/s.yaml",
        "policies/l3.yaml": "../../gpu/policies/l1.yaml",
        "policies/l4.yaml": "gone.yaml",
        "policies/l5.yaml": "b",
        "policies/l6": "../../shared",
        "policies/l7": "../../shared/s.yaml",
        "policies/l8.yaml": "l8.yaml",
        "policies/l9.yaml": "up/more/more.yaml",
        "policies/up": "..",
        "overlays/linked": "dev",
        "overlays/README": "../../shared/s.yaml",
        "overlays/dev/kustomize": "../prod",
    }.items():
        (root / name).symlink_to(target)
    commit(root.parent)

    revision = read_revision(root, get_revision(root, "HEAD"))
    files = load(root)

    assert revision.clusters == files.clusters == ("dev", "linked", "prod")
    assert findings(revision) == findings(files)
    assert len(findings(files)) > 10
    assert [sorted(item.name for item in plan.priority_classes) for plan in revision.plans] == [
        sorted(item.name for item in plan.priority_classes) for plan in files.plans
    ]
    assert revision.file_count == files.file_count
    assert revision.folders == files.folders


def test_a_folder_that_is_a_link_out_of_the_commit_is_trouble(root: Path, tmp_path: Path) -> None:
    (root / "policies").rename(tmp_path / "policies")
    (root / "policies").symlink_to(tmp_path / "policies")
    commit(root)

    assert trouble(root, "HEAD")[0] == "folder `policies` is a link out of the repository"


# --- What git is not to do ---------------------------------------------------------------------------------------


def test_replaced_objects_and_grafts_stand_in_for_nothing(root: Path) -> None:
    pool = git(root, "rev-parse", "HEAD:policies/pool.yaml")
    git(root, "replace", pool, git(root, "rev-parse", "HEAD~1:policies/pool.yaml"))
    git(root, "replace", "HEAD", "HEAD~1")
    write(root / ".git/info/grafts", f"{git(root, 'rev-parse', 'HEAD')}\n")

    assert git(root, "show", "HEAD:policies/pool.yaml") == POOL.strip()
    assert nodes(root, get_revision(root, "HEAD")) == 3
    assert nodes(root, get_merge_base(root, "HEAD", "HEAD~1")) == 2


def test_attributes_filters_and_programs_of_the_configuration_do_nothing(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    write(program, f"#!/bin/sh\necho ran >> {tmp_path}/ran\n")
    program.chmod(0o755)
    write(root / ".gitattributes", "* filter=own diff=own text eol=crlf working-tree-encoding=UTF-16 ident\n")
    for name in (
        *("filter.own.smudge", "filter.own.clean", "filter.own.process", "diff.own.textconv", "diff.external"),
        *("core.fsmonitor", "core.pager", "pager.cat-file", "core.sshCommand", "core.editor", "gpg.program"),
    ):
        git(root, "config", name, os.fspath(program))
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (root / ".git/hooks" / hook).symlink_to(program)
    plain = an_object(root, "blob", b"* filter=own diff=own text eol=crlf working-tree-encoding=UTF-16 ident\n")
    tree = a_tree(root, [*entries_of(root), TreeEntry(b"100644", b".gitattributes", plain)])
    evil = a_commit(root, tree, "evil")
    (tmp_path / "ran").unlink(missing_ok=True)

    assert nodes(root, get_revision(root, evil)) == 3
    assert nodes(root, get_merge_base(root, evil, evil)) == 3
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"])
def test_the_folder_says_which_repository_is_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    other = a_repository(tmp_path / "other")
    commit(other)
    monkeypatch.setenv(name, os.fspath(other / ".git" if name != "GIT_WORK_TREE" else other))

    assert nodes(root, get_revision(root, "HEAD")) == 3


def test_objects_that_are_only_being_pushed_are_found(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root)
    quarantine = tmp_path / "incoming"
    (root / ".git/objects").rename(quarantine)
    (root / ".git/objects").mkdir()
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", os.fspath(quarantine))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", os.fspath(root / ".git/objects"))

    assert nodes(root, get_revision(root, "HEAD")) == 4


def test_a_partial_clone_fetches_nothing_and_is_told_how_to(root: Path, tmp_path: Path) -> None:
    commit(root)
    git(root, "config", "uploadpack.allowFilter", "true")
    git(root, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", root.as_uri(), "partial")
    clone = tmp_path / "partial"
    missing = git(clone, "rev-list", "--objects", "--missing=print", "HEAD")

    message, hint = trouble(clone, "HEAD")

    assert message == "git cannot read `overlays/dev/cluster.yaml`: its content is not in this clone"
    assert hint == "this clone is partial: run `git fetch --refetch --no-filter`, or clone without `--filter`"
    assert git(clone, "rev-list", "--objects", "--missing=print", "HEAD") == missing
    git(clone, *hint.split("`")[1].split(" ")[1:])
    assert nodes(clone, get_revision(clone, "HEAD")) == 4


def test_one_process_reads_all_objects(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "bin/git", f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexec {shutil.which("git")} "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    for index in range(50):
        a_platform(root, f"cluster-{index}")
    commit(root)
    revision = get_revision(root, "HEAD")
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "bin"), prepend=os.pathsep)

    assert len(read_revision(root, revision).plans) == 51
    [asked] = (tmp_path / "log").read_text().splitlines()
    assert asked.endswith(" cat-file --batch")


# --- What stands in the way --------------------------------------------------------------------------------------


def trouble(root: Path, name: str) -> tuple[str, str]:
    with pytest.raises(GpuplanError) as caught:
        read_revision(root, get_revision(root, name))
    return caught.value.message, caught.value.hint


def test_a_misspelt_revision_is_answered_with_the_nearest(root: Path) -> None:
    assert trouble(root, "mian") == ("there is no revision `mian` here", "did you mean `main`?")


@pytest.mark.parametrize("name", ["origin/main", "master", "upstream/trunk"])
def test_the_usual_branch_of_another_repository_is_the_one_that_is_here(root: Path, name: str) -> None:
    assert trouble(root, name)[1] == "did you mean `main`?"


def test_the_branches_and_tags_that_exist_are_listed(root: Path) -> None:
    git(root, "branch", "more-pools")

    assert trouble(root, "feature")[1].startswith("there are `HEAD`, `main` and `more-pools`")


def test_a_file_is_no_revision(root: Path) -> None:
    assert trouble(root, "policies/pool.yaml")[1] == (
        "it is a file: name a revision or a folder, such as `--against HEAD`"
    )


@pytest.mark.parametrize("name", ["--output=x", "-1", "main:policies", "a b", "main^{tree}"])
def test_no_name_is_an_option_or_anything_but_a_commit(root: Path, name: str) -> None:
    assert trouble(root, name)[0] == f"there is no revision `{name}` here"


def test_a_repository_without_commits_has_no_head(tmp_path: Path) -> None:
    assert trouble(a_platform(a_repository(tmp_path)), "HEAD")[1] == "commit once: there is no commit yet"


def test_outside_of_git_there_are_no_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", os.fspath(tmp_path.parent))
    a_platform(tmp_path)

    assert not is_in_git(tmp_path)
    assert trouble(tmp_path, "main") == (
        f"`main` is looked for in Git, and `{tmp_path}` is in no Git repository",
        "compare with a folder instead: `--against ./DIR`",
    )


def test_without_git_one_is_told_so(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))

    assert trouble(root, "HEAD") == (
        "there is no git on the path to read revisions with",
        "install git, or compare with a folder instead: `--against ./DIR`",
    )


def test_a_shallow_clone_names_the_way_to_the_rest(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), "shallow")

    message, hint = trouble(tmp_path / "shallow", "HEAD~1")

    assert message == "there is no revision `HEAD~1` here"
    assert hint == "this clone is shallow: run `git fetch --unshallow`, or check out with `fetch-depth: 0` in CI"


def test_a_revision_may_have_no_platform_yet(tmp_path: Path) -> None:
    root = a_repository(tmp_path)
    write(root / "gpu/README.md", "soon\n")
    commit(root)
    a_platform(root / "gpu")

    repository = read_revision(root / "gpu", get_revision(root / "gpu", "HEAD"))

    assert (repository.clusters, repository.plans, repository.diagnostics) == ((), (), ())


@pytest.mark.parametrize("folder", ["policies", "policies/shared", "overlays"])
def test_a_submodule_is_not_taken_for_an_empty_folder(tmp_path: Path, folder: str) -> None:
    other = a_repository(tmp_path / "other")
    commit(other)
    root = a_platform(a_repository(tmp_path / "platform"))
    if folder in ("policies", "overlays"):
        (root / folder).rename(tmp_path / "away")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.as_uri(), folder)
    commit(root)

    message, hint = trouble(root, "HEAD")

    assert message == f"`{folder}` is a submodule at `HEAD`, and only what is in the commit itself is read"
    assert hint.endswith("`--against ./DIR`")


def test_branches_without_a_common_commit_have_no_base(root: Path) -> None:
    git(root, "checkout", "--quiet", "--orphan", "lonely")
    commit(root)

    with pytest.raises(GpuplanError, match="`main` and `lonely` have no commit in common here"):
        get_merge_base(root, "main", "lonely")


@pytest.mark.parametrize("damage", [b"", b"no zlib", zlib.compress(b"blob 5\0a")])
def test_a_damaged_object_is_trouble(root: Path, damage: bytes) -> None:
    digest = git(root, "rev-parse", "HEAD:policies/pool.yaml")
    path = root / ".git/objects" / digest[:2] / digest[2:]
    path.chmod(0o644)
    path.write_bytes(damage)

    message, hint = trouble(root, "HEAD")

    assert message.startswith(("`git cat-file` fails: it says ", "git cannot read "))
    assert hint


def test_git_that_says_nothing_is_not_waited_for(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    revision = get_revision(root, "HEAD")
    write(tmp_path / "bin/git", "#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(running_git, "LONGEST_READ", 0.2)

    with pytest.raises(GpuplanError, match=r"`git cat-file` says nothing within"):
        read_revision(root, revision)
