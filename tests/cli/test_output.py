"""What is said of an `out/` that is stale, half committed, checked out with other line ends, or about to lose much."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.platforms import CLUSTER, POOL, PRIORITY, TENANT, a_platform, write
from tests.cli.runs import REPOSITORY, Run, run
from tests.git import a_repository, commit, git

VALUE_200 = PRIORITY.replace("100", "200")
INVENTORY = "out/.gpuplan/inventory"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
CONCISE = ("--output-format", "concise")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A platform of two clusters, built and committed."""
    root = a_platform(a_repository(tmp_path / "platform"), "dev", "prod")
    assert run("build", "-q", cwd=root).code == 0
    commit(root)
    return root


def remove_cluster(root: Path, name: str) -> None:
    shutil.rmtree(root / "overlays" / name)


# --- validate ----------------------------------------------------------------------------------------------------


def test_validate_says_nothing_of_an_output_that_is_current(root: Path) -> None:
    assert run("validate", cwd=root).err == "no findings in 5 files, 2 clusters\n"


def test_validate_notes_in_one_line_what_changed_since_the_build(root: Path) -> None:
    write(root / "policies/priority.yaml", VALUE_200)
    write(root / "policies/pool.yaml", POOL.replace("replicas: 3", "replicas: 4"))

    done = run("validate", *CONCISE, cwd=root)

    changed = "`Pool research` and `PriorityClass research`"
    line = f"{INVENTORY}:1:1: note[GPU906] `out/` was built before these changed: {changed}\n"
    assert (done.code, done.out) == (0, line)
    assert run("validate", "--warnings-as-errors", cwd=root).code == 0


def test_comments_and_layout_are_no_change(root: Path) -> None:
    write(root / "policies/priority.yaml", "# why\n" + PRIORITY.replace("{value: 100,", "{  value: 100,  # more\n "))

    assert run("validate", cwd=root).out == ""
    assert run("build", "--check", cwd=root).code == 0


def test_a_change_that_changes_no_file_is_stale_until_it_is_built(root: Path) -> None:
    write(root / "policies/priority.yaml", PRIORITY.replace("preempts: false", "preempts: false, description: ''"))

    stale = run("build", "--check", *CONCISE, cwd=root)

    line = f"{INVENTORY}:1:1: error[GPU903] `{INVENTORY}` is of policies that changed since: `PriorityClass research`\n"
    assert (stale.code, stale.out) == (1, line)
    assert "nothing but the inventory changed in out/ (" in run("build", cwd=root).err
    assert run("build", "--check", cwd=root).code == 0


def test_an_overlay_is_stale_for_its_cluster_alone(root: Path) -> None:
    write(
        root / "overlays/dev/pool.yaml",
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: research}\nspec:\n  nodes: {count: 3}\n",
    )

    assert "`Pool research`" in run("validate", "-c", "dev", cwd=root).out
    assert run("validate", "-c", "prod", cwd=root).out == ""


def test_a_cluster_that_is_new_or_gone_is_told_by_its_name(root: Path) -> None:
    remove_cluster(root, "prod")
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("NAME", "test"))

    assert "changed: `Cluster prod` and `Cluster test`\n" in run("validate", *CONCISE, cwd=root).out


def test_validate_warns_in_one_line_of_files_that_were_not_committed(root: Path) -> None:
    """As `git commit -a` does: files that are changed or gone are committed, those that are new are not."""
    write(root / "policies/tenant.yaml", TENANT.replace("namespaces: [research]", "namespaces: [other]"))
    assert run("build", "-q", cwd=root).code == 0
    git(root, "commit", "--quiet", "--all", "--message", "half")
    git(root.parent, "clone", "--quiet", "platform", "clone")

    done = run("validate", *CONCISE, cwd=root.parent / "clone")

    assert done.code == 0
    (line,) = done.out.splitlines()
    assert line.startswith(f"{INVENTORY}:1:1: warning[GPU907] `out/` lacks what `gpuplan build` wrote: `out/dev/")
    assert run("validate", "--warnings-as-errors", cwd=root.parent / "clone").code == 1


@pytest.mark.parametrize("command", [("validate",), ("build", "--check"), ("build",)])
@pytest.mark.parametrize("file", ["dev/extra.yaml", "extra.json", "dev/namespaces/research/extra.yml"])
def test_a_manifest_that_no_kustomization_lists_is_noted(root: Path, file: str, command: tuple[str, ...]) -> None:
    (root / "out" / file).write_text("kind: ConfigMap\n")

    done = run(*command, "-o", "concise", cwd=root)

    assert done.code == 0
    assert f"note[GPU909] `out/{file}` is not gpuplan's, and no kustomization lists it" in done.out
    assert (root / "out" / file).is_file()


def test_the_place_for_a_manifest_is_read_by_the_next_build(root: Path) -> None:
    (root / "out/dev/namespaces/research/extra.yaml").touch()
    place = root / "overlays/dev/kustomize/namespaces/research"

    assert f"move it to {place.relative_to(root)}/, and write" in " ".join(run("validate", cwd=root).out.split())

    (root / "out/dev/namespaces/research/extra.yaml").unlink()
    write(place / "kustomization.yaml", f"{COMPONENT}resources: [extra.yaml]\n")
    write(place / "extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: research}\n")
    assert run("build", cwd=root).code == 0


@pytest.mark.parametrize("file", ["dev/README.md", "own/extra.yaml", "own/kustomization.yaml"])
def test_nothing_is_said_of_files_that_are_no_manifests_or_are_read(root: Path, file: str) -> None:
    write(root / "out/own/kustomization.yaml", "resources: [extra.yaml]\n")
    write(root / "out" / file, "kind: ConfigMap\n")

    assert run("validate", cwd=root).out == ""


def test_validate_notes_in_one_line_what_was_edited_by_hand(root: Path) -> None:
    file = root / "out/dev/kustomization.yaml"
    file.write_text(file.read_text() + "# mine\n")
    later(file)

    done = run("validate", "-o", "concise", cwd=root)

    assert done.code == 0
    name = "out/dev/kustomization.yaml"
    assert done.out == f"{name}:1:1: note[GPU901] edited by hand since `gpuplan build`: `{name}`\n"


@pytest.mark.parametrize("command", ["validate", "build", "build --check"])
def test_conflict_markers_are_no_edit(root: Path, command: str) -> None:
    file = root / "out/dev/partitions/kustomization.yaml"
    file.write_text(file.read_text() + "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> topic\n")

    done = run(*command.split(), cwd=root)

    assert "conflict markers" in done.out
    assert "help: run `gpuplan build --force`\n" in done.out
    assert "by hand" not in done.out


def test_a_missing_inventory_is_one_finding(root: Path) -> None:
    (root / INVENTORY).unlink()
    write(root / "policies/priority.yaml", VALUE_200)

    checked, built = (run(command, *CONCISE, cwd=root) for command in ("validate", "build"))

    assert [line.split("] ")[0] for line in checked.out.splitlines()] == [f"{INVENTORY}:1:1: warning[GPU907"]
    assert [line.split("] ")[0] for line in built.out.splitlines()] == [f"{INVENTORY}:1:1: error[GPU902"]
    for command in ("validate", "build"):
        assert f"`git checkout HEAD -- {INVENTORY}`, or run `gpuplan build --force`" in run(command, cwd=root).out


def test_a_file_of_somebody_else_is_no_sign_of_a_lost_inventory(root: Path) -> None:
    shutil.rmtree(root / "out")
    write(root / "out/dev/kustomization.yaml", "resources: []\n")

    assert "inventory" not in run("validate", cwd=root).out
    assert "`out/dev/kustomization.yaml` exists, and gpuplan did not write it" in run("build", cwd=root).out


def test_a_cluster_file_that_is_gone_comes_back_from_git(root: Path) -> None:
    (root / "overlays/dev/cluster.yaml").unlink()
    write(root / "overlays/dev/policies.yaml", PRIORITY)

    assert "help: bring it back: `git checkout HEAD -- overlays/dev/cluster.yaml`\n" in run("validate", cwd=root).out


def test_a_file_that_was_only_touched_is_not_edited(root: Path) -> None:
    file = root / "out/dev/kustomization.yaml"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    later(file)

    assert run("validate", cwd=root).out == ""


def later(file: Path) -> None:
    """Let a file be newer than any other, however coarse the clock of the file system."""
    time = file.stat().st_mtime_ns + 10**9
    os.utime(file, ns=(time, time))


def test_an_inventory_that_a_merge_broke_is_told(root: Path) -> None:
    inventory = root / "out/.gpuplan/inventory"
    write(inventory, "<<<<<<< HEAD\n" + inventory.read_text())

    done = run("validate", cwd=root)

    assert done.code == 0
    assert "warning[GPU907]: `out/.gpuplan/inventory` is not the JSON that gpuplan wrote" in done.out


@pytest.mark.parametrize(
    "path", ["../../../../../../etc/passwd", "/etc/passwd", "dev/\0", "dev/\ud800", "dev/" * 1_000 + "x"]
)
def test_an_inventory_that_lists_what_no_build_writes_is_told(root: Path, path: str) -> None:
    list_file(root, path)

    done = run("validate", *CONCISE, cwd=root)

    assert done.code == 0
    assert "warning[GPU907] `out/.gpuplan/inventory` lists a path that gpuplan never writes: `" in done.out


def test_an_inventory_learns_nothing_of_what_is_behind_links(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    (root / "out/dev/there").symlink_to(tmp_path)
    list_file(root, "dev/there/secret")

    done = run("validate", *CONCISE, cwd=root)

    assert "warning[GPU907] `out/dev/there` is a symbolic link, and" in done.out


# --- Where it lies in the repository ---------------------------------------------------------------------------------


ARGOCD = "  argocd: {repoURL: https://git.example.com/platform/gpus.git}\n"


@pytest.mark.parametrize(("tool", "name"), [(ARGOCD, "Argo CD"), ("  flux: {}\n", "Flux")])
def test_a_platform_below_the_top_of_its_repository_is_told_and_the_path_in_the_help_ends_it(
    tool: str, name: str, tmp_path: Path
) -> None:
    top = a_repository(tmp_path / "all")
    root = a_platform(top / "teams/gpus", "dev")
    file = root / "overlays/dev/cluster.yaml"
    write(file, file.read_text() + tool)

    done = run("validate", *CONCISE, cwd=root)

    (line,) = done.out.splitlines()
    assert f"note[GPU908] {name} would look for `out/` at the top of the repository" in line
    assert "`path: teams/gpus/out`" in run("validate", cwd=root).out
    assert "GPU908" in run("build", *CONCISE, cwd=root).out
    write(
        file, file.read_text().replace("{}", "{path: teams/gpus/out}").replace(".git}", ".git, path: teams/gpus/out}")
    )
    assert "GPU908" not in run("validate", *CONCISE, cwd=root).out


def test_a_platform_at_the_top_or_with_a_path_or_in_no_repository_is_not_told(tmp_path: Path) -> None:
    places = (a_repository(tmp_path / "top"), tmp_path / "nowhere", a_repository(tmp_path / "all") / "gpus")
    for root, path in zip(places, ("", "", ", path: out"), strict=True):
        a_platform(root, "dev")
        file = root / "overlays/dev/cluster.yaml"
        write(file, file.read_text() + ARGOCD.replace("}", f"{path}}}"))
        assert "GPU908" not in run("validate", *CONCISE, cwd=root).out, root


@pytest.mark.parametrize(
    ("path", "told"),
    [("team/gpus/out", True), ("teams/gpu/out", True), ("teams/gpus/out/", False), ("mirror/of/gpus", False)],
)
def test_a_path_that_is_nearly_that_of_the_output_is_told(path: str, *, told: bool, tmp_path: Path) -> None:
    root = a_platform(a_repository(tmp_path / "all") / "teams/gpus", "dev")
    file = root / "overlays/dev/cluster.yaml"
    write(file, file.read_text() + ARGOCD.replace("}", f", path: {path}}}"))

    words = run("validate", cwd=root).out

    assert ("did you mean `teams/gpus/out`?" in words, "GPU908" in words) == (told, told)


def test_a_path_of_another_folder_that_is_there_is_not_told(tmp_path: Path) -> None:
    top = a_repository(tmp_path / "all")
    root = a_platform(top / "teams/gpus", "dev")
    (top / "teams/gpu/out").mkdir(parents=True)
    file = root / "overlays/dev/cluster.yaml"
    write(file, file.read_text() + ARGOCD.replace("}", ", path: teams/gpu/out}"))

    assert "GPU908" not in run("validate", *CONCISE, cwd=root).out


def list_file(root: Path, path: str) -> None:
    inventory = root / "out/.gpuplan/inventory"
    body = json.loads(inventory.read_text())
    body["files"][path] = "sha256:0"
    write(inventory, json.dumps(body))


def test_an_inventory_of_an_earlier_release_claims_nothing(root: Path) -> None:
    inventory = root / "out/.gpuplan/inventory"
    body = json.loads(inventory.read_text())
    del body["policies"]
    write(inventory, json.dumps(body))

    assert run("build", "--check", cwd=root).code == 0
    write(root / "policies/priority.yaml", VALUE_200)
    assert run("validate", cwd=root).out == ""


def test_without_an_output_nothing_is_said(tmp_path: Path) -> None:
    assert run("validate", cwd=a_platform(tmp_path)).out == ""


def test_errors_come_first(root: Path) -> None:
    write(root / "policies/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))

    assert "GPU906" not in run("validate", cwd=root).out


# --- diff --------------------------------------------------------------------------------------------------------


def half_committed(root: Path) -> Path:
    write(root / "policies/tenant.yaml", TENANT.replace("namespaces: [research]", "namespaces: [other]"))
    assert run("build", "-q", cwd=root).code == 0
    git(root, "commit", "--quiet", "--all", "--message", "half")
    return root


def test_diff_says_of_a_revision_that_files_are_missing(root: Path) -> None:
    half_committed(root)

    done = run("diff", "HEAD^..HEAD", cwd=root)

    about = [line for line in done.out.splitlines() if "out/" in line and "policies make" in line]
    commit_ = git(root, "rev-parse", "HEAD")[:12]
    missing = len(list((root / "out").glob("*/namespaces/other/*")))
    assert about == [f"`out/` in `HEAD` ({commit_}) is not what its policies make: {missing} files are missing"]


def test_diff_says_what_differs_in_a_commit_that_was_not_built(root: Path) -> None:
    write(root / "policies/priority.yaml", VALUE_200)
    commit(root)

    markdown = run("diff", "HEAD^..HEAD", "--output-format", "markdown", cwd=root).out
    body = json.loads(run("diff", "HEAD^..HEAD", "--output-format", "json", cwd=root).out)

    assert "is not what its policies make: 2 files differ" in markdown
    assert body["earlier"]["output"] == {"differing": 0, "missing": 0, "trouble": None}
    assert body["later"]["output"] == {"differing": 2, "missing": 0, "trouble": None}


def test_diff_of_the_working_tree_says_what_to_run(root: Path) -> None:
    write(root / "policies/priority.yaml", VALUE_200)

    done = run("diff", "-c", "dev", cwd=root)

    assert done.out.splitlines()[2:4] == [
        "`out/` in the working tree is not what its policies make: 1 file differs; run `gpuplan build`, then",
        "  `git add out`",
    ]


def test_diff_says_nothing_of_an_output_that_is_current_or_not_there(root: Path, tmp_path: Path) -> None:
    assert "policies make" not in run("diff", cwd=root).out
    shutil.rmtree(root / "out")
    commit(root)
    body = json.loads(run("diff", "--output-format", "json", cwd=root).out)
    assert (body["earlier"]["output"], body["later"]["output"]) == (None, None)


# --- build: what to add ------------------------------------------------------------------------------------------


def test_build_says_what_git_does_not_know(root: Path) -> None:
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("NAME", "test"))

    done = run("build", cwd=root)

    new = len([path for path in (root / "out/test").rglob("*") if path.is_file()])
    assert done.err.splitlines()[-1] == f"{new} files are not in Git yet: `git add out`"
    git(root, "add", "out")
    assert "git add" not in run("build", cwd=root).err


def test_the_folder_to_add_is_named_from_where_one_is(root: Path) -> None:
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("NAME", "test"))

    assert run("build", "-C", "platform", cwd=root.parent).err.splitlines()[-1].endswith("`git add platform/out`")


def test_build_says_that_git_ignores_what_it_wrote(root: Path) -> None:
    write(root / ".gitignore", "test/\n")
    write(root / "overlays/test/cluster.yaml", CLUSTER.replace("NAME", "test"))

    assert " are ignored by Git, and nobody who clones gets them" in run("build", cwd=root).err.splitlines()[-1]


def test_a_line_that_ignores_the_output_is_named(root: Path) -> None:
    write(root / ".gitignore", "*.log\n/out/\n")
    git(root, "rm", "-rq", "--cached", "out")

    for command in (("build",), ("build", "--check")):
        assert "nobody who clones gets them: delete `/out/` from .gitignore\n" in run(*command, cwd=root).err


def test_without_git_build_says_nothing_of_it(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert run("build", cwd=root).err.splitlines()[-1].endswith(" files)")
    assert run("build", cwd=root, env={"PATH": ""}).err.splitlines()[-1].endswith(" files)")


# --- build: what would go ----------------------------------------------------------------------------------------


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("options", [(), ("--force",), ("--check",)])
def test_a_cluster_that_is_gone_is_named_and_stays(root: Path, options: tuple[str, ...]) -> None:
    remove_cluster(root, "prod")
    before = files(root / "out")

    done = run("build", *options, cwd=root)

    number = len(files(root / "out/prod"))
    assert done.code == 1
    assert f"error[GPU905]: this build would delete all of `out/prod/` ({number} files)\n" in done.out
    help_ = (
        "help: bring the cluster back: `git checkout HEAD -- overlays/prod`; if it is meant, run `gpuplan build --prune"
    )
    assert help_ in done.out
    assert help_ in run("validate", cwd=root).out
    assert files(root / "out") == before


def test_it_goes_when_that_is_said(root: Path) -> None:
    remove_cluster(root, "prod")

    assert run("build", "--prune-clusters", cwd=root).code == 0
    assert not (root / "out/prod").exists()


def test_a_renamed_cluster_is_told_as_such(root: Path) -> None:
    remove_cluster(root, "prod")
    write(root / "overlays/live/cluster.yaml", CLUSTER.replace("NAME", "live"))

    assert "`live` is new: for what syncs it, a renamed cluster is another one" in run("build", cwd=root).out


def test_a_build_of_another_cluster_asks_nothing(root: Path) -> None:
    remove_cluster(root, "prod")

    assert run("build", "-c", "dev", cwd=root).code == 0
    assert (root / "out/prod").exists()


def test_a_cluster_whose_files_are_gone_already_is_nothing_to_ask_about(root: Path) -> None:
    remove_cluster(root, "prod")
    shutil.rmtree(root / "out/prod")

    assert run("build", cwd=root).code == 0


def test_the_objects_of_a_tool_are_a_clusters_folder_too(root: Path) -> None:
    cluster = CLUSTER.replace("NAME", "dev")
    write(root / "overlays/dev/cluster.yaml", cluster + "  flux: {source: {name: platform}}\n")
    assert run("build", "-q", cwd=root).code == 0
    write(root / "overlays/dev/cluster.yaml", cluster)

    done = run("build", *CONCISE, cwd=root)

    assert done.code == 1
    assert "GPU905] this build would delete all of `out/flux/dev/` (" in done.out


def a_fleet(root: Path, tenants: int) -> Path:
    names = [f"team-{number}" for number in range(tenants)]
    texts = [
        TENANT.replace("name: research", f"name: {name}")
        .replace("namespaces: [research]", f"namespaces: [{name}]")
        .replace("guaranteed: 16", "guaranteed: 1")
        for name in names
    ]
    write(root / "policies/tenant.yaml", "---\n".join(texts))
    return root


def test_most_files_of_a_cluster_do_not_go_unasked(tmp_path: Path) -> None:
    root = a_fleet(a_platform(tmp_path), 20)
    assert run("build", "-q", cwd=root).code == 0
    before = len(files(root / "out/dev"))

    few = run("build", *CONCISE, "--check", cwd=a_fleet(root, 15))
    most = run("build", *CONCISE, cwd=a_fleet(root, 2))

    assert "GPU905" not in few.out
    assert most.code == 1
    assert run("build", "-q", "--prune-clusters", cwd=root).code == 0
    lost = before - len(files(root / "out/dev"))
    assert f"GPU905] this build would delete {lost} of the {before} files of `out/dev/`\n" in most.out


def test_half_of_a_small_cluster_may_go(tmp_path: Path) -> None:
    root = a_fleet(a_platform(tmp_path), 3)
    assert run("build", "-q", cwd=root).code == 0

    assert run("build", cwd=a_fleet(root, 1)).code == 0


@pytest.mark.parametrize("option", ["--check", "--diff", "--stdout"])
def test_who_writes_nothing_prunes_nothing(root: Path, option: str) -> None:
    assert run("build", "--prune-clusters", option, "-c", "dev", cwd=root).code == 2


def on_a_terminal(answer: str, cwd: Path) -> Run:
    """Run `gpuplan build` with a terminal, and somebody at it."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gpuplan.cli", "build"],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=60)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # Linux has no end of a terminal but an error
        while part := os.read(ours, 1 << 16):
            said += part
    os.close(ours)
    return Run(process.returncode, out, said.decode().replace("\r\n", "\n"))


def test_at_a_terminal_one_is_asked(root: Path) -> None:
    remove_cluster(root, "prod")

    no = on_a_terminal("n", root)
    assert (no.code, (root / "out/prod").exists()) == (1, True)
    assert "this build would delete all of `out/prod/` (" in no.err
    assert "delete them? [y/N]: " in no.err

    yes = on_a_terminal("y", root)
    assert (yes.code, (root / "out/prod").exists()) == (0, False)


# --- Line ends ---------------------------------------------------------------------------------------------------


def clone(root: Path) -> Path:
    """As Git for Windows checks it out."""
    git(root.parent, "clone", "--quiet", "--config", "core.autocrlf=true", "platform", "clone")
    return root.parent / "clone"


def test_line_ends_that_git_changed_are_one_finding_and_put_right(root: Path) -> None:
    checked_out = clone(root)
    assert b"\r\n" in (checked_out / "out/dev/kustomization.yaml").read_bytes()

    done = run("build", "--check", *CONCISE, cwd=checked_out)
    built = run("build", *CONCISE, cwd=checked_out)

    assert done.code == 1
    assert [line.split()[1] for line in done.out.splitlines()] == ["error[GPU904]"]
    assert built.code == 0
    assert [line.split()[1] for line in built.out.splitlines()] == ["warning[GPU904]"]
    assert run("build", "--check", cwd=checked_out).code == 0
    git(checked_out, "add", "out")
    assert git(checked_out, "status", "--porcelain") == ""


def test_validate_reads_an_inventory_with_other_line_ends(root: Path) -> None:
    assert run("validate", cwd=clone(root)).out == ""


def test_the_attribute_that_a_starter_has_keeps_git_from_changing_them(root: Path) -> None:
    assert run("init", "starter", cwd=root).code == 0
    shutil.copy(root / "starter/.gitattributes", root)
    shutil.rmtree(root / "starter")
    commit(root)

    assert run("build", "--check", cwd=clone(root)).code == 0


def test_git_adds_crlf_when_the_attribute_is_there_before_the_build(root: Path) -> None:
    """Why the help names the build first."""
    checked_out = clone(root)
    write(checked_out / ".gitattributes", "out/** -text\n")
    git(checked_out, "add", "--renormalize", "out")
    blob = subprocess.run(
        ["git", "show", ":out/dev/kustomization.yaml"], cwd=checked_out, capture_output=True, check=True
    )
    assert b"\r\n" in blob.stdout

    assert run("build", "-q", cwd=checked_out).code == 0
    git(checked_out, "add", "out")
    assert git(checked_out, "diff", "--cached", "--stat", "--", "out") == ""
